"""The configuration of a `LongformerModel`."""

import dataclasses
import typing

from etcmodel.models import hugging_face, json_config
from etcmodel.models.longformer import windows

__all__ = ["LongformerConfig"]

# Entries that a file must have: Hugging Face's defaults are BERT's, not those of any checkpoint.
_NEEDED = (
    "attention_window",
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongformerConfig(json_config.JsonConfig):
    """Sizes and options of a `LongformerModel`, by Hugging Face's names.

    Attributes:
        attention_window: int, even, or sequence of them, one per layer. A token attends to half of
            it on each side, and to itself.
        sep_token_id, pad_token_id, bos_token_id, eos_token_id: int.
        vocab_size: int. Token ids are below it.
        hidden_size: int.
        num_hidden_layers: int.
        num_attention_heads: int.
        intermediate_size: int. Feed-forward units.
        hidden_act: str. Feed-forward activation; "gelu" is the exact one here, "gelu_new" its tanh
            approximation.
        hidden_dropout_prob: float.
        attention_probs_dropout_prob: float.
        max_position_embeddings: int. Rows of the table of positions. The first token has row
            `pad_token_id + 1`, so that texts may have `max_position_embeddings - pad_token_id - 1`
            tokens.
        type_vocab_size: int. Token type ids are below it.
        initializer_range: float. Standard deviation of the initial weights.
        layer_norm_eps: float. What layer normalization adds to the variance.
        onnx_export, tie_word_embeddings: ignored; kept for Hugging Face.
        attention_dilation: int, at least 1, or sequence by layer of such numbers or of sequences of
            them by head. Distance between the tokens attended to; 1 for no gaps.
        autoregressive: bool. Whether tokens attend only to themselves and those before them; then
            no token is global.
        max_global_tokens: int or None. The most global tokens of an example. XLA needs it, since it
            compiles for a known number. None: any number.
        grad_checkpointing_period: int. See `TransformerStack`.

    The last four are not Hugging Face's; `to_dict` includes them where they are not the defaults.

    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.LongformerConfig(num_hidden_layers=2, attention_window=(128, 256))
    >>> config.attention_window, config.attention_dilation
    ((128, 256), 1)
    """

    model_type: typing.ClassVar[str] = "longformer"
    needed: typing.ClassVar[tuple] = _NEEDED
    at_least_1: typing.ClassVar[tuple] = (*_NEEDED[1:], "type_vocab_size")
    # In old files; Hugging Face's model does not read them.
    without_effect: typing.ClassVar[frozenset] = hugging_face.WITHOUT_EFFECT | {
        "attention_mode",
        "ignore_attention_mask",
    }

    attention_window: int | tuple = 512
    sep_token_id: int = 2
    pad_token_id: int = 1
    bos_token_id: int = 0
    eos_token_id: int = 2
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    onnx_export: bool = False
    tie_word_embeddings: bool = True
    attention_dilation: int | tuple = 1
    autoregressive: bool = False
    max_global_tokens: int | None = None
    grad_checkpointing_period: int = 0

    def __post_init__(self):
        for name in ("attention_window", "attention_dilation"):
            value = getattr(self, name)
            object.__setattr__(self, name, windows.as_tuples(value))
        self.check()

    def to_dict(self):
        """The entries by name, with `model_type`; those Hugging Face lacks only if set."""
        entries = super().to_dict()
        for field in dataclasses.fields(self)[-4:]:
            if entries[field.name] == field.default:
                del entries[field.name]
        return entries

    def check(self):
        super().check()
        self.check_multiple("hidden_size", "num_attention_heads")
        from etcmodel import tensor_utils  # With TensorFlow, which takes seconds to import.

        tensor_utils.get_activation(self.activation)  # Refuses unknown names.
        self.radii  # noqa: B018  Refuses invalid windows.
        self.dilations  # noqa: B018  Refuses invalid dilations.

    @property
    def max_length(self):
        """int. The most tokens of a text."""
        return self.max_position_embeddings - self.pad_token_id - 1

    @property
    def radii(self):
        """tuple of int: tokens attended to on each side, by layer."""
        return windows.radii(self.attention_window, self.num_hidden_layers)

    @property
    def dilations(self):
        """tuple by layer of int or of tuple of int by head."""
        return windows.dilations(
            self.attention_dilation, self.num_hidden_layers, self.num_attention_heads
        )

    @property
    def activation(self):
        """str. `hidden_act` by the name that it has in `tensor_utils.get_activation`."""
        return hugging_face.ACTIVATIONS.get(self.hidden_act, self.hidden_act)
