"""Losses and metrics take whole numbers as labels, however they are stored, and nothing else."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.models.heads import losses, of_etc

LOGITS = np.random.default_rng(0).normal(size=[2, 3]).astype(np.float32)
OF_EACH_LOGIT, OF_EACH_ROW = np.array([[1, 0, 1], [0, -1, -1]]), np.array([2, 1])
LOSSES = {
    losses.SparseCrossentropy: OF_EACH_ROW,
    losses.BinaryCrossentropy: OF_EACH_LOGIT,
    losses.MeanCrossentropy: np.array([2, -100]),
    losses.PositionCrossentropy: np.array([2, 3]),
}
METRICS = {
    losses.SparseAccuracy: OF_EACH_ROW,
    losses.ErrorPercent: OF_EACH_ROW,
    losses.Perplexity: np.array([2, -100]),
    losses.BinaryAccuracy: OF_EACH_LOGIT,
}
every_measure = pytest.mark.parametrize(
    "kind, labels", [*LOSSES.items(), *METRICS.items()], ids=lambda x: getattr(x, "__name__", "")
)


def measure(kind):
    """A function from labels to a loss, or to a metric of all labels so far."""
    made = kind()
    if kind in LOSSES:
        return lambda labels: made(labels, LOGITS)

    def update(labels):
        made.update_state(labels, LOGITS)
        return made.result()

    return update


def measured(kind, labels):
    return measure(kind)(labels)


@every_measure
def test_labels_may_be_stored_as_any_numbers(kind, labels):
    wanted = measured(kind, labels)
    for dtype in (np.float32, np.float64, np.float16, np.int64, np.int8):
        np.testing.assert_allclose(measured(kind, labels.astype(dtype)), wanted)


@every_measure
@pytest.mark.parametrize("wrong", [0.75, -0.5, np.inf])
def test_fractions_are_refused(kind, labels, wrong):
    labels = labels.astype(np.float32)
    labels[0] = wrong
    with pytest.raises(ValueError, match=f"^`labels` must be whole numbers. Received: {wrong}$"):
        measured(kind, labels)


@every_measure
def test_a_graph_refuses_fractions_when_it_runs(kind, labels):
    labels = labels.astype(np.float32)
    run = tf.function(measure(kind), [tf.TensorSpec(None, tf.float32)], autograph=False)
    np.testing.assert_allclose(run(labels), measured(kind, labels), rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`labels` must be whole numbers"):
        run(labels + 0.5)


@pytest.mark.xla
@every_measure
def test_compiled_by_xla_it_is_the_same(kind, labels):
    labels = labels.astype(np.float32)
    compiled = tf.function(measure(kind), jit_compile=True)
    np.testing.assert_allclose(compiled(labels), measured(kind, labels), rtol=1e-5)


@pytest.mark.parametrize("wrong", [3, -1])
def test_other_labels_than_those_of_the_logits_are_refused(wrong):
    """Where there is a GPU, TensorFlow itself makes NaN of them."""
    words = rf"must be at least 0 and below 3, the number of labels, or -100 for none.* {wrong}"
    with pytest.raises(ValueError, match=words):
        losses.MeanCrossentropy()(np.array([0, wrong]), LOGITS)


def test_a_number_too_large_for_a_label_does_not_become_one():
    with pytest.raises(ValueError, match="`labels` must be at least -1 and below 3"):
        losses.SparseCrossentropy()(np.array([2**32 + 1, 0]), LOGITS)


@every_measure
def test_labels_have_the_shape_of_the_logits(kind, labels):
    """Not only their number: a reshaping would give labels to other tokens."""
    wanted = measured(kind, labels)
    np.testing.assert_allclose(measured(kind, labels[..., np.newaxis]), wanted)
    wrong = np.concatenate([labels, labels], -1)  # The graph knows only the rank.
    spec = tf.TensorSpec([None] * labels.ndim, tf.float32)
    run = tf.function(measure(kind), [spec], autograph=False)
    np.testing.assert_allclose(run(labels.astype(np.float32)), wanted, rtol=1e-5)
    told = r"^`labels` must have shape \[2(, 3)?\], as the logits. Received shape:"
    for call, error in ((measure(kind), ValueError), (run, tf.errors.InvalidArgumentError)):
        with pytest.raises(error, match=told.strip("^") if call is run else told):
            call(wrong.astype(np.float32))
    with pytest.raises(ValueError, match=told):
        measured(kind, labels.reshape([-1, labels.size]) if labels.ndim == 1 else labels.T)


@pytest.mark.parametrize("kind", [of_etc.KeyphraseCrossentropy, of_etc.KeyphraseHits])
def test_key_phrases_are_pairs_of_whole_numbers(kind):
    logits = np.zeros([2, 5, 13], np.float32)  # Of up to 5 words.
    for labels, told in (
        (np.zeros([2, 13]), r"must have shape \[batch, num_phrases, 2\].*\[2, 13\]"),
        (np.zeros([2, 1, 3]), r"must have shape \[batch, num_phrases, 2\].*\[2, 1, 3\]"),
        (np.full([2, 1, 2], 0.5), "must be whole numbers. Received: 0.5"),
    ):
        measure_of = kind()
        call = (
            measure_of if isinstance(measure_of, tf_keras.losses.Loss) else measure_of.update_state
        )
        with pytest.raises(ValueError, match=f"^`labels` {told}"):
            call(labels, logits)
