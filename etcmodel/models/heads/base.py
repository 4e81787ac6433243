"""The base of all heads over encoders of a long and a global input."""

import abc

import tensorflow as tf

from etcmodel.models import encoders
from etcmodel.models import features as features_lib
from etcmodel.models import pooling as pooling_lib
from etcmodel.models.heads.encoder_with_head import (
    EncoderWithHead,
    head_class,
    head_classes,
    register_head,
)

__all__ = ["EncoderWithHead", "HeadModel", "head_class", "head_classes", "register_head"]


class HeadModel(EncoderWithHead):
    """A model with a head: maps a batch of features (see `models.features`) to logits.

    A subclass computes logits in `head`; see `EncoderWithHead` for the rest.

    Args:
        encoder: see `EncoderWithHead`, as for the other arguments.
        relation_names: sequence of str. See `models.features`.
        **kwargs: of `EncoderWithHead`.
    Call args: see `EncoderWithHead`.
    Raises:
        ValueError: see `EncoderWithHead` and `features.completed`; also if there are more relations
            than labels for them.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForSentenceSelection(config, relation_names=["cites"])
    >>> isinstance(model, etcmodel.models.HeadModel), model.relation_names
    (True, ('cites',))
    """

    extra_axes = {}  # The axes of further features; see `features.completed`.

    def __init__(self, encoder, *, relation_names: tuple[str, ...] = (), **kwargs):
        super().__init__(encoder, **kwargs)
        self.relation_names = tuple(relation_names)
        if self.relation_names:
            # Raises an error if there are too many.
            self.encoder.config.relation_labels(*self.relation_names)

    @classmethod
    def make_encoder(cls, config):
        return encoders.make_global_local_encoder(config)

    @abc.abstractmethod
    def head(self, long_output, global_output, inputs, training):
        """Computes logits, or a dict of them, from hidden states and `features.EncoderInputs`."""

    def call(self, features, training=None):
        inputs = features_lib.completed(
            features, self.encoder.config, self.relation_names, self.extra_axes
        )
        long_output, global_output = self.encoder(**inputs.arguments, training=training)
        # So that variables of an output that the head does not use get a gradient of 0, not None.
        long_output, global_output = tf.identity_n([long_output, global_output])
        return self.head(long_output, global_output, inputs, training)

    def pooled(self, long_output, global_output, inputs, training):
        """Pools hidden states by `pooling`, with dropout: float32 [batch, hidden_size]."""
        vectors = pooling_lib.pool(long_output, global_output, inputs, self.pooling)
        return self.dropout(vectors, training=training)

    def embed(self, features, pooling="mean", normalize=False):
        """Returns embedding vectors of texts: see `models.pooling.embed`.

        >>> model = etcmodel.from_pretrained("my_model")
        >>> model.embed(model.processor(["Good!", "Bad!"])).shape
        TensorShape([2, 12])
        """
        if hasattr(features, "items"):  # Without the features that only the head takes.
            features = {name: x for name, x in features.items() if name not in self.extra_axes}
        names = self.relation_names
        return pooling_lib.embed(
            self.encoder, features, pooling, relation_names=names, normalize=normalize
        )

    def settings(self):
        return {**super().settings(), "relation_names": list(self.relation_names)}
