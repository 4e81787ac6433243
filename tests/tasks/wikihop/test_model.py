"""The scores of candidates and the loss; the reference cases have the numbers."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models.side_inputs import side_inputs_of
from etcmodel.tasks.wikihop import config, examples, model, task
from etcmodel.tasks.wikihop import features as wikihop_features
from tests.models import etcs
from tests.tasks.wikihop import padding, tokenizers
from tests.tasks.wikihop.raw_examples import raw_example

SETTINGS = config.WikiHopInputConfig(long_seq_length=48, global_seq_length=16)


etc_config = functools.partial(
    etcs.config,
    vocab_size=300,
    intermediate_size=16,
    local_radius=4,
    relative_pos_max_distance=3,
    relative_vocab_size=10,
)


def batch(*features):
    columns = {name: [row[name] for row in features] for name in padding.padding_features(SETTINGS)}
    for name in ("label_id", "is_real_example"):
        columns[name] = [value for (value,) in columns[name]]
    return {name: tf.constant(rows) for name, rows in columns.items()}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """A real example and a padding example."""
    tokenizer = tokenizers.wordpiece(tmp_path_factory.mktemp("vocab"))
    example = examples.parse_example(raw_example())
    converted = wikihop_features.make_features(example, SETTINGS, tokenizer)
    return batch(converted.features, padding.padding_features(SETTINGS))


@functools.cache
def built(**options):
    tf.keras.utils.set_random_seed(0)
    made = model.WikiHopModel(etc_config(use_hard_g2l_mask=True), **options)
    made.build()
    return made


def test_only_candidates_have_a_score(features):
    outputs = built()(features)
    is_candidate = np.asarray(features["global_token_ids"]) == 4
    assert np.asarray(is_candidate).sum() == 3
    np.testing.assert_array_equal(np.asarray(outputs["logits"]) == -10000, ~is_candidate)
    np.testing.assert_allclose(np.asarray(outputs["probs"])[0, :3].sum(), 1, atol=1e-6)
    assert outputs["answer_ids"][0] in (0, 1, 2)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_padding_examples_change_nothing_and_give_no_nan(features, label_smoothing):
    made = built()
    alone = {name: values[:1] for name, values in features.items()}
    losses = [
        model.loss(made(given), given, label_smoothing=label_smoothing)["loss"]
        for given in (features, alone)
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    per_example = model.per_example_loss(made(features), features, label_smoothing=label_smoothing)
    assert np.isfinite(per_example).all()
    only_padding = {name: values[1:] for name, values in features.items()}
    losses = model.loss(made(only_padding), only_padding, label_smoothing=label_smoothing)
    assert float(losses["loss"]) == 0


def test_smoothing_spreads_over_the_candidates():
    logits = tf.constant([[1.0, 2.0, 0.5, -10000.0]])
    features = {
        "global_token_ids": tf.constant([[4, 4, 4, 3]]),
        "label_id": tf.constant([1.0]),
        "is_real_example": tf.constant([1]),
    }
    outputs = {"logits": logits, "answer_ids": tf.constant([1])}
    log_probs = np.log(np.exp([1, 2, 0.5]) / np.exp([1, 2, 0.5]).sum())
    expected = -(0.9 * log_probs[1] + 0.1 * log_probs.mean())
    losses = model.loss(outputs, features, label_smoothing=0.1)
    np.testing.assert_allclose(losses["loss"], expected, rtol=1e-5)
    assert float(losses["train_accuracy"]) == 1


def side_inputs(features, **options):
    made = built(**options)
    pairs = side_inputs_of(made._structure(features), made.encoder_config.local_radius)
    return {name: np.asarray(value)[0] for name, value in pairs.to_dict().items()}


def test_mentions_are_labeled_as_linked_to_their_candidate(features):
    plain, linked = (side_inputs(features, enable_l2g_linking=flag) for flag in (False, True))
    differs = plain["l2g_relative_att_ids"] != linked["l2g_relative_att_ids"]
    links = np.asarray(features["l2g_linked_ids"])[0]
    in_document = np.asarray(features["long_paragraph_ids"])[0] >= 0
    expected = [(i, link) for i, link in enumerate(links) if link >= 0 and in_document[i]]
    assert len(expected) == 4 and list(zip(*np.nonzero(differs), strict=True)) == expected
    np.testing.assert_array_equal(
        linked["g2l_relative_att_ids"], linked["l2g_relative_att_ids"].transpose()
    )


@pytest.mark.parametrize(
    ("option", "token_id"), [("candidate_ignore_hard_g2l", 4), ("query_ignore_hard_g2l", 3)]
)
def test_global_tokens_may_be_exempt_from_the_hard_mask(features, option, token_id):
    hard, exempt = (side_inputs(features, **{option: flag}) for flag in (False, True))
    num_long = int((np.asarray(features["long_token_ids"])[0] > 0).sum())
    is_exempt = np.asarray(features["global_token_ids"])[0] == token_id
    assert (hard["g2l_att_mask"].sum(axis=1)[is_exempt] <= 2).all()  # Their own tokens.
    assert (exempt["g2l_att_mask"].sum(axis=1)[is_exempt] == num_long).all()
    np.testing.assert_array_equal(
        hard["g2l_att_mask"][~is_exempt], exempt["g2l_att_mask"][~is_exempt]
    )


def test_a_flat_sequence_has_neither_documents_nor_links(features):
    flat, unlinked = (
        side_inputs(features, flat_sequence=flag, enable_l2g_linking=flag) for flag in (True, False)
    )
    in_sentence = np.asarray(features["long_sentence_ids"])[0] >= 0
    labels = flat["l2g_relative_att_ids"]
    own = np.asarray(features["long_sentence_ids"])[0]
    is_own = own[:, np.newaxis] == np.arange(labels.shape[1])
    assert (labels[is_own & in_sentence[:, np.newaxis]] == labels[is_own].max()).all()
    assert len(np.unique(labels[~is_own])) == 1  # Without links, documents have labels of theirs.
    assert len(np.unique(unlinked["l2g_relative_att_ids"][~is_own])) == 2
    assert flat["l2l_att_mask"].sum() > unlinked["l2l_att_mask"].sum()  # Across documents.


def test_the_final_layer_may_be_left_out(features):
    def num_weights(made):
        return sum(int(tf.size(variable)) for variable in made.trainable_variables)

    with_layer, without = built(), built(add_final_layer=False)
    assert num_weights(with_layer) - num_weights(without) == 2 * 8 * 16 + 16 + 8 + 2 * 8
    assert without(features)["logits"].shape == [2, 16]


class TestConfig:
    def test_options_replace_values_of_the_model_config(self):
        config = task.WikiHopConfig(
            encoder_config=etc_config(), local_radius=7, hidden_dropout_prob=0.0
        )
        made = config.model_config()
        assert (made.local_radius, made.hidden_dropout_prob) == (7, 0.0)
        assert made.attention_probs_dropout_prob == 0.1
        assert config.encoder_config.local_radius == 4
