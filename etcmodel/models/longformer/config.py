"""Configs of Longformer (Beltagy et al. 2020), and the windows of its layers and heads."""

import dataclasses
import typing

from etcmodel.models import hugging_face, json_config


def by_layer(name, value, num_layers):
    """Returns a tuple with one entry per layer.

    Args:
        name: str. The config's entry, for the error.
        value: one number, or a tuple.
        num_layers: int.
    Raises:
        ValueError: if it is a tuple of another length.
    """
    if not isinstance(value, tuple):
        return (value,) * num_layers
    if len(value) != num_layers:
        raise ValueError(
            f"`{name}` must be one number, or one entry for each of {num_layers} layers. Received: "
            f"{value}"
        )
    return value


def radii(attention_window, num_layers):
    """Number of tokens attended to on each side, by layer: tuple of int.

    Args:
        attention_window: int, even, or tuple of them.
        num_layers: int.
    Raises:
        ValueError: if a window is not an even number.
    """
    windows = by_layer("attention_window", attention_window, num_layers)
    for window in windows:
        if type(window) is not int or window < 2 or window % 2:
            raise ValueError(
                "`attention_window` must be even, at least 2, and one number or one for each of "
                f"{num_layers} layers. Received: {attention_window}"
            )
    return tuple(window // 2 for window in windows)


def dilations(attention_dilation, num_layers, num_heads):
    """Distances between the tokens attended to: tuple by layer of int or of tuple of int by head.

    Args:
        attention_dilation: int, or tuple by layer of int or of tuple of int by head.
        num_layers, num_heads: int.
    Raises:
        ValueError: if a number is below 1, or there are more or fewer than layers or heads.
    """
    found = by_layer("attention_dilation", attention_dilation, num_layers)
    for dilation in found:
        by_head = dilation if isinstance(dilation, tuple) else (dilation,) * num_heads
        is_right = all(type(x) is int and x >= 1 for x in by_head)
        if not is_right or len(by_head) != num_heads:
            raise ValueError(
                "`attention_dilation` must be at least 1: one number, or one for each of "
                f"{num_layers} layers, or there one for each of {num_heads} heads. Received: "
                f"{attention_dilation}"
            )
    return found


def on_last_heads(dilations, num_heads, num_dilated=2):
    """Applies dilations by layer to the last heads alone; the others have no gaps: a tuple.

    Args:
        dilations: sequence of int, by layer.
        num_heads: int.
        num_dilated: int. Heads with gaps.
    """
    rest = (1,) * (num_heads - num_dilated)
    return tuple(rest + (x,) * num_dilated if x > 1 else 1 for x in dilations)


def rising(bottom, top, num_layers):
    """Windows that double from the lowest to the highest layer: a tuple.

    Each size has equally many layers; if they do not divide evenly, the upper sizes have one more.

    Args:
        bottom: int.
        top: int. `bottom` times a power of 2.
        num_layers: int, at least the number of sizes.
    """
    sizes = [bottom]
    while sizes[-1] < top:
        sizes.append(2 * sizes[-1])
    each, rest = divmod(num_layers, len(sizes))
    counts = [each + (number >= len(sizes) - rest) for number in range(len(sizes))]
    return tuple(x for x, count in zip(sizes, counts, strict=True) for _ in range(count))


# Entries that a file must have: Hugging Face's defaults are BERT's, not those of any checkpoint.
_NEEDED = ("attention_window", *json_config.BERT_SIZES, "max_position_embeddings")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongformerConfig(json_config.BertConfig):
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
    ours: typing.ClassVar[tuple] = (
        "attention_dilation",
        "autoregressive",
        "max_global_tokens",
        "grad_checkpointing_period",
    )
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

    def check(self):
        super().check()
        self.radii  # noqa: B018  Refuses invalid windows.
        self.dilations  # noqa: B018  Refuses invalid dilations.

    @property
    def max_length(self):
        """int. The most tokens of a text."""
        return self.max_position_embeddings - self.pad_token_id - 1

    @property
    def radii(self):
        """tuple of int: tokens attended to on each side, by layer."""
        return radii(self.attention_window, self.num_hidden_layers)

    @property
    def dilations(self):
        """tuple by layer of int or of tuple of int by head."""
        return dilations(self.attention_dilation, self.num_hidden_layers, self.num_attention_heads)
