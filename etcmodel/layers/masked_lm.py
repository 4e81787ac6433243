"""The head of a masked language model."""

import tensorflow as tf

from etcmodel import extras, tensor_utils
from etcmodel.layers import initializers

__all__ = ["make_masked_lm"]


def make_masked_lm(
    table,
    hidden_size,
    *,
    activation,
    initializer_range,
    layer_norm_epsilon=1e-12,
    name="mlm",
):
    """Creates Model Garden's masked-language-model head, built, tied to the token embeddings.

    Args:
        table: variable [vocab_size, embedding_size].
        hidden_size: int.
        activation: str or function. See `tensor_utils.get_activation`.
        initializer_range: float. Standard deviation of the initial weights.
        layer_norm_epsilon: float. What layer normalization adds to the variance.
        name: str. Name of the layer.
    Returns:
        `official.nlp.modeling.layers.MaskedLM`. It is called with float
        [batch, long_len, hidden_size] and int positions [batch, num_predictions], and returns
        float32 logits [batch, num_predictions, vocab_size].
    """
    with extras.needed("train"):
        from official.nlp.modeling.layers import masked_lm  # Takes seconds to import.

    head = masked_lm.MaskedLM(
        table,
        activation=tensor_utils.get_activation(activation),
        initializer=initializers.default_initializer(initializer_range),
        name=name,
        dtype="float32",
    )
    # The layer creates its variables in its first call.
    head(tf.zeros([1, 1, hidden_size]), tf.zeros([1, 1], tf.int32))
    head.layer_norm.epsilon = layer_norm_epsilon
    return head
