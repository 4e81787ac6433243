"""Longformer's character language model (Beltagy et al. 2020, arXiv:2004.05150, section 4).

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import SMALL_BERT, System, homes

_HOMES = homes(__name__, PRESETS="config", phase_config="config")

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
SYSTEMS = (
    System(
        config_class="etcmodel.models.longformer_char_lm.config:CharLmConfig",
        encoder_class="etcmodel.models.longformer_char_lm.modeling:CharLmModel",
        scope="longformer_char_lm",
        has_whole_files=True,
        small={**SMALL_BERT, "attention_window": 32, "attention_dilation": 1},
    ),
)
