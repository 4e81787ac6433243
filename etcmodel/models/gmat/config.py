"""The configs of a `GmatModel` and of a `GmatForConditionalGeneration`."""

import dataclasses
import typing

from etcmodel import shown_values
from etcmodel.models import json_config
from etcmodel.models.seq2seq import config as seq2seq_config

# The decompressor's input in place of tokens.
POSITIONS, NORMALIZED_POSITIONS = "positions", "normalized_positions"
NORMALIZED_POSITIONS_AND_TYPES = "normalized_positions_and_types"
DECOMPRESSOR_INPUTS = (POSITIONS, NORMALIZED_POSITIONS, NORMALIZED_POSITIONS_AND_TYPES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GmatConfig(json_config.BertConfig):
    """Sizes and options of a `GmatModel`, named as in BERT where BERT has them.

    Attributes:
        vocab_size: int. Token ids are below it.
        hidden_size: int.
        num_hidden_layers: int. N.
        num_attention_heads: int.
        intermediate_size: int. Feed-forward units.
        hidden_act: str. Feed-forward activation; "gelu" is the exact one here, "gelu_new" its tanh
            approximation.
        hidden_dropout_prob: float.
        attention_probs_dropout_prob: float.
        chunk_size: int. C: tokens per chunk. The same weights work with any size.
        num_memory_tokens: int. M, the length of the memory; 0 for none.
        position_period: int. The embedding of position p is the sum of row `p mod position_period`
            of one table and row `p div position_period` of another.
        num_position_quotients: int. Rows of the second table. With 0 there is none, and positions
            are below the period; else they are below the product of both.
        type_vocab_size: int. Token type ids are below it.
        memory_type_id: int or None. The token type of the memory; None for none.
        normalizes_memory: bool. Whether memory embeddings go through the embeddings' layer
            normalization, as those of tokens do.
        has_own_memory_projections: bool. Untied projections: the memory's queries, and the keys and
            values that they attend to, have weights of their own.
        has_own_memory_output: bool. The memory's output projections have weights of their own, too.
        num_compression_layers: int. N_c: after these layers the tokens' states are dropped, and
            later rebuilt from the memory; 0 for no compression.
        num_memory_layers: int. N_m: the layers after these, which process the memory alone.
        decompressor_input: str. What the last N - N_c - N_m layers get in place of tokens:
            "positions", the position embeddings; "normalized_positions", these after the
            embeddings' layer normalization; "normalized_positions_and_types", also with token
            types.
        pad_token_id: int. For programs that make batches.
        initializer_range: float. Standard deviation of the initial weights.
        layer_norm_eps: float. What layer normalization adds to the variance.
        grad_checkpointing_period: int. See `TransformerStack`.
    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.GmatConfig(chunk_size=256, num_memory_tokens=32)
    >>> config.model_type, config.chunk_size, config.hidden_size
    ('gmat', 256, 768)
    """

    model_type: typing.ClassVar[str] = "gmat"
    at_least_1: typing.ClassVar[tuple] = (
        *json_config.BERT_SIZES,
        "chunk_size",
        "position_period",
        "type_vocab_size",
    )

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    chunk_size: int = 512
    num_memory_tokens: int = 64
    position_period: int = 512
    num_position_quotients: int = 64
    type_vocab_size: int = 2
    memory_type_id: int | None = None
    normalizes_memory: bool = True
    has_own_memory_projections: bool = False
    has_own_memory_output: bool = False
    num_compression_layers: int = 0
    num_memory_layers: int = 0
    decompressor_input: str = POSITIONS
    pad_token_id: int = 0
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    grad_checkpointing_period: int = 0

    def check(self):
        super().check()
        if self.memory_type_id is not None and not 0 <= self.memory_type_id < self.type_vocab_size:
            raise ValueError(
                f"`memory_type_id` must be below `type_vocab_size`, {self.type_vocab_size}. "
                f"Received: {self.memory_type_id}"
            )
        self._check_compression()

    def _check_compression(self):
        if self.decompressor_input not in DECOMPRESSOR_INPUTS:
            raise ValueError(
                f"`decompressor_input` must be one of {list(DECOMPRESSOR_INPUTS)}. Received: "
                f"{shown_values.shown(self.decompressor_input)}"
            )
        if not self.num_compression_layers:
            if self.num_memory_layers:
                raise ValueError("`num_memory_layers` needs `num_compression_layers`.")
            return
        if self.num_decompression_layers < 1 or not self.num_memory_tokens:
            raise ValueError(
                "Compression needs memory tokens, and layers after `num_compression_layers` and "
                f"`num_memory_layers`. Received: {self.num_memory_tokens} tokens and layers "
                f"{self.num_compression_layers}, {self.num_memory_layers} of "
                f"{self.num_hidden_layers}"
            )

    @property
    def num_decompression_layers(self):
        """int. N_d."""
        return self.num_hidden_layers - self.num_compression_layers - self.num_memory_layers

    @property
    def max_length(self):
        """int. Positions are below it."""
        return self.position_period * max(1, self.num_position_quotients)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GmatSeq2SeqConfig(seq2seq_config.Seq2SeqConfig, GmatConfig):
    """Sizes and options of a `GmatForConditionalGeneration`.

    Attributes:
        decoder_start_token_id: int or None. The first decoder id.
        eos_token_id: int or None. The last one.
        others: see `GmatConfig`. There is no compression, and at least two token types: 0 for the
            encoder, 1 for the decoder.
    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.GmatSeq2SeqConfig.of_encoder(etcmodel.GmatConfig(), eos_token_id=1032)
    >>> config.model_type, config.eos_token_id, config.num_memory_tokens
    ('gmat_seq2seq', 1032, 64)
    """

    model_type: typing.ClassVar[str] = "gmat_seq2seq"

    decoder_start_token_id: int | None = None
    eos_token_id: int | None = None

    @classmethod
    def of_encoder(cls, config, **entries):
        """Creates the config of a model from the `GmatConfig` of its encoder.

        Args:
            config: `GmatConfig`.
            **entries: entries with other values, or that `GmatConfig` lacks.

        >>> config = etcmodel.GmatConfig(num_memory_tokens=32)
        >>> etcmodel.GmatSeq2SeqConfig.of_encoder(config, eos_token_id=1032).num_memory_tokens
        32
        """
        return cls.from_dict({**config.to_dict(), **entries})

    def encoder_config(self):
        """Returns the `GmatConfig` of the encoder.

        >>> type(etcmodel.GmatSeq2SeqConfig().encoder_config()).__name__
        'GmatConfig'
        """
        names_of_fields = [field.name for field in dataclasses.fields(GmatConfig)]
        return GmatConfig(**{name: getattr(self, name) for name in names_of_fields})

    def check(self):
        super().check()
        if self.num_compression_layers:
            raise ValueError(
                "`num_compression_layers` must be 0: a decoder has the layers of an encoder "
                f"without compression. Received: {self.num_compression_layers}"
            )
        if self.type_vocab_size < 2:
            raise ValueError(
                "`type_vocab_size` must be at least 2, as decoder ids have token type 1. "
                f"Received: {self.type_vocab_size}"
            )
