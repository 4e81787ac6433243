"""Relations by name: how to declare them, what they do in the encoder, what it refuses."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel.models import heads, input_utils, modeling, side_inputs
from etcmodel.ops import relations
from tests import page
from tests.models import etcs, text_cases

CONFIG = etcs.config(relative_vocab_size=12, initializer_range=0.3)
LABELS = CONFIG.relation_labels("cites", "is a", "mentions")
TOKENS = np.arange(6)[np.newaxis]
GLOBAL_TOKENS = np.arange(3)[np.newaxis]
BOTH = (TOKENS, GLOBAL_TOKENS)


@pytest.fixture(scope="module")
def model():
    model = modeling.EtcModel(CONFIG)
    model.get_token_embedding_table()  # Builds it.
    return model


def make_structure(distance=CONFIG.relative_pos_max_distance):
    """One document of three sentences of two words."""
    return input_utils.make_structure_from_example_ids(
        np.ones([1, 6]), np.ones([1, 3]), [[0, 0, 1, 1, 2, 2]], distance
    )


def dense(structure):
    return {
        name: None if x is None else x.numpy()
        for name, x in side_inputs.side_inputs_of(structure, CONFIG.local_radius).to_dict().items()
    }


def assert_equals_dense_form(model, structure):
    side_inputs = {name: x for name, x in dense(structure).items() if x is not None}
    outputs, expected = model(*BOTH, structure=structure), model(*BOTH, **side_inputs)
    for x, y in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
    return outputs


def test_a_new_edge_type_between_global_tokens_is_one_statement(model):
    plain = make_structure()

    structure = plain.with_relations(relations.GlobalEdges([[[2, 0]]], "cites", LABELS["cites"]))

    labels = dense(plain)
    labels["g2g_relative_att_ids"][0, 2, 0] = LABELS["cites"]  # From 2 to 0, and not back.
    for name, expected in labels.items():
        np.testing.assert_array_equal(dense(structure)[name], expected, err_msg=name)
    outputs = assert_equals_dense_form(model, structure)
    assert not np.allclose(outputs[1], model(*BOTH, structure=plain)[1], atol=1e-4)


def test_the_label_of_an_edge_type_is_learned(model):
    structure = make_structure().with_relations(
        relations.GlobalEdges([[[2, 0]]], "cites", LABELS["cites"])
    )
    attention = model.global_local_transformer_layers.fused_att_layers[0].inner_layer
    table = attention.global_qkv_attention.relative_bias_table
    with tf.GradientTape() as tape:
        _, global_output = model(*BOTH, structure=structure)
        loss = tf.reduce_sum(global_output**3)
    gradient = tf.convert_to_tensor(tape.gradient(loss, table)).numpy()
    assert np.all(gradient[LABELS["cites"]] != 0) and np.all(gradient[LABELS["is a"]] == 0)


def test_every_kind_says_the_same_as_its_dense_form(model):
    window = np.full([1, 6, 5], -1)
    window[0, 3, 1] = LABELS["is a"]  # Token 3 as the query and token 2 as the key.
    matrix = np.full([1, 3, 3], -1)
    matrix[0, 1, 1] = LABELS["is a"]
    structure = make_structure().with_relations(
        relations.LinkIds([[-1, 2, 2, -1, -1, 0]], "mentions", LABELS["mentions"]),
        relations.LinkPairs([[[3, 0], [3, 2], [-1, -1]]], "mentions", LABELS["mentions"]),
        relations.GlobalEdges([[[0, 1], [1, 0]]], "cites", LABELS["cites"]),
        relations.LongEdges([[[0, 2], [-1, -1]]], "cites", LABELS["cites"]),
        relations.GlobalLabels(matrix, "tree"),
        relations.LongLabels(window, "tree"),
    )
    labels = dense(structure)
    is_mention = labels["l2g_relative_att_ids"][0] == LABELS["mentions"]
    assert np.argwhere(is_mention).tolist() == [[1, 2], [2, 2], [3, 0], [3, 2], [5, 0]]
    np.testing.assert_array_equal(
        labels["g2l_relative_att_ids"], labels["l2g_relative_att_ids"].transpose([0, 2, 1])
    )
    expected = [[0, LABELS["cites"], 2], [LABELS["cites"], LABELS["is a"], 1], [4, 3, 0]]
    np.testing.assert_array_equal(labels["g2g_relative_att_ids"][0], expected)
    plain = dense(make_structure())["l2l_relative_att_ids"]
    is_new = labels["l2l_relative_att_ids"] != plain
    assert np.argwhere(is_new).tolist() == [[0, 0, 4], [0, 3, 1]]
    assert labels["l2l_relative_att_ids"][is_new].tolist() == [LABELS["cites"], LABELS["is a"]]
    assert_equals_dense_form(model, structure)


def test_of_several_relations_the_last_declared_gives_the_label(model):
    edges = [
        relations.GlobalEdges([[[0, 1], [0, 2]]], "cites", LABELS["cites"]),
        relations.GlobalEdges([[[0, 1]]], "is a", LABELS["is a"]),
        relations.GlobalEdges([[[0, 1]]], "nothing"),
    ]
    forth, back = (make_structure().with_relations(*x) for x in (edges, edges[::-1]))
    labels = [dense(x)["g2g_relative_att_ids"][0, 0].tolist() for x in (forth, back)]
    assert labels == [[0, LABELS["is a"], LABELS["cites"]], [0, LABELS["cites"], LABELS["cites"]]]
    for structure in (forth, back):
        assert_equals_dense_form(model, structure)


def test_hard_masks_follow_the_relations_that_say_so(model):
    mentions = [[[5, 0], [5, 1]]]
    structure = make_structure()._replace(use_hard_l2g_mask=True)
    soft, hard = (
        structure.with_relations(
            relations.LinkPairs(mentions, "mentions", LABELS["mentions"], is_hard=is_hard)
        )
        for is_hard in (False, True)
    )
    assert dense(soft)["l2g_att_mask"][0, 5].tolist() == [0, 0, 1]
    assert dense(hard)["l2g_att_mask"][0, 5].tolist() == [1, 1, 1]
    assert dense(hard)["g2l_att_mask"].all()  # There is no hard mask in this direction.
    assert_equals_dense_form(model, hard)


def test_with_hard_edges_tokens_see_where_these_lead_and_themselves(model):
    structure = make_structure().with_relations(
        relations.GlobalEdges([[[0, 2]]], "cites", LABELS["cites"], is_hard=True),
        relations.GlobalEdges([[[0, 1]]], "is a", LABELS["is a"]),
        relations.GlobalEdges([[[2, 1]]], "parent", is_hard=True),  # A mask without a label.
        relations.LongEdges([[[3, 2]]], "head", is_hard=True),
    )
    masks = dense(structure)
    assert masks["g2g_att_mask"][0].tolist() == [[1, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert masks["l2l_att_mask"][0, 3].tolist() == [0, 1, 1, 0, 0]
    assert masks["l2l_att_mask"][0, [0, 1, 2, 4, 5]].tolist() == [[0, 0, 1, 0, 0]] * 5
    assert_equals_dense_form(model, structure)


def test_labels_without_positions():
    """A model of absolute positions has label 0 for those; the rest of the numbering is alike."""
    config = dataclasses.replace(CONFIG, relative_pos_max_distance=0, relative_vocab_size=5)
    model = modeling.EtcModel(config)
    label = config.relation_labels("cites")["cites"]
    plain = make_structure(distance=0)
    assert not plain.has_labels and dense(plain)["l2l_relative_att_ids"] is None
    structure = plain.with_relations(relations.GlobalEdges([[[2, 0]]], "cites", label))
    assert dense(structure)["g2g_relative_att_ids"][0].tolist() == [[0] * 3, [0] * 3, [4, 0, 0]]
    assert dense(structure)["l2g_relative_att_ids"][0, 0].tolist() == [2, 1, 1]
    assert not dense(structure)["l2l_relative_att_ids"].any()
    assert_equals_dense_form(model, structure)


def test_a_short_input_takes_the_middle_of_its_windows(model):
    """Windows are those of the model, however few tokens there are."""
    tokens, window = np.ones([1, 2], int), np.full([1, 2, 5], -1)
    window[0, 0, 3] = LABELS["is a"]
    structure = input_utils.make_structure_from_example_ids(
        np.ones([1, 2]), np.ones([1, 3]), [[0, 1]], 2
    )
    outputs = [
        model(tokens, GLOBAL_TOKENS, structure=structure.with_relations(relation))
        for relation in (
            relations.LongLabels(window, "next"),
            relations.LongEdges([[[0, 1]]], "is a", LABELS["is a"]),
        )
    ]
    for x, y in zip(*outputs, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.slow
def test_the_json_of_a_functional_model_holds_its_relations(model):
    inputs = [tf_keras.Input(shape, dtype=tf.int32) for shape in ([6], [3], [None, 2])]
    structure = input_utils.make_structure_from_example_ids(
        tf.ones_like(inputs[0]), tf.ones_like(inputs[1]), tf.zeros_like(inputs[0]), 2
    ).with_relations(
        relations.GlobalEdges(inputs[2], "cites", LABELS["cites"], is_hard=True),
        relations.LongEdges(tf.constant([[[0, 1]]]), "is a", LABELS["is a"]),
    )
    functional = tf_keras.Model(inputs, modeling.EtcModel(CONFIG)(*inputs[:2], structure=structure))
    twin = tf_keras.models.model_from_json(functional.to_json())
    twin.set_weights(functional.get_weights())
    arguments = [*BOTH, np.array([[[0, 1], [2, 1]]])]
    for output, expected in zip(twin(arguments), functional(arguments), strict=True):
        np.testing.assert_array_equal(output, expected)
    with pytest.raises(ValueError, match=r"relations\[0\] \(edges/cites\)` must hold pairs"):
        twin([*BOTH, np.array([[[0, 3]]])])


def test_the_page_on_extending_shows_how_to_add_a_relation():
    code, _ = page.code("Add a relation")
    names = {}
    exec(code, names)
    structure, labels = names["structure"], names["labels"]
    ids = side_inputs.side_inputs_of(structure, 4)
    cites, named = labels["cites"], labels["names"]
    g2g = ids.g2g_relative_att_ids[0].numpy().tolist()
    assert g2g == [[0, 1, 2], [cites, 0, 1], [cites, cites, 0]]
    assert ids.l2g_relative_att_ids[0, 4].numpy().tolist() == [labels.cross, labels.linked, named]
    assert names["global_output"].shape == (1, 3, 16)


@pytest.fixture(scope="module")
def of_page():
    """What the page defines, a kind of relation among it, which is unknown outside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relations, "KINDS", dict(relations.KINDS))
        names = {"__name__": "page"}
        for code in page.code("Add a relation"):
            exec(code, names)
        yield names


@pytest.mark.slow
def test_the_page_s_kind_of_relation_is_as_edges(of_page, tmp_path):
    names = of_page
    config, own, label = names["config"], names["GlobalNext"], names["labels"]["follows"]
    *others, relation = names["structure"].relations
    assert type(relation) is own
    edges = relations.GlobalEdges([[[0, 1], [1, 2]]], "follows", label)
    twin = names["structure"]._replace(relations=()).with_relations(*others, edges)
    tokens = names["tokens"], names["global_tokens"]
    np.testing.assert_array_equal(
        names["model"](*tokens, structure=twin)[1], names["global_output"]
    )
    with pytest.raises(ValueError, match=r"Received: 3 in example 0 at token 1 for 3 global token"):
        wrong = names["structure"].with_relations(own([[1, 3, -1]], "follows", label))
        names["model"](*tokens, structure=wrong)

    config = dataclasses.replace(config, initializer_range=0.5)
    model = heads.EtcForSentenceSelection(config, relation_names=("cites", "names", "follows"))
    batch = {"token_ids": tokens[0], "global_token_ids": tokens[1]}
    given = {**batch, "next/follows": names["followers"]}
    expected = model({**batch, "edges/follows": edges.ids})
    np.testing.assert_array_equal(model(given), expected)
    is_other = np.abs(model(given) - model(batch)) > 1e-4
    assert is_other.tolist() == [[True, True, False]]  # None follows the last one.
    functional = model.functional(*given)
    assert functional.input["next/follows"].shape.as_list() == [None, None]
    functional.save(tmp_path / "model.keras")
    again = tf_keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(given), expected)


def test_texts_with_the_page_s_kind_of_relation_are_classified_also_from_a_folder(
    of_page, tmp_path
):
    """Its feature is put beside what the processor makes of the texts."""
    processor = text_cases.processor(tmp_path, relation_names=("follows",))
    config = text_cases.config(processor, num_hidden_layers=1, initializer_range=0.5)
    options = {"labels": ("no", "yes"), "relation_names": ("follows",), "pooling": "first_global"}
    model = heads.EtcForSequenceClassification(config, **options)
    model.processor = processor
    texts = ["a b. c d. e f.", "g h. i j."]
    batch = {name: x for name, x in processor(texts).items() if name != "edges/follows"}
    count = batch["global_token_ids"].shape[1]
    numbers = np.arange(1, count + 1)
    followers = np.where(numbers < np.sum(batch["global_token_ids"] > 0, 1)[:, None], numbers, -1)
    given = {**batch, "next/follows": followers}
    pairs = np.argwhere(followers >= 0)
    edges = np.full([2, count, 2], -1)
    for row, token in pairs:
        edges[row, token] = token, followers[row, token]
    logits = model(given).numpy()
    np.testing.assert_array_equal(logits, model({**batch, "edges/follows": edges}))
    assert np.abs(logits - model(batch)).min() > 1e-5

    model.save_pretrained(tmp_path / "folder")
    again = etcmodel.from_pretrained(tmp_path / "folder")
    made = {name: again.processor(texts)[name] for name in batch} | {"next/follows": followers}
    np.testing.assert_array_equal(again(made), logits)
    again.compile(tf_keras.optimizers.Adam(0.02), run_eagerly=True)
    losses = again.fit(made, np.array([1, 0]), epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_relations_are_nests_of_tensors_that_any_function_maps():
    """Keras and distribution strategies map functions over all that a layer is called with."""
    structure = make_structure().with_relations(relations.GlobalEdges([[[0, 1]]], "cites", 8))
    nothing = tf.nest.map_structure(lambda x: None, structure)
    assert nothing.relations[0][1:] == (None,) * 4
    again = tf.nest.pack_sequence_as(structure, tf.nest.flatten(structure))
    assert type(again.relations[0]) is relations.GlobalEdges
