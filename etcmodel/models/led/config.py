"""The configuration of an LED."""

import dataclasses
import typing

from etcmodel.models.longformer import config as longformer
from etcmodel.models.seq2seq import config as seq2seq_config

# Entries that a file must have: the defaults are those of LED-large.
_NEEDED = (
    *seq2seq_config.BART_SIZES,
    "max_encoder_position_embeddings",
    "max_decoder_position_embeddings",
    "attention_window",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LedConfig(seq2seq_config.BartConfig):
    """Sizes and options of an `LedModel`, with the names and defaults of Hugging Face.

    Attributes:
        vocab_size: int.
        d_model: int. Size of the hidden states.
        max_encoder_position_embeddings, max_decoder_position_embeddings: int. The most tokens of an
            input, and of a generated sequence including the start token.
        encoder_layers, encoder_attention_heads, encoder_ffn_dim: int.
        decoder_layers, decoder_attention_heads, decoder_ffn_dim: int.
        attention_window: int, even, or sequence of them, one per layer of the encoder. A token
            attends to half of it on each side, and to itself.
        activation_function: str. Feed-forward activation; "gelu" is the exact one.
        dropout: float. Dropout rate of embeddings and of the outputs of attention and feed-forward
            layers.
        attention_dropout: float. Dropout rate of attention probabilities.
        activation_dropout: float. Dropout rate inside feed-forward layers.
        init_std: float. Standard deviation of the initial weights.
        pad_token_id: int. Replaces labels of -100 in decoder ids.
        bos_token_id, eos_token_id: int.
        decoder_start_token_id: int. The first decoder id.
        global_positions: sequence of int. Positions of the global tokens where a call does not give
            them, in training and generation alike: `(0,)` for the first token.
        max_global_tokens: int or None. The most global tokens of an example. XLA needs it, since it
            compiles for a known number. None: any number.
        grad_checkpointing_period: int. See `TransformerStack`.

    The last three are not Hugging Face's; `to_dict` includes them where they are not the defaults.

    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.LedConfig(d_model=768, encoder_layers=6, attention_window=256)
    >>> config.d_model, config.attention_window, config.max_encoder_position_embeddings
    (768, 256, 16384)
    """

    model_type: typing.ClassVar[str] = "led"
    needed: typing.ClassVar[tuple] = _NEEDED
    at_least_1: typing.ClassVar[tuple] = _NEEDED[:-1]
    without_effect: typing.ClassVar[frozenset] = seq2seq_config.WITHOUT_EFFECT | {"attention_mode"}
    # What the config of a BART, from which an LED was made, may have, and LEDs have not.
    only: typing.ClassVar[dict] = {
        **seq2seq_config.ONLY,
        "add_bias_logits": (False, None),
        "add_final_layer_norm": (False, None),
        "extra_pos_embeddings": (2, None),
        "normalize_before": (False, None),
        "normalize_embedding": (True, None),
        "scale_embedding": (False, None),
        "static_position_embeddings": (False, None),
    }
    ours: typing.ClassVar[tuple] = (
        "global_positions",
        "max_global_tokens",
        "grad_checkpointing_period",
    )
    normalize_before: typing.ClassVar[bool] = False
    use_bias: typing.ClassVar[bool] = True
    autoregressive: typing.ClassVar[bool] = False  # The encoder.

    vocab_size: int = 50265
    d_model: int = 1024
    max_encoder_position_embeddings: int = 16384
    max_decoder_position_embeddings: int = 1024
    encoder_layers: int = 12
    encoder_attention_heads: int = 16
    encoder_ffn_dim: int = 4096
    decoder_layers: int = 12
    decoder_attention_heads: int = 16
    decoder_ffn_dim: int = 4096
    attention_window: int | tuple = 512
    activation_function: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    init_std: float = 0.02
    pad_token_id: int = 1
    bos_token_id: int = 0
    eos_token_id: int = 2
    decoder_start_token_id: int = 2
    global_positions: tuple = ()
    max_global_tokens: int | None = None
    grad_checkpointing_period: int = 0

    @classmethod
    def from_dict(cls, given):
        """Like `Seq2SeqConfig.from_dict`.

        Raises:
            ValueError: see there; also if embeddings and logits are not tied.
        """
        if not given.get("tie_word_embeddings", True):
            raise ValueError(
                "`tie_word_embeddings` must be true: the logits of an LED are products with its "
                "token embeddings. Received: false"
            )
        return super().from_dict(given)

    @property
    def radii(self):
        """tuple of int: tokens attended to on each side, by layer of the encoder."""
        return longformer.radii(self.attention_window, self.encoder_layers)

    def check(self):
        """Raises ValueError, naming the entry and its value, if the config is invalid."""
        super().check()
        if any(type(x) is not int or x < 0 for x in self.global_positions):
            raise ValueError(
                "`global_positions` must be positions of tokens, 0 for the first. Received: "
                f"{self.global_positions}"
            )
        self.radii  # noqa: B018  Refuses invalid windows.
