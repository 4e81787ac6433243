"""The configuration of a PEGASUS-X."""

import dataclasses
import typing

from etcmodel.models.seq2seq import config as seq2seq_config


@dataclasses.dataclass(frozen=True, kw_only=True)
class PegasusXConfig(seq2seq_config.BartConfig):
    """Sizes and options of a `PegasusXModel`, with the names and defaults of Hugging Face.

    The defaults apply to entries missing in a `config.json`. The released models have others:
    "relu" and 128 global tokens.

    Attributes:
        vocab_size: int.
        max_position_embeddings: int. The length of texts in training; no limit, since positions
            have no weights.
        encoder_layers, encoder_ffn_dim, encoder_attention_heads: int. Layers, feed-forward units
            and attention heads of the encoder.
        decoder_layers, decoder_ffn_dim, decoder_attention_heads: int. Those of the decoder.
        activation_function: str. Feed-forward activation; "gelu" is the exact one.
        d_model: int, even and at least 4. Size of the hidden states.
        dropout: float. Dropout rate of embeddings and of the outputs of attention and feed-forward
            layers.
        attention_dropout: float. Dropout rate of attention probabilities.
        activation_dropout: float. Dropout rate inside feed-forward layers.
        init_std: float. Standard deviation of the initial weights.
        scale_embedding: bool. Whether token embeddings are multiplied by sqrt(`d_model`).
        pad_token_id: int. Replaces labels of -100 in decoder ids.
        eos_token_id: int.
        decoder_start_token_id: int or None. The first decoder id; if None, decoder ids must be
            given.
        forced_eos_token_id: int, or tuple of int, or None. The last token of a generated sequence
            that reaches the maximal length, or several, one of which is it.
        num_global_tokens: int.
        block_size: int. Tokens per block of the encoder's attention.
        stagger_local_blocks: bool. Whether blocks begin half a block earlier in every second layer,
            from the second on.
        tie_word_embeddings: bool. True: logits are products with the token embeddings.
        grad_checkpointing_period: int. See `TransformerStack`; not of Hugging Face's.
    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.PegasusXConfig(d_model=768, num_global_tokens=128)
    >>> config.d_model, config.num_global_tokens, config.block_size
    (768, 128, 512)
    """

    model_type: typing.ClassVar[str] = "pegasus_x"
    at_least_1: typing.ClassVar[tuple] = (
        *seq2seq_config.BART_SIZES,
        "max_position_embeddings",
        "num_global_tokens",
        "block_size",
    )
    # What the config of a PEGASUS, from which a PEGASUS-X was made, may have.
    only: typing.ClassVar[dict] = {
        **seq2seq_config.ONLY,
        "add_bias_logits": (False, None),
        "add_final_layer_norm": (True, None),
        "extra_pos_embeddings": (1, 0, None),
        "normalize_before": (True, None),
        "normalize_embedding": (False, None),
        "static_position_embeddings": (True, None),
    }
    ours: typing.ClassVar[tuple] = ("grad_checkpointing_period",)

    vocab_size: int = 96103
    max_position_embeddings: int = 16384
    encoder_layers: int = 16
    encoder_ffn_dim: int = 4096
    encoder_attention_heads: int = 16
    decoder_layers: int = 16
    decoder_ffn_dim: int = 4096
    decoder_attention_heads: int = 16
    activation_function: str = "gelu"
    d_model: int = 1024
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    init_std: float = 0.02
    scale_embedding: bool = True
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int | None = 0
    forced_eos_token_id: int | tuple[int, ...] | None = 1
    num_global_tokens: int = 32
    block_size: int = 512
    stagger_local_blocks: bool = True
    tie_word_embeddings: bool = True
    grad_checkpointing_period: int = 0

    def shift(self, layer):
        """int. How many tokens to the left the block borders of an encoder layer are shifted."""
        return self.block_size // 2 if self.stagger_local_blocks and layer % 2 else 0

    def check(self):
        """Raises ValueError, naming the entry and its value, if the config is invalid."""
        super().check()
        if self.forced_eos_token_id == ():
            raise ValueError("`forced_eos_token_id` must have a token, or be None. Received: []")
        if self.d_model < 4 or self.d_model % 2:
            raise ValueError(f"`d_model` must be even and at least 4. Received: {self.d_model}")
