"""The paper's models, and their configs in staged training (appendix B, table 12)."""

import dataclasses

from etcmodel.models.longformer import windows
from etcmodel.models.longformer_char_lm.config import CharLmConfig

__all__ = ["PRESETS", "phase_config"]

_LARGE_DILATIONS = (1,) * 15 + (2,) * 5 + (3,) * 5 + (4,) * 5

PRESETS = {
    "small": CharLmConfig(),
    "large": CharLmConfig(
        num_hidden_layers=30,
        attention_window=windows.rising(32, 512, 30),
        attention_dilation=windows.on_last_heads(_LARGE_DILATIONS, 8),
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
