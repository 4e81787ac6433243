"""Lifting BERT and RoBERTa weights into ETC: what goes where, what does not, what is refused."""

import dataclasses
import functools
import json

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from official.nlp.modeling import networks

import etcmodel
from etcmodel import checkpoints
from etcmodel.layers import sublayers
from etcmodel.models import modeling
from tests.checkpoints import berts
from tests.models.random_weights import randomize

CONFIG = berts.ETC_CONFIG
STACK = "etc_document_bert/global_local_transformer_layers"
ATTENTION = f"{STACK}/fused_att_layer_1/fused_global_local_att"
TOKENS = "etc_document_bert/token_emb_lookup/embedding_table"
SEGMENTS = "etc_document_bert/segment_emb_lookup/embedding_table"
LONG_POSITIONS = "position_emb_lookup_long/embedding_table"


@functools.cache
def built(**changes):
    model = modeling.EtcModel(dataclasses.replace(CONFIG, **changes))
    sublayers.build_sublayer(model, None)
    return model


def make_model(**changes):
    """A model with new random weights, whatever was lifted into it before."""
    model = built(**changes)
    randomize(model)
    return model


def values_of(model):
    return {name: v.numpy() for name, v in checkpoints.release_names(model).items()}


def lift(directory, weights, model=None, **options):
    """(values by name, report) of a model after lifting Hugging Face weights."""
    model = model or make_model()
    report = checkpoints.lift_bert(model, berts.write_safetensors(directory, weights), **options)
    return values_of(model), report


@pytest.fixture
def weights():
    return berts.hugging_face_weights()


def test_a_head_for_masked_tokens_gets_berts(tmp_path, weights):
    head = berts.masked_lm_weights()
    model = etcmodel.EtcForMaskedLM(CONFIG)
    model([[1, 2, 3]])  # Builds it.
    fresh = values_of(model)["mlm/bias"].copy()
    rows = [*range(berts.VOCAB - 1, 0, -1), -1]
    values, report = lift(tmp_path, {**weights, **head}, model, token_rows=rows)
    transform = "cls.predictions.transform"
    expected = {
        "mlm/transform/dense/kernel": head[f"{transform}.dense.weight"].T,
        "mlm/transform/dense/bias": head[f"{transform}.dense.bias"],
        "mlm/transform/LayerNorm/gamma": head[f"{transform}.LayerNorm.weight"],
        "mlm/transform/LayerNorm/beta": head[f"{transform}.LayerNorm.bias"],
        "mlm/bias": [*head["cls.predictions.bias"][:0:-1], fresh[-1]],  # By the vocabulary, too.
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(values[name], value, name)
    assert not [name for name in report.unused if name.startswith("cls.")]

    values, report = lift(tmp_path, weights, model)  # A BERT without it leaves it as it is.
    for name, value in expected.items():
        np.testing.assert_array_equal(values[name], value, name)
    assert set(expected) <= set(report.not_in_checkpoint)


def test_with_berts_head_the_folder_of_a_bert_gives_its_logits(tmp_path, weights):
    folder = berts.write_folder(tmp_path / "bert", [str(n) for n in range(berts.VOCAB)])
    berts.write_safetensors(folder, {**weights, **berts.masked_lm_weights()})
    found = etcmodel.EtcForMaskedLM.from_pretrained(folder)([[1, 4, 7, 2]])
    expected = checkpoints.lift(folder, "longformer", max_length=berts.POSITIONS)([[1, 4, 7, 2]])
    np.testing.assert_allclose(found, expected, atol=1e-4)


def layer_1(weights, name):
    return weights[f"bert.encoder.layer.1.{name}"]


def test_every_weight_goes_to_its_place(tmp_path, weights):
    values, report = lift(tmp_path, weights)
    expected = {
        TOKENS: weights["bert.embeddings.word_embeddings.weight"],
        SEGMENTS: weights["bert.embeddings.token_type_embeddings.weight"],
        LONG_POSITIONS: weights["bert.embeddings.position_embeddings.weight"],
        "position_emb_lookup_global/embedding_table": weights[
            "bert.embeddings.position_embeddings.weight"
        ],
        "etc_document_bert/long_emb_layer_norm/gamma": weights["bert.embeddings.LayerNorm.weight"],
        "etc_document_bert/global_emb_layer_norm/beta": weights["bert.embeddings.LayerNorm.bias"],
        f"{ATTENTION}/long_query_projection/linear/kernel": layer_1(
            weights, "attention.self.query.weight"
        ).T,
        f"{ATTENTION}/l2l_key_projection/linear/bias": layer_1(weights, "attention.self.key.bias"),
        f"{ATTENTION}/l2l_value_projection/linear/kernel": layer_1(
            weights, "attention.self.value.weight"
        ).T,
        f"{ATTENTION}/long_output_projection/kernel": layer_1(
            weights, "attention.output.dense.weight"
        ).T,
        f"{ATTENTION}/global_output_projection/bias": layer_1(
            weights, "attention.output.dense.bias"
        ),
        f"{STACK}/fused_att_layer_1/layer_norm_0/gamma": layer_1(
            weights, "attention.output.LayerNorm.weight"
        ),
        f"{STACK}/fused_att_layer_1/layer_norm_1/beta": layer_1(
            weights, "attention.output.LayerNorm.bias"
        ),
        f"{STACK}/feed_forward_layer_1/dense_layers/layer_0/kernel": layer_1(
            weights, "intermediate.dense.weight"
        ).T,
        f"{STACK}/feed_forward_layer_1/dense_layers/layer_1/kernel": layer_1(
            weights, "output.dense.weight"
        ).T,
        f"{STACK}/feed_forward_layer_1/layer_norm/gamma": layer_1(
            weights, "output.LayerNorm.weight"
        ),
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)
    assert report.origins[TOKENS] == "bert.embeddings.word_embeddings.weight"


def test_relative_labels_stay_fresh_and_the_pooler_is_not_used(tmp_path, weights):
    model = make_model()
    before = values_of(model)
    values, report = lift(tmp_path, weights, model)
    assert report.unused == ("bert.pooler.dense.bias", "bert.pooler.dense.weight")
    assert len(report.not_in_checkpoint) == 4 * berts.LAYERS
    for name in report.not_in_checkpoint:
        assert "relative_" in name
        np.testing.assert_array_equal(values[name], before[name])
    assert set(report.loaded) | set(report.not_in_checkpoint) == set(values)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "changes, num_queries, num_keys",
    [
        ({"share_qkv_projections": True}, 1, 1),
        ({"share_qkv_projections": False, "share_kv_projections": True}, 2, 2),
        ({"share_qkv_projections": False, "share_feed_forward_params": False}, 2, 4),
        ({"share_att_output_projection": True}, 1, 1),
    ],
)
def test_separate_projections_all_get_berts(tmp_path, weights, changes, num_queries, num_keys):
    model = make_model(**changes)
    values, report = lift(tmp_path, weights, model)
    assert all("relative_" in name for name in report.not_in_checkpoint)
    for what, count in (("query", num_queries), ("key", num_keys), ("value", num_keys)):
        kernel = layer_1(weights, f"attention.self.{what}.weight").T
        copies = [v for n, v in values.items() if ATTENTION in n and f"_{what}_pro" in n]
        kernels = [copy for copy in copies if copy.ndim == 2]
        assert len(kernels) == count
        assert all(np.array_equal(copy, kernel) for copy in kernels)
    intermediate = layer_1(weights, "intermediate.dense.weight").T
    copies = [v for n, v in values.items() if "feed_forward_layer_1/dense_layers/layer_0/k" in n]
    assert len(copies) == 2 - model.config.share_feed_forward_params
    assert all(np.array_equal(copy, intermediate) for copy in copies)


def test_the_original_bert_gives_the_same_as_hugging_faces(tmp_path, weights):
    expected, _ = lift(tmp_path, weights)
    extra = {
        "cls/seq_relationship/output_weights": np.zeros([2, 8], np.float32),
        "bert/embeddings/word_embeddings/adam_m": np.zeros([11, 8], np.float32),
        "global_step": np.int64(3),
    }
    prefix = berts.write_released(tmp_path, {**berts.original_weights(weights), **extra})
    model = make_model()
    report = checkpoints.lift_bert(model, prefix)
    assert_same_but_labels(values_of(model), expected)
    assert report.unused == (
        "bert/pooler/dense/bias",
        "bert/pooler/dense/kernel",
        "cls/seq_relationship/output_weights",
    )
    assert report.training_state == ("bert/embeddings/word_embeddings/adam_m", "global_step")
    assert "does not tell its number of attention heads" in str(report)


def assert_same_but_labels(values, expected):
    for name in expected:
        if "relative_" not in name:
            np.testing.assert_array_equal(values[name], expected[name], err_msg=name)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("encoder_class", [networks.BertEncoder, networks.BertEncoderV2])
@pytest.mark.parametrize("attribute", ["encoder", "model"])
def test_model_gardens_encoder_gives_the_same(tmp_path, weights, encoder_class, attribute):
    expected, _ = lift(tmp_path, weights)
    encoder = berts.model_garden_encoder(weights, encoder_class)
    prefix = tf.train.Checkpoint(**{attribute: encoder}).save(str(tmp_path / "ckpt"))
    model = make_model()
    report = checkpoints.lift_bert(model, prefix)
    assert_same_but_labels(values_of(model), expected)
    assert len(report.unused) == 2
    assert all("pooler" in name for name in report.unused)
    assert report.training_state == ("save_counter",)


def test_half_precision_is_widened_and_the_old_names_of_layer_normalization_are_known(
    tmp_path, weights
):
    halves = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value.astype(ml_dtypes.bfloat16)
        for name, value in weights.items()
    }
    values, _ = lift(tmp_path, halves)
    for name, origin in (
        (TOKENS, "word_embeddings.weight"),
        ("etc_document_bert/long_emb_layer_norm/beta", "LayerNorm.beta"),
    ):
        assert values[name].dtype == np.float32
        wanted = halves[f"bert.embeddings.{origin}"].astype(np.float32)
        np.testing.assert_array_equal(values[name], wanted)


class TestPositions:
    def test_are_dropped_without_tables(self, tmp_path, weights):
        _, report = lift(tmp_path, weights, make_model(max_absolute_position_embeddings=0))
        assert "bert.embeddings.position_embeddings.weight" in report.unused

    def test_are_repeated_in_a_longer_table(self, tmp_path, weights):
        model = make_model(max_absolute_position_embeddings=2 * berts.POSITIONS + 3)
        values, report = lift(tmp_path, weights, model)
        table = weights["bert.embeddings.position_embeddings.weight"]
        expected = np.concatenate([table, table, table[:3]])
        np.testing.assert_array_equal(values[LONG_POSITIONS], expected)
        note = f"{LONG_POSITIONS}: rows from 6 on repeat the 6 of the checkpoint"
        assert note in report.notes

    def test_of_a_shorter_table_the_first_rows_are_lifted(self, tmp_path, weights):
        values, _ = lift(tmp_path, weights, make_model(max_absolute_position_embeddings=4))
        table = weights["bert.embeddings.position_embeddings.weight"]
        np.testing.assert_array_equal(values[LONG_POSITIONS], table[:4])

    @pytest.mark.parametrize("prefix, config", [("roberta.", None), ("", "roberta"), ("", None)])
    def test_of_roberta_begin_in_the_third_row(self, tmp_path, prefix, config):
        if config:
            berts.write_config(tmp_path, model_type=config)
        weights = berts.hugging_face_weights(prefix=prefix, positions=berts.POSITIONS + 2, types=1)
        values, report = lift(tmp_path, weights)
        table = weights[f"{prefix}embeddings.position_embeddings.weight"]
        np.testing.assert_array_equal(values[LONG_POSITIONS], table[2:])
        assert any("token ids must be RoBERTa's own" in note for note in report.notes)


class TestTokenTypes:
    def test_beyond_berts_keep_their_initial_values(self, tmp_path, weights):
        model = make_model(segment_vocab_size=5)
        before = values_of(model)[SEGMENTS]
        values, report = lift(tmp_path, weights, model)
        table = weights["bert.embeddings.token_type_embeddings.weight"]
        np.testing.assert_array_equal(values[SEGMENTS], [*table, *before[2:]])
        assert f"{SEGMENTS}: rows 0 to 1 of 5 lifted (2 in the checkpoint)" in report.notes

    def test_all_get_robertas_only_row(self, tmp_path):
        weights = berts.hugging_face_weights(prefix="roberta.", types=1)
        values, report = lift(tmp_path, weights, make_model(segment_vocab_size=3))
        table = weights["roberta.embeddings.token_type_embeddings.weight"]
        np.testing.assert_array_equal(values[SEGMENTS], [*table] * 3)
        assert f"{SEGMENTS}: the checkpoint's only row in every row" in report.notes


class TestTokenRows:
    def test_follow_the_vocabulary(self, tmp_path, weights):
        model = make_model(vocab_size=4)
        before = values_of(model)[TOKENS]
        values, report = lift(tmp_path, weights, model, token_rows=[7, -1, 0, 10])
        table = weights["bert.embeddings.word_embeddings.weight"]
        np.testing.assert_array_equal(values[TOKENS], [table[7], before[1], table[0], table[10]])
        assert f"{TOKENS}: 3 of 4 rows lifted, by vocabulary" in report.notes

    @pytest.mark.parametrize("rows", [[0, 1], [0, 1, 2, 11], [-2, 0, 1, 2]])
    def test_outside_the_table_are_refused(self, tmp_path, weights, rows):
        with pytest.raises(ValueError, match="`token_rows` must hold, for each of the model's 4"):
            lift(tmp_path, weights, make_model(vocab_size=4), token_rows=rows)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ["bert", "electra", "etc", None])
def test_what_has_berts_names_is_lifted_also_beside_the_config_of_the_etc(tmp_path, weights, kind):
    expected, _ = lift(tmp_path, weights)
    entries = CONFIG.to_dict() if kind == "etc" else {}
    entries |= {} if kind is None else {"model_type": kind}
    (tmp_path / "config.json").write_text(json.dumps(entries))
    model = make_model()
    assert TOKENS in checkpoints.initialize(model, str(tmp_path)).loaded
    assert_same_but_labels(values_of(model), expected)


def test_load_pretrained_lifts_what_is_bert(tmp_path, weights):
    expected, _ = lift(tmp_path, weights)
    (tmp_path / "etc_config.json").write_text(json.dumps(CONFIG.to_dict()), encoding="utf-8")
    assert_same_but_labels(values_of(checkpoints.load_pretrained(str(tmp_path))), expected)
