"""Decoders: causal attention, cross-attention, feed-forward; on whole inputs or token by token.

Embeddings, normalization and position biases are defined in each system's own classes.
"""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.layers import stack as stack_lib
from etcmodel.layers import sublayers
from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention, KeyCache
from etcmodel.layers.observation import run_observed
from etcmodel.models.seq2seq import inputs
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.ops import argument_checks


class Memory(NamedTuple):
    """The encoder's output, prepared for attention to it; the same at each token.

    Attributes:
        keys: list by layer of `PreparedKeySet`.
        mask: 0/1 int [batch, encoder_length], or None.
    """

    keys: list
    mask: tf.Tensor | None


class Cache(NamedTuple):
    """Keys and values of the previous tokens: a loop state.

    Attributes:
        keys: tuple by layer of float [num_heads, num_rows, max_length, size_per_head].
        values: likewise.
        position: int32 scalar. Number of tokens so far.
    """

    keys: tuple
    values: tuple
    position: tf.Tensor

    @classmethod
    def empty(cls, num_layers, shape, dtype):
        """Creates a cache without tokens."""
        zeros = tuple(tf.zeros(shape, dtype) for _ in range(num_layers))
        return cls(zeros, zeros, tf.constant(0))

    def of_layer(self, index):
        """Returns a layer's `KeyCache`."""
        return KeyCache(self.keys[index], self.values[index], self.position)

    def after(self, of_layers):
        """Returns the cache after one more token, from the layers' `KeyCache`s."""
        keys, values = zip(*((x.keys, x.values) for x in of_layers), strict=True)
        return Cache(keys, values, self.position + 1)

    def of_rows(self, rows):
        """Selects rows, which may repeat: int32 [new num_rows]."""
        keys, values = (
            tuple(tf.gather(x, rows, axis=1) for x in of_layers)
            for of_layers in (self.keys, self.values)
        )
        return Cache(keys, values, self.position)


class DecoderLayers:
    """A decoder's layers: a mixin to list before `TransformerStack` among the base classes.

    The class gives the arguments of `layers.attention.decoder.CausalSelfAttention` and
    `CrossAttention` in `attention_options`.

    Call args:
        inputs: float [batch, length, hidden_size].
        encoder_output: float [batch, encoder_length, hidden_size].
        encoder_mask: 0/1 int or bool [batch, encoder_length], or None.
        attention_mask: 0/1 int [batch, length], or None.
        training: bool.
    Returns:
        float [batch, length, hidden_size].
    """

    side = "decoder"

    def make_attention(self, index):
        return CausalSelfAttention(**self.attention_options())

    def make_cross_attention(self, index):
        return CrossAttention(**self.attention_options())

    def make_blocks(self):
        """Creates the residual blocks of all layers; called at the end of constructors."""
        self.attention_layers = self.attention_blocks()
        self.cross_attention_layers = self.cross_attention_blocks()
        self.feed_forward_layers = self.feed_forward_blocks()

    def attentions(self, index):
        """Returns (`CausalSelfAttention`, `CrossAttention`) of a layer."""
        blocks = (self.attention_layers[index], self.cross_attention_layers[index])
        return tuple(block.inner_layer for block in blocks)

    def self_attention_options(self):
        """Further arguments of every self-attention: dict."""
        return {}

    def steps(self, index):
        return (
            stack_lib.Step(self.attention_layers[index], options="attention"),
            stack_lib.Step(self.cross_attention_layers[index], options="cross_attention"),
            stack_lib.Step(self.feed_forward_layers[index]),
        )

    def call(self, inputs, encoder_output, encoder_mask=None, attention_mask=None, training=None):
        options = self.options(encoder_output, encoder_mask, attention_mask)
        (output,) = self.run([inputs], training, **options)
        return output

    def options(self, encoder_output, encoder_mask, attention_mask=None):
        """The arguments of all layers, by name of their steps' options."""
        return {
            "attention": {**self.self_attention_options(), "att_mask": attention_mask},
            "cross_attention": {"encoder_output": encoder_output, "att_mask": encoder_mask},
        }

    def run_cached(self, hidden, memory, cache):
        """Processes one token of each row; see `Decoder.step`."""
        hidden, new = sublayers.cast_all(self, hidden), []
        for index in range(self.num_hidden_layers):
            options = self.options(memory.keys[index], memory.mask)
            own = cache.of_layer(index)
            options["attention"]["cache"] = own
            hidden = stack_lib.run_layers([self.steps(index)], hidden, options, False)
            new.append(own)
        return hidden[0], cache.after(new)


class Decoder:
    """A decoder: a mixin to list before a Keras layer among the base classes.

    The class has `layers`, a `DecoderLayers`, and two methods around them:
    `embed(ids, embeddings, start, training)`, which returns float [batch, length, hidden_size],
    where `start` is the position of the first id, and `finish(hidden, training)`. Where the
    encoder's output holds more than its input, `mask_of_output` gives the mask of the output;
    `mask_kinds` names the meaning of 0, 1 … in the encoder's mask.

    Call args:
        decoder_input_ids: int [batch, length], or None with `decoder_inputs_embeds`.
        encoder_output: float [batch, encoder_length, hidden_size].
        encoder_mask: 0/1 int [batch, encoder_length], or None. 0 for padding.
        decoder_attention_mask: 0/1 int [batch, length], or None. 0 for ids that no later one
            attends to; without it, padding ids count as ordinary tokens.
        decoder_inputs_embeds: float [batch, length, hidden_size], or None.
        output_hidden_states: bool.
        output_attentions: bool.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, length, hidden_size], and on request, as an
        encoder's, `hidden_states`, `attentions` [batch, num_heads, length, length] and
        `cross_attentions` [batch, num_heads, length, encoder_length].
    Raises:
        ValueError: if inputs are inconsistent with each other or the model; in a graph, values
            known only at run time raise `tf.errors.InvalidArgumentError`.
    """

    side = "decoder"
    mask_kinds = inputs.KINDS

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
        given = {
            "encoder_output": encoder_output,
            "encoder_mask": encoder_mask,
            "decoder_input_ids": decoder_input_ids,
            "decoder_inputs_embeds": decoder_inputs_embeds,
            "decoder_attention_mask": decoder_attention_mask,
        }
        size, vocab_size = self.layers.streams[0].hidden_size, self.config.vocab_size
        given = inputs.of_decoder(given, size, vocab_size, self.mask_of_output, self.mask_kinds)
        ids, embeddings = given["decoder_input_ids"], given["decoder_inputs_embeds"]
        hidden = self.embed(ids, embeddings, training=training)
        names = ("encoder_output", "encoder_mask", "decoder_attention_mask")
        rules = [given[name] for name in names]
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(hidden, *rules, training=training)
            return seq2seq_model.finished(self, [hidden], training=training)
        states, calls = run_observed(
            self.layers,
            [hidden],
            training,
            with_attentions=output_attentions,
            **self.layers.options(*rules),
        )
        states = [hidden for (hidden,) in states]
        outputs = seq2seq_model.finished(self, states, output_hidden_states, training)
        if output_attentions:
            outputs["attentions"] = tuple(own[0] for own, _ in calls)
            outputs["cross_attentions"] = tuple(cross[0] for _, cross in calls)
        return outputs

    def mask_of_output(self, encoder_mask):
        """Returns the mask of the encoder's output, from that of its input: 0/1 int, or None."""
        return encoder_mask

    def begin(self, encoder_output, encoder_mask, num_rows, max_length):
        """Prepares decoding token by token.

        Args:
            encoder_output: float [batch, encoder_length, hidden_size].
            encoder_mask: 0/1 int or bool [batch, encoder_length], or None.
            num_rows: int or int32 scalar. Number of sequences to decode, a multiple of the batch.
            max_length: int or int32 scalar. The most tokens of a sequence.
        Returns:
            (memory, cache): `Memory` of the encoder, and an empty `Cache`.
        """
        pairs = [self.layers.attentions(index) for index in range(self.layers.num_hidden_layers)]
        keys = [cross.prepare(encoder_output) for _, cross in pairs]
        attention, _ = pairs[0]
        shape = [attention.num_heads, num_rows, max_length, attention.size_per_head]
        cache = Cache.empty(len(keys), shape, encoder_output.dtype)
        if encoder_mask is not None:  # Checked once, not at each token.
            mask = argument_checks.mask_of("encoder_mask", encoder_mask, self.mask_kinds)
            encoder_mask = tf.cast(mask, tf.bool)
        return Memory(keys, self.mask_of_output(encoder_mask)), cache

    def step(self, ids, memory, cache):
        """Computes the hidden states of one more token of each row.

        Args:
            ids: int [num_rows].
            memory, cache: see `begin`.
        Returns:
            (float [num_rows, hidden_size], the cache with these tokens).
        """
        hidden = self.embed(ids[:, None], None, start=cache.position, training=False)
        hidden, cache = self.layers.run_cached(hidden, memory, cache)
        return self.finish(hidden, False)[:, 0], cache
