"""LongT5's encoder: T5's with local or transient-global attention (Guo et al. 2022)."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import stack
from etcmodel.layers.attention.transient_global import TransientGlobalAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models.longt5 import parts
from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.seq2seq import input_checks
from etcmodel.ops import transient_blocks

__all__ = ["LongT5Encoder", "LongT5EncoderLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5EncoderLayers(parts.T5Layers):
    """The encoder's layers: local or transient-global attention, and feed-forward.

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
        config = LongT5Config.of(config)
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
        """The arguments of all attention layers."""
        options = {"bias_table": self.table(self.bias_table), "att_mask": attention_mask}
        if self.block_bias_table is not None:
            if attention_mask is None:
                attention_mask = tf.ones(tf.shape(inputs)[:2], tf.int32)
            numbers = transient_blocks.block_numbers(attention_mask, self.config.blocks_of)
            options["block_bias_table"] = self.table(self.block_bias_table)
            options["block_numbers"] = numbers
        return options


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5Encoder(parts.T5Stack):
    """LongT5's encoder: token ids to hidden states, without padding to a multiple of any size.

    Args:
        config: `LongT5Config` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with a decoder.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length], or None with `inputs_embeds`.
        attention_mask: 0/1 int [batch, length], or None. 0 for padding. Without it, padding ids
            count as ordinary tokens.
        inputs_embeds: float [batch, length, d_model], or None: in place of embeddings of the ids.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory quadratic in the length.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, length, d_model], undefined at padding; on request,
        `hidden_states`, a tuple with one entry more than there are layers (the first: embeddings;
        the last: the normalized output), and `attentions`, a tuple by layer of float32
        [batch, num_heads, length, length + blocks], 0 where there is no attention.
    Raises:
        ValueError: if the inputs are inconsistent with each other or the model; in a graph, values
            known only at run time raise `tf.errors.InvalidArgumentError`.

    >>> from etcmodel.models import longt5
    >>> encoder = longt5.LongT5Encoder(etcmodel.LongT5Config(d_model=8, num_layers=1))
    >>> encoder([[7, 8, 1]])["last_hidden_state"].shape
    TensorShape([1, 3, 8])
    """

    def __init__(self, config, token_embedding=None, name="encoder", **kwargs):
        super().__init__(LongT5EncoderLayers, config, token_embedding, name=name, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        inputs_embeds=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
        }
        given = input_checks.of_encoder(given, self.config.d_model, self.config.vocab_size)
        attention_mask = given["attention_mask"]
        hidden = self.embed(given["input_ids"], given["inputs_embeds"], training=training)
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(hidden, attention_mask=attention_mask, training=training)
            return {"last_hidden_state": self.finish(hidden, training)}
        options = self.layers.options(hidden, attention_mask)
        states, calls = run_observed(
            self.layers,
            [hidden],
            training,
            with_attentions=output_attentions,
            attention=options,
        )
        last = self.finish(states[-1][0], training)
        outputs = {"last_hidden_state": last}
        if output_hidden_states:
            outputs["hidden_states"] = (*(x for (x,) in states[:-1]), last)
        if output_attentions:
            outputs["attentions"] = tuple(tf.concat(by_set, -1) for (by_set,) in calls)
        return outputs
