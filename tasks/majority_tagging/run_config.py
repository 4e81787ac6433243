"""What a run on majority tagging is told beside the training options, as flags."""

import dataclasses

from etcmodel import finetuning, options

from .features import InputConfig, MajorityOptions

__all__ = ["MajorityConfig"]

_REPLACED = {"num_memory_tokens": 0, "chunk_size": 1}  # By their least values.


@dataclasses.dataclass(frozen=True, kw_only=True)
class MajorityConfig(MajorityOptions, finetuning.FinetuningConfig):
    """Everything about a run beside the training options; each field's help says what it means."""

    help_texts = {
        "eval_gold": "JSON lines with the tags of the sequences to evaluate on.",
        "predictions_file": "Where predictions go, as JSON {id: tags}. None: predictions.json in "
        "--output_dir.",
    }

    num_memory_tokens: int = finetuning.option(
        -1,
        "Replaces that of the model's config; 0 for no memory. -1: it stays.",
        role="model",
        lower_bound=-1,
    )
    chunk_size: int = finetuning.option(
        0, "Replaces that of the model's config. 0: it stays.", role="model", lower_bound=0
    )

    def __post_init__(self):
        super().__post_init__()
        config = self.encoder_config
        if config.model_type != "gmat":
            raise ValueError(
                "Majority tagging needs a model config of type 'gmat'. Received one of type "
                f"{config.model_type!r}"
            )
        if self.long_seq_length > config.max_length:
            raise ValueError(
                f"`long_seq_length` must be at most the model's number of positions, "
                f"{config.max_length}. Received: {self.long_seq_length}"
            )

    def model_config(self):
        """`GmatConfig`: that of the file, with what the options replace."""
        given = {
            name: getattr(self, name)
            for name, least in _REPLACED.items()
            if getattr(self, name) >= least
        }
        return dataclasses.replace(self.encoder_config, **given)

    def records(self):
        from . import inputs  # With TensorFlow, which takes seconds to import.

        return inputs.RecordConfig.of_run(self)

    def features(self):
        """How raw sequences become features, at prediction."""
        return InputConfig(**options.shared(InputConfig, self))
