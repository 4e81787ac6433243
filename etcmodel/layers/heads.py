"""Heads: hidden states to the logits of a task, and logits to the best outputs."""

import dataclasses

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.autograph import without_autograph
from etcmodel.layers import base, initializers

MASKED_LOGIT = -1e9
NUM_TOP_POSITIONS = 50  # Positions kept for decoding, for each end of a span.


@dataclasses.dataclass(frozen=True)
class _Weights:
    """Hides variables from Keras's tracking, which would list another layer's variables twice."""

    kernel: tf.Variable
    bias: tf.Variable


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class TokenLogits(base.Layer):
    """Token logits: a dense layer like that of BERT's heads.

    Its weights are [num_outputs, hidden_size], the transpose of a Keras kernel.

    Args:
        num_outputs: int. Number of logits per token.
        initializer_range: float. Standard deviation of the initial weights.
        name: name of the layer.
    Call args:
        hidden: float [..., hidden_size].
    Returns:
        float [..., num_outputs], in the layer's compute dtype. Tasks create heads with
        `dtype="float32"`, whatever the encoder's dtype.
    Raises:
        ValueError: if `num_outputs` is below 1.

    >>> from etcmodel import layers
    >>> layers.TokenLogits(num_outputs=3)(tf.zeros([1, 6, 8])).shape
    TensorShape([1, 6, 3])
    """

    def __init__(self, num_outputs, initializer_range=0.02, name="token_logits", **kwargs):
        super().__init__(name=name, **kwargs)
        base.check_at_least_1(num_outputs=num_outputs)
        self.num_outputs = num_outputs
        self.initializer_range = initializer_range
        self._made = None

    def build(self, input_shape):
        if self._made is None:
            self.build_in(self, "", input_shape[-1])
        super().build(input_shape)

    def build_in(self, owner, prefix, hidden_size):
        """Builds the head with variables that belong to another layer.

        In the authors' release a head is not a layer: its variables belong to the task's model, and
        their names begin with a prefix.

        Args:
            owner: layer that the variables `<prefix>weights` and `<prefix>bias` are added to.
            prefix: str.
            hidden_size: int.
        """
        kernel = owner.add_weight(
            name=f"{prefix}weights",
            shape=(self.num_outputs, hidden_size),
            initializer=initializers.default_initializer(self.initializer_range),
        )
        bias = owner.add_weight(
            name=f"{prefix}bias", shape=(self.num_outputs,), initializer="zeros"
        )
        self._made = _Weights(kernel, bias)

    @property
    def kernel(self):
        """Variable [num_outputs, hidden_size]."""
        return self._made.kernel

    @property
    def bias(self):
        """Variable [num_outputs]."""
        return self._made.bias

    def call(self, hidden):
        hidden, kernel, bias = (
            tf.cast(tensor, self.compute_dtype) for tensor in (hidden, self.kernel, self.bias)
        )
        return tf.tensordot(hidden, kernel, [[-1], [-1]]) + bias

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class SpanLogits(TokenLogits):
    """Span logits: scores each token as an end of a span.

    Source: Devlin et al. 2018 (arXiv:1810.04805), section 4.2.

    Args:
        ends: sequence of str. Names of the ends, in the order of the weights.
        initializer_range: float. Standard deviation of the initial weights.
        name: name of the layer.
    Call args:
        hidden: float [batch, len, hidden_size].
        allowed: bool [batch, len], or None. Positions where an end may be; others get the logit
            `MASKED_LOGIT`.
    Returns:
        dict of end name to float [batch, len].
    Raises:
        ValueError: if `ends` is empty.

    >>> from etcmodel import layers
    >>> logits = layers.SpanLogits(["start", "end"])(tf.zeros([1, 6, 8]))
    >>> logits["start"].shape
    TensorShape([1, 6])
    """

    def __init__(self, ends, initializer_range=0.02, name="span_logits", **kwargs):
        super().__init__(len(ends), initializer_range, name=name, **kwargs)
        self.ends = list(ends)

    def call(self, hidden, allowed=None):
        logits = super().call(hidden)  # [batch, len, number of ends]
        if allowed is not None:
            masked = tf.cast(MASKED_LOGIT, logits.dtype)
            logits = tf.where(allowed[:, :, tf.newaxis], logits, masked)
        return dict(zip(self.ends, tf.unstack(logits, axis=-1), strict=True))

    def get_config(self):
        config = {**super().get_config(), "ends": list(self.ends)}
        del config["num_outputs"]
        return config


def top_positions(scores, num_top=NUM_TOP_POSITIONS):
    """Finds the highest-scoring positions of an end.

    Args:
        scores: float [batch, len]. Logits or probabilities.
        num_top: int.
    Returns:
        (values, positions): float and int32 [batch, min(num_top, len)], the highest first.
    """
    return tf.math.top_k(scores, k=tf.minimum(num_top, tf.shape(scores)[1]))


def best_tags(logits):
    """Finds the most probable tag of each token, such as a BIO id.

    Args:
        logits: float [..., number of tags].
    Returns:
        (tags, probs): int32 and float [...].
    """
    probs = tf.nn.softmax(logits)
    return tf.argmax(probs, -1, tf.int32), tf.reduce_max(probs, axis=-1)


class MaskedLM(tf_keras.layers.Layer):
    """Logits of the tokens at given positions: what `make_masked_lm` creates.

    Names of variables, of attributes and of the class are those of Model Garden's `MaskedLM`, so
    that checkpoints and Keras's files of either fit both.
    """

    def __init__(self, table, *, activation, initializer, layer_norm_epsilon, **kwargs):
        super().__init__(**kwargs)
        self.embedding_table = table
        self._activation, self._initializer = activation, initializer
        self._epsilon = layer_norm_epsilon

    def build(self, input_shape):
        vocab_size, embedding_size = self.embedding_table.shape
        self.dense = tf_keras.layers.Dense(
            embedding_size,
            activation=self._activation,
            kernel_initializer=self._initializer,
            name="transform/dense",
            dtype=self.dtype,  # Else that of the global policy.
        )
        self.layer_norm = tf_keras.layers.LayerNormalization(
            epsilon=self._epsilon, name="transform/LayerNorm", dtype=self.dtype
        )
        self.bias = self.add_weight("output_bias/bias", shape=(vocab_size,), initializer="zeros")
        super().build(input_shape)

    @without_autograph
    def call(self, hidden, positions):
        hidden = tf.gather(hidden, positions, batch_dims=1)  # [batch, num_predictions, hidden_size]
        hidden = self.layer_norm(self.dense(hidden))
        return tf.matmul(hidden, self.embedding_table, transpose_b=True) + self.bias


class _MaskedLM(MaskedLM):
    """The same layer under a name that it had for some time."""


def name_masked_lm_as_in(store, head):
    """Gives a `MaskedLM` the class under whose name a file of Keras has its weights.

    `.keras` and `.weights.h5` files have a model's layers under the names of their classes.

    Args:
        store: what Keras gives to `load_own_variables` of the model whose layer `head` is; or None,
            for the name that files are written with.
        head: layer, as returned by `make_masked_lm`.
    """
    is_former = "layers/private__masked_lm" in getattr(store, "parent", ())
    head.__class__ = _MaskedLM if is_former else MaskedLM


def make_masked_lm(
    table,
    hidden_size,
    *,
    activation,
    initializer_range,
    layer_norm_epsilon=1e-12,
    name="mlm",
):
    """Creates the head of a masked language model, built, tied to the token embeddings.

    Source: Devlin et al. 2018 (arXiv:1810.04805), section 3.1, as the authors' code has it.

    Args:
        table: variable [vocab_size, embedding_size].
        hidden_size: int.
        activation: str or function. See `tensor_utils.get_activation`.
        initializer_range: float. Standard deviation of the initial weights.
        layer_norm_epsilon: float. What layer normalization adds to the variance.
        name: str. Name of the layer.
    Returns:
        A layer, called with float [batch, long_len, hidden_size] and int positions
        [batch, num_predictions]. It returns float32 logits [batch, num_predictions, vocab_size].
    """
    head = MaskedLM(
        table,
        activation=tensor_utils.get_activation(activation),
        initializer=initializers.default_initializer(initializer_range),
        layer_norm_epsilon=layer_norm_epsilon,
        name=name,
        dtype="float32",
    )
    # The inner layers create their variables in the first call.
    head(tf.zeros([1, 1, hidden_size]), tf.zeros([1, 1], tf.int32))
    return head
