"""`BigBirdModel`'s blocks; what holds for others, too, is in `test_every_encoder`."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.models import sequence_classifiers, span_readers, token_classifiers
from etcmodel.models.bigbird import modeling
from tests.models.bigbird import small
from tests.models.random_weights import randomize

MODEL = functools.cache(small.model)
PLAN = np.random.default_rng(1).integers(0, 10, [2, 2, 8, 1])  # Of 10 blocks.


def batch_of(lengths, padded):
    """Texts of these lengths, the same at each length, in one padded batch."""
    ids, mask = np.zeros([2, len(lengths), padded], np.int32)
    for row, length in enumerate(lengths):
        ids[row, :length] = small.ids(64, seed=length)[0, :length]
        mask[row, :length] = 1
    return ids, mask


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("training", [False, True])
def test_by_length_a_text_alone_has_hugging_faces_values(training):
    for length in (9, 14, 15, 23, 40):
        ids, _ = batch_of([length], length)
        expected, _ = MODEL()(ids, training=training)
        found, _ = MODEL(pattern_by_length=True)(ids, np.ones_like(ids), training=training)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_by_default_padding_may_change_a_text():
    alone, _ = MODEL()(*batch_of([17], 17))
    padded, _ = MODEL()(*batch_of([17], 24))
    assert np.abs(alone - padded[:, :17]).max() > 1e-2


def test_given_blocks_are_attended_to_and_seeded_ones_are_drawn_in_training():
    ids, mask = batch_of([19], 20)
    outcomes = [
        MODEL()(ids, mask)[0],
        MODEL()(ids, mask, random_blocks=PLAN)[0],
        MODEL()(ids, mask, training=True)[0],
    ]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(outcomes[one] - outcomes[other])[:, :19].max() > 1e-3
    zeros, _ = MODEL()(ids, mask, random_blocks=np.zeros_like(PLAN))
    np.testing.assert_allclose(zeros, outcomes[0], atol=1e-5)
    seeded, _ = MODEL(is_seeded_always=True)(ids, mask)
    np.testing.assert_allclose(seeded, outcomes[2], atol=1e-6)


@pytest.mark.parametrize("length", [5, 14, 15, 31])
def test_probabilities_explain_the_outputs(length):
    """With weights of the values: those that a pair has, as often as it counts."""
    model = MODEL()
    hidden = tf.constant(np.random.default_rng(2).normal(size=[2, length, 8]), tf.float32)
    layer = model.layers.attention_layers[1].inner_layer
    for training in (False, True):
        counts = layer.pair_counts(length, training=training)
        probs = layer.attention_probs(hidden, training=training)
        weights = probs * tf.cast(counts, tf.float32)
        np.testing.assert_allclose(tf.reduce_sum(weights, -1), np.ones([2, 2, length]), atol=1e-5)
        _, values = layer.keys_values(hidden)
        attended = tf.einsum("bhqk,bkhs->bqhs", weights, values)
        expected = layer.output_projection(layer.merge(attended))
        np.testing.assert_allclose(layer(hidden, training=training), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"input_ids": np.ones([1, 65])}, "64, the rows of the table of positions and the most"),
        ({"input_ids": [[4]], "attention_mask": [[2]]}, "`attention_mask`"),
        ({"input_ids": [[4]], "token_type_ids": [[2]]}, "`token_type_ids` .* `type_vocab_size`"),
        (
            {"input_ids": np.ones([1, 18]), "random_blocks": PLAN % 9},
            "`random_blocks` must be of all blocks but the first and the last. .* 8 9",
        ),
        (
            {"input_ids": np.ones([1, 20]), "random_blocks": PLAN + 10},
            "`random_blocks` .* 10, the number of blocks",
        ),
        (
            {"input_ids": np.ones([1, 20]), "random_blocks": PLAN[:1]},
            "`random_blocks` must have shape .num_hidden_layers",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        MODEL()(**arguments)


def test_own_settings_are_in_a_file_only_where_set():
    assert "pattern_by_length" not in small.config().to_dict()
    kept = small.config(pattern_by_length=True).to_dict()
    assert etcmodel.BigBirdConfig.from_dict(kept).pattern_by_length


FEATURES = {
    "token_ids": np.array([[2, 9, 3, 5, 6, 7, 3, 0]]),
    "segment_ids": np.array([[0, 0, 0, 1, 1, 1, 1, 0]]),
    "example_ids": np.array([[1, 1, 1, 1, 1, 1, 1, 0]]),
    "global_example_ids": np.array([[1]]),
}


def test_programs_read_their_batches():
    reader = span_readers.make_span_reader(small.config(sep_token_id=39))
    logits = reader(FEATURES)  # The batch tells the question, not the separator.
    np.testing.assert_array_equal(logits["start"] < -1e5, [[0, 1, 1, 0, 0, 0, 0, 0]])
    options = {"num_labels": 3, "problem_type": "single_label_classification", "pooling": "first"}
    classifier = sequence_classifiers.make_sequence_classifier(small.config(), **options)
    head = modeling.BigBirdForSequenceClassification(classifier.encoder, num_labels=3)
    head.set_weights(classifier.get_weights())
    names = {"input_ids": "token_ids", "attention_mask": "example_ids"}
    expected = head(
        {name: FEATURES[x] for name, x in names.items()}, token_type_ids=FEATURES["segment_ids"]
    )
    np.testing.assert_allclose(classifier(FEATURES), expected, atol=1e-6)


def tagger(config, skip_padding):
    return token_classifiers.make_token_classifier(config, num_labels=3, skip_padding=skip_padding)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("make", "output"), [(span_readers.make_span_reader, "end"), (tagger, "logits")]
)
def test_padding_is_skipped_only_where_that_changes_nothing(make, output):
    features = {name: np.pad(x, [[0, 0], [0, 15]]) for name, x in FEATURES.items()}
    for by_length in (False, True):
        outputs = []
        for skip_padding in (False, True):
            reader = make(small.config(pattern_by_length=by_length), skip_padding=skip_padding)
            randomize(reader)
            outputs.append(reader(features)[output][:, :7])
            assert reader.skip_padding == (skip_padding and by_length)
        np.testing.assert_allclose(*outputs, atol=1e-5)
