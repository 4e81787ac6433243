"""PEGASUS-X (Phang et al. 2022, section 3): encoder, decoder, and their weights in files."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import EmbeddingLookup, stack
from etcmodel.layers.attention.chunk_memory import ChunkMemoryAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models.pegasus_x.config import PegasusXConfig
from etcmodel.models.seq2seq import decoder
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.models.systems import norm_names
from etcmodel.ops.sinusoids import sinusoids

WEIGHTS = seq2seq_model.bart_weights(
    "model",
    (
        ("encoder/embed_global/embedding_table", "model.encoder.embed_global.weight"),
        *norm_names("(encoder|decoder)/layer_norm", r"model.\1.layer_norm"),
        *norm_names(
            r"(encoder)/layers/attention_layer_(\d+)/layer_norm_1",
            r"model.\1.layers.\2.global_self_attn_layer_norm",
        ),
    ),
    aliases={
        "model.shared.weight": (
            "model.encoder.embed_tokens.weight",
            "model.decoder.embed_tokens.weight",
        )
    },
)


class PegasusXStack(seq2seq_model.TokenStack):
    """The base of encoder and decoder: positions are sinusoids, without limit."""

    config_class = PegasusXConfig

    def add_positions(self, hidden, position_ids):
        return hidden + sinusoids(position_ids, self.config.d_model, hidden.dtype)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXEncoderLayers(seq2seq_model.BartLayers):
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

    config_class = PegasusXConfig

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
class PegasusXEncoder(PegasusXStack):
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

    layers_class = PegasusXEncoderLayers

    def __init__(self, config, token_embedding=None, name=None, **kwargs):
        super().__init__(config, token_embedding, name, **kwargs)
        self.global_embedding = EmbeddingLookup(
            self.config.num_global_tokens,
            self.config.d_model,
            initializer_range=self.config.init_std,
            name="embed_global",
            dtype=self.dtype_policy,
        )

    def parts(self):
        return [self.global_embedding, *super().parts()]

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
        hidden, attention_mask = self.embedded(
            input_ids, attention_mask, inputs_embeds, position_ids, training
        )
        batch = tensor_utils.get_shape_list(hidden)[0]
        numbers = tf.range(self.config.num_global_tokens)[tf.newaxis]
        inputs = [hidden, tf.repeat(self.global_embedding(numbers), batch, axis=0)]
        if not (output_hidden_states or output_attentions):
            hidden, _ = self.layers(*inputs, attention_mask=attention_mask, training=training)
            return seq2seq_model.finished(self, [hidden])
        states, calls = run_observed(
            self.layers,
            inputs,
            training,
            with_attentions=output_attentions,
            attention={"att_mask": attention_mask},
        )
        tokens, global_tokens = zip(*states, strict=True)
        outputs = seq2seq_model.finished(self, tokens, output_hidden_states)
        if output_hidden_states:
            outputs["global_states"] = global_tokens
        if output_attentions:
            of_tokens, of_globals = zip(*calls, strict=True)
            outputs["attentions"] = tuple(tf.concat(by_set, -1) for by_set in of_tokens)
            outputs["global_attentions"] = tuple(tf.concat(by_set, -1) for by_set in of_globals)
        return outputs


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXDecoderLayers(decoder.DecoderLayers, seq2seq_model.BartLayers):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers` and `seq2seq.model.BartLayers`."""

    config_class = PegasusXConfig


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXDecoder(decoder.Decoder, PegasusXStack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`."""

    layers_class = PegasusXDecoderLayers


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXModel(seq2seq_model.EncoderDecoder):
    """PEGASUS-X's encoder and decoder, without logits: ids to the decoder's hidden states.

    Args:
        config: `PegasusXConfig` or its dict.
        name: name of the layer.
    Call args:
        **arguments: see `seq2seq.model.EncoderDecoder`.
        position_ids: int [batch or 1, length], or None. Positions of the encoder's tokens.
    Returns:
        dict: see there; the encoder's hidden states and attentions are accompanied by those of its
        global tokens (`encoder_global_states`, `encoder_global_attentions`): see `PegasusXEncoder`.
    Raises:
        ValueError: unless ids or embeddings are given for both encoder and decoder.

    >>> config = etcmodel.PegasusXConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> model = etcmodel.PegasusXModel(config)
    >>> model([[7, 8, 1]], decoder_input_ids=[[0, 5]])["last_hidden_state"].shape
    TensorShape([1, 2, 16])
    """

    config_class, encoder_class, decoder_class = PegasusXConfig, PegasusXEncoder, PegasusXDecoder
    architecture = "PegasusXModel"

    def __init__(self, config: PegasusXConfig | dict, name: str = "pegasus_x", **kwargs):
        super().__init__(config, name, **kwargs)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXForConditionalGeneration(seq2seq_model.ConditionalGeneration, PegasusXModel):
    """PEGASUS-X for conditional generation, such as summarization of long texts.

    Args:
        config: `PegasusXConfig` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.ConditionalGeneration` and `PegasusXModel`.
    Returns:
        dict: `logits`, with labels `loss`, and more: see `seq2seq.model.ConditionalGeneration`.
    Raises:
        ValueError: see there.

    >>> config = etcmodel.PegasusXConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> outputs = etcmodel.PegasusXForConditionalGeneration(config)([[7, 8, 1]], labels=[[5, 1]])
    >>> outputs["logits"].shape, outputs["loss"].shape
    (TensorShape([1, 2, 96103]), TensorShape([]))
    """

    architecture = "PegasusXForConditionalGeneration"
    encoder_arguments = ("position_ids",)

    def __init__(
        self,
        config: PegasusXConfig | dict,
        name: str = "pegasus_x_for_conditional_generation",
        **kwargs,
    ):
        super().__init__(config, name=name, **kwargs)
