"""PEGASUS-X's decoder: causal attention, attention to the encoder, feed-forward."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, stack, sublayers
from etcmodel.layers import steps as steps_lib
from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models.longt5.parts import OptionalInput
from etcmodel.models.pegasus_x import parts
from etcmodel.models.pegasus_x.config import as_config
from etcmodel.models.seq2seq import caches

__all__ = ["PegasusXDecoder", "PegasusXDecoderLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXDecoderLayers(parts.PegasusXLayers):
    """The decoder's layers.

    Args:
        config: `PegasusXConfig` or its dict.
    Call args:
        inputs: float [batch, length, d_model].
        encoder_output: float [batch, encoder_length, d_model].
        encoder_mask: 0/1 int [batch, encoder_length], or None.
        attention_mask: 0/1 int [batch, length], or None.
        training: bool.
    Returns:
        float [batch, length, d_model].
    """

    def __init__(self, config, name="layers", **kwargs):
        super().__init__(as_config(config), "decoder", name=name, **kwargs)
        self.attention_layers = self.attention_blocks()
        self.cross_attention_layers = self.cross_attention_blocks()
        self.feed_forward_layers = self.feed_forward_blocks()

    @property
    def streams(self):
        return (self.stream("tokens"),)

    def make_attention(self, index):
        return CausalSelfAttention(**self.attention_options())

    def make_cross_attention(self, index):
        return CrossAttention(**self.attention_options())

    def steps(self, index):
        return (
            stack.Step(self.attention_layers[index], options="attention"),
            stack.Step(self.cross_attention_layers[index], options="cross_attention"),
            stack.Step(self.feed_forward_layers[index]),
        )

    def call(self, inputs, encoder_output, encoder_mask=None, attention_mask=None, training=None):
        options = self.options(encoder_output, encoder_mask, attention_mask)
        (output,) = self.run([inputs], training, **options)
        return output

    def options(self, encoder_output, encoder_mask, attention_mask=None):
        """What all layers are told, by name of their steps' options."""
        return {
            "attention": {"att_mask": attention_mask},
            "cross_attention": {"encoder_output": encoder_output, "att_mask": encoder_mask},
        }

    def run_cached(self, hidden, memory, cache):
        """One token of each row; see `PegasusXDecoder.step`."""
        hidden, new = sublayers.cast_all(self, hidden), []
        for index in range(self.num_hidden_layers):
            options = self.options(memory.keys[index], memory.mask)
            own = cache.of_layer(index)
            options["attention"]["cache"] = own
            hidden = steps_lib.run_layers([self.steps(index)], hidden, options, False)
            new.append(own)
        return hidden[0], cache.after(new)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXDecoder(OptionalInput, base.Layer):
    """Decoder ids and an encoder's output to hidden states.

    Args:
        config: `PegasusXConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. One that is shared with an encoder.
        name: name of the layer.
    Call args:
        decoder_input_ids: int [batch, length], or None with `decoder_inputs_embeds`.
        encoder_output: float [batch, encoder_length, d_model].
        encoder_mask: 0/1 int [batch, encoder_length], or None. 0 for padding.
        decoder_attention_mask: 0/1 int [batch, length], or None. 0 for ids that no later one sees;
            without it ids of padding are tokens as others.
        decoder_inputs_embeds: float [batch, length, d_model], or None: scaled embeddings.
        output_hidden_states: bool.
        output_attentions: bool.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, length, d_model], and where they are asked for, as
        an encoder's, `hidden_states`, `attentions` [batch, heads, length, length] and
        `cross_attentions` [batch, heads, length, encoder_length].
    """

    def __init__(self, config, token_embedding=None, name="decoder", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = as_config(config)
        self.token_embedding = token_embedding or parts.make_token_embedding(self)
        self.dropout = parts.make_dropout(self)
        self.layers = PegasusXDecoderLayers(self.config, dtype=self.dtype_policy)
        self.layer_norm = self.layers.make_normalization("layer_norm")

    def build(self, input_shape):
        hidden = tf.TensorShape([None, None, self.config.d_model])
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        sublayers.build_sublayer(self.layers, hidden)
        sublayers.build_sublayer(self.layer_norm, hidden)
        super().build(input_shape)

    def call(
        self,
        decoder_input_ids=None,
        encoder_output=None,
        encoder_mask=None,
        decoder_attention_mask=None,
        decoder_inputs_embeds=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        hidden = parts.embed(self, decoder_input_ids, decoder_inputs_embeds, training=training)
        rules = (encoder_output, encoder_mask, decoder_attention_mask)
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(hidden, *rules, training=training)
            return {"last_hidden_state": self.layer_norm(hidden)}
        states, calls = run_observed(
            self.layers,
            [hidden],
            training,
            with_attentions=output_attentions,
            **self.layers.options(*rules),
        )
        last = self.layer_norm(states[-1][0])
        outputs = {"last_hidden_state": last}
        if output_hidden_states:
            outputs["hidden_states"] = (*(x for (x,) in states[:-1]), last)
        if output_attentions:
            outputs["attentions"] = tuple(own[0] for own, _ in calls)
            outputs["cross_attentions"] = tuple(cross[0] for _, cross in calls)
        return outputs

    def begin(self, encoder_output, encoder_mask, num_rows, max_length):
        """What decoding token by token needs.

        Args:
            encoder_output: float [batch, encoder_length, d_model].
            encoder_mask: 0/1 int [batch, encoder_length], or None.
            num_rows: int or int32 scalar. Sequences to decode, a multiple of the batch.
            max_length: int or int32 scalar. Most tokens of a sequence.
        Returns:
            (memory, cache): `caches.Memory` of the encoder, and an empty `caches.Cache`.
        """
        blocks = self.layers.cross_attention_layers
        keys = [block.inner_layer.prepare(encoder_output) for block in blocks]
        num_heads = self.config.decoder_attention_heads
        shape = [num_heads, num_rows, max_length, self.config.d_model // num_heads]
        cache = caches.Cache.empty(len(blocks), shape, encoder_output.dtype)
        return caches.Memory(keys, encoder_mask), cache

    def step(self, ids, memory, cache):
        """The hidden states of one more token of each row.

        Args:
            ids: int [num_rows].
            memory, cache: see `begin`.
        Returns:
            (float [num_rows, d_model], the cache with these tokens).
        """
        positions = tf.reshape(cache.position, [1, 1])
        hidden = parts.embed(self, ids[:, tf.newaxis], position_ids=positions, training=False)
        hidden, cache = self.layers.run_cached(hidden, memory, cache)
        return self.layer_norm(hidden)[:, 0], cache

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}
