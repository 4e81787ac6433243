"""PEGASUS-X (Phang et al. 2022): encoder, decoder and their weights in files of Hugging Face."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import EmbeddingLookup, RecomputingDropout, feed_forward, stack, sublayers
from etcmodel.layers.attention.chunk_memory import ChunkMemoryAttention
from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models.pegasus_x.config import PegasusXConfig
from etcmodel.models.seq2seq import decoder
from etcmodel.models.seq2seq import inputs as seq2seq_inputs
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.models.systems import Weights, dense_names, norm_names
from etcmodel.ops.sinusoids import sinusoids

__all__ = [
    "WEIGHTS",
    "PegasusXEncoder",
    "PegasusXForConditionalGeneration",
    "PegasusXModel",
    "make_token_embedding",
]

_TABLE = "model.shared.weight"
# Other names of the token embeddings in older files.
_COPIES = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
_LAYER = r"(encoder|decoder)/layers/{}_layer_(\d+)"
_SELF, _CROSS, _REST = map(_LAYER.format, ("attention", "cross_attention", "feed_forward"))
_IN_LAYER = r"model.\1.layers.\2"
_PROJECTIONS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output_projection": "out_proj",
}
WEIGHTS = Weights(
    prefix="model.",  # In files of models for conditional generation.
    names=(
        ("shared/embedding_table", _TABLE),
        ("encoder/embed_global/embedding_table", "model.encoder.embed_global.weight"),
        *norm_names("(encoder|decoder)/layer_norm", r"model.\1.layer_norm"),
        *(
            (f"{block}/attention/{name}/kernel", f"{_IN_LAYER}.{their_block}.{theirs}.weight")
            for block, their_block in ((_SELF, "self_attn"), (_CROSS, "encoder_attn"))
            for name, theirs in _PROJECTIONS.items()
        ),
        *norm_names(f"{_SELF}/layer_norm(?:_0)?", f"{_IN_LAYER}.self_attn_layer_norm"),
        *norm_names(f"{_SELF}/layer_norm_1", f"{_IN_LAYER}.global_self_attn_layer_norm"),
        *norm_names(f"{_CROSS}/layer_norm", f"{_IN_LAYER}.encoder_attn_layer_norm"),
        *dense_names(f"{_REST}/feed_forward/inner", f"{_IN_LAYER}.fc1"),
        *dense_names(f"{_REST}/feed_forward/output", f"{_IN_LAYER}.fc2"),
        *norm_names(f"{_REST}/layer_norm", f"{_IN_LAYER}.final_layer_norm"),
    ),
    copies=dict.fromkeys(_COPIES, _TABLE),
    aliases={_TABLE: _COPIES[:2]},
)


# Shared parts of PEGASUS-X's encoder and decoder.


_EPSILON = 1e-5  # Of layer normalization; not in Hugging Face's config.


class PegasusXLayers(stack.TransformerStack):
    """A stack of residual blocks `x + dropout(inner(layer_norm(x)))`.

    Args:
        config: `PegasusXConfig`.
        side: "encoder" or "decoder", which decides the sizes.
        **kwargs: of the Keras layer.
    """

    def __init__(self, config, side, **kwargs):
        self.config = config
        self._sizes = {
            name: getattr(config, f"{side}_{name}")
            for name in ("layers", "attention_heads", "ffn_dim")
        }
        super().__init__(
            self._sizes["layers"],
            self._sizes["attention_heads"],
            hidden_act=config.activation,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=config.attention_dropout,
            initializer_range=config.init_std,
            use_pre_activation_order=True,
            grad_checkpointing_period=config.grad_checkpointing_period,
            layer_norm_epsilon=_EPSILON,
            **kwargs,
        )

    def stream(self, name):
        """A `Stream` of the side's sizes."""
        return stack.Stream(name, self.config.d_model, self._sizes["ffn_dim"])

    def make_feed_forward(self, index, stream):
        del index
        return feed_forward.FeedForward(
            stream.hidden_size,
            stream.intermediate_size,
            self.hidden_act,
            dropout_prob=self.config.activation_dropout,
            initializer_range=self.initializer_range,
            dtype=self.dtype_policy,
        )

    def attention_options(self):
        """Constructor arguments of all attention layers."""
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.num_attention_heads,
            "att_dropout_prob": self.attention_probs_dropout_prob,
            "initializer_range": self.initializer_range,
            "dtype": self.dtype_policy,
        }

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}


class PegasusXStack(seq2seq_model.TokenStack):
    """Embeddings of tokens and positions, a stack of layers, a final normalization.

    Args:
        layers_class: class of the layers, created from the config.
        config: `PegasusXConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with another stack.
        **kwargs: of the Keras layer.
    """

    def __init__(self, layers_class, config, token_embedding=None, **kwargs):
        super().__init__(**kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = PegasusXConfig.of(config)
        policy = {"dtype": self.dtype_policy}
        self.token_embedding = token_embedding or make_token_embedding(self)
        self.dropout = RecomputingDropout(self.config.dropout, name="dropout", **policy)
        self.layers = layers_class(self.config, **policy)
        self.layer_norm = self.layers.make_normalization("layer_norm")

    def build(self, input_shape):
        hidden = tf.TensorShape([None, None, self.config.d_model])
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        sublayers.build_sublayer(self.layers, hidden)
        sublayers.build_sublayer(self.layer_norm, hidden)
        super().build(input_shape)

    def embed(self, ids, embeddings, start=0, training=None, position_ids=None):
        """Embeds ids for the first layer.

        Args:
            ids: int [batch, length], or None with embeddings.
            embeddings: float [batch, length, d_model], or None. Used without scaling.
            start: int or int32 scalar. The position of the first id.
            training: bool.
            position_ids: int [batch or 1, length], or None for consecutive ones.
        Returns:
            float [batch, length, d_model].
        """
        hidden = seq2seq_inputs.embed(self.token_embedding, ids, embeddings)
        hidden = tf.cast(hidden, self.compute_dtype)
        if embeddings is None:
            hidden *= self.config.embedding_scale
        if position_ids is None:
            position_ids = (start + tf.range(tensor_utils.get_shape_list(hidden)[1]))[tf.newaxis]
        hidden += sinusoids(position_ids, self.config.d_model, hidden.dtype)
        return self.dropout(hidden, training=training)

    def finish(self, hidden, training=None):
        """Returns the output, from that of the layers."""
        del training
        return self.layer_norm(hidden)


def make_token_embedding(layer):
    """Creates the token embeddings of a layer with a `PegasusXConfig`."""
    return seq2seq_model.make_token_embedding(layer, layer.config.init_std)


# PEGASUS-X's encoder: staggered blocks, and global tokens (Phang et al. 2022, section 3).


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXEncoderLayers(PegasusXLayers):
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
        given = seq2seq_inputs.of_encoder(given, self.config.d_model, self.config.vocab_size)
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


# PEGASUS-X's decoder: causal attention, attention to the encoder, feed-forward.


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXDecoderLayers(decoder.DecoderLayers, PegasusXLayers):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers`.

    Args:
        config: `PegasusXConfig` or its dict.
        name: name of the layer.
    """

    def __init__(self, config, name="layers", **kwargs):
        super().__init__(PegasusXConfig.of(config), "decoder", name=name, **kwargs)
        self.make_blocks()

    @property
    def streams(self):
        return (self.stream("tokens"),)

    def make_attention(self, index):
        return CausalSelfAttention(**self.attention_options())

    def make_cross_attention(self, index):
        return CrossAttention(**self.attention_options())


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXDecoder(decoder.Decoder, PegasusXStack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`.

    Args:
        config: `PegasusXConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with an encoder.
        name: name of the layer.
    """

    def __init__(self, config, token_embedding=None, name="decoder", **kwargs):
        super().__init__(PegasusXDecoderLayers, config, token_embedding, name=name, **kwargs)


# PEGASUS-X: the encoder and the decoder (Phang et al. 2022).


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
    make_token_embedding = make_token_embedding
    architecture = "PegasusXModel"

    def __init__(self, config: PegasusXConfig | dict, name: str = "pegasus_x", **kwargs):
        super().__init__(config, name, **kwargs)


# PEGASUS-X for conditional generation: logits, loss, sequences (Phang et al. 2022).


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

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        return seq2seq_model.tied_logits(hidden, self.get_token_embedding_table())
