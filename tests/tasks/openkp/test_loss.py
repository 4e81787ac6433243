"""The loss over n-grams, against references in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etcmodel.tasks.openkp import config, model, phrases

KP_MAX_LENGTH = 3


def softmax_cross_entropy(logits, probs):
    """-sum(probs * log_softmax(logits)) of dicts by phrase."""
    values = np.array(list(logits.values()), np.float64)
    log_sum = np.log(np.sum(np.exp(values - values.max()))) + values.max()
    return -sum(probs[phrase] * (logits[phrase] - log_sum) for phrase in logits)


def numpy_loss(words, logits, labels, mass, occurrences):
    """The loss of one page, from its words: slow and obvious.

    Args:
        words: list of str.
        logits: float [KP_MAX_LENGTH, length].
        labels: list of tuples of str.
        occurrences: 'first' or 'max'.
    """
    by_phrase = {}
    for size in range(1, KP_MAX_LENGTH + 1):
        for start in range(len(words) - size + 1):
            phrase = tuple(words[start : start + size])
            key = phrase if occurrences == "max" or phrase not in by_phrase else (start, phrase)
            value = float(logits[size - 1, start])
            by_phrase[key] = max(value, by_phrase.get(key, -np.inf))
    share = mass / len(by_phrase)
    probs = dict.fromkeys(by_phrase, share / (1 + mass))
    for label in labels:
        probs[label] += 1 / len(labels) / (1 + mass)
    return softmax_cross_entropy(by_phrase, probs)


def batch_of(pages, length):
    """Features of pages, (words, labels) each."""
    features = {
        name: []
        for name in (
            "label_start_idx",
            "label_phrase_len",
            "long_word_input_mask",
            "long_word_first_occurrence",
        )
    }
    for words, labels in pages:
        starts = [phrases.find(list(label), words) for label in labels]
        padding = [-1] * (3 - len(labels))
        features["label_start_idx"].append(starts + padding)
        features["label_phrase_len"].append([len(label) for label in labels] + padding)
        rest = length - len(words)
        features["long_word_input_mask"].append([1] * len(words) + [0] * rest)
        rows = phrases.first_occurrences(words, KP_MAX_LENGTH)
        rest = list(range(len(words), length))
        features["long_word_first_occurrence"].append([i for row in rows for i in row + rest])
    return {name: tf.constant(values, tf.int32) for name, values in features.items()}


def masked(logits, pages):
    """Logits as the model gives them."""
    logits = logits.copy()
    for row, (words, _) in enumerate(pages):
        for size in range(1, KP_MAX_LENGTH + 1):
            logits[row, size - 1, max(0, len(words) - size + 1) :] = model.MASKED_LOGIT
    return logits


@st.composite
def labeled_page(draw):
    words = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
    labels = set()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(words) - 1))
        size = draw(st.integers(1, min(KP_MAX_LENGTH, len(words) - start)))
        labels.add(tuple(words[start : start + size]))
    return words, sorted(labels)


@pytest.mark.parametrize("occurrences", ["first", "max"])
@given(
    pages=st.lists(labeled_page(), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    mass=st.sampled_from([0.0, 1e-4, 0.5]),
)
@settings(max_examples=40)
def test_matches_slow_reference(occurrences, pages, seed, mass):
    length = 8
    shape = (len(pages), KP_MAX_LENGTH, length)
    logits = np.random.default_rng(seed).normal(scale=3, size=shape).astype(np.float32)
    logits = masked(logits, pages)
    actual = model.loss(
        {"ngram_logits": tf.constant(logits)},
        batch_of(pages, length),
        label_occurrences=occurrences,
        additive_smoothing_mass=mass,
    )["loss"]
    expected = [
        numpy_loss(words, logits[row], labels, mass, occurrences)
        for row, (words, labels) in enumerate(pages)
    ]
    np.testing.assert_allclose(actual, np.mean(expected), rtol=1e-4, atol=1e-4)


def one_page(words, labels, length=6):
    pages = [(words.split(), labels)]
    shape = (1, KP_MAX_LENGTH, length)
    logits = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    return tf.Variable(masked(logits, pages)), batch_of(pages, length)


def gradient(logits, features, **options):
    with tf.GradientTape() as tape:
        value = model.loss({"ngram_logits": tf.convert_to_tensor(logits)}, features, **options)
    return tape.gradient(value["loss"], logits).numpy()


def test_max_loss_raises_the_best_occurrence_and_first_loss_the_first():
    logits, features = one_page("a b a b", [("a",)])
    logits[0, 0, 2].assign(5.0)
    by_max = gradient(logits, features, label_occurrences="max")
    assert by_max[0, 0, 2] < 0 == by_max[0, 0, 0]
    by_first = gradient(logits, features, label_occurrences="first")
    assert by_first[0, 0, 0] < 0 < by_first[0, 0, 2]


def test_smoothing_ignores_padding_unless_as_in_the_release():
    logits, features = one_page("a b", [("a",)])
    plain = model.loss({"ngram_logits": logits}, features, additive_smoothing_mass=0.0)["loss"]
    smoothed = model.loss({"ngram_logits": logits}, features)["loss"]
    released = model.loss({"ngram_logits": logits}, features, release_compatible=True)["loss"]
    assert abs(smoothed - plain) < 1e-3
    # 15 of the 18 n-grams lie in the padding: 15 / 18 of the mass of 1e-4 meets about -10,000.
    assert 0.7 < released - plain < 0.9


def slow_labels(starts, lengths, allowed, mass):
    """The probabilities of a page: its labels share 1, all allowed n-grams share the mass."""
    probs = np.zeros(allowed.shape)
    for start, length in zip(starts, lengths, strict=True):
        if 0 <= start < allowed.shape[1] and 1 <= length <= allowed.shape[0]:
            probs[length - 1, start] += 1
    has_labels = probs.any()
    probs /= max(probs.sum(), 1)
    probs += mass * allowed / max(allowed.sum(), 1)
    return probs / (probs.sum() or 1), has_labels


@given(
    pairs=st.lists(st.tuples(st.integers(-1, 6), st.integers(-1, 4)), min_size=1, max_size=4),
    num_words=st.integers(0, 4),
    mass=st.sampled_from([0.0, 1e-7, 1e-3, 0.5]),
    compatible=st.booleans(),
)
@example(pairs=[(4, 1), (1, 1)], num_words=4, mass=0.0, compatible=False)
@example(pairs=[(0, 1)], num_words=2, mass=0.0, compatible=True)
@settings(max_examples=150)
def test_labels_match_slow_reference(pairs, num_words, mass, compatible):
    starts, lengths = zip(*pairs, strict=True)
    allowed = model.ngram_mask([[1] * num_words + [0] * (4 - num_words)], 3)
    labels, has_labels = model.ngram_labels(
        tf.constant([starts]), tf.constant([lengths]), allowed, mass, release_compatible=compatible
    )
    if compatible:
        allowed, mass = np.ones([1, 3, 4]), max(mass, 1e-6)
    expected, expected_has_labels = slow_labels(starts, lengths, np.asarray(allowed[0]), mass)
    assert has_labels.numpy().tolist() == [expected_has_labels]
    np.testing.assert_allclose(labels[0], expected, rtol=1e-6)


def test_a_label_beyond_the_input_is_none():
    labels, _ = model.ngram_labels(
        tf.constant([[4, 1]]), tf.constant([[1, 1]]), tf.ones([1, 2, 4], tf.bool), 0.0
    )
    np.testing.assert_array_equal(labels[0], [[0, 1, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(("compatible", "elsewhere"), [(False, 0.0), (True, 5e-7)])
def test_the_release_smooths_at_least_a_little(compatible, elsewhere):
    labels, _ = model.ngram_labels(
        tf.constant([[0]]),
        tf.constant([[1]]),
        tf.ones([1, 1, 2], tf.bool),
        0.0,
        release_compatible=compatible,
    )
    np.testing.assert_allclose(labels[0, 0, 1], elsewhere, rtol=1e-5)


def test_a_page_without_labels_adds_nothing_unless_as_in_the_release():
    logits, features = one_page("a b", [])
    assert model.loss({"ngram_logits": logits}, features)["loss"] == 0
    assert not np.any(gradient(logits, features))
    assert model.loss({"ngram_logits": logits}, features, release_compatible=True)["loss"] > 0


def test_graph_and_xla_agree_with_eager():
    logits, features = one_page("a b a b", [("a", "b")])
    for occurrences in config.LABEL_OCCURRENCES:

        def value(logits, features, occurrences=occurrences):
            outputs = {"ngram_logits": logits}
            return model.loss(outputs, features, label_occurrences=occurrences)["loss"]

        eager = value(logits, features)
        compiled = tf.function(value, jit_compile=True)(logits, features)
        np.testing.assert_allclose(compiled, eager, rtol=1e-5)


def test_unknown_choices_are_refused():
    logits, features = one_page("a b", [("a",)])
    with pytest.raises(ValueError, match="`label_occurrences` must be one of .*'best'"):
        model.loss({"ngram_logits": logits}, features, label_occurrences="best")
    with pytest.raises(ValueError, match="The release has no max loss"):
        model.loss(
            {"ngram_logits": logits}, features, label_occurrences="max", release_compatible=True
        )
