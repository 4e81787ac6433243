"""What lifting refuses, warns of and reports."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from official.nlp.modeling import networks

from etcmodel import checkpoints
from etcmodel.tasks.hotpotqa import model as hotpotqa_model
from tests.checkpoints import berts
from tests.checkpoints.test_lifting import CONFIG, SEGMENTS, TOKENS, lift, make_model, values_of


@pytest.fixture
def weights():
    return berts.hugging_face_weights()


class TestRefusals:
    @pytest.mark.parametrize(
        "changes, messages",
        [
            (
                {"vocab_size": 13, "intermediate_size": 16},
                [
                    rf"{TOKENS}: \[13, 8\] in the model, \[11, 8\] in the checkpoint's "
                    "bert.embeddings.word_embeddings.weight; map one vocabulary",
                    r"feed_forward_layer_0/dense_layers/layer_0/kernel: \[8, 16\] in the model, "
                    r"\[8, 12\] in the checkpoint's bert.encoder.layer.0.intermediate.dense.weight",
                ],
            ),
            ({"hidden_size": 16}, [rf"{TOKENS}: \[11, 16\] in the model, \[11, 8\]"]),
            ({"embedding_size": 4}, [rf"{TOKENS}: \[11, 4\] in the model, \[11, 8\]"]),
            ({"num_hidden_layers": 3}, ["`num_hidden_layers`: 3 in the model, 2 in the check"]),
            ({"num_attention_heads": 4}, ["`num_attention_heads`: 4 in the model, 2 in the c"]),
            ({"use_pre_activation_order": True}, ["`use_pre_activation_order` is on"]),
        ],
    )
    def test_name_what_does_not_fit_and_change_nothing(self, tmp_path, weights, changes, messages):
        berts.write_config(tmp_path)
        model = make_model(**changes)
        before = values_of(model)
        for message in messages:
            with pytest.raises(ValueError, match=message):
                lift(tmp_path, weights, model)
        for name, value in values_of(model).items():
            np.testing.assert_array_equal(value, before[name])

    def test_heads_are_known_from_model_gardens_kernels(self, tmp_path, weights):
        encoder = berts.model_garden_encoder(weights, networks.BertEncoderV2)
        prefix = tf.train.Checkpoint(encoder=encoder).write(str(tmp_path / "bert"))
        with pytest.raises(ValueError, match="`num_attention_heads`: 4 in the model, 2 in the"):
            checkpoints.lift_bert(make_model(num_attention_heads=4), prefix)

    def test_no_bert(self, tmp_path):
        path = berts.write_safetensors(tmp_path, {"other.weight": np.zeros(2, np.float32)})
        with pytest.raises(ValueError, match="holds no BERT or RoBERTa encoder.*other.weight"):
            checkpoints.lift_bert(make_model(), path)

    def test_two_berts(self, tmp_path, weights):
        second = {f"context.{name}": value for name, value in weights.items()}
        path = berts.write_safetensors(tmp_path, {**weights, **second})
        with pytest.raises(ValueError, match="holds several BERT encoders"):
            checkpoints.lift_bert(make_model(), path)

    @pytest.mark.parametrize("text, message", [("{", "is not valid JSON"), ("[]", "must hold a")])
    def test_a_config_that_is_none(self, tmp_path, weights, text, message):
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=f"config.json.* {message}"):
            lift(tmp_path, weights)


@pytest.mark.parametrize(
    "entries, note",
    [
        (
            {"hidden_act": "gelu"},
            "warning: the checkpoint's activation is 'gelu_exact', the model's `hidden_act` 'gelu' "
            "(they differ by at most 5e-4)",
        ),
        (
            {"hidden_act": "relu"},
            "warning: the checkpoint's activation is 'relu', the model's `hidden_act` 'gelu'\n",
        ),
        (
            {"layer_norm_eps": 1e-5},
            "layer normalization adds 1e-05 to the variance, the model's 1e-12",
        ),
    ],
)
def test_the_report_tells_what_shapes_do_not(tmp_path, weights, entries, note):
    berts.write_config(tmp_path, **entries)
    _, report = lift(tmp_path, weights)
    assert note in str(report)


@pytest.mark.parametrize(
    "of_checkpoint, of_model",
    [
        ("gelu", "gelu_exact"),
        ("gelu_new", "gelu"),
        ("gelu_pytorch_tanh", "gelu"),
        ("relu", "relu"),
        (None, "gelu_exact"),  # Hugging Face's default.
    ],
)
def test_the_same_activation_is_no_matter_for_a_word(tmp_path, weights, of_checkpoint, of_model):
    berts.write_config(tmp_path, **({"hidden_act": of_checkpoint} if of_checkpoint else {}))
    _, report = lift(tmp_path, weights, make_model(hidden_act=of_model))
    assert not report.warnings and not report.notes


def test_the_original_berts_gelu_is_the_approximation(tmp_path, weights):
    prefix = berts.write_released(tmp_path, berts.original_weights(weights))
    (warning,) = checkpoints.lift_bert(make_model(), prefix).warnings
    assert "does not tell its number of attention heads" in warning


@pytest.fixture
def logged(monkeypatch):
    """What is logged, by level."""
    lines = {"info": [], "warning": []}
    for level, found in lines.items():
        monkeypatch.setattr(
            f"absl.logging.{level}", lambda text, *args, found=found: found.append(text % args)
        )
    return lines


def test_what_lifting_always_leaves_out_is_no_warning(tmp_path, weights, logged):
    """Relative labels, the pooler, a new task's heads."""
    berts.write_config(tmp_path)
    berts.write_safetensors(tmp_path, weights)
    etc_config = dataclasses.replace(CONFIG, hidden_act="gelu_exact", segment_vocab_size=16)
    task_model = hotpotqa_model.HotpotQaModel(etc_config)
    task_model.build()
    checkpoints.initialize(task_model, str(tmp_path))
    assert not logged["warning"]
    (told,) = logged["info"]
    for expected in (
        "relative_emb_table",
        "rows 0 to 1 of 16 lifted",
        "not used: bert.pooler.dense.weight",
        "initial value: answer_type_output_weights",
    ):
        assert expected in told


@pytest.mark.parametrize("name", ["attention.output.dense.bias", "output.LayerNorm.weight"])
def test_a_bert_without_one_of_the_weights_is_refused(tmp_path, weights, name):
    berts.write_config(tmp_path)
    weights[f"bert.encoder.layer.0.{name}_orig"] = weights.pop(f"bert.encoder.layer.0.{name}")
    berts.write_safetensors(tmp_path, weights)
    model = make_model(hidden_act="gelu_exact")
    before = values_of(model)
    with pytest.raises(ValueError, match="has no weights for etc_document_bert/.*_layer_0/"):
        checkpoints.initialize(model, str(tmp_path))
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_what_not_every_bert_has_is_a_warning_unless_the_config_says_it(tmp_path, weights, logged):
    del weights["bert.embeddings.token_type_embeddings.weight"]
    berts.write_safetensors(tmp_path, weights)
    berts.write_config(tmp_path, type_vocab_size=2)
    with pytest.raises(ValueError, match=f"has no weights for {SEGMENTS}"):
        checkpoints.initialize(make_model(hidden_act="gelu_exact"), str(tmp_path))
    berts.write_config(tmp_path)
    checkpoints.initialize(make_model(hidden_act="gelu_exact"), str(tmp_path))
    (warning,) = logged["warning"]
    assert f"the checkpoint lacks {SEGMENTS}: initial value" in warning
    assert "relative" not in warning
