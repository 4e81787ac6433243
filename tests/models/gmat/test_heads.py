"""GMAT's heads: values, folders, training; what holds for others, too: `test_text_heads`."""

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import training
from etcmodel.models import gmat, longformer
from etcmodel.models.heads import losses
from tests.models import text_heads
from tests.models.gmat import small
from tests.models.longformer import small as small_longformer

IDS = text_heads.with_separators(small.ids(2, 7))
CASES = text_heads.cases("Gmat", IDS)


def model_of(case, **changes):
    kind, settings, *_ = case
    return kind(small.model(num_hidden_layers=1, **changes), **settings)


def weights_of(layer):
    return [x.numpy() for x in layer.weights]


@pytest.mark.slow
@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("changes", [small.OWN, {"num_memory_tokens": 0}], ids=["own", "none"])
def test_it_learns_without_a_memory_and_with_one_of_its_own_projections(changes):
    case = CASES["tokens"]
    model = model_of(case, **changes)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(case[2]) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    assert all(gradient is not None for gradient in gradients)
    text_heads.check_learns(model, *case[2:], is_eager=True)


def test_heads_read_the_tokens_states():
    """Dense layers written again."""
    hidden, _ = small.model(num_hidden_layers=1)(IDS)
    hidden = hidden.numpy()

    model = model_of(CASES["tokens"])
    kernel, bias = weights_of(model.logits)
    np.testing.assert_allclose(model(IDS), hidden @ kernel.T + bias, rtol=1e-4, atol=1e-5)

    model = model_of(CASES["answers"])
    kernel, bias = weights_of(model.span)
    both = hidden @ kernel.T + bias
    found = model({"input_ids": IDS})
    for place, end in enumerate(("start", "end")):
        np.testing.assert_allclose(found[end], both[..., place], rtol=1e-4, atol=1e-5)

    model = model_of(CASES["classes"])
    (inner, inner_bias), (kernel, bias) = map(weights_of, (model.classifier_dense, model.logits))
    wanted = np.tanh(hidden[:, 0] @ inner + inner_bias) @ kernel.T + bias
    np.testing.assert_allclose(model(IDS), wanted, rtol=1e-4, atol=1e-5)


def test_choices_are_scored_each_by_itself():
    model, features = model_of(CASES["choices"]), CASES["choices"][2]
    (inner, inner_bias), (kernel, bias) = map(weights_of, (model.pooler, model.logits))
    hidden, _ = model.encoder(features.reshape(4, 7))
    wanted = np.tanh(hidden.numpy()[:, 0] @ inner + inner_bias) @ kernel.T + bias
    np.testing.assert_allclose(model(features), wanted.reshape(2, 2), rtol=1e-4, atol=1e-5)


def test_a_head_takes_all_arguments_of_the_encoder():
    model = model_of(CASES["tokens"])
    mask = np.array([[1, 1, 1, 1, 1, 0, 0], [1] * 7])
    memory = small.ids(2, 3, seed=5)
    found = model({"input_ids": IDS, "attention_mask": mask, "memory_ids": memory})
    shorter = model({"input_ids": IDS[:1, :5], "memory_ids": memory[:1]})
    np.testing.assert_allclose(found[0, :5], shorter[0], atol=1e-5)
    assert np.abs(found - model(IDS)).max() > 1e-3


def test_logits_are_float32_in_half_precision():
    assert model_of(CASES["masked_lm"], policy="mixed_bfloat16")(IDS).dtype == tf.float32


def test_a_fresh_head_on_a_folder_and_a_head_left_out(tmp_path):
    encoder = small.model(num_hidden_layers=1)
    encoder.save_pretrained(tmp_path / "encoder")
    model = gmat.GmatForTokenClassification.from_pretrained(tmp_path / "encoder", num_labels=5)
    assert model(IDS).shape == [2, 7, 5]
    np.testing.assert_array_equal(model.encoder(IDS)[0], encoder(IDS)[0])
    model.save_pretrained(tmp_path / "tags")
    alone = gmat.GmatModel.from_pretrained(tmp_path / "tags")
    np.testing.assert_array_equal(alone(IDS)[0], encoder(IDS)[0])
    other = etcmodel.load_pretrained(tmp_path / "tags", chunk_size=2)
    assert other.encoder.config.chunk_size == 2 and np.abs(other(IDS) - model(IDS)).max() > 1e-6


def test_another_systems_encoder_is_refused():
    longformer_config = small_longformer.config(num_hidden_layers=1, attention_window=4)
    for encoder in (longformer_config, longformer.LongformerModel(longformer_config)):
        with pytest.raises(ValueError, match="LongformerConfig|needs a GmatModel. Received: Longf"):
            gmat.GmatForMaskedLM(encoder)
    with pytest.raises(ValueError, match="needs a LongformerModel. Received: GmatModel"):
        longformer.LongformerForMaskedLM(small.model(num_hidden_layers=1))


def test_the_perplexity_is_over_all_tokens_with_a_label():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=[3, 4, 5]).astype(np.float32)
    labels = np.array([[1, -100, -100, 2], [0, 3, 2, 4], [-100] * 4])
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    known = labels >= 0
    entropies = -np.take_along_axis(log_probs, np.maximum(labels, 0)[..., None], -1)[..., 0]
    errors = logits.argmax(-1) != labels
    metrics = [losses.Perplexity(), losses.ErrorPercent()]
    for metric, wanted in zip(
        metrics, (np.exp(entropies[known].mean()), 100 * errors[known].mean()), strict=True
    ):
        for row in range(3):
            metric.update_state(labels[row : row + 1], logits[row : row + 1])
        np.testing.assert_allclose(metric.result(), wanted, rtol=1e-6)
        metric.reset_state()
        metric.update_state(labels, logits, sample_weight=[0.0, 1.0, 1.0])
    np.testing.assert_allclose(metrics[0].result(), np.exp(entropies[1].mean()), rtol=1e-6)
    np.testing.assert_allclose(metrics[1].result(), 100 * errors[1].mean(), rtol=1e-6)


@pytest.mark.exhaustive
def test_the_librarys_trainer_trains_it_with_bert_adam(tmp_path):
    ids = small.ids(16, 6)
    data = {"input_ids": ids}, ids % 2
    task = training.HeadTask(
        lambda: gmat.GmatForTokenClassification(small.config(num_hidden_layers=1)), data, data
    )
    config = training.TrainingConfig(
        output_dir=str(tmp_path),
        optimizer="bert_adam",
        learning_rate=0.01,
        train_batch_size=8,
        num_train_epochs=12.0,
    )
    metrics = training.train(task, config)
    assert metrics["accuracy"] > 0.9
    assert training.evaluate(task, config) == metrics
