"""The options of all fine-tuning runs, besides those of training; flags are made from them."""

import dataclasses
import importlib
import importlib.util
import types
import typing

from etcmodel.options import (
    DataOptions,
    FeatureOptions,
    Options,
    VocabularyOptions,
    changed,
    kept,
    option,
    shared,
)
from etcmodel.text import sentence_splitting

if typing.TYPE_CHECKING:
    from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningConfig(FeatureOptions, VocabularyOptions, DataOptions):
    """The options of a run, besides those of training; their help texts describe them.

    A task's subclass adds fields and aliases, and changes defaults and help texts. The role of an
    option says what depends on it:

    - "model": decides the weights; stored with the run and an export.
    - "training": decides the weights; stored with the run.
    - "features": stored with the run and an export, and taken from the training records' settings.
    - "inference": likewise, but the values of records, a run or an export are only defaults.
    - "decoding": stored with an export, but may be changed at prediction.
    - "run": none of these.

    Attributes:
        encoder_config: `EncoderConfig` of the model.
        removed_options: dict from former options, which runs of older versions may have, to the
            only value that is still supported.
        not_of_evaluation: tuple of str. Feature options that may differ in evaluation records:
            those of labels, and those that name fields of raw files.
        input_class: dataclass of the task's feature settings.
        records_hold: str. What evaluations compare with, such as "labels", where the records have
            it, so that `eval_gold` must be left out. None: not so.
        proposed_by_records: tuple of str. Options of role "model" or "training" whose default, in a
            new run, is the value that the training records were made with.
    Raises:
        ValueError: if an option is out of range, or the model has fewer positions than the maximum
            input length.

    >>> from etcmodel.tasks.classification.config import ClassificationConfig
    >>> config = ClassificationConfig(encoder_config=etcmodel.EtcConfig(128), labels=("neg", "pos"))
    >>> config.long_seq_length, config.global_seq_length
    (4096, 230)
    """

    removed_options = {}
    not_of_evaluation = ()
    input_class = None
    records_hold = None
    proposed_by_records = ()

    encoder_config: "encoders.EncoderConfig"
    eval_gold: str | None = option(
        None,
        "File with the gold answers of the evaluation examples.",
        is_file=True,
        group="evaluation",
        example="dev.json",
    )
    input_file: str | None = option(
        None,
        "Raw file with the examples to predict, in mode predict.",
        is_file=True,
        group="serving",
        example="questions.json",
    )
    predictions_file: str | None = option(
        None,
        "File to write predictions to, in the official format. None: predictions.json in "
        "--output_dir.",
        group="serving",
    )
    export_weights: str = option(
        "float32",
        "How an export stores the weights, in mode export. bfloat16: half the file; the outputs "
        "differ by rounding. Loading makes float32 of them again. int8: dense layers are stored "
        "and computed in 8 bits, which is faster where a CPU has no instructions for bfloat16.",
        choices=("float32", "bfloat16", "int8"),
        group="serving",
    )
    do_lower_case: bool = option(True, "Lower-case the text; WordPiece only.", role="features")
    release_compatible: bool = changed(FeatureOptions, "release_compatible", role="inference")
    metric_for_best_model: str | None = option(
        None,
        "The metric of evaluations that chooses the best checkpoint, and by which "
        "--early_stopping_patience counts. None: that of the task. A wrong name is refused with "
        "a list of those that may be given.",
        role="training",
        group="evaluation",
    )
    layer_decay: float = option(
        1.0,
        "Layer-wise learning rate decay: learning rate of an encoder layer ÷ that of the layer "
        "above it. The embeddings count as the layer below the lowest; the heads have the full "
        "rate. 1: the same rate everywhere.",
        role="training",
        lower_bound=0.0,
        upper_bound=1.0,
    )
    num_frozen_layers: int = option(
        0,
        "Number of lowest encoder layers to freeze, together with the embeddings. 0: train "
        "everything.",
        role="training",
        lower_bound=0,
    )

    def __post_init__(self):
        super().__post_init__()
        check_positions(self.encoder_config, self.long_seq_length)
        if self.records_hold and self.eval_gold:
            raise ValueError(
                f"`eval_gold` must be left out: the records have the {self.records_hold}."
            )

    def records(self):
        """What the TFRecords must match: by default `RecordConfig` of the module `task` beside.

        A class without one has that of the class that it extends.

        Raises:
            ValueError: naming the class, if no class has one.
        """
        for task in beside(type(self), "task"):
            if hasattr(task, "RecordConfig"):
                return task.RecordConfig.of_run(self)
        raise nothing_beside(type(self), "task", "`RecordConfig`", "override `records`")

    def features(self):
        """The feature settings at inference: the `input_class`, not for training."""
        if self.input_class is None:
            raise NotImplementedError(
                f"{type(self).__name__} needs an `input_class` or `features`."
            )
        names = {field.name for field in dataclasses.fields(self.input_class)}
        given = {"is_training": False} if "is_training" in names else {}
        return self.input_class(**shared(self.input_class, self), **given)

    def tokenizer(self):
        """The `FullTokenizer` of the vocabulary files.

        Raises:
            ValueError: if there is no vocabulary, it has more entries than the model, or an option
                is not supported for its kind.
        """
        return model_tokenizer(self, do_lower_case=self.do_lower_case)

    def exported_options(self):
        """dict for JSON: the options stored with an exported model, beside `encoder_config`."""
        return kept(self, "model", "features", "inference", "decoding")


def beside(config_class, name):
    """Imports the modules `task` or `predict` of a config's folder, then of those it extends."""
    for base in config_class.__mro__:
        folder = base.__module__.rpartition(".")[0]  # "": a script, or in no folder.
        is_of_task = issubclass(base, FinetuningConfig) and base.__module__ != __name__
        if is_of_task and folder and importlib.util.find_spec(f"{folder}.{name}"):
            yield importlib.import_module(f"{folder}.{name}")  # With TensorFlow: takes seconds.


def nothing_beside(config_class, name, needed, instead):
    """The ValueError to raise if no module of `beside` has what is needed."""
    return ValueError(
        f"{config_class.__module__}.{config_class.__name__} needs a module `{name}` with {needed} "
        f"in its folder, or in that of a config that it extends. Add it, or {instead}."
    )


def check_positions(encoder_config, long_seq_length):
    """Raises ValueError if a model has fewer positions than tokens in its long input."""
    # For ETC; 0 means no positions.
    of_etc = getattr(encoder_config, "max_absolute_position_embeddings", 0) or None
    limit = getattr(encoder_config, "max_length", of_etc)
    if limit is not None and long_seq_length > limit:
        raise ValueError(
            f"`long_seq_length` must be at most the model's number of positions, {limit}. "
            f"Received: {long_seq_length}"
        )


def model_tokenizer(config, *, do_lower_case=True):
    """The tokenizer of a run's vocabulary: see `vocabulary_files.open_tokenizer`.

    Args:
        config: `VocabularyOptions` with `encoder_config`.
        do_lower_case: bool. Lower-case the text; WordPiece only.
    Raises:
        ValueError: see `FinetuningConfig.tokenizer`.
    """
    config.require_vocabulary()
    from etcmodel.text import vocabulary_files  # With NumPy, for which --help need not wait.

    tokenizer = vocabulary_files.open_tokenizer(
        config.vocab_file,
        config.spm_model_file,
        do_lower_case=do_lower_case,
        split_punctuation=config.split_punctuation,
    )
    if len(tokenizer.vocab) > config.encoder_config.vocab_size:
        raise ValueError(
            f"The vocabulary {tokenizer.source_file} has {len(tokenizer.vocab)} entries, the "
            f"model's `vocab_size` is {config.encoder_config.vocab_size}."
        )
    return tokenizer


# The options of fine-tuning runs whose model is a GMAT.


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


# Feature settings that are the same for every encoder.


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceOptions(Options):
    """How a text that a processor arranges is split into sentences.

    >>> from etcmodel import finetuning
    >>> finetuning.SentenceOptions()
    SentenceOptions(sentence_splitter='multilingual')
    """

    former_values = types.MappingProxyType({"sentence_splitter": "simple"})

    sentence_splitter: str = option(
        "multilingual",
        "How texts are split into sentences, which have a global token each: at white space after "
        ". ! or ? (simple); also after the full stops of scripts without white space "
        "(multilingual); as NLTK does (punkt); or not at all (whole), which leaves all white space "
        "to the vocabulary, as the processors of other encoders than ETC do.",
        role="features",
        choices=sentence_splitting.SENTENCE_SPLITTERS,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionOptions(Options):
    """How a question, or the first of two texts, stands before the text.

    >>> from etcmodel import finetuning
    >>> finetuning.QuestionOptions()
    QuestionOptions(question_separators=1)
    """

    former_values = types.MappingProxyType({"question_separators": 1})

    question_separators: int = option(
        1,
        "Number of separators between a question, or the first of two texts, and what follows: 1 "
        "as in BERT, 2 as in RoBERTa and Longformer.",
        role="features",
        lower_bound=1,
        upper_bound=2,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessorFeatureOptions(FeatureOptions):
    """The base of feature settings of tasks whose examples a processor arranges.

    Attributes:
        question_globals: str, as of `EtcProcessor`.
        stride: int or None, likewise; an option, with `options.WindowOptions`.
        sentence_splitter: str, likewise; an option, with `SentenceOptions`.
        question_separators: int, likewise; an option, with `QuestionOptions`.
        segment_id: int or None, likewise.

    >>> from etcmodel import finetuning
    >>> from etcmodel.text.tokenization import FullTokenizer
    >>> settings = finetuning.ProcessorFeatureOptions(long_seq_length=16, global_seq_length=4)
    >>> settings.make_processor(FullTokenizer("vocab.txt"))
    EtcProcessor(105 tokens, max_long_len=16, max_global_len=4, pad_to='max')
    """

    question_globals = "block"
    stride = None
    sentence_splitter = "multilingual"
    question_separators = 1
    segment_id = None

    def make_processor(self, tokenizer, pad_to="max"):
        """The `EtcProcessor` that arranges examples for every model.

        Args:
            tokenizer: `text.tokenization.FullTokenizer`, or another tokenizer.
            pad_to: str. "max" lengths, or the "longest" of a batch.
        Raises:
            ValueError: if the vocabulary lacks a token that is needed.
        """
        from etcmodel.text.processor import EtcProcessor  # With NumPy, as above.

        return EtcProcessor(
            tokenizer,
            max_long_len=self.long_seq_length,
            max_global_len=self.global_seq_length,
            question_globals=self.question_globals,
            stride=self.stride,
            sentence_splitter=self.sentence_splitter,
            question_separators=self.question_separators,
            segment_id=self.segment_id,
            pad_to=pad_to,
        )
