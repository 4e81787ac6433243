"""`EtcModernBertModel`: ModernBERT where it has no global tokens, and pair by pair where it has."""

import functools
import re

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import release_names
from etcmodel.models import input_utils
from etcmodel.ops import relations
from etcmodel.tools import convert_checkpoint
from tests.models.modernbert import small
from tests.models.modernbert.twins import (
    DISTANCE,
    EXAMPLES,
    GLOBAL,
    GLOBAL_EXAMPLES,
    LONG,
    Twin,
    inputs_of,
    structure_of,
)

MODEL = functools.cache(small.etc_model)


@pytest.mark.parametrize("use_hard_g2l_mask", [False, True])
@pytest.mark.parametrize("changes", [{}, {"local_attention": 1, "global_attn_every_n_layers": 2}])
@pytest.mark.quick_cases(2)
def test_outputs_are_those_of_each_pair_computed_by_itself(changes, use_hard_g2l_mask):
    model, options = MODEL(**changes), {"use_hard_g2l_mask": use_hard_g2l_mask}
    inputs = inputs_of(**options)
    outputs = model(**inputs)
    for row in range(2):
        real = EXAMPLES[row] > 0, GLOBAL_EXAMPLES[row] > 0
        wanted = Twin(model, row, **options)(**inputs)
        for x, y, marks in zip(outputs, wanted, real, strict=True):
            np.testing.assert_allclose(x[row][marks], y[marks], atol=2e-5, rtol=1e-5)


OTHER_LAYERS = ("sliding_attention", "sliding_attention", "full_attention")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_bias": True, "attention_bias": True, "mlp_bias": True},
        {"layer_types": OTHER_LAYERS, "num_hidden_layers": 3},
    ],
    ids=["usual", "biases", "other layers"],
)
@pytest.mark.quick_cases(2)
def test_without_global_tokens_it_is_modernbert(changes):
    """Also its gradients, where there is padding at either end."""
    model, plain = MODEL(**changes), small.model(**changes)
    ours, theirs = release_names(model), release_names(plain)
    for name, variable in theirs.items():
        variable.assign(ours[f"etc_{name}"])
    ids, none = small.ids(LONG, 2), np.zeros([2, 0], int)
    mask = np.array([[0, 0] + [1] * 7, [1] * 5 + [0] * 4])
    structure = input_utils.make_structure_from_example_ids(mask, none, 0 * ids - 1, DISTANCE)
    with tf.GradientTape(persistent=True) as tape:
        long_output, global_output = model(ids, none, structure=structure)
        wanted = plain(ids, attention_mask=mask)
        targets = [tf.reduce_sum(tf.boolean_mask(tf.sin(x), mask)) for x in (long_output, wanted)]
    assert global_output.shape == [2, 0, 8]
    np.testing.assert_allclose(long_output[mask > 0], wanted[mask > 0], atol=1e-6)
    gradients = tape.gradient(targets[0], [ours[f"etc_{name}"] for name in theirs])
    for one, other in zip(gradients, tape.gradient(targets[1], [*theirs.values()]), strict=True):
        one, other = map(tf.convert_to_tensor, (one, other))
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-4)


def test_each_weight_of_global_tokens_learns():
    model = MODEL()
    with tf.GradientTape() as tape:
        long_output, global_output = model(**inputs_of())
        loss = tf.reduce_sum(tf.sin(long_output)) + tf.reduce_sum(tf.sin(global_output))
    for name, gradient in zip(
        release_names(model), tape.gradient(loss, [*release_names(model).values()]), strict=True
    ):
        assert np.abs(tf.convert_to_tensor(gradient)).max() > 1e-4, name


def test_what_global_tokens_cannot_have_is_refused_in_a_line():
    ids, structure = small.ids(LONG, 2), structure_of()
    near = relations.LongEdges(tf.constant([[[0, 1]]] * 2), "near", is_hard=True)
    for given, message in (
        (structure.with_relations(near), "^Relation 'near' is between tokens of the text.*$"),
        (structure._replace(max_distance=3), "^`structure.max_distance` must be .* 2. Received: 3"),
    ):
        with pytest.raises(ValueError, match=message):
            MODEL()(ids, small.ids(GLOBAL, 2), structure=given)
    for given, message in (
        ((ids, None), "^`global_token_ids` must have shape .batch, global_len.. Received: None$"),
        ((ids[0], ids), r"^`token_ids` must have shape .batch, long_len.. Received shape: \[9\]$"),
        ((ids, tf.ragged.constant([[3], []])), "^`global_token_ids` must .* a RaggedTensor of .*$"),
    ):
        with pytest.raises(ValueError, match=message):
            MODEL()(*given)
    for changes, message in (
        ({"skip_padding": True}, "^`skip_padding` must be false .*$"),
        ({"relative_vocab_size": 7}, "^`relative_vocab_size` must be at least .* 8. Received"),
        (
            {"global_token_id": 40},
            "^`global_token_id` must be below `vocab_size`, 40. Received: 40$",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            small.etc_config(**changes)


def test_a_folder_comes_back_bit_by_bit_and_no_other_library_takes_it(tmp_path):
    head = etcmodel.EtcForSequenceClassification(MODEL(), labels=["a", "b"])
    etcmodel.save_pretrained(head, tmp_path)
    back, batch = etcmodel.from_pretrained(tmp_path), {"token_ids": small.ids(LONG, 2)}
    assert back.config == head.config and back.config.model_type == "etc_modernbert"
    np.testing.assert_array_equal(back(batch), head(batch))
    tensors = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    assert {"model.layers.1.attn.Wqkv.weight", "model.layers.1.attn.long_labels.emb"} < {*tensors}
    del tensors["model.layers.1.attn.long_labels.emb"]
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="lacks weights of .*long_labels"):
        etcmodel.from_pretrained(tmp_path)


def test_it_is_lifted_from_modernbert(tmp_path):
    source = etcmodel.ModernBertForMaskedLM(small.model(cls_token_id=2))
    etcmodel.save_pretrained(source, tmp_path / "modern")
    model = checkpoints.lift_modernbert(tmp_path / "modern", use_hard_g2l_mask=True)
    assert model.config.use_hard_g2l_mask and model.config.global_token_id == 2
    ids = small.ids(LONG, 2)
    found, _ = model(ids, np.zeros([2, 0], int))
    np.testing.assert_allclose(found, source.encoder(ids), atol=1e-6)
    weights = release_names(model)
    assert not weights["etc_modernbert/segment_emb_lookup/embedding_table"].numpy().any()
    attention = "etc_modernbert/layers/attention_layer_1/self_attention"
    labels = weights[f"{attention}/long_labels/relative_emb_table"]
    assert labels.shape == [32, 2, 4] and 0.3 < np.std(labels) < 0.6
    with pytest.raises(ValueError, match="config.json: A config of .* has no `radius`"):
        checkpoints.lift_modernbert(tmp_path / "modern", radius=3)
    etcmodel.save_pretrained(model, tmp_path / "lifted")
    with pytest.raises(ValueError, match="must be of a model of type 'modernbert'"):
        checkpoints.lift_modernbert(tmp_path / "lifted")


def test_what_a_lifted_model_has_otherwise_counts_from_the_start(tmp_path):
    source = small.model()  # Its `cls_token_id`, 50281, is beyond its 40 tokens.
    etcmodel.save_pretrained(source, tmp_path)
    with pytest.raises(ValueError, match="config.json: `global_token_id` must be .* 40. Received"):
        checkpoints.lift_modernbert(tmp_path)
    for changes in ({"global_token_id": 3}, {"cls_token_id": 3}):
        assert checkpoints.lift_modernbert(tmp_path, **changes).config.global_token_id == 3


@pytest.mark.slow
def test_the_command_lifts_it_too(tmp_path, capsys):
    source = small.model()
    etcmodel.save_pretrained(source, tmp_path / "modern")
    (tmp_path / "config.json").write_text(small.etc_config().to_json_string())
    convert_checkpoint.run(
        convert_checkpoint.ConvertOptions(
            input=str(tmp_path / "modern"),
            model_config_file=str(tmp_path / "config.json"),
            output_dir=str(tmp_path / "lifted"),
            output_format="safetensors",
        )
    )
    told = capsys.readouterr().out
    assert re.search(r"\nlayers\.0\.attn\.Wqkv\.weight *-> etc_modernbert/layers/", told)
    assert re.search(r"\n\(initial value\) *-> .*/long_labels/relative_emb_table\n", told)
    model = etcmodel.from_pretrained(tmp_path / "lifted")
    ids = small.ids(LONG)
    found, _ = model(ids, np.zeros([1, 0], int))
    np.testing.assert_allclose(found, source(ids), atol=1e-6)


@pytest.mark.slow
def test_compiled_and_in_half_precision_it_computes_the_same():
    inputs, wanted = inputs_of(), MODEL()(**inputs_of())
    compiled = tf.function(lambda: MODEL()(**inputs), jit_compile=True, autograph=False)
    half = MODEL(tf_keras.mixed_precision.Policy("mixed_bfloat16"))
    for found, tolerance in ((compiled(), 2e-5), (half(**inputs), 0.1)):
        for x, y, marks in zip(found, wanted, (EXAMPLES, GLOBAL_EXAMPLES), strict=True):
            difference = tf.cast(x, tf.float32) - y
            assert np.abs(difference.numpy()[marks > 0]).max() < tolerance * np.abs(y).max()


@pytest.mark.slow
@pytest.mark.parametrize("grad_checkpointing_period", [0, 2])
@pytest.mark.slow_cases(1)
def test_a_classifier_learns_what_global_tokens_tell(grad_checkpointing_period):
    changes = {"num_hidden_layers": 2, "grad_checkpointing_period": grad_checkpointing_period}
    model = etcmodel.EtcForSequenceClassification(
        small.etc_config(hidden_size=16, **changes),
        labels=["low", "high"],
        pooling="first_global",
    )
    model.compile(tf_keras.optimizers.Adam(0.01))
    ids = np.array([[3, 4, 5, 0], [30, 31, 0, 0], [6, 3, 0, 0], [35, 33, 36, 37]])
    history = model.fit({"token_ids": ids}, np.array([0, 1, 0, 1]), epochs=40, verbose=0)
    assert history.history["loss"][-1] < 0.3 * history.history["loss"][0]
