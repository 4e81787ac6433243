"""GMAT (Gupta and Berant 2020): encoder, heads, and an encoder-decoder with the same weights."""

from typing import NamedTuple

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import (
    EmbeddingLookup,
    RecomputingDropout,
    base,
    dense,
    initializers,
    normalization,
    stack,
    sublayers,
)
from etcmodel.layers.attention.chunk_memory import ChunkMemoryAttention
from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.layers.observation import run_observed
from etcmodel.layers.wrappers import ResidualBlock
from etcmodel.models import conveniences, padding
from etcmodel.models.gmat import config as config_lib
from etcmodel.models.gmat.config import GmatConfig, GmatSeq2SeqConfig
from etcmodel.models.heads import base as head_base
from etcmodel.models.heads import losses, of_text
from etcmodel.models.seq2seq import decoder
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.models.systems import Weights
from etcmodel.ops import argument_checks

__all__ = [
    "BOTH",
    "MEMORY",
    "SEQ2SEQ_WEIGHTS",
    "TOKENS",
    "GmatConfig",
    "GmatForConditionalGeneration",
    "GmatForMaskedLM",
    "GmatForMultipleChoice",
    "GmatForQuestionAnswering",
    "GmatForSequenceClassification",
    "GmatForTokenClassification",
    "GmatModel",
    "Inputs",
    "Runs",
    "checked",
]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GmatEmbeddings(base.TokenLayer):
    """The embeddings of a `GmatModel`; not called as a layer, but through its methods.

    Args:
        config: `GmatConfig` or its dict.
        name: name of the layer.
    """

    config_class = GmatConfig

    def __init__(self, config, name="embeddings", **kwargs):
        super().__init__(config, name, **kwargs)
        self.word_embeddings = self._lookup("word_embeddings", self.config.vocab_size)
        self.position_embeddings = self._lookup("position_embeddings", self.config.position_period)
        self.quotient_embeddings = self.memory_embeddings = None
        if self.config.num_position_quotients:
            # Zeros, so that a model initialized from BERT or RoBERTa first computes what that one
            # does.
            self.quotient_embeddings = self._lookup(
                "quotient_embeddings", self.config.num_position_quotients, initializer_range=0.0
            )
        self.token_type_embeddings = self._lookup(
            "token_type_embeddings", self.config.type_vocab_size
        )
        if self.config.num_memory_tokens:
            self.memory_embeddings = self._lookup(
                "memory_embeddings", self.config.num_memory_tokens
            )
        self.layer_norm = normalization.LayerNormalization(
            axis=-1, epsilon=self.config.layer_norm_eps, name="layer_norm", dtype=self.dtype_policy
        )
        self.dropout = RecomputingDropout(
            self.config.hidden_dropout_prob, name="dropout", dtype=self.dtype_policy
        )

    def _lookup(self, name, num_rows, initializer_range=None):
        if initializer_range is None:
            initializer_range = self.config.initializer_range
        return EmbeddingLookup(
            num_rows,
            self.config.hidden_size,
            initializer_range=initializer_range,
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        sublayers.build_all(
            self.config.hidden_size,
            self.word_embeddings,
            self.position_embeddings,
            self.quotient_embeddings,
            self.token_type_embeddings,
            self.memory_embeddings,
            self.layer_norm,
        )
        super().build(input_shape)

    def positions(self, position_ids):
        """Position embeddings: float [..., hidden_size], of int [...]."""
        period = self.config.position_period
        vectors = self.position_embeddings(position_ids % period)
        if self.quotient_embeddings is not None:
            vectors += self.quotient_embeddings(position_ids // period)
        return vectors

    def tokens(self, inputs, training):
        """Token embeddings: float [batch, length, hidden_size].

        Args:
            inputs: `Inputs`.
            training: bool.
        """
        words = inputs.inputs_embeds
        words = self.word_embeddings(inputs.input_ids) if words is None else words
        hidden = tf.cast(words, self.compute_dtype) + self.positions(inputs.position_ids)
        hidden += self.token_type_embeddings(inputs.token_type_ids)
        return self.dropout(self.layer_norm(hidden), training=training)

    def memory(self, inputs, training):
        """Memory: float [batch, num_memory_tokens, hidden_size]; arguments as in `tokens`."""
        if inputs.memory_ids is None:
            numbers = tf.range(self.config.num_memory_tokens)[tf.newaxis]
            hidden = tf.repeat(self.memory_embeddings(numbers), inputs.batch, axis=0)
        else:
            hidden = self.word_embeddings(inputs.memory_ids)
        if self.config.memory_type_id is not None:
            hidden += self.token_type_embeddings([[self.config.memory_type_id]])
        if self.config.normalizes_memory:
            hidden = self.layer_norm(hidden)
        return self.dropout(hidden, training=training)

    def decompressor_input(self, inputs, training):
        """What replaces tokens: float [batch, length, hidden_size]; arguments as in `tokens`."""
        kind = self.config.decompressor_input
        hidden = self.positions(inputs.position_ids)
        if kind == config_lib.NORMALIZED_POSITIONS_AND_TYPES:
            hidden += self.token_type_embeddings(inputs.token_type_ids)
        if kind != config_lib.POSITIONS:
            hidden = self.layer_norm(hidden)
        _, length, size = tensor_utils.get_shape_list(hidden)
        hidden = tf.broadcast_to(hidden, [inputs.batch, length, size])
        return self.dropout(hidden, training=training)

    def call(self, inputs):
        raise NotImplementedError("Call `tokens`, `memory` or `positions`.")


_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "token_type_ids": "batch? length",
    "position_ids": "batch? length",
    "memory_ids": "batch num_memory_tokens",
    "memory_mask": "batch num_memory_tokens",
}
# The config's entries for the sizes of the tables of ids, and what the ids are.
_TABLES = {
    "input_ids": ("vocab_size", "which is `vocab_size`"),
    "memory_ids": ("vocab_size", "which is `vocab_size`"),
    "token_type_ids": ("type_vocab_size", "which is `type_vocab_size`"),
    "position_ids": ("max_length", "`position_period` times `num_position_quotients`"),
}


class Inputs(NamedTuple):
    """Inputs of one call: see `GmatModel`.

    Attributes:
        batch: int or int32 scalar.
        input_ids: int [batch, length], or None.
        inputs_embeds: float [batch, length, hidden_size], or None.
        attention_mask: bool [batch, length], or None.
        token_type_ids: int [batch or 1, length].
        position_ids: int [batch or 1, length].
        memory_ids: int [batch, num_memory_tokens], or None.
        memory_mask: bool [batch, num_memory_tokens], or None.
    """

    batch: object
    input_ids: tf.Tensor | None
    inputs_embeds: tf.Tensor | None
    attention_mask: tf.Tensor | None
    token_type_ids: tf.Tensor
    position_ids: tf.Tensor
    memory_ids: tf.Tensor | None
    memory_mask: tf.Tensor | None


@tf.autograph.experimental.do_not_convert
def checked(config, given):
    """Checks the arguments of a model's call and returns its `Inputs`.

    Args:
        config: `GmatConfig`.
        given: dict of arguments by name; None or absent if not given. The length is taken from
            `input_ids`, `inputs_embeds` or, for decompression, `attention_mask`.
    Raises:
        ValueError: in one line that names the argument, if inputs are inconsistent with each other
            or the model. In a graph, values known only at run time raise
            `tf.errors.InvalidArgumentError`.
    """
    given = {name: given.get(name) for name in _AXES}
    memory = [name for name in ("memory_ids", "memory_mask") if given[name] is not None]
    if memory and not config.num_memory_tokens:
        argument_checks.fail(
            f"A model with `num_memory_tokens` 0 takes no `{memory[0]}`: it has no memory."
        )
    sizes = {name: getattr(config, name) for name in ("hidden_size", "num_memory_tokens")}
    asserts = []
    argument_checks.check_shapes(given, _AXES, sizes, asserts)
    given = {name: _tensor(config, name, x, asserts) for name, x in given.items()}
    names = ("input_ids", "inputs_embeds", "attention_mask")
    first = next((given[name] for name in names if given[name] is not None), None)
    if first is None:
        argument_checks.fail(
            "Nothing says how long the text is: give `input_ids` or `inputs_embeds`, or an "
            "`attention_mask` to `decompress`."
        )
    batch, length = tensor_utils.get_shape_list(tf.convert_to_tensor(first))[:2]
    positions = given["position_ids"]
    if positions is None:
        positions = _tensor(config, "position_ids", tf.range(length)[tf.newaxis], asserts)
    with tf.control_dependencies(asserts):  # All depends on these.
        positions = tf.identity(positions)
        given = {name: None if x is None else tf.identity(x) for name, x in given.items()}
    types = given["token_type_ids"]
    types = tf.zeros_like(positions) if types is None else types
    return Inputs(batch, **{**given, "position_ids": positions, "token_type_ids": types})


@tf.autograph.experimental.do_not_convert
def from_first_token(batch):
    """Moves each text to the start of its row, and leading padding behind it.

    Args:
        batch: dict of arguments of `GmatModel` by name.
    Returns:
        dict like `batch`.
    Raises:
        ValueError: naming the argument, if shapes are inconsistent; or if there is padding before a
            text whose hidden states or attentions by position are requested.
    """
    if batch.get("attention_mask") is None:
        return batch
    rows = {
        name: x for name, x in batch.items() if "length" in _AXES.get(name, "") and x is not None
    }
    argument_checks.check_shapes(rows, _AXES)
    is_token = tf.cast(rows["attention_mask"], tf.bool)
    if batch.get("output_hidden_states") or batch.get("output_attentions"):
        asserts, words = [], "Hidden states and attentions of texts need padding at the end alone."
        begins = is_token[:, 0] | ~tf.reduce_any(is_token, axis=1)
        argument_checks.check(tf.reduce_all(begins), words, asserts=asserts)
        with tf.control_dependencies(asserts):
            return {**batch, "attention_mask": tf.identity(rows["attention_mask"])}
    return {**batch, **{name: padding.from_first_real(x, is_token) for name, x in rows.items()}}


def _tensor(config, name, x, asserts):
    """An argument as a checked tensor; None if it is not given."""
    if x is None or name == "inputs_embeds":
        return x
    if name in ("attention_mask", "memory_mask"):
        return argument_checks.checked_mask(name, x, ("padding", "a token"), asserts=asserts)
    entry, words = _TABLES[name]
    num_rows = getattr(config, entry)
    return argument_checks.checked_ids(name, x, num_rows, f"{num_rows}, {words}", asserts=asserts)


@tf.autograph.experimental.do_not_convert
def checked_memory(config, memory, batch):
    """Checks a memory to decompress: float [batch, num_memory_tokens, hidden_size].

    Args:
        config: `GmatConfig`.
        memory: float tensor.
        batch: int or int32 scalar.
    Raises:
        ValueError: see `checked`.
    """
    sizes = {name: getattr(config, name) for name in ("hidden_size", "num_memory_tokens")}
    axes, asserts = {"memory": "batch num_memory_tokens hidden_size"}, []
    argument_checks.check_shapes({"memory": memory}, axes, {**sizes, "batch": batch}, asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(memory)


# Transformer layers over tokens and a memory (Gupta and Berant 2020, section 2).


TOKENS, MEMORY, BOTH = ("tokens",), ("memory",), ("tokens", "memory")


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GmatLayers(base.Configured, stack.TransformerStack):
    """Transformer layers that tokens and memory share, except for untied projections.

    Args:
        config: `GmatConfig` or its dict.
        num_layers: int.
        of: `BOTH`, `TOKENS` alone, within their chunks, or `MEMORY` alone, which attends to itself.
        name: name of the layer.
    Call args:
        hidden: list of float [batch, length, hidden_size], one for each stream of the layers.
        att_mask: 0/1 int [batch, length] or None. Of tokens.
        memory_mask: 0/1 int [batch, memory_length] or None. Of the memory.
        training: bool.
    Returns:
        list, shaped like `hidden`.
    """

    def __init__(self, config, num_layers, of=BOTH, name="layers", **kwargs):
        self.config = GmatConfig.of(config)
        super().__init__(num_layers, name=name, **self.config.stack_options(), **kwargs)
        self.of = tuple(of)
        self.attention_layers = [self._attention_block(index) for index in range(num_layers)]
        self.feed_forward_layers = self.feed_forward_blocks()

    @property
    def streams(self):
        sizes = self.config.hidden_size, self.config.intermediate_size
        return tuple(stack.Stream(name, *sizes) for name in self.of)

    def make_attention(self, index):
        config = self.config
        return ChunkMemoryAttention(
            config.hidden_size,
            config.num_attention_heads,
            chunk_size=None if self.of == MEMORY else config.chunk_size,
            has_own_memory_projections=config.has_own_memory_projections and self.of == BOTH,
            has_own_memory_output=config.has_own_memory_output and self.of == BOTH,
            use_bias=True,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer_range=self.initializer_range,
            dtype=self.dtype_policy,
        )

    def _attention_block(self, index):
        """Like `attention_blocks`, but all streams share one normalization."""
        return ResidualBlock(
            inner_layer=self.make_attention(index),
            normalization_layer=[self.make_normalization("layer_norm")] * len(self.of),
            dropout_probability=self.hidden_dropout_prob,
            name=f"attention_layer_{index}",
            dtype=self.dtype_policy,
        )

    def steps(self, index):
        streams = tuple(range(len(self.of)))
        feed_forward = self.feed_forward_layers[index]
        return (
            stack.Step(self.attention_layers[index], streams=streams, options="attention"),
            *(stack.Step(feed_forward, streams=(number,)) for number in streams),
        )

    def call(self, hidden, att_mask=None, memory_mask=None, training=None):
        return self.run(hidden, training, attention=self.masks(att_mask, memory_mask))

    def masks(self, att_mask, memory_mask):
        """The arguments of all attention layers: dict, with the masks of tokens and memory."""
        if self.of == MEMORY:
            return {"att_mask": memory_mask}
        return {"att_mask": att_mask, **({"memory_mask": memory_mask} if self.of == BOTH else {})}

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_hidden_layers,
            "of": list(self.of),
        }


class Runs:
    """Runs hidden states through several stacks of layers, and keeps what is requested.

    Args:
        training: bool.
        with_states, with_attentions: bool. What to keep.
    """

    def __init__(self, training, with_states=False, with_attentions=False):
        self.training = training
        self._kept = {}
        self._with_states, self._with_attentions = with_states, with_attentions

    def __call__(self, layers, hidden, inputs):
        """Calls a `GmatLayers` with the masks of an `Inputs`: list, shaped like `hidden`."""
        masks = (inputs.attention_mask, inputs.memory_mask)
        if not (self._with_states or self._with_attentions):
            return layers(hidden, *masks, training=self.training)
        states, calls = run_observed(
            layers,
            hidden,
            self.training,
            with_attentions=self._with_attentions,
            attention=layers.masks(*masks),
        )
        if self._with_states:
            self._keep(layers, "states", states)
        if self._with_attentions:
            self._keep(layers, "attentions", [[tf.concat(x, -1) for x in call] for call in calls])
        return states[-1]

    def _keep(self, layers, what, by_layer):
        for of, values in zip(layers.of, zip(*by_layer, strict=True), strict=True):
            name = (
                f"memory_{what}" if of == "memory" else {"states": "hidden_states"}.get(what, what)
            )
            known = self._kept.setdefault(name, [])
            # The memory passes on from one stack to the next.
            known += values[1:] if name == "memory_states" and known else values

    def outputs(self):
        """dict of lists by name."""
        return self._kept


# GMAT (Gupta and Berant 2020, arXiv:2006.03274): chunks of text that share a global memory.


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GmatModel(conveniences.Pretrained, base.TokenLayer):
    """The GMAT encoder: tokens attend within chunks and to a memory, which attends to all tokens.

    Texts may have any length up to the number of positions; the last chunk may be shorter. With
    `num_compression_layers` in the config, the last layers get the text from the memory alone:
    `compress` and `decompress` are the two halves of the call.

    Args:
        config: `GmatConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length], or a dict of the arguments; or None with `inputs_embeds`.
        attention_mask: 0/1 int or bool [batch, length], or None. 0 for padding.
        token_type_ids: int [batch or 1, length]; by default 0.
        position_ids: int [batch or 1, length]; by default 0, 1, 2 …
        inputs_embeds: float [batch, length, hidden_size], in place of embeddings of `input_ids`.
        memory_ids: int [batch, num_memory_tokens], or None. Tokens whose embeddings replace the
            learned memory, such as the first tokens of a question (section 4.4).
        memory_mask: 0/1 int or bool [batch, num_memory_tokens], or None. 0 for unused memory, such
            as behind a short question.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory for all pairs of tokens, and time.
        training: bool.
    Returns:
        (hidden, memory): float [batch, length, hidden_size] and
        [batch, num_memory_tokens, hidden_size], which is None without a memory. If more is
        requested, a third output is a dict: `hidden_states` and `memory_states`, lists of the
        embeddings and each layer's output; `attentions` and `memory_attentions`, lists by layer of
        float32 [batch, num_heads, length, length + num_memory_tokens] and [batch, num_heads,
        num_memory_tokens, length + num_memory_tokens], 0 where there is no attention. With
        compression, `hidden_states` are those before and in the compressor, then those before and
        in the decompressor; layers of the memory alone have no keys but the memory.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model, or a position is out of
            range. In a graph, values known only at run time raise `tf.errors.InvalidArgumentError`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> hidden, memory = etcmodel.GmatModel(config)([[2, 7, 8, 3]])
    >>> hidden.shape, memory.shape
    (TensorShape([1, 4, 12]), TensorShape([1, 64, 12]))
    """

    config_class = GmatConfig

    def __init__(self, config: GmatConfig | dict, name: str = "gmat", **kwargs):
        super().__init__(config, name, **kwargs)
        config = self.config
        self.embeddings = GmatEmbeddings(config, dtype=self.dtype_policy)
        both = BOTH if config.num_memory_tokens else TOKENS
        self.layers = self.compressor = self.memory_layers = self.decompressor = None
        if config.num_compression_layers:
            self.compressor = self._stack("compressor", config.num_compression_layers, both)
            if config.num_memory_layers:
                self.memory_layers = self._stack("memory_layers", config.num_memory_layers, MEMORY)
            self.decompressor = self._stack("decompressor", config.num_decompression_layers, both)
        else:
            self.layers = self._stack("layers", config.num_hidden_layers, both)

    def _stack(self, name, num_layers, of):
        return GmatLayers(self.config, num_layers, of, name=name, dtype=self.dtype_policy)

    @property
    def stacks(self):
        """list of `GmatLayers`, in the order of the layers."""
        found = (self.layers, self.compressor, self.memory_layers, self.decompressor)
        return [layers for layers in found if layers is not None]

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        sublayers.build_all(self.config.hidden_size, self.embeddings, *self.stacks)
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        memory_ids=None,
        memory_mask=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        if (input_ids is None) == (inputs_embeds is None):
            argument_checks.fail("Give `input_ids` or `inputs_embeds`, one of them.")
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
            "memory_ids": memory_ids,
            "memory_mask": memory_mask,
        }
        inputs = checked(self.config, given)
        run = Runs(training, output_hidden_states, output_attentions)
        if self.compressor is None:
            hidden = run(self.layers, self._embedded(inputs, training), inputs)
        else:
            hidden = self._decompressed(self._compressed(inputs, run), inputs, run)
        hidden, memory = hidden if len(hidden) == 2 else (hidden[0], None)
        extras = run.outputs()
        return (hidden, memory, extras) if extras else (hidden, memory)

    def _embedded(self, inputs, training):
        """The input of the first layer: list of tokens and, if there is one, memory."""
        hidden = [self.embeddings.tokens(inputs, training)]
        if self.config.num_memory_tokens:
            hidden.append(self.embeddings.memory(inputs, training))
        return hidden

    def _compressed(self, inputs, run):
        """The memory after the layers that process it alone."""
        _, memory = run(self.compressor, self._embedded(inputs, run.training), inputs)
        if self.memory_layers is not None:
            (memory,) = run(self.memory_layers, [memory], inputs)
        return memory

    def _decompressed(self, memory, inputs, run):
        hidden = [self.embeddings.decompressor_input(inputs, run.training), memory]
        return run(self.decompressor, hidden, inputs)

    def compress(self, input_ids, attention_mask=None, training=None, **arguments):
        """Compresses a text into its memory (paper, section 2.1); see `decompress`.

        Args:
            input_ids, attention_mask, training, **arguments: as in a call.
        Returns:
            float [batch, num_memory_tokens, hidden_size].
        Raises:
            ValueError: if the model has no compression; see also the call.

        >>> sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_memory_tokens": 4}
        >>> model = etcmodel.GmatModel(etcmodel.GmatConfig(num_compression_layers=1, **sizes))
        >>> model.compress([[2, 7, 8, 3]]).shape
        TensorShape([1, 4, 12])
        """
        self._check_compression()
        given = {"input_ids": input_ids, "attention_mask": attention_mask, **arguments}
        inputs = checked(self.config, given)
        return self._compressed(inputs, Runs(training))

    def decompress(self, memory, attention_mask, training=None, **arguments):
        """Recomputes a text's hidden states from its memory.

        Args:
            memory: float [batch, num_memory_tokens, hidden_size], from `compress`.
            attention_mask: 0/1 int [batch, length]. Gives the length of the text; 0 for padding.
            training: bool.
            **arguments: `token_type_ids`, `position_ids` and `memory_mask` as in a call.
        Returns:
            (hidden, memory): as in a call.
        Raises:
            ValueError: if the model has no compression; see also the call.

        >>> sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_memory_tokens": 4}
        >>> model = etcmodel.GmatModel(etcmodel.GmatConfig(num_compression_layers=1, **sizes))
        >>> memory = model.compress([[2, 7, 8, 3]])
        >>> hidden, _ = model.decompress(memory, attention_mask=[[1, 1, 1, 1]])
        >>> hidden.shape
        TensorShape([1, 4, 12])
        """
        self._check_compression()
        inputs = checked(self.config, {"attention_mask": attention_mask, **arguments})
        memory = checked_memory(self.config, memory, inputs.batch)
        return tuple(self._decompressed(memory, inputs, Runs(training)))

    def _check_compression(self):
        if self.compressor is None:
            raise ValueError(f"{self.name!r} has no compression: `num_compression_layers` is 0.")
        sublayers.build_sublayer(self, None)

    def get_token_embedding_table(self):
        """Returns the table of token embeddings: variable [vocab_size, hidden_size]."""
        sublayers.build_sublayer(self, None)
        return self.embeddings.word_embeddings.embedding_table


# GMAT with heads (Gupta and Berant 2020, arXiv:2006.03274, section 4).


class GmatHead(of_text.TextHead):
    """The base of GMAT's heads, which read the tokens' hidden states.

    Args:
        encoder: `GmatModel`, or `GmatConfig`, from which a model is created.
        **kwargs: of `TextHead`.
    Call args: see `TextHead`; the arguments are those of `GmatModel`.
    """

    encoder_class = GmatModel

    def encode(self, batch, training):
        hidden, memory, *observed = super().encode(batch, training)
        if memory is not None:
            # So that variables of the last layer's memory, which heads do not read, get gradients
            # of 0.
            hidden, memory = tf.identity_n([hidden, memory])
        return (hidden, memory, *observed)


class GmatFirstTokenHead(GmatHead, of_text.FirstTokenHead):
    """The base of GMAT's heads that read the first token.

    Positions and chunks are counted from the start of a row, so leading padding is moved behind the
    text first.
    """

    def encode(self, batch, training):
        return super().encode(from_first_token(batch), training)


@head_base.register_head
class GmatForMaskedLM(GmatHead, of_text.MaskedLM):
    """Masked language model over a GMAT: see `MaskedLM`.

    The metrics are perplexity and percentage of errors, as in the paper.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> etcmodel.GmatForMaskedLM(config)([[2, 4, 8, 3]]).shape
    TensorShape([1, 4, 30522])
    """

    head_type = "gmat_masked_lm"

    def default_metrics(self):
        return [losses.Perplexity(), losses.ErrorPercent()]


@head_base.register_head
class GmatForSequenceClassification(GmatFirstTokenHead, of_text.SequenceClassification):
    """Text classifier or regression over a GMAT: see `SequenceClassification`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.GmatForSequenceClassification(config, labels=["neg", "pos"])
    >>> model([[2, 7, 8, 3]]).shape
    TensorShape([1, 2])
    """

    head_type = "gmat_sequence_classification"


@head_base.register_head
class GmatForTokenClassification(GmatHead, of_text.TokenClassification):
    """Token classifier over a GMAT, such as for named entities: see `TokenClassification`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.GmatForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> model([[2, 7, 8, 3]]).shape
    TensorShape([1, 4, 3])
    """

    head_type = "gmat_token_classification"


@head_base.register_head
class GmatForQuestionAnswering(GmatHead, of_text.QuestionAnswering):
    """Extractive question answering over a GMAT: see `QuestionAnswering`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> logits = etcmodel.GmatForQuestionAnswering(config)([[2, 7, 3, 8, 3]])
    >>> logits["start"].shape, logits["end"].shape
    (TensorShape([1, 5]), TensorShape([1, 5]))
    """

    head_type = "gmat_question_answering"


@head_base.register_head
class GmatForMultipleChoice(GmatFirstTokenHead, of_text.MultipleChoice):
    """Multiple choice over a GMAT, from pooled first tokens as in BERT: see `MultipleChoice`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.GmatForMultipleChoice(config)
    >>> model([[[2, 7, 3], [2, 8, 3]]]).shape  # One question, two choices.
    TensorShape([1, 2])
    """

    head_type = "gmat_multiple_choice"

    def make_head(self):
        super().make_head()
        self.pooler = self.dense_layer("pooler")

    def head(self, hidden, other, training):
        pooled = self.pooler(tf.cast(hidden[:, 0], tf.float32))
        return super().head(hidden, pooled, training)


# GenBERT's decoder over a GMAT: the encoder's own layers with causal self-attention.


class TiedAttention(base.Layer):
    """Causal attention, then attention to the encoder, both with the weights of one encoder layer.

    `h = norm(x + self_attention(x))`, then `norm(x + cross_attention(h))`: the second residual,
    too, is the layer's input, as in GenBERT.

    Args:
        block: `ResidualBlock` of the encoder layer's `ChunkMemoryAttention`, whose projections and
            normalization of tokens are used.
        dropout_prob: float. Dropout rate of both attentions' outputs.
        name: name of the layer.
    Call args:
        inputs: float [rows, length, hidden_size].
        encoder_output, encoder_mask: as `encoder_output` and `att_mask` of `CrossAttention`.
        att_mask, cache: see `CausalSelfAttention`.
        training: bool.
    Returns:
        Same shape as `inputs`.
    """

    def __init__(self, block, dropout_prob=0.0, name="tied_attention", **kwargs):
        super().__init__(name=name, **kwargs)
        of_encoder = block.inner_layer
        options = {
            "hidden_size": of_encoder.hidden_size,
            "num_heads": of_encoder.num_heads,
            "size_per_head": of_encoder.size_per_head,
            "scale": of_encoder.scale,
            "use_bias": of_encoder.use_bias,
            "att_dropout_prob": of_encoder.att_dropout_prob,
            "dtype": self.dtype_policy,
        }
        self.self_attention = CausalSelfAttention(**options, name="self_attention")
        self.cross_attention = CrossAttention(**options, name="cross_attention")
        for attention in (self.self_attention, self.cross_attention):
            attention.share_projections(of_encoder)
        self.normalization = block.normalization_layers[0]
        self.dropouts = [
            RecomputingDropout(dropout_prob, name=f"dropout_{number}", dtype=self.dtype_policy)
            for number in range(2)
        ]

    def build(self, input_shape):
        for layer in (self.self_attention, self.cross_attention, self.normalization):
            sublayers.build_sublayer(layer, tf.TensorShape(input_shape))
        super().build(input_shape)

    def call(
        self,
        inputs,
        encoder_output,
        encoder_mask=None,
        att_mask=None,
        cache=None,
        training=None,
    ):
        own, cross = self.dropouts
        found = self.self_attention(inputs, att_mask=att_mask, cache=cache, training=training)
        queries = self.normalization(inputs + own(found, training=training))
        found = self.cross_attention(
            queries, encoder_output, att_mask=encoder_mask, training=training
        )
        return self.normalization(inputs + cross(found, training=training))


class GmatDecoderLayers(decoder.DecoderLayers, stack.TransformerStack):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers`.

    Args:
        layers: `GmatLayers` of the encoder. All of its weights are shared, except those of its
            memory alone.
        name: name of the layer.
    """

    def __init__(self, layers, name="layers", **kwargs):
        self.config = layers.config
        super().__init__(
            layers.num_hidden_layers,
            name=name,
            **layers.config.stack_options(),
            **kwargs,
        )
        self.attention_layers = [
            TiedAttention(
                block,
                self.hidden_dropout_prob,
                name=f"attention_layer_{index}",
                dtype=self.dtype_policy,
            )
            for index, block in enumerate(layers.attention_layers)
        ]
        self.feed_forward_layers = list(layers.feed_forward_layers)

    @property
    def streams(self):
        config = self.config
        return (stack.Stream("tokens", config.hidden_size, config.intermediate_size),)

    def make_attention(self, index):
        raise NotImplementedError("The attention layers are made of the encoder's.")

    def attentions(self, index):
        layer = self.attention_layers[index]
        return layer.self_attention, layer.cross_attention

    def steps(self, index):
        return (
            stack.Step(self.attention_layers[index], options="attention"),
            stack.Step(self.feed_forward_layers[index]),
        )

    def options(self, encoder_output, encoder_mask, attention_mask=None):
        return {
            "attention": {
                "encoder_output": encoder_output,
                "encoder_mask": encoder_mask,
                "att_mask": attention_mask,
            }
        }


class GmatDecoder(decoder.Decoder, base.OptionalInput, base.Layer):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`.

    The encoder's output has the tokens, then the memory; its mask is of the tokens alone, as the
    memory is always attended to. Decoder ids have token type 1, and positions from 0.

    Args:
        encoder: `GmatEncoder`, whose embeddings and layers are shared.
        name: name of the layer.
    """

    def __init__(self, encoder, name="decoder", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = encoder.config
        self.embeddings = encoder.gmat.embeddings
        self.layers = GmatDecoderLayers(encoder.gmat.layers, dtype=self.dtype_policy)
        self.transform = Transform(self.config, dtype=self.dtype_policy)

    def build(self, input_shape):
        parts = (self.embeddings, self.layers, self.transform)
        sublayers.build_all(self.config.hidden_size, *parts)
        super().build(input_shape)

    def embed(self, ids, embeddings, start=0, training=None):
        """Embeds the decoder's ids for its first layer.

        Args:
            ids: int [batch, length], or None with embeddings.
            embeddings: float [batch, length, hidden_size], or None.
            start: int or int32 scalar. The position of the first id.
            training: bool.
        Returns:
            float [batch, length, hidden_size].
        Raises:
            ValueError: unless just one of ids and embeddings is given, or if there are more tokens
                than positions; in a graph `tf.errors.InvalidArgumentError`.
        """
        if (ids is None) == (embeddings is None):
            raise ValueError("Give decoder ids, or embeddings in their place, and not both.")
        first = tf.convert_to_tensor(embeddings if ids is None else ids)
        positions = (start + tf.range(tensor_utils.get_shape_list(first)[1]))[tf.newaxis]
        given = {
            "input_ids": ids,
            "inputs_embeds": embeddings,
            "position_ids": positions,
            "token_type_ids": tf.ones_like(positions),
        }
        return self.embeddings.tokens(checked(self.config, given), training)

    def finish(self, hidden, training=None):
        """Maps the last layer's output to the decoder's: float [batch, length, hidden_size]."""
        return self.transform(hidden)

    def mask_of_output(self, encoder_mask):
        """Extends the mask of the encoder's tokens to the encoder's output, memory included."""
        if encoder_mask is None or not self.config.num_memory_tokens:
            return encoder_mask
        mask = tf.cast(encoder_mask, tf.int32)
        return tf.pad(mask, [[0, 0], [0, self.config.num_memory_tokens]], constant_values=1)


class Transform(base.Layer):
    """BERT's dense layer, activation and layer normalization before the token logits.

    Args:
        config: `GmatConfig`.
        name: name of the layer.
    Call args:
        hidden: float [..., hidden_size].
    Returns:
        Same shape as `hidden`.
    """

    def __init__(self, config, name="transform", **kwargs):
        super().__init__(name=name, **kwargs)
        self.hidden_size = config.hidden_size
        self.dense = dense.Dense(
            config.hidden_size,
            activation=tensor_utils.get_activation(config.activation),
            kernel_initializer=initializers.default_initializer(config.initializer_range),
            name="dense",
            dtype=self.dtype_policy,
        )
        self.layer_norm = normalization.LayerNormalization(
            axis=-1, epsilon=config.layer_norm_eps, name="layer_norm", dtype=self.dtype_policy
        )

    def build(self, input_shape):
        sublayers.build_all(self.hidden_size, self.dense, self.layer_norm)
        super().build(input_shape)

    def call(self, hidden):
        return self.layer_norm(self.dense(hidden))


# GenBERT with a GMAT as its encoder: encoder and decoder share one BERT's weights.

# Hugging Face has no such model: in files, names are those of the variables.
SEQ2SEQ_WEIGHTS = Weights(prefix="", names=((r"(.+)", r"\1"),))


class GmatEncoder(base.TokenLayer):
    """The encoder: token ids to the hidden states that the decoder attends to.

    Args:
        config: `GmatSeq2SeqConfig`.
        name: name of the layer.
    Call args: see `GmatModel`, without `memory_ids` and `memory_mask`.
    Returns:
        dict: `last_hidden_state`, float [batch, length + num_memory_tokens, hidden_size], of the
        tokens and then of the memory; and what else `GmatModel` returns on request.
    """

    config_class = GmatSeq2SeqConfig

    def __init__(self, config, name="encoder", **kwargs):
        super().__init__(config, name, **kwargs)
        self.gmat = GmatModel(self.config.encoder_config(), dtype=self.dtype_policy)
        self.transform = Transform(self.config, dtype=self.dtype_policy)

    def build(self, input_shape):
        for layer in (self.gmat, self.transform):
            sublayers.build_sublayer(layer, input_shape)
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        hidden, memory, *extras = self.gmat(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
            training=training,
        )
        states = hidden if memory is None else tf.concat([hidden, memory], axis=1)
        outputs = {"last_hidden_state": self.transform(states)}
        return outputs | {name: tuple(x) for found in extras for name, x in found.items()}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GmatForConditionalGeneration(
    seq2seq_model.ConditionalGeneration, seq2seq_model.EncoderDecoder
):
    """GenBERT over a GMAT: generates a text from a long text with one stack of layers.

    In self-attention a decoder token attends to itself and to all tokens before it; with the same
    weights it attends to the encoder's tokens and memory. Encoder and decoder each have a dense
    layer of their own after the last one; logits are products with the token embeddings. With
    untied projections (`has_own_memory_projections`), those of the memory are the only weights that
    the decoder does not use.

    Args:
        config: `GmatSeq2SeqConfig` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.ConditionalGeneration`, `GmatEncoder` and `GmatDecoder`.
    Returns:
        dict: `logits`, with labels `loss`, and more: see `seq2seq.model.ConditionalGeneration`.
    Raises:
        ValueError: see there.

    >>> config = etcmodel.GmatSeq2SeqConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.GmatForConditionalGeneration(config)
    >>> model([[5, 6, 7]], decoder_input_ids=[[2, 8]])["logits"].shape
    TensorShape([1, 2, 30522])
    """

    config_class = GmatSeq2SeqConfig
    encoder_arguments = ("token_type_ids", "position_ids")
    architecture = "GmatForConditionalGeneration"

    def __init__(
        self,
        config: GmatSeq2SeqConfig | dict,
        name: str = "gmat_for_conditional_generation",
        **kwargs,
    ):
        super().__init__(config, name, **kwargs)

    def make_parts(self):
        self.encoder = GmatEncoder(self.config, dtype=self.dtype_policy)
        self.decoder = GmatDecoder(self.encoder, dtype=self.dtype_policy)

    shared = property(lambda self: self.encoder.gmat.embeddings.word_embeddings)

    def build(self, input_shape):
        sublayers.build_sublayer(self.encoder, input_shape)  # First, since it has the variables.
        self.logits_bias = self.add_weight(
            name="logits_bias", shape=(self.config.vocab_size,), initializer="zeros"
        )
        super().build(input_shape)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., hidden_size]: float32 [..., vocab_size]."""
        logits = seq2seq_model.tied_logits(hidden, self.shared.embedding_table)
        return logits + tf.cast(self.logits_bias, tf.float32)

    @property
    def max_generated_length(self):
        """int. One more than the number of positions: the last token is never an input."""
        return self.config.max_length + 1
