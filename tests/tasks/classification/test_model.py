"""The models of all encoders on the features of records, their loss and their metrics."""

import math
import types

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import heads, sequence_classifiers
from etcmodel.models.gmat.config import GmatConfig
from etcmodel.models.gmat.modeling import GmatForSequenceClassification
from etcmodel.models.longformer.config import LongformerConfig
from etcmodel.models.longformer.modeling import LongformerForSequenceClassification
from etcmodel.models.modeling import EtcConfig
from etcmodel.tasks.classification import config, examples, features, metrics, model
from tests import records
from tests.models import etcs
from tests.tasks.classification.raw_texts import VOCAB, input_config, tokenizer

SIZES = {"vocab_size": len(VOCAB), **etcs.sizes(intermediate_size=8)}
ETC = EtcConfig(**SIZES, local_radius=4, relative_pos_max_distance=2, relative_vocab_size=8)
GMAT = GmatConfig(**SIZES, chunk_size=12, num_memory_tokens=2)
LONGFORMER = LongformerConfig(**SIZES, attention_window=4, max_position_embeddings=32)


def make(encoder_config, **fields):
    given = {"num_labels": 3, "problem_type": config.SINGLE_LABEL, "pooling": "first_global"}
    return sequence_classifiers.make_sequence_classifier(encoder_config, **{**given, **fields})


def batch(tmp_path, *texts, **lengths):
    settings = input_config(**lengths)
    processor = settings.make_processor(tokenizer(tmp_path))
    made = [
        features.make_features(examples.TextExample("e", text), settings, processor)[0]
        for text in texts
    ]
    names = [name for name in made[0] if name != "example_id"]
    return {name: tf.constant([features[name] for features in made]) for name in names}


def test_etc_is_the_head_model_itself(tmp_path):
    made = make(ETC, problem_type=config.MULTI_LABEL, pooling="mean")
    plain = heads.EtcForSequenceClassification(
        made.encoder, num_labels=3, pooling="mean", multi_label=True
    )
    plain.set_weights(made.get_weights())
    assert made.settings() == plain.settings()
    features = batch(tmp_path, "It is good.", "bad")
    np.testing.assert_array_equal(made(features), plain(features))


OF_TEXT = {
    "longformer": (LONGFORMER, LongformerForSequenceClassification),
    "gmat": (GMAT, GmatForSequenceClassification),
}


@pytest.mark.parametrize("name", OF_TEXT)
def test_encoders_of_one_text_read_what_their_head_models_read(tmp_path, name):
    encoder_config, head_class = OF_TEXT[name]
    made = make(encoder_config)
    features = batch(tmp_path, "It is good.", "bad")
    ids = features["token_ids"].numpy()
    is_token = features["example_ids"].numpy()
    plain = head_class(made.encoder, num_labels=3)
    plain.set_weights(made.get_weights())
    ids = np.where(is_token, ids, encoder_config.pad_token_id)
    expected = plain({"input_ids": ids, "attention_mask": is_token})
    np.testing.assert_allclose(made(features), expected, atol=1e-6)


@pytest.mark.parametrize(
    "encoder_config", [ETC, LONGFORMER, GMAT], ids=["etc", "longformer", "gmat"]
)
def test_padding_changes_nothing(tmp_path, encoder_config):
    made = make(encoder_config)
    short = made(batch(tmp_path, "It is very good."))
    long = made(batch(tmp_path, "It is very good.", long_seq_length=24, global_seq_length=6))
    np.testing.assert_allclose(short, long, atol=1e-5)


def test_other_encoders_are_named():
    with pytest.raises(
        ValueError,
        match="'etc', 'longformer', 'gmat', 'longt5', 'big_bird', 'modernbert', 'etc_modernbert'. "
        "Received: 'led'",
    ):
        make(types.SimpleNamespace(model_type="led"))


def slow_softmax_loss(logits, label):
    return math.log(sum(math.exp(x - logits[label]) for x in logits))


def test_losses_are_those_of_the_definitions():
    logits = np.random.default_rng(0).normal(size=[3, 2]).astype(np.float32)
    outputs = {"logits": tf.constant(logits)}

    def loss(labels, problem_type, weights=None):
        found = model.loss(outputs, {"labels": tf.constant(labels)}, problem_type, weights)
        return float(found["loss"])

    slow = [slow_softmax_loss(row, label) for row, label in zip(logits, [0, 1, 1], strict=True)]
    assert loss([0, 1, 1], config.SINGLE_LABEL) == pytest.approx(np.mean(slow), rel=1e-5)
    weighted = np.mean([slow[0] * 0.5, slow[1] * 2, slow[2] * 2])
    assert loss([0, 1, 1], config.SINGLE_LABEL, [0.5, 2]) == pytest.approx(weighted, rel=1e-5)

    given = np.array([[1, 0], [0, 0], [1, 1]])
    costs = np.where(given, np.log1p(np.exp(-logits)), np.log1p(np.exp(logits)))
    assert loss(given, config.MULTI_LABEL) == pytest.approx(costs.mean(), rel=1e-5)
    weighted = (costs * np.where(given, [3, 1], 1)).mean()
    assert loss(given, config.MULTI_LABEL, [3, 1]) == pytest.approx(weighted, rel=1e-5)

    numbers = np.array([1.0, -2, 0.5], np.float32)
    squares = ((logits[:, 0] - numbers) ** 2).mean()
    assert loss(numbers, config.REGRESSION) == pytest.approx(squares, rel=1e-5)


def write_labels(path, rows):
    records.write(path, *({"labels": row} for row in rows))


def test_balanced_weights_make_labels_weigh_the_same(tmp_path):
    path = str(tmp_path / "single")
    write_labels(path, [[0], [1], [1], [1]])
    weights = model.balanced_weights(path, ("a", "b"), config.SINGLE_LABEL)
    assert weights == pytest.approx([2, 2 / 3])  # 1 * 2 = 3 * 2/3, and 4 in all.
    with pytest.raises(ValueError, match="no training record has the label 'c'"):
        model.balanced_weights(path, ("a", "b", "c"), config.SINGLE_LABEL)
    path = str(tmp_path / "multi")
    write_labels(path, [[0, 1], [1, 1], [0, 0], [0, 1]])
    weights = model.balanced_weights(path, ("a", "b"), config.MULTI_LABEL)
    assert weights == pytest.approx([3, 1 / 3])
    write_labels(path, [[0, 1], [1, 1]])  # One that all have is learned, too.
    assert model.balanced_weights(path, ("a", "b"), config.MULTI_LABEL) == [1, 1]


def test_predictions_tell_labels_and_probabilities():
    output = {"example_id": b"e", "logits": np.array([0.0, math.log(3)], np.float32)}
    told = metrics.prediction(output, ("a", "b"), config.SINGLE_LABEL)
    assert told == {
        "id": "e",
        "label": "b",
        "probabilities": {"a": pytest.approx(0.25), "b": pytest.approx(0.75)},
    }
    several = metrics.prediction(output, ("a", "b"), config.MULTI_LABEL)
    assert several["labels"] == ["b"] and several["probabilities"]["a"] == 0.5
    value = metrics.prediction({**output, "logits": np.array([1.5])}, (), config.REGRESSION)
    assert value == {"id": "e", "value": 1.5}


def test_metrics_of_each_problem_by_hand():
    logits = np.log([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
    single = metrics.metrics(logits, np.array([0, 1, 1]), config.SINGLE_LABEL)
    assert single == {
        "accuracy": pytest.approx(2 / 3),
        "macro_f1": pytest.approx(2 / 3),
        "expected_calibration_error": pytest.approx((0.2 + 0.6 + 0.3) / 3),
    }
    several = metrics.metrics(
        np.array([[1, -1], [1, 1], [-1, -1]]),
        np.array([[1, 0], [0, 1], [1, 0]]),
        config.MULTI_LABEL,
    )
    assert several == {"micro_f1": pytest.approx(4 / 6), "macro_f1": pytest.approx(0.75)}
    numbers = metrics.metrics(np.array([[1.0], [2], [3]]), np.array([2, 1, 9]), config.REGRESSION)
    assert numbers["mse"] == pytest.approx(38 / 3) and numbers["spearman"] == pytest.approx(0.5)


def test_scores_of_each_label_by_hand():
    logits = np.log([[0.8, 0.2, 0.1], [0.6, 0.4, 0.1], [0.3, 0.7, 0.1], [0.2, 0.3, 0.1]])
    told = metrics.by_label(logits, np.array([0, 1, 1, 1]), config.SINGLE_LABEL, "abc")
    # The third is neither predicted nor given.
    expected = {"a": (1 / 2, 1, 2 / 3), "b": (1, 2 / 3, 4 / 5)}
    names = ("precision", "recall", "f1")
    assert told == {
        f"{score}/{label}": pytest.approx(value)
        for label, values in expected.items()
        for score, value in zip(names, values, strict=True)
    }
    many = [str(number) for number in range(metrics.MOST_LABELS + 1)]
    assert not metrics.by_label(np.zeros([1, 11]), np.array([0]), config.SINGLE_LABEL, many)
    assert not metrics.by_label(np.zeros([1, 1]), np.array([0.5]), config.REGRESSION, ())
