"""The options of fine-tuning runs whose model is a GMAT."""

import dataclasses

from etcmodel.finetuning.config import FinetuningConfig
from etcmodel.options import option

__all__ = ["GmatFinetuningConfig"]

_REPLACED = {"num_memory_tokens": 0, "chunk_size": 1}  # With their lowest values.


@dataclasses.dataclass(frozen=True, kw_only=True)
class GmatFinetuningConfig(FinetuningConfig):
    """Like `FinetuningConfig`, with options that override entries of the model's config.

    Raises:
        ValueError: also if the model is not a GMAT.

    >>> from etcmodel.tasks.majority_tagging.config import MajorityConfig
    >>> config = MajorityConfig(encoder_config=etcmodel.GmatConfig(), num_memory_tokens=32)
    >>> config.model_config().num_memory_tokens
    32
    """

    num_memory_tokens: int = option(
        -1,
        "Overrides the value in the model's config; 0 for no memory. -1: keep the config's value.",
        role="model",
        lower_bound=-1,
    )
    chunk_size: int = option(
        0,
        "Overrides the value in the model's config. 0: keep the config's value.",
        role="model",
        lower_bound=0,
    )

    def __post_init__(self):
        super().__post_init__()
        config = self.encoder_config
        if config.model_type != "gmat":
            raise ValueError(
                "This task needs a model config of type 'gmat'. Received one of type "
                f"{config.model_type!r}"
            )

    def model_config(self):
        """The `GmatConfig` of the file, with the overrides of the options."""
        given = {
            name: getattr(self, name)
            for name, least in _REPLACED.items()
            if getattr(self, name) >= least
        }
        return dataclasses.replace(self.encoder_config, **given)
