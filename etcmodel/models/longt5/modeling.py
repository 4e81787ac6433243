"""LongT5 (Guo et al. 2022): encoder, decoder and their weights in files of Hugging Face."""

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel.layers import (
    base,
    dense,
    feed_forward,
    initializers,
    normalization,
    stack,
    sublayers,
)
from etcmodel.layers.attention.decoder import CausalSelfAttention
from etcmodel.layers.attention.transient_global import TransientGlobalAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models import conveniences, processed_batches, sequence_classifiers
from etcmodel.models.heads import base as head_base
from etcmodel.models.heads import of_text
from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.seq2seq import decoder
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.models.systems import Weights, dense_names, logits_names
from etcmodel.ops import transient_blocks

_TABLE, _LOGITS = "shared.weight", "lm_head.weight"
# Names of the token embeddings in older files, and in those of T5's family that have no other name
# for them.
_TABLE_ALIASES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


def _config_for(config, source):
    """Unties the logits in the config if the file has a matrix of their own.

    That is one that differs from the token embeddings, whatever the config in the folder says.
    """
    table = next((x for x in (_TABLE, *_TABLE_ALIASES) if x in source.shapes), None)
    is_tied = table is None or _LOGITS not in source.shapes
    is_tied = is_tied or np.array_equal(source.read(_LOGITS), source.read(table))
    is_scaled = config.output_scale != 1
    return dataclasses.replace(config, tie_word_embeddings=is_tied, scale_decoder_outputs=is_scaled)


_SELF, _CROSS, _REST = (
    rf"{{}}/layers/{kind}_layer_(\d+)" for kind in ("attention", "cross_attention", "feed_forward")
)
_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output_projection": "o"}


def _names(config):
    """The names of a `LongT5Config`'s weights: see `systems.Weights`."""
    kind = "TransientGlobalSelfAttention" if config.blocks_of else "LocalSelfAttention"
    return (
        ("(?:encoder/)?shared/embedding_table", _TABLE),
        *_names_of_side("encoder", {_SELF: kind}, config.is_gated),
        *_names_of_side(
            "decoder", {_SELF: "SelfAttention", _CROSS: "EncDecAttention"}, config.is_gated
        ),
        ("lm_head/kernel", _LOGITS),
    )


def _names_of_side(side, blocks, is_gated):
    """The names in encoder or decoder, whose kinds of attention are the values of `blocks`."""
    layer = rf"{side}.block.\1.layer.{{}}"
    first = f"{side}.block.0.layer.0.{blocks[_SELF]}"
    yield rf"{side}/layers/((?:global_)?relative_attention_bias)", rf"{first}.\1.weight"
    for number, (block, kind) in enumerate(blocks.items()):
        ours, theirs = block.format(side), layer.format(number)
        for name, letter in _PROJECTIONS.items():
            yield f"{ours}/attention/{name}/kernel", f"{theirs}.{kind}.{letter}.weight"
        norm = f"{theirs}.{kind}.global_input_layer_norm.weight"
        yield f"{ours}/attention/block_norm/gamma", norm
        yield f"{ours}/layer_norm/gamma", f"{theirs}.layer_norm.weight"
    ours, theirs = _REST.format(side), layer.format(len(blocks))
    inner = {"inner": "wi_0", "gate": "wi_1"} if is_gated else {"inner": "wi"}
    for name, their_name in {**inner, "output": "wo"}.items():
        dense = f"{theirs}.DenseReluDense.{their_name}.weight"
        yield f"{ours}/feed_forward/{name}/kernel", dense
    yield f"{ours}/layer_norm/gamma", f"{theirs}.layer_norm.weight"
    yield f"{side}/final_layer_norm/gamma", f"{side}.final_layer_norm.weight"


WEIGHTS = Weights(
    prefix="",
    names=_names,
    copies=dict.fromkeys((*_TABLE_ALIASES, _LOGITS), _TABLE),
    aliases={_TABLE: _TABLE_ALIASES},
    obsolete=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
    config_for=_config_for,
)
# Of the encoder alone, which has no logits, and of its heads, which are named like T5's.
_PREFIX = "transformer."
_HEAD = "classification_head"
ENCODER_WEIGHTS = Weights(
    prefix=_PREFIX,
    names=lambda config: (
        *((ours, _PREFIX + theirs) for ours, theirs in _names(config)),
        *dense_names("classifier_dense", f"{_HEAD}.dense"),
        *logits_names("classifier_out", f"{_HEAD}.out_proj"),
        *logits_names("classifier", "classifier"),
    ),
    copies={_PREFIX + name: _PREFIX + _TABLE for name in _TABLE_ALIASES},
    aliases={_PREFIX + _TABLE: tuple(_PREFIX + name for name in _TABLE_ALIASES)},
    obsolete=tuple(_PREFIX + name for name in WEIGHTS.obsolete),
)


class T5Layers(base.Configured, stack.TransformerStack):
    """A stack of T5's residual blocks: `x + dropout(inner(rms_norm(x)))`.

    Args:
        config: `LongT5Config` or its dict.
        name: name of the layer.
        **kwargs: of the Keras layer.
    """

    side = "encoder"

    def __init__(self, config, name="layers", **kwargs):
        self.config = config = LongT5Config.of(config)
        super().__init__(
            config.num_layers if self.side == "encoder" else config.decoder_layers,
            config.num_heads,
            hidden_act=config.activation,
            hidden_dropout_prob=config.dropout_rate,
            attention_probs_dropout_prob=config.dropout_rate,
            initializer_range=config.initializer_range,
            use_pre_activation_order=True,
            grad_checkpointing_period=config.grad_checkpointing_period,
            layer_norm_epsilon=config.layer_norm_epsilon,
            name=name,
            **kwargs,
        )
        self.make_blocks()

    @property
    def streams(self):
        return (stack.Stream("tokens", self.config.d_model, self.config.d_ff),)

    def make_normalization(self, name):
        epsilon = self.layer_norm_epsilon
        return normalization.RmsNormalization(epsilon, name=name, dtype=self.dtype_policy)

    def make_feed_forward(self, index, stream):
        return feed_forward.FeedForward(
            stream.hidden_size,
            stream.intermediate_size,
            self.hidden_act,
            is_gated=self.config.is_gated,
            use_bias=False,
            dropout_prob=self.hidden_dropout_prob,
            dtype=self.dtype_policy,
        )

    def attention_options(self):
        """Constructor arguments of all of T5's attention layers."""
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.config.num_heads,
            "size_per_head": self.config.d_kv,
            "scale": 1.0,
            "att_dropout_prob": self.attention_probs_dropout_prob,
            "dtype": self.dtype_policy,
        }

    def add_bias_table(self, name):
        """Adds a table of position biases, shared by all layers: [num_buckets, num_heads]."""
        return self.add_weight(
            name=name,
            shape=(self.config.relative_attention_num_buckets, self.config.num_heads),
            initializer=initializers.default_initializer(self.config.initializer_range),
        )

    @staticmethod
    def table(variable):
        """Returns a variable as a tensor, so that its gradient flows through layers' arguments."""
        return tf.convert_to_tensor(variable)


class T5Stack(seq2seq_model.TokenStack):
    """The base of encoder and decoder, which know positions by the biases of attention alone."""

    config_class = LongT5Config
    final_norm = "final_layer_norm"

    def add_positions(self, hidden, position_ids):
        return hidden

    def finish(self, hidden, training=None):
        return self.dropout(super().finish(hidden), training=training)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5EncoderLayers(T5Layers):
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

    def make_attention(self, index):
        config = self.config
        return TransientGlobalAttention(
            **self.attention_options(),
            local_radius=config.local_radius,
            global_block_size=config.blocks_of,
            max_distance=config.relative_attention_max_distance,
            epsilon=config.layer_norm_epsilon,
        )

    def build(self, input_shape):
        self.bias_table = self.add_bias_table("relative_attention_bias")
        self.block_bias_table = None
        if self.config.blocks_of is not None:
            self.block_bias_table = self.add_bias_table("global_relative_attention_bias")
        super().build(input_shape)

    def call(self, inputs, attention_mask=None, training=None):
        return super().call(inputs, training, **self.options(inputs, attention_mask))

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
class LongT5Encoder(T5Stack):
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

    layers_class = LongT5EncoderLayers

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        inputs_embeds=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        hidden, attention_mask = self.embedded(
            input_ids, attention_mask, inputs_embeds, training=training
        )
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(hidden, attention_mask=attention_mask, training=training)
            return seq2seq_model.finished(self, [hidden], training=training)
        options = self.layers.options(hidden, attention_mask)
        states, calls = run_observed(
            self.layers,
            [hidden],
            training,
            with_attentions=output_attentions,
            attention=options,
        )
        states = [hidden for (hidden,) in states]
        outputs = seq2seq_model.finished(self, states, output_hidden_states, training)
        if output_attentions:
            outputs["attentions"] = tuple(tf.concat(by_set, -1) for (by_set,) in calls)
        return outputs


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5EncoderModel(conveniences.Pretrained, base.TokenLayer):
    """LongT5's encoder alone: token ids of a text of any length to hidden states.

    It also loads the folders of a `LongT5Model`, without the decoder.

    Args:
        config: `LongT5Config` or its dict. Entries for the decoder have no effect.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds`.
        **arguments: of `LongT5Encoder`.
    Returns:
        dict: see `LongT5Encoder`.

    >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1)
    >>> model = etcmodel.LongT5EncoderModel(config)
    >>> model([[7, 8, 1]])["last_hidden_state"].shape
    TensorShape([1, 3, 8])
    """

    config_class = LongT5Config
    architecture = "LongT5EncoderModel"
    stored_weights = ENCODER_WEIGHTS

    def __init__(self, config: LongT5Config | dict, name: str = "longt5_encoder", **kwargs):
        super().__init__(config, name, **kwargs)
        self.encoder = LongT5Encoder(self.config, dtype=self.dtype_policy)

    shared = property(lambda self: self.encoder.token_embedding)

    def build(self, input_shape):
        sublayers.build_sublayer(self.encoder, tf.TensorShape([None, None]))
        super().build(input_shape)

    def call(self, input_ids=None, attention_mask=None, **arguments):
        return self.encoder(input_ids, attention_mask, **arguments)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        return self.encoder.get_token_embedding_table()


class LongT5Head(of_text.HeadOnPart):
    """The base of heads on LongT5's encoder; folders of a `LongT5Model` give the weights.

    They are like T5's in Hugging Face's library, which has none for LongT5.

    Args:
        encoder: `LongT5EncoderModel`, or `LongT5Config`, from which a model is created.
        **kwargs: of `TextHead`.
    Call args: see `TextHead`; the arguments are those of `LongT5Encoder`.
    """

    encoder_class = LongT5EncoderModel


@head_base.register_head
class LongT5ForSequenceClassification(LongT5Head, of_text.SequenceClassification):
    """Text classifier or regression over LongT5's encoder: see `SequenceClassification`.

    It reads the mean of the tokens: T5 has no token that stands for a text (Ni et al. 2021,
    arXiv:2108.08877, section 3.1).

    >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1)
    >>> model = etcmodel.LongT5ForSequenceClassification(config, labels=["neg", "pos"])
    >>> model([[7, 8, 1]]).shape
    TensorShape([1, 2])
    """

    head_type = "longt5_sequence_classification"

    def encode(self, batch, training):
        hidden, *others = super().encode(batch, training)
        return (of_text.mean(hidden, of_text.token_mask(batch))[:, tf.newaxis], *others)


@head_base.register_head
class LongT5ForTokenClassification(LongT5Head, of_text.TokenClassification):
    """Token classifier over LongT5's encoder: see `TokenClassification`.

    >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1)
    >>> model = etcmodel.LongT5ForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> model([[7, 8, 1]]).shape
    TensorShape([1, 3, 3])
    """

    head_type = "longt5_token_classification"


class LongT5Classifier(processed_batches.ReadsProcessed, LongT5ForSequenceClassification):
    """`LongT5ForSequenceClassification` for batches of `EtcProcessor`."""

    def read(self, features):
        """Without the first token: T5's texts begin with none of their own."""
        return {name: x[:, 1:] for name, x in super().read(features).items()}


longt5_classifier = sequence_classifiers.of_first_token(LongT5Classifier)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class T5DecoderLayers(decoder.DecoderLayers, T5Layers):
    """T5's decoder (Raffel et al. 2020): `seq2seq.decoder.DecoderLayers` with position biases."""

    def make_attention(self, index):
        distance = self.config.relative_attention_max_distance
        return CausalSelfAttention(**self.attention_options(), max_distance=distance)

    def build(self, input_shape):
        self.bias_table = self.add_bias_table("relative_attention_bias")
        super().build(input_shape)

    def self_attention_options(self):
        return {"bias_table": self.table(self.bias_table)}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class T5Decoder(decoder.Decoder, T5Stack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`."""

    layers_class = T5DecoderLayers


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5Model(seq2seq_model.ConditionalGeneration, seq2seq_model.EncoderDecoder):
    """LongT5 for conditional generation, such as summarization of long texts.

    Args:
        config: `LongT5Config` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.ConditionalGeneration`, `LongT5Encoder` and `T5Decoder`.
    Returns:
        dict: `logits`, with labels `loss`, and more: see `seq2seq.model.ConditionalGeneration`.
    Raises:
        ValueError: see there.

    >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1)
    >>> model = etcmodel.LongT5Model(config)
    >>> model([[7, 8, 1]], decoder_input_ids=[[0, 5]])["logits"].shape
    TensorShape([1, 2, 32128])
    """

    config_class, encoder_class, decoder_class = LongT5Config, LongT5Encoder, T5Decoder
    architecture = "LongT5ForConditionalGeneration"

    def __init__(self, config: LongT5Config | dict, name: str = "longt5", **kwargs):
        super().__init__(config, name, **kwargs)
        self.lm_head = None
        if not self.config.tie_word_embeddings:
            self.lm_head = dense.Dense(
                self.config.vocab_size,
                use_bias=False,
                kernel_initializer=initializers.default_initializer(self.config.initializer_range),
                name="lm_head",
                dtype=self.dtype_policy,
            )

    def build(self, input_shape):
        super().build(input_shape)
        if self.lm_head is not None:
            hidden = tf.TensorShape([None, None, self.config.d_model])
            sublayers.build_sublayer(self.lm_head, hidden)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        hidden *= tf.cast(self.config.output_scale, hidden.dtype)
        if self.lm_head is not None:
            return tf.cast(self.lm_head(hidden), tf.float32)
        return super().logits(hidden)
