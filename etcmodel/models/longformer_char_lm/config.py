"""Configs of Longformer's character models (Beltagy et al. 2020, table 12), and their phases."""

import dataclasses
import typing

from etcmodel import shown_values
from etcmodel.models import hugging_face, json_config
from etcmodel.models.longformer import config as longformer


@dataclasses.dataclass(frozen=True, kw_only=True)
class CharLmConfig(json_config.BertConfig):
    """Sizes and options of a `CharLmModel`; the defaults are the paper's small model.

    Attributes:
        vocab_size: int. Number of characters; 256 for bytes.
        hidden_size: int, even.
        num_hidden_layers: int.
        num_attention_heads: int.
        intermediate_size: int. Feed-forward units.
        attention_window: int, or sequence of them, one per layer. A character attends to so many
            before it, and to itself.
        attention_dilation: int, at least 1, or sequence by layer of such numbers or of sequences of
            them by head. Distance between the characters attended to; 1 for no gaps.
        hidden_act: str. Feed-forward activation; "gelu" is the exact one.
        hidden_dropout_prob: float. Dropout rate of embeddings and of the outputs of attention and
            feed-forward layers.
        attention_probs_dropout_prob: float.
        initializer_range: float. Standard deviation of the initial weights.
        layer_norm_eps: float. What layer normalization adds to the variance.
        grad_checkpointing_period: int. See `TransformerStack`.

    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.CharLmConfig(hidden_size=256)
    >>> config.vocab_size, config.windows
    (256, (32, 32, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512))
    """

    model_type: typing.ClassVar[str] = "longformer_char_lm"
    at_least_1: typing.ClassVar[tuple] = json_config.BERT_SIZES

    vocab_size: int = 256
    hidden_size: int = 512
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    attention_window: int | tuple = longformer.rising(32, 512, 12)
    attention_dilation: int | tuple = longformer.on_last_heads((1,) * 6 + (2, 2, 3, 3, 4, 4), 8)
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.2
    attention_probs_dropout_prob: float = 0.2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-5
    grad_checkpointing_period: int = 0

    def check(self):
        super().check()
        if self.hidden_size % 2:
            raise ValueError(
                f"`hidden_size` must be even: half of it are sines. Received: {self.hidden_size}"
            )
        for window in self.windows:
            if type(window) is not int or window < 1:
                raise ValueError(
                    "`attention_window` must be at least 1: one number, or one for each of "
                    f"{self.num_hidden_layers} layers. Received: {self.attention_window}"
                )
        self.dilations  # noqa: B018  Refuses invalid dilations.

    @property
    def windows(self):
        """tuple of int: number of characters attended to before each, by layer."""
        return longformer.by_layer(
            "attention_window", self.attention_window, self.num_hidden_layers
        )

    @property
    def dilations(self):
        """tuple by layer of int or of tuple of int by head."""
        return longformer.dilations(
            self.attention_dilation, self.num_hidden_layers, self.num_attention_heads
        )

    @property
    def activation(self):
        """str. `hidden_act` by the name that it has in `tensor_utils.get_activation`."""
        if self.hidden_act not in hugging_face.ACTIVATIONS:
            known = ", ".join(hugging_face.ACTIVATIONS)
            received = shown_values.shown(self.hidden_act)
            raise ValueError(f"`hidden_act` must be one of {known}. Received: {received}")
        return hugging_face.ACTIVATIONS[self.hidden_act]


# The paper's models, and their configs in staged training (appendix B, table 12).


_LARGE_DILATIONS = (1,) * 15 + (2,) * 5 + (3,) * 5 + (4,) * 5

PRESETS = {
    "small": CharLmConfig(),
    "large": CharLmConfig(
        num_hidden_layers=30,
        attention_window=longformer.rising(32, 512, 30),
        attention_dilation=longformer.on_last_heads(_LARGE_DILATIONS, 8),
        hidden_dropout_prob=0.4,
        attention_probs_dropout_prob=0.4,
    ),
}


def phase_config(config, phase):
    """Returns the config of a phase of staged training: windows double from phase to phase.

    The weights of all phases have the same shapes.

    Args:
        config: `CharLmConfig` of the first phase.
        phase: int, from 0.

    >>> from etcmodel.models.longformer_char_lm import PRESETS, phase_config
    >>> [max(phase_config(PRESETS["small"], phase).windows) for phase in range(3)]
    [512, 1024, 2048]
    """
    doubled = tuple(window * 2**phase for window in config.windows)
    return dataclasses.replace(config, attention_window=doubled)
