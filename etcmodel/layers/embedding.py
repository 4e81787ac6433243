"""Embedding lookup."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.ops import argument_checks

__all__ = ["EmbeddingLookup"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class EmbeddingLookup(base.Layer):
    """Embedding lookup, optionally projected to another size (factorized, as in ALBERT).

    Args:
        vocab_size: int. Number of rows of the table.
        embedding_size: int. Number of columns of the table.
        projection_size: int. Size of the output; 0 or `embedding_size` for no projection.
        initializer_range: float. Standard deviation of the initial table. That of the projection's
            initial weights is 1 / sqrt(`embedding_size`).
        use_one_hot_lookup: bool. Whether to look up by matrix products, for devices with slow
            gathers.
        name: name of the layer.
    Call args:
        input_ids: int [...], from 0 to `vocab_size - 1`. Also whole numbers as floats, which Keras
            passes when it builds a model.
        input_mask: int, bool or float [...], or None. Where it is 0, the output is 0, whatever the
            id.
    Returns:
        float [..., projection_size or embedding_size].
    Raises:
        ValueError: if a size is below 1 (`projection_size`: below 0).

    >>> from etcmodel import layers
    >>> layers.EmbeddingLookup(128, embedding_size=4, projection_size=8)([[2, 7, 3]]).shape
    TensorShape([1, 3, 8])
    """

    def __init__(
        self,
        vocab_size,
        embedding_size,
        projection_size=0,
        initializer_range=0.02,
        use_one_hot_lookup=False,
        name="embedding_lookup",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # A cast to half precision would change large ids.
        if vocab_size < 1 or embedding_size < 1 or projection_size < 0:
            raise ValueError(
                "`vocab_size` and `embedding_size` must be at least 1, `projection_size` at least "
                f"0. Received: {vocab_size=}, {embedding_size=}, {projection_size=}"
            )
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.projection_size = projection_size
        self.initializer_range = initializer_range
        self.use_one_hot_lookup = use_one_hot_lookup
        self.projection = None
        if projection_size not in (0, embedding_size):
            self.projection = dense.Dense(
                projection_size,
                kernel_initializer=initializers.default_initializer(embedding_size**-0.5),
                name="projection",
                dtype=self.dtype_policy,
            )

    def build(self, input_shape):
        self.embedding_table = self.add_weight(
            name="embedding_table",
            shape=(self.vocab_size, self.embedding_size),
            initializer=initializers.default_initializer(self.initializer_range),
        )
        if self.projection is not None:
            sublayers.build_sublayer(self.projection, [None, self.embedding_size])
        super().build(input_shape)

    @property
    def embedding_projection(self):
        """The layer that projects to another size, or None. The config lacks one that is set."""
        return self.projection

    @embedding_projection.setter
    def embedding_projection(self, projection):
        self.projection = projection

    def call(self, input_ids, input_mask=None):
        input_ids = sublayers.as_ids(input_ids)
        if input_mask is not None:
            kinds = ("no token", "a token")
            input_mask = argument_checks.mask_of("input_mask", input_mask, kinds)
            input_ids = tf.where(input_mask, input_ids, tf.zeros([], input_ids.dtype))
        # Casting the rows found costs less than casting the whole table.
        if self.use_one_hot_lookup:
            output = tensor_utils.gather_by_one_hot(self.embedding_table, input_ids)
        else:
            output = tf.gather(self.embedding_table, input_ids)
        output = tf.cast(output, self.compute_dtype)
        if self.projection is not None:
            output = self.projection(output)
        if input_mask is not None:
            output *= tf.cast(input_mask, output.dtype)[..., tf.newaxis]
        return output

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}
