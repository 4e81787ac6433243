"""The options of a run on TriviaQA, besides the training options."""

import dataclasses

from etcmodel import options
from etcmodel.finetuning import FinetuningConfig

from .config import TriviaQaDecodingOptions, TriviaQaFeatureOptions, TriviaQaInputConfig

__all__ = ["TriviaQaConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriviaQaConfig(
    TriviaQaFeatureOptions, TriviaQaDecodingOptions, options.PaddingOptions, FinetuningConfig
):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "vocab_file": options.ANY_VOCABULARY,
        "eval_gold": "TriviaQA's JSON file with the answers of the questions to evaluate on.",
        "predictions_file": "Official JSON; details beside it. None: predictions.json in the run.",
    }

    def records(self):
        from . import inputs  # Imports TensorFlow, which takes seconds.

        return inputs.RecordConfig.of_run(self)

    def features(self):
        """How raw questions become features, at inference."""
        return TriviaQaInputConfig(**options.shared(TriviaQaInputConfig, self), is_training=False)
