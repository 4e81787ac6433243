"""LED's encoder: Longformer's attention (Beltagy et al. 2020, section 7)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import stack
from etcmodel.models.led import parts
from etcmodel.models.led.config import LedConfig
from etcmodel.models.longformer import inputs as inputs_lib
from etcmodel.models.longformer.layers import SlidingWindowLayers
from etcmodel.models.seq2seq import input_checks

__all__ = ["LedEncoder", "LedEncoderLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedEncoderLayers(SlidingWindowLayers):
    """The encoder's layers, each with its own window: see `SlidingWindowLayers`.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    """

    def __init__(self, config, name="layers", **kwargs):
        self.config = LedConfig.of(config)
        super().__init__(
            stack.Stream("tokens", self.config.d_model, self.config.encoder_ffn_dim),
            self.config.radii,
            self.config.encoder_attention_heads,
            name=name,
            **parts.stack_options(self.config),
            **kwargs,
        )

    def make_feed_forward(self, index, stream):
        del index
        return parts.make_feed_forward(self, stream)

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedEncoder(parts.LedStack):
    """LED's encoder: token ids to hidden states, without padding to a multiple of the window.

    Args:
        config: `LedConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with a decoder.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length], or None with `inputs_embeds`.
        attention_mask, global_attention_mask: see `LongformerModel`. Without an `attention_mask`,
            padding ids count as ordinary tokens; without a `global_attention_mask` the config's
            `global_positions` are global.
        inputs_embeds: float [batch, length, d_model], or None: in place of embeddings of the ids.
        position_ids: int [batch or 1, length], or None: 0, 1, 2 …, padding included.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory quadratic in the length.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, length, d_model]; on request, tuples:
        `hidden_states` of the embeddings and each layer's output; by layer `attentions` and, if
        there may be global tokens, `global_attentions`: see `LongformerModel`.
    Raises:
        ValueError: if the inputs are inconsistent with each other or the model; in a graph, values
            known only at run time raise `tf.errors.InvalidArgumentError`.
    """

    def __init__(self, config, token_embedding=None, name="encoder", **kwargs):
        super().__init__(
            LedEncoderLayers,
            "max_encoder_position_embeddings",
            config,
            token_embedding,
            name=name,
            **kwargs,
        )

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        global_attention_mask=None,
        inputs_embeds=None,
        position_ids=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
            "position_ids": position_ids,
        }
        given = input_checks.of_encoder(
            given, self.config.d_model, self.config.vocab_size, is_mask_binary=False
        )
        hidden = self.embed(
            given["input_ids"], given["inputs_embeds"], 0, training, given["position_ids"]
        )
        shape = tensor_utils.get_shape_list(hidden)[:2]
        if global_attention_mask is None and self.config.global_positions:
            global_attention_mask = self.config.global_positions
        asserts = []
        token_mask, global_tokens = inputs_lib.attention_of(
            given["attention_mask"], global_attention_mask, shape, self.config, asserts
        )
        with tf.control_dependencies(asserts):
            hidden = tf.identity(hidden)
        attention = {"token_mask": token_mask, "global_tokens": global_tokens}
        if not (output_hidden_states or output_attentions):
            return {"last_hidden_state": self.layers(hidden, training=training, **attention)}
        states, attentions = self.layers.observed(
            hidden, training, with_attentions=output_attentions, **attention
        )
        outputs = {"last_hidden_state": states[-1]}
        if output_hidden_states:
            outputs["hidden_states"] = tuple(states)
        return {**outputs, **{name: tuple(values) for name, values in attentions.items()}}
