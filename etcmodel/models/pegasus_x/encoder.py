"""PEGASUS-X's encoder: staggered blocks, and global tokens (Phang et al. 2022, section 3)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import EmbeddingLookup, stack, sublayers
from etcmodel.layers.attention.chunk_memory import ChunkMemoryAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models.pegasus_x import parts
from etcmodel.models.pegasus_x.config import PegasusXConfig
from etcmodel.models.seq2seq import input_checks

__all__ = ["PegasusXEncoder", "PegasusXEncoderLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXEncoderLayers(parts.PegasusXLayers):
    """The encoder's layers: tokens and global tokens share all weights but one normalization.

    Args:
        config: `PegasusXConfig` or its dict.
    Call args:
        inputs: float [batch, length, d_model].
        global_tokens: float [batch, num_global_tokens, d_model].
        attention_mask: 0/1 int [batch, length], or None.
        training: bool.
    Returns:
        list of float, shaped like the inputs and the global tokens.
    """

    def __init__(self, config, name="layers", **kwargs):
        super().__init__(PegasusXConfig.of(config), "encoder", name=name, **kwargs)
        self.attention_layers = self.attention_blocks(num_streams=2)
        self.feed_forward_layers = self.feed_forward_blocks()

    @property
    def streams(self):
        return self.stream("tokens"), self.stream("global_tokens")

    def make_attention(self, index):
        return ChunkMemoryAttention(
            **self.attention_options(),
            chunk_size=self.config.block_size,
            shift=self.config.shift(index),
        )

    def steps(self, index):
        feed_forward = self.feed_forward_layers[index]
        return (
            stack.Step(self.attention_layers[index], streams=(0, 1), options="attention"),
            stack.Step(feed_forward, streams=(0,)),
            stack.Step(feed_forward, streams=(1,)),
        )

    def call(self, inputs, global_tokens, attention_mask=None, training=None):
        return self.run([inputs, global_tokens], training, attention={"att_mask": attention_mask})


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXEncoder(parts.PegasusXStack):
    """PEGASUS-X's encoder: token ids to hidden states, without padding to a multiple of the block.

    Args:
        config: `PegasusXConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with a decoder.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length], or None with `inputs_embeds`.
        attention_mask: 0/1 int [batch, length], or None. 0 for padding. Without it, padding ids
            count as ordinary tokens.
        inputs_embeds: float [batch, length, d_model], or None: in place of scaled embeddings of the
            ids.
        position_ids: int [batch or 1, length], or None for 0, 1, …, padding included.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory quadratic in the length.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, length, d_model], undefined at padding. On request:
        `hidden_states`, a tuple with one entry more than there are layers (the first: embeddings;
        the last: the normalized output), and `global_states`, likewise of
        [batch, num_global_tokens, d_model], never normalized; `attentions` and `global_attentions`,
        tuples by layer of float32 [batch, heads, length, length + num_global_tokens] and [batch,
        heads, num_global_tokens, length + num_global_tokens], 0 where there is no attention.
    Raises:
        ValueError: if the inputs are inconsistent with each other or the model; in a graph, values
            known only at run time raise `tf.errors.InvalidArgumentError`.

    >>> from etcmodel.models import pegasus_x
    >>> encoder = pegasus_x.PegasusXEncoder(etcmodel.PegasusXConfig(d_model=16, encoder_layers=1))
    >>> encoder([[7, 8, 1]])["last_hidden_state"].shape
    TensorShape([1, 3, 16])
    """

    def __init__(self, config, token_embedding=None, name="encoder", **kwargs):
        super().__init__(PegasusXEncoderLayers, config, token_embedding, name=name, **kwargs)
        self.global_embedding = EmbeddingLookup(
            self.config.num_global_tokens,
            self.config.d_model,
            initializer_range=self.config.init_std,
            name="embed_global",
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        sublayers.build_sublayer(self.global_embedding, tf.TensorShape([None, None]))
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
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
        given = input_checks.of_encoder(given, self.config.d_model, self.config.vocab_size)
        attention_mask, position_ids = given["attention_mask"], given["position_ids"]
        hidden = self.embed(
            given["input_ids"], given["inputs_embeds"], training=training, position_ids=position_ids
        )
        batch = tensor_utils.get_shape_list(hidden)[0]
        numbers = tf.range(self.config.num_global_tokens)[tf.newaxis]
        inputs = [hidden, tf.repeat(self.global_embedding(numbers), batch, axis=0)]
        if not (output_hidden_states or output_attentions):
            hidden, _ = self.layers(*inputs, attention_mask=attention_mask, training=training)
            return {"last_hidden_state": self.finish(hidden)}
        states, calls = run_observed(
            self.layers,
            inputs,
            training,
            with_attentions=output_attentions,
            attention={"att_mask": attention_mask},
        )
        tokens, global_tokens = zip(*states, strict=True)
        last = self.finish(tokens[-1])
        outputs = {"last_hidden_state": last}
        if output_hidden_states:
            outputs["hidden_states"] = (*tokens[:-1], last)
            outputs["global_states"] = global_tokens
        if output_attentions:
            of_tokens, of_globals = zip(*calls, strict=True)
            outputs["attentions"] = tuple(tf.concat(by_set, -1) for by_set in of_tokens)
            outputs["global_attentions"] = tuple(tf.concat(by_set, -1) for by_set in of_globals)
        return outputs
