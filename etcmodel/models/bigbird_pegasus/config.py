"""The configuration of a BigBird-Pegasus."""

import dataclasses
import typing

from etcmodel.models.bigbird.config import BLOCK_SPARSE, BigBirdConfig
from etcmodel.models.seq2seq import config as seq2seq_config


@dataclasses.dataclass(frozen=True, kw_only=True)
class BigBirdPegasusConfig(seq2seq_config.BartConfig):
    """Sizes and options of a `BigBirdPegasusModel`, with Hugging Face's names and defaults.

    Attributes:
        vocab_size: int.
        d_model: int. Size of the hidden states.
        max_position_embeddings: int. The most tokens of an input, and of a target.
        encoder_layers, encoder_ffn_dim, encoder_attention_heads: int. Layers, feed-forward units
            and attention heads of the encoder.
        decoder_layers, decoder_ffn_dim, decoder_attention_heads: int. Those of the decoder.
        activation_function: str. Feed-forward activation; "gelu" is the exact one.
        dropout: float. Dropout rate of embeddings and of the outputs of attention and feed-forward
            layers.
        attention_dropout: float. Dropout rate of the probabilities of full attention.
        activation_dropout: float. Dropout rate inside feed-forward layers.
        init_std: float. Standard deviation of the initial weights.
        scale_embedding: bool. Whether token embeddings are multiplied by sqrt(`d_model`).
        use_bias: bool. Whether the projections of all attention layers have biases.
        attention_type, block_size, num_random_blocks: of the encoder: see `BigBirdConfig`.
        pad_token_id: int. Replaces labels of -100 in decoder ids.
        bos_token_id, eos_token_id: int.
        decoder_start_token_id: int or None. The first decoder id; if None, decoder ids must be
            given.
        tie_word_embeddings: ignored; kept for Hugging Face.
        pattern_by_length, is_seeded_always: bool. See `BigBirdConfig`.
        grad_checkpointing_period: int. See `TransformerStack`.

    The last three are not Hugging Face's; `to_dict` includes them where they are not the defaults.

    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.BigBirdPegasusConfig(d_model=768, block_size=32)
    >>> config.d_model, config.longest_full
    (768, 352)
    """

    model_type: typing.ClassVar[str] = "bigbird_pegasus"
    at_least_1: typing.ClassVar[tuple] = (
        *seq2seq_config.BART_SIZES,
        "max_position_embeddings",
        "block_size",
    )
    ours: typing.ClassVar[tuple] = (
        "pattern_by_length",
        "is_seeded_always",
        "grad_checkpointing_period",
    )

    vocab_size: int = 96103
    d_model: int = 1024
    max_position_embeddings: int = 4096
    encoder_layers: int = 16
    encoder_ffn_dim: int = 4096
    encoder_attention_heads: int = 16
    decoder_layers: int = 16
    decoder_ffn_dim: int = 4096
    decoder_attention_heads: int = 16
    activation_function: str = "gelu_new"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    init_std: float = 0.02
    scale_embedding: bool = True
    use_bias: bool = False
    attention_type: typing.Literal["block_sparse", "original_full"] = BLOCK_SPARSE
    block_size: int = 64
    num_random_blocks: int = 3
    pad_token_id: int = 0
    bos_token_id: int = 2
    eos_token_id: int = 1
    decoder_start_token_id: int | None = 2
    tie_word_embeddings: bool = True
    pattern_by_length: bool = False
    is_seeded_always: bool = False
    grad_checkpointing_period: int = 0

    longest_full = BigBirdConfig.longest_full
