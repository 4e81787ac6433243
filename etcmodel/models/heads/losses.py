"""Losses and metrics of heads. Tokens labeled -1 have no label and are ignored.

A loss is the mean over the labeled tokens of each example, then over the examples. Labels may be
stored as floats if they are whole numbers; others, such as probabilities, are refused, except in
code that XLA compiles, which cannot raise.
"""

import tensorflow as tf
import tf_keras

from etcmodel.layers import heads
from etcmodel.ops import argument_checks
from etcmodel.text.labels import MULTI_LABEL, REGRESSION, SINGLE_LABEL


def as_int32(labels):
    """Labels as int32, checked to be whole numbers."""
    labels = tf.convert_to_tensor(labels)
    if labels.dtype.is_floating:
        labels = argument_checks.whole("labels", labels)
    if labels.dtype == tf.int64:
        return tf.saturate_cast(labels, tf.int32)  # So that none wraps around to a label.
    return tf.cast(labels, tf.int32)


def _of_shape(labels, logits, num_axes=None):
    """Labels, a tensor, with the first axes of the logits; only further axes of size 1 may differ.

    Keras adds such axes and drops them. `tf.reshape` alone would take any labels of the same
    number.
    """
    given, wanted = labels.shape, logits.shape[:num_axes]
    told = str(wanted.as_list()).replace("None", "?")
    message = f"`labels` must have shape {told}, as the logits. Received shape:"
    if given.rank is not None:
        number = min(given.rank, wanted.rank)
        is_of_ones = {*given[number:]} <= {1, None} and {*wanted[number:]} <= {1}
        if not (given[:number].is_compatible_with(wanted[:number]) and is_of_ones):
            argument_checks.fail(f"{message} {given.as_list()}")
    if not (given.is_fully_defined() and wanted.is_fully_defined()):
        shape, found, asserts = tf.shape(logits)[:num_axes], tf.shape(labels), []
        number = tf.minimum(tf.size(found), tf.size(shape))
        is_same = tf.reduce_all(tf.equal(found[:number], shape[:number]))
        others = tf.concat([found[number:], shape[number:]], 0)
        is_same &= tf.reduce_all(tf.equal(others, 1))
        argument_checks.check(is_same, message, found, asserts=asserts)
        with tf.control_dependencies(asserts):
            labels = tf.identity(labels)
    # Not `tf.reshape` where the rank is known: in a graph it makes TensorFlow (2.20) take for
    # granted that the sizes fit, and leave out the check with it.
    if given.rank is None:
        return tf.reshape(labels, shape)
    if given.rank > wanted.rank:
        return tf.squeeze(labels, [*range(wanted.rank, given.rank)])
    return labels[(..., *[tf.newaxis] * (wanted.rank - given.rank))]


def _in_range(labels, least, limit, more=""):
    """The labels, checked to be from `least` to `limit - 1`."""
    words = f"the number of labels{more}"
    words = words if tf.is_tensor(limit) else f"{limit}, {words}"
    return argument_checks.in_range("labels", labels, least, limit, words)


def _num_labels(logits):
    return tf.shape(logits)[-1] if logits.shape[-1] is None else logits.shape[-1]


def _mean_of_known(losses, labels):
    """Means over the labeled tokens of losses and labels [batch, ...]: float32 [batch]."""
    known = tf.cast(labels >= 0, tf.float32)
    flat_shape = [tf.shape(labels)[0], -1]
    losses, known = (tf.reshape(x, flat_shape) for x in (losses * known, known))
    return tf.reduce_sum(losses, axis=1) / tf.maximum(tf.reduce_sum(known, axis=1), 1.0)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class SparseCrossentropy(tf_keras.losses.Loss):
    """Softmax cross entropy of int labels [batch, ...] and logits [batch, ..., num_labels].

    >>> from etcmodel.models.heads import losses
    >>> logits = tf.math.log([[[0.5, 0.5], [0.2, 0.8]]])
    >>> print(np.round(losses.SparseCrossentropy()([[0, -1]], logits), 3))
    0.693
    """

    def call(self, y_true, y_pred):
        logits = tf.cast(y_pred, tf.float32)
        labels = _in_range(_of_shape(as_int32(y_true), logits, -1), -1, _num_labels(logits))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), logits)
        return _mean_of_known(losses, labels)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BinaryCrossentropy(tf_keras.losses.Loss):
    """Sigmoid cross entropy of 0/1 labels and logits [batch, ...]."""

    def call(self, y_true, y_pred):
        logits = tf.cast(y_pred, tf.float32)
        labels = _in_range(_of_shape(as_int32(y_true), logits), -1, 2)
        targets = tf.cast(tf.maximum(labels, 0), tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(targets, logits)
        return _mean_of_known(losses, labels)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class MeanCrossentropy(tf_keras.losses.Loss):
    """Softmax cross entropy, averaged over all labeled tokens of the batch, as in PyTorch.

    Labels are int [batch, ...], logits [batch, ..., num_labels]. Sample weights of examples
    [batch], or of tokens, multiply each term of the mean.

    Args:
        ignored: int. The label of ignored tokens.
        **kwargs: of the Keras loss.

    >>> from etcmodel.models.heads import losses
    >>> logits = tf.math.log([[[0.5, 0.5], [0.2, 0.8], [1.0, 3.0]]])
    >>> print(np.round(losses.MeanCrossentropy()([[0, 1, -100]], logits), 3))
    0.458
    """

    def __init__(self, ignored=-100, **kwargs):
        super().__init__(**kwargs)
        self.ignored = ignored

    def call(self, y_true, y_pred):
        logits = tf.cast(y_pred, tf.float32)
        labels = _of_shape(as_int32(y_true), logits, -1)
        is_known = tf.not_equal(labels, self.ignored)
        more = f", or {self.ignored} for none"
        labels = _in_range(tf.where(is_known, labels, 0), 0, _num_labels(logits), more)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        known = tf.cast(is_known, tf.float32)
        # Keras averages these over all tokens, including those without a label.
        share = tf.cast(tf.size(known), tf.float32) / tf.maximum(tf.reduce_sum(known), 1.0)
        return losses * known * share

    def num_terms(self, y_true):
        """The number of labels that the mean is over: int64 [].

        Args:
            y_true: int tensor.
        """
        return tf.math.count_nonzero(tf.not_equal(as_int32(y_true), self.ignored))

    def get_config(self):
        return {**super().get_config(), "ignored": self.ignored}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PositionCrossentropy(MeanCrossentropy):
    """Softmax cross entropy of positions [batch] and logits [batch, length].

    Positions beyond the length are ignored, negative ones are taken as 0, as in Hugging Face's
    heads.
    """

    is_of_positions = True  # Which of its labels count depends on the length.

    def call(self, y_true, y_pred):
        return super().call(self._known(y_true, tf.shape(y_pred)[-1]), y_pred)

    def num_terms(self, y_true, length=None):
        """The number of labels that the mean is over: int64 [].

        Args:
            y_true: int tensor.
            length: int, int scalar tensor or None. The tokens of an example, if it is known.
        """
        return super().num_terms(y_true if length is None else self._known(y_true, length))

    def _known(self, y_true, length):
        positions = tf.maximum(as_int32(y_true), 0)
        return tf.where(positions < length, positions, self.ignored)


def _token_weights(labels, sample_weight):
    """Weights of tokens: their own or those of their examples, or 1; and 0 without a label.

    Args:
        labels: int [batch, ...].
        sample_weight: float [batch], or with further axes as the labels, of the same size or 1; or
            None.
    """
    weights = tf.cast(labels >= 0, tf.float32)
    if sample_weight is None:
        return weights
    given = tf.cast(sample_weight, tf.float32)
    ones = tf.ones([tf.maximum(tf.rank(labels) - tf.rank(given), 0)], tf.int32)
    shape = tf.shape(given)[: tf.rank(labels)]  # Keras may add an axis of size 1.
    return weights * tf.reshape(given, tf.concat([shape, ones], 0))


class _Accuracy(tf_keras.metrics.Mean):
    """Share of the labeled tokens that are predicted correctly."""

    num_axes = -1  # The axes of the logits that labels have, too.

    def __init__(self, name="accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        logits = tf.cast(y_pred, tf.float32)
        found, labels = self.found(logits), _of_shape(as_int32(y_true), logits, self.num_axes)
        is_right = tf.cast(tf.equal(found, labels), tf.float32)
        return super().update_state(is_right, _token_weights(labels, sample_weight))


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class SparseAccuracy(_Accuracy):
    """Accuracy of logits [batch, ..., num_labels] for int labels [batch, ...]."""

    def found(self, logits):
        return tf.argmax(logits, -1, tf.int32)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class ErrorPercent(SparseAccuracy):
    """Percentage of the labeled tokens predicted wrongly; labels as in `SparseAccuracy`."""

    def __init__(self, name="error_percent", **kwargs):
        super().__init__(name=name, **kwargs)

    def result(self):
        return 100.0 * (1.0 - super().result())


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class Perplexity(tf_keras.metrics.Mean):
    """exp of the mean cross entropy over all labeled tokens; negative labels are ignored.

    Labels are int [batch, ...], logits [batch, ..., num_labels].
    """

    def __init__(self, name="perplexity", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        logits = tf.cast(y_pred, tf.float32)
        labels = _of_shape(as_int32(y_true), logits, -1)
        entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), logits)
        return super().update_state(entropies, _token_weights(labels, sample_weight))

    def result(self):
        return tf.exp(super().result())


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BinaryAccuracy(_Accuracy):
    """Accuracy of logits [batch, ...], by their sign, for 0/1 labels [batch, ...]."""

    num_axes = None

    def found(self, logits):
        return tf.cast(logits > 0, tf.int32)


def any_position_crossentropy(logits, is_right, allowed):
    """Cross entropy of drawing any of the right positions from a softmax.

    Unlike the mean over the right positions, it does not require the model to find all of them.
    Source: Clark and Gardner 2017 (arXiv:1710.10723), section 3, "summed objective".

    Args:
        logits: float [batch, len].
        is_right: bool [batch, len].
        allowed: bool [batch, len]. The positions that the softmax is over.
    Returns:
        float32 [batch]; 0 where no allowed position is right.
    """
    is_right = is_right & allowed
    logits = tf.cast(logits, tf.float32)
    right, all_of_them = (
        tf.reduce_logsumexp(tf.where(mask, logits, heads.MASKED_LOGIT), axis=-1)
        for mask in (is_right, allowed)
    )
    return tf.where(tf.reduce_any(is_right, axis=-1), all_of_them - right, 0.0)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class MeanSquaredError(tf_keras.losses.MeanSquaredError):
    """Keras's, of numbers in the shape of the outputs; Keras itself would broadcast others."""

    def call(self, y_true, y_pred):
        numbers = tf.cast(tf.convert_to_tensor(y_true), y_pred.dtype)
        return super().call(_of_shape(numbers, y_pred), y_pred)


# The loss of labels of texts, and the metrics, by the problem type.
OF_PROBLEMS = {
    SINGLE_LABEL: (SparseCrossentropy, SparseAccuracy),
    MULTI_LABEL: (BinaryCrossentropy, BinaryAccuracy),
    REGRESSION: (MeanSquaredError,),
}
