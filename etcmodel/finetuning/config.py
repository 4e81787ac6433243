"""What every fine-tuning run is told beside the training options; the flags are made from it."""

import abc
import dataclasses

from etcmodel.models import modeling, tokenization
from etcmodel.preprocessing import options as options_lib
from etcmodel.preprocessing.options import option

__all__ = ["FinetuningConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningConfig(abc.ABC):
    """Everything about a run beside the training options; each field's help says what it means.

    A task's subclass repeats fields for its own flag names, help and defaults, and adds fields. An
    option's role says what depends on it: "model" decides the weights and is kept with the run and
    an export, "training" decides the weights and is kept with the run, "features" is kept with the
    run and an export, "decoding" with an export, but may be chosen anew at prediction, "run"
    none of these.

    Attributes:
        etc_config: `EtcConfig`.
        removed_options: dict of an option that runs of older versions may have, to the only value
            of it that the program still does.
    """

    removed_options = {}

    etc_config: modeling.EtcConfig
    train_pattern: str | None = option(
        None,
        "Training TFRecords of preprocess, wildcards allowed.",
        role="training",
        flag="train_tf_examples_filepattern",
    )
    num_train_examples: int | None = option(
        None,
        "Number of training records. None: they are counted.",
        role="training",
        flag="num_train_tf_examples",
    )
    eval_pattern: str | None = option(
        None,
        "TFRecords of preprocess to evaluate on, wildcards allowed.",
        flag="predict_tf_examples_filepattern",
    )
    gold_file: str | None = option(
        None, "File with the answers of those examples.", flag="predict_gold_file", is_file=True
    )
    input_file: str | None = option(
        None,
        "Raw file of the examples to predict, in mode predict.",
        flag="predict_input_file",
        is_file=True,
    )
    predictions_file: str | None = option(
        None, "Where predictions go. None: predictions.json in --output_dir."
    )
    spm_model_file: str | None = option(
        None, "SentencePiece model. If it is given, --vocab_file is ignored.", is_file=True
    )
    vocab_file: str | None = option(None, "WordPiece vocabulary, one piece a line.", is_file=True)
    do_lower_case: bool = option(True, "Lower-case text, for word pieces.", role="features")
    split_punctuation: bool = option(
        False,
        "Split text at punctuation before the SentencePiece model, as preprocess did.",
        role="features",
    )
    max_long_seq_length: int = option(
        4096,
        "Length of the long input in tokens; that of the records.",
        role="model",
        lower_bound=2,
    )
    max_global_seq_length: int = option(
        230,
        "Length of the global input in tokens; that of the records.",
        role="model",
        lower_bound=2,
    )
    initialization: str = option(
        "random",
        "Weights of a new run without --init_checkpoint; mimetic (see "
        "etcmodel.models.initialization) lets small models learn from little data.",
        role="training",
        choices=("random", "mimetic"),
    )
    release_compatible: bool = option(
        False, "Repeat the faults of the authors' release (see the README).", role="decoding"
    )

    @abc.abstractmethod
    def records(self):
        """What the TFRecords must agree with: the task's `RecordConfig`."""

    def has_vocabulary(self):
        """Whether a vocabulary file is given; training alone needs none."""
        return bool(self.vocab_file or self.spm_model_file)

    def tokenizer(self):
        """The `FullTokenizer` of the vocabulary files.

        Raises:
            ValueError: if there is none, it has more entries than the model, or its kind does not
                take an option.
        """
        if not self.has_vocabulary():
            vocab, spm_model = map(self.flag_name, ("vocab_file", "spm_model_file"))
            raise ValueError(f"Either --{vocab} or --{spm_model} must be given.")
        tokenizer = tokenization.FullTokenizer(
            self.vocab_file,
            self.do_lower_case,
            spm_model_file=self.spm_model_file,
            split_punctuation=self.split_punctuation,
        )
        if len(tokenizer.vocab) > self.etc_config.vocab_size:
            raise ValueError(
                f"The vocabulary {tokenizer.source_file} has {len(tokenizer.vocab)} entries, the "
                f"model's `vocab_size` is {self.etc_config.vocab_size}."
            )
        return tokenizer

    @classmethod
    def flag_name(cls, field_name):
        """Name of the flag of a field."""
        return options_lib.flag_name(cls, field_name)

    def exported_options(self):
        """dict that JSON can hold: what is kept with an exported model, beside its `EtcConfig`."""
        return options_lib.select(self, "model", "features", "decoding")
