"""Features to the arguments of an encoder: what is added, and what is refused."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.models import features as features_lib
from etcmodel.models import modeling
from etcmodel.ops import relations
from tests.models import etcs

CONFIG = etcs.config(
    vocab_size=30,
    segment_vocab_size=4,
    local_radius=3,
    relative_vocab_size=12,
    global_block_length=2,
)
IDS = np.array([[7, 8, 9, 5, 6], [4, 3, 0, 0, 0]])


def completed(features, config=CONFIG, relation_names=()):
    return features_lib.completed(features, config, relation_names)


def with_config(**changes):
    return dataclasses.replace(CONFIG, **changes)


class TestDefaults:
    def test_of_bare_ids_are_one_document_and_a_global_token_a_block(self):
        inputs = completed(IDS)
        arguments = inputs.arguments
        np.testing.assert_array_equal(arguments["token_ids"], IDS)
        np.testing.assert_array_equal(arguments["global_token_ids"], [[1, 1, 1], [1, 0, 0]])
        np.testing.assert_array_equal(inputs.links, [[0, 0, 1, 1, 2], [0, 0, -1, -1, -1]])
        np.testing.assert_array_equal(inputs.mask, IDS > 0)
        np.testing.assert_array_equal(inputs.global_mask, [[1, 1, 1], [1, 0, 0]])
        structure = arguments["structure"]
        np.testing.assert_array_equal(structure.long_segment_ids, IDS > 0)
        np.testing.assert_array_equal(structure.links[0], inputs.links)
        assert structure.max_distance == 2
        assert set(arguments) == {"token_ids", "global_token_ids", "structure"}

    def test_follow_the_config(self):
        config = with_config(pad_token_id=3, global_token_id=9, use_hard_g2l_mask=True)
        inputs = completed(IDS, config)
        np.testing.assert_array_equal(inputs.mask, IDS != 3)
        np.testing.assert_array_equal(inputs.arguments["global_token_ids"], np.full([2, 3], 9))
        assert inputs.arguments["structure"].use_hard_g2l_mask

    def test_without_blocks_the_global_input_is_empty(self):
        inputs = completed(IDS, with_config(global_block_length=0))
        assert inputs.arguments["global_token_ids"].shape == [2, 0]
        np.testing.assert_array_equal(inputs.links, np.full(IDS.shape, -1))

    def test_sentences_have_a_global_token_each(self):
        links = [[0, 0, 1, 2, 3], [0, 1, -1, -1, -1]]
        inputs = completed({"token_ids": IDS, "links": links})
        expected = [[1, 1, 1, 1], [1, 1, 0, 0]]
        np.testing.assert_array_equal(inputs.arguments["global_token_ids"], expected)
        np.testing.assert_array_equal(inputs.links, links)

    def test_examples_of_a_row_keep_apart_from_each_other(self):
        example_ids = np.array([[1, 1, 2, 2, 0]])
        features = {"token_ids": IDS[:1], "example_ids": example_ids, "links": [[0, 0, 1, 1, -1]]}
        inputs = completed(features)
        np.testing.assert_array_equal(inputs.global_example_ids, [[1, 2]])
        np.testing.assert_array_equal(inputs.example_ids, example_ids)

    def test_positions_begin_again_in_each_example(self):
        config = with_config(max_absolute_position_embeddings=8)
        example_ids = [[1, 1, 1, 2, 2], [1, 2, 2, 0, 0]]
        arguments = completed({"token_ids": IDS, "example_ids": example_ids}, config).arguments
        expected = [[0, 1, 2, 0, 1], [0, 0, 1, 0, 1]]
        np.testing.assert_array_equal(arguments["position_ids"], expected)
        places = completed(IDS, config).arguments["position_ids"]
        np.testing.assert_array_equal(places, [range(5)] * 2)
        places = completed([[0, 0, 7, 8, 0], [7, 0, 8, 9, 1]], config).arguments["position_ids"]
        np.testing.assert_array_equal(places, [[0, 0, 0, 1, 2], range(5)])  # Padding on the left.

    def test_each_example_begins_a_block(self):
        example_ids = [[1, 2, 2, 2, 3], [1, 1, 0, 0, 0]]
        inputs = completed({"token_ids": IDS, "example_ids": example_ids})
        np.testing.assert_array_equal(inputs.links, [[0, 1, 1, 2, 3], [0, 0, -1, -1, -1]])
        np.testing.assert_array_equal(inputs.global_example_ids, [[1, 2, 2, 3], [1, 0, 0, 0]])
        np.testing.assert_array_equal(
            inputs.arguments["global_token_ids"], [[1, 1, 1, 1], [1, 0, 0, 0]]
        )

    def test_of_rows_of_one_example_are_those_of_bare_ids(self):
        inputs, bare = completed({"token_ids": IDS, "example_ids": np.sign(IDS)}), completed(IDS)
        np.testing.assert_array_equal(inputs.links, bare.links)
        np.testing.assert_array_equal(inputs.global_example_ids, bare.global_example_ids)

    def test_without_blocks_packed_examples_have_an_empty_global_input(self):
        features = {"token_ids": IDS, "example_ids": [[1, 1, 2, 2, 2]] * 2}
        inputs = completed(features, with_config(global_block_length=0))
        assert inputs.arguments["global_token_ids"].shape == [2, 0]

    def test_given_global_tokens_are_taken_as_they_are(self):
        global_ids = [[2, 3], [2, 0]]
        inputs = completed({"token_ids": IDS, "global_token_ids": global_ids})
        np.testing.assert_array_equal(inputs.arguments["global_token_ids"], global_ids)
        np.testing.assert_array_equal(inputs.global_mask, [[1, 1], [1, 0]])
        np.testing.assert_array_equal(inputs.links, np.full(IDS.shape, -1))

    def test_labels_are_left_out(self):
        assert "labels" not in completed({"token_ids": IDS, "labels": 3}).arguments
        assert features_lib.is_label("labels/start") and not features_lib.is_label("links/labels")


def test_relations_become_those_of_the_structure_with_their_labels():
    features = {
        "token_ids": IDS,
        "global_token_ids": np.ones([2, 3], int),
        "links/names": [[[0, 1]], [[-1, -1]]],
        "edges/cites": [[[0, 2]], [[1, 0]]],
        "long_edges/next": [[[0, 2]], [[0, 1]]],
    }
    names = ("cites", "names", "next")
    structure = completed(features, relation_names=names).arguments["structure"]
    labels = CONFIG.relation_labels(*names)
    kinds = {relation.name: (type(relation), relation.label) for relation in structure.relations}
    assert kinds == {
        "names": (relations.LinkPairs, labels["names"]),
        "cites": (relations.GlobalEdges, labels["cites"]),
        "next": (relations.LongEdges, labels["next"]),
    }
    model = modeling.EtcModel(CONFIG)
    outputs = model(**completed(features, relation_names=names).arguments)
    assert outputs[0].shape == [2, 5, 8] and outputs[1].shape == [2, 3, 8]


def test_padding_changes_nothing_and_order_matters():
    tf_keras.utils.set_random_seed(0)
    model = modeling.EtcModel(with_config(initializer_range=0.5))
    long_output, global_output = model(**model.structure(IDS[1:, :2]))
    padded, padded_global = model(**model.structure(IDS[1:]))
    np.testing.assert_allclose(padded[:, :2], long_output, atol=1e-5)
    np.testing.assert_allclose(padded_global[:, :1], global_output, atol=1e-5)
    reordered, _ = model(**model.structure(IDS[1:, 1::-1]))
    assert np.abs(reordered[:, ::-1] - long_output).max() > 1e-2


def test_examples_in_a_row_are_as_rows_of_their_own():
    """Of 3 and 6 tokens, so that no block of 2 tokens by place ends where the first one does."""
    tf_keras.utils.set_random_seed(0)
    config = with_config(initializer_range=0.5, max_absolute_position_embeddings=8)
    model = modeling.EtcModel(config)
    ids = np.array([[7, 8, 9, 5, 6, 4, 3, 7, 2]])
    packed = {"token_ids": ids, "example_ids": [[1] * 3 + [2] * 6]}
    found, *alone = (
        model(**completed(x, config).arguments) for x in (packed, ids[:, :3], ids[:, 3:])
    )
    for output, *rows in zip(found, *alone, strict=True):
        np.testing.assert_allclose(output, np.concatenate(rows, axis=1), atol=1e-5)


@pytest.mark.parametrize(
    "features, message",
    [
        (IDS[0], r"`token_ids` must have shape \[batch, long_len\]. Received shape: \[5\]"),
        (IDS / 2, "`token_ids` must be integers. Received: float64"),
        (np.array([["a"]]), "`token_ids` must be integers. Received: string"),
        ([[1, 2], [3]], "`token_ids` must have shape .*padded. .*rows of different lengths"),
        (tf.ragged.constant([[1, 2], [3]]), "`token_ids` .*padded. Received: a RaggedTensor"),
        (
            IDS + 24,
            "`token_ids` must be at least 0 and below `vocab_size` of the config, 30. Received "
            "values from 24 to 33",
        ),
        ({"input_ids": IDS}, r"There is no feature `token_ids` \(`input_ids`\?\). Received"),
        (
            {"token_ids": IDS, "attention_mask": IDS},
            "There is no feature of the name `attention_mask`. There are: token_ids, ",
        ),
        (
            {"token_ids": IDS, "segment_ids": IDS[:, :3]},
            r"`segment_ids` .*here \[2, 5\]. Received shape: \[2, 3\]",
        ),
        (
            {"token_ids": IDS, "segment_ids": IDS},
            "`segment_ids` must be at least 0 and below `segment_vocab_size` of the config, 4. .*9",
        ),
        (
            {"token_ids": IDS, "global_token_ids": IDS[:1]},
            r"`global_token_ids` must have shape \[batch, global_len\], here \[2, global_len\]",
        ),
        (
            {"token_ids": IDS, "global_token_ids": IDS[:, :2], "links": IDS},
            "`links` must be at least -1 and below the number of global tokens. .* 0 to 9",
        ),
        (
            {"token_ids": IDS, "links": IDS - 3},
            "`links` must be at least -1 and below the number of long tokens, without "
            "`global_token_ids`. .* -3 to 6",
        ),
        (
            {"token_ids": IDS, "links": 0 * IDS + [0, 0, 0, 0, 2**31 - 2]},
            "`links` must be at least -1 and below the number of long .* 0 to 2147483646",
        ),
        ({"token_ids": IDS, "example_ids": IDS - 1}, "`example_ids` must be at least 0. .* -1 to"),
        (
            {"token_ids": IDS, "global_segment_ids": 0 * IDS},
            "`global_segment_ids` needs `global_token_ids`",
        ),
        (
            {"token_ids": IDS, "global_token_ids": IDS, "edges/cites": IDS[:, :, np.newaxis]},
            r"`edges/cites` must have shape \[batch, num_edges, 2\]",
        ),
        (
            {"token_ids": IDS, "global_token_ids": IDS, "edges/cites": np.zeros([2, 1, 2], int)},
            r"`edges/cites` is of no relation of the model, whose `relation_names` are \[\]",
        ),
        (
            {"token_ids": IDS, "example_ids": 0 * IDS + [1, 1, 2, 2, 2], "global_token_ids": IDS},
            "`example_ids` must be .*below 2, one example a row, without `global_example_ids`",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(features, message):
    with pytest.raises(ValueError, match=message) as error:
        completed(features)
    assert "\n" not in str(error.value)


def test_hard_masks_need_links():
    features = {"token_ids": IDS, "global_token_ids": IDS}
    with pytest.raises(ValueError, match="`links` must be given.*`use_hard_g2l_mask`"):
        completed(features, with_config(use_hard_g2l_mask=True))


def test_a_graph_refuses_what_only_it_knows_when_it_runs():
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def links_of(ids):
        return completed(ids).links

    np.testing.assert_array_equal(links_of(IDS), completed(IDS).links)
    with pytest.raises(tf.errors.InvalidArgumentError, match="below `vocab_size` of the config"):
        links_of(IDS + 24)


@pytest.mark.parametrize("name", ["links", "example_ids"])
def test_where_xla_compiles_links_and_examples_need_global_tokens(name):
    @tf.function(jit_compile=True)
    def links_of(ids):
        return completed({"token_ids": IDS, name: ids}).links

    line = f"`global_token_ids` must be given beside `{name}` in a function that XLA compiles"
    with pytest.raises(ValueError, match=line):
        links_of(tf.zeros(IDS.shape, tf.int32))


def test_a_graph_counts_the_blocks_of_each_batch():
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2)
    def links_of(ids, example_ids):
        return completed({"token_ids": ids, "example_ids": example_ids}).links

    for example_ids in ([[1, 2, 3, 4, 5]], [[1, 1, 1, 2, 2]]):
        wanted = completed({"token_ids": IDS[:1], "example_ids": example_ids}).links
        np.testing.assert_array_equal(links_of(IDS[:1], example_ids), wanted)


class Triples(relations.Relation):
    """A kind that the library does not have: the first global token of each three with both."""

    __slots__ = ()
    feature = "triples"
    piece = "g2g"
    axes = "batch num_triples* 3"
    entry = ("at triple", "and place")

    def holds(self, sizes):
        first, *others = tf.unstack(tf.cast(self.ids, tf.int32), 3, axis=2)
        edges = tf.concat([tf.stack([first, x], 2) for x in others], 1)
        return relations.GlobalEdges(edges, self.name).holds(sizes)

    def wrong(self, sizes, vocab_size):
        return (self.ids < -1) | (self.ids >= sizes.global_len)

    def limits(self, sizes, vocab_size):
        return ["for", sizes.global_len, "global tokens"]


class TestAKindFromElsewhere:
    TOKENS = {"token_ids": IDS, "global_token_ids": IDS[:, :3]}
    TRIPLES = {**TOKENS, "triples/both": [[[0, 1, 2]], [[-1, -1, -1]]]}

    def test_is_one_as_the_librarys_own(self):
        edges = {**self.TOKENS, "edges/both": [[[0, 1], [0, 2]], [[-1, -1], [-1, -1]]]}
        model = modeling.EtcModel(with_config(relative_vocab_size=13, initializer_range=0.5))
        for one, other in zip(
            *(
                model(**completed(given, model.config, ("both",)).arguments)
                for given in (self.TRIPLES, edges)
            ),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)

    def test_comes_back_from_the_file_of_a_keras_model(self):
        arguments = completed(
            self.TRIPLES, with_config(relative_vocab_size=13), ("both",)
        ).arguments
        relation = arguments["structure"].relations[-1]
        assert type(relations.Relation.of([*relation])) is Triples

    @pytest.mark.parametrize(
        "triples, message",
        [
            ([[[0, 1]], []], r"^`triples/both` must have shape \[batch, num_triples, 3\], padded"),
            (
                [[[0, 1]], [[0, 1]]],
                r"^`triples/both` must have shape .*num_triples, 3.*\[2, 1, 2\]",
            ),
        ],
    )
    def test_is_refused_by_its_own_axes(self, triples, message):
        given = {**self.TOKENS, "triples/both": triples}
        with pytest.raises(ValueError, match=message):
            completed(given, with_config(relative_vocab_size=13), ("both",))

    def test_has_a_name_and_a_feature_that_no_other_has(self):
        with pytest.raises(
            ValueError, match=r"another kind of relation, etcmodel\..*\.GlobalEdges"
        ):
            type("GlobalEdges", (Triples,), {"__slots__": (), "feature": "own"})
        with pytest.raises(ValueError, match="the name 'Own' or the feature 'edges'"):
            type("Own", (Triples,), {"__slots__": (), "feature": "edges"})
        assert "Own" not in relations.KINDS
        with pytest.raises(ValueError, match="^Own has a `feature`, and needs `axes`, too.$"):
            type("Own", (relations.Relation,), {"__slots__": (), "feature": "own"})

    @pytest.mark.parametrize("feature", ["labels", "part/of"])
    def test_has_a_feature_that_a_batch_can_have(self, feature):
        with pytest.raises(ValueError, match=f"^The `feature` of Own must .*: '{feature}'$"):
            type("Own", (Triples,), {"__slots__": (), "feature": feature})
        assert "Own" not in relations.KINDS

    def test_of_a_file_is_named_if_it_is_not_known(self, monkeypatch):
        arguments = completed(
            self.TRIPLES, with_config(relative_vocab_size=13), ("both",)
        ).arguments
        relation = [*arguments["structure"].relations[-1]]
        monkeypatch.setattr(relations, "KINDS", dict(relations.KINDS))
        del relations.KINDS["Triples"]
        line = "^There is no kind of relation of the name 'Triples'; .*'. Import yours first.$"
        with pytest.raises(ValueError, match=line):
            arguments["structure"]._replace(relations=()).with_relations(relation)

    def test_that_inherits_has_no_feature_of_another(self, monkeypatch):
        monkeypatch.setattr(relations, "KINDS", dict(relations.KINDS))
        cited = type("Cited", (relations.GlobalEdges,), {"__slots__": ()})
        assert relations.KINDS["Cited"] is cited and cited.feature is None
