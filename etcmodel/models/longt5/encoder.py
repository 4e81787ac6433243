"""LongT5's encoder: T5's with local or transient-global attention (Guo et al. 2022)."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import EmbeddingLookup, RecomputingDropout, base, stack, sublayers
from etcmodel.layers.attention.transient_global import TransientGlobalAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models.longt5 import parts
from etcmodel.ops import transient_blocks

__all__ = ["LongT5Encoder", "LongT5EncoderLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5EncoderLayers(parts.T5Layers):
    """The encoder's layers.

    Args:
        config: `LongT5Config` or its dict.
    Call args:
        inputs: float [batch, length, d_model].
        attention_mask: 0/1 int [batch, length], or None.
        training: bool.
    Returns:
        float [batch, length, d_model].
    """

    def __init__(self, config, name="layers", **kwargs):
        config = parts.as_config(config)
        super().__init__(config, config.num_layers, name=name, **kwargs)
        self.attention_layers = self.attention_blocks()
        self.feed_forward_layers = self.feed_forward_blocks()

    def make_attention(self, index):
        config = self.config
        return TransientGlobalAttention(
            **self.attention_options(),
            local_radius=config.local_radius,
            global_block_size=config.blocks_of,
            max_distance=config.relative_attention_max_distance,
            epsilon=config.layer_norm_epsilon,
        )

    def steps(self, index):
        return (
            stack.Step(self.attention_layers[index], options="attention"),
            stack.Step(self.feed_forward_layers[index]),
        )

    def build(self, input_shape):
        self.bias_table = self.add_bias_table("relative_attention_bias")
        self.block_bias_table = None
        if self.config.blocks_of is not None:
            self.block_bias_table = self.add_bias_table("global_relative_attention_bias")
        super().build(input_shape)

    def call(self, inputs, attention_mask=None, training=None):
        (output,) = self.run([inputs], training, attention=self.options(inputs, attention_mask))
        return output

    def options(self, inputs, attention_mask):
        """What all attention layers are told."""
        options = {"bias_table": self.table(self.bias_table), "att_mask": attention_mask}
        if self.block_bias_table is not None:
            if attention_mask is None:
                attention_mask = tf.ones(tf.shape(inputs)[:2], tf.int32)
            numbers = transient_blocks.block_numbers(attention_mask, self.config.blocks_of)
            options["block_bias_table"] = self.table(self.block_bias_table)
            options["block_numbers"] = numbers
        return options


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5Encoder(parts.OptionalInput, base.Layer):
    """Token ids to hidden states, of any length: nothing is padded to a multiple of anything.

    Args:
        config: `LongT5Config` or its dict.
        token_embedding: `EmbeddingLookup` or None. One that is shared with a decoder.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length], or None with `inputs_embeds`.
        attention_mask: 0/1 int [batch, length], or None. 0 for padding. Without it ids of padding
            are tokens as others.
        inputs_embeds: float [batch, length, d_model], or None: in place of embeddings of the ids.
        output_hidden_states: bool.
        output_attentions: bool. They take memory of the square of the length.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, length, d_model], whose rows at padding mean
        nothing; where they are asked for, `hidden_states`, a tuple of as many as there are layers
        and one (0: embeddings, last: the last one normalized), and `attentions`, a tuple by layer
        of float32 [batch, num_heads, length, length + blocks], 0 for pairs that do not attend.
    """

    def __init__(self, config, token_embedding=None, name="encoder", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = parts.as_config(config)
        self.token_embedding = token_embedding or make_token_embedding(self)
        self.dropout = RecomputingDropout(
            self.config.dropout_rate, name="dropout", dtype=self.dtype_policy
        )
        self.layers = LongT5EncoderLayers(self.config, dtype=self.dtype_policy)
        self.final_layer_norm = self.layers.make_normalization("final_layer_norm")

    def build(self, input_shape):
        hidden = tf.TensorShape([None, None, self.config.d_model])
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        sublayers.build_sublayer(self.layers, hidden)
        sublayers.build_sublayer(self.final_layer_norm, hidden)
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        inputs_embeds=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        hidden = embed(self.token_embedding, input_ids, inputs_embeds)
        hidden = self.dropout(tf.cast(hidden, self.compute_dtype), training=training)
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(hidden, attention_mask=attention_mask, training=training)
            return {"last_hidden_state": self._finish(hidden, training)}
        options = self.layers.options(hidden, attention_mask)
        states, calls = run_observed(
            self.layers,
            [hidden],
            training,
            with_attentions=output_attentions,
            attention=options,
        )
        last = self._finish(states[-1][0], training)
        outputs = {"last_hidden_state": last}
        if output_hidden_states:
            outputs["hidden_states"] = (*(x for (x,) in states[:-1]), last)
        if output_attentions:
            outputs["attentions"] = tuple(tf.concat(by_set, -1) for (by_set,) in calls)
        return outputs

    def _finish(self, hidden, training):
        return self.dropout(self.final_layer_norm(hidden), training=training)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        return self.token_embedding.embedding_table

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}


def make_token_embedding(layer):
    """The token embeddings of a layer with a `LongT5Config`."""
    return EmbeddingLookup(
        layer.config.vocab_size,
        layer.config.d_model,
        initializer_range=layer.config.initializer_factor,
        name="shared",
        dtype=layer.dtype_policy,
    )


def embed(token_embedding, ids, embeddings):
    """Embeddings of ids, or those that are given.

    Raises:
        ValueError: unless just one of the two is given.
    """
    if (ids is None) == (embeddings is None):
        raise ValueError("Give ids, or embeddings in their place, and not both.")
    return token_embedding(ids) if embeddings is None else embeddings
