"""Options shared by several programs; each is declared here, once."""

import dataclasses

from etcmodel import opener
from etcmodel.options import program_help
from etcmodel.options.fields import Options, changed, option

# Help of `vocab_file`, which some programs restrict.
ANY_VOCABULARY = (
    "WordPiece vocabulary, one piece per line; or tokenizer.json of any kind; or vocab.json with "
    "merges.txt beside it, for byte-level BPE; or sentencepiece.bpe.model of XLM-RoBERTa or "
    "CamemBERT, with their config.json beside it."
)
WORD_PIECES = "WordPiece vocabulary, one piece per line; or tokenizer.json with word pieces."


@dataclasses.dataclass(frozen=True, kw_only=True)
class LengthOptions(Options):
    """Lengths of a model's inputs; training reads them from the settings beside the records.

    >>> from etcmodel import options
    >>> options.LengthOptions(long_seq_length=512)
    LengthOptions(long_seq_length=512, global_seq_length=230)
    >>> options.LengthOptions(long_seq_length=0)
    Traceback (most recent call last):
        ...
    ValueError: `long_seq_length` must be at least 2. Received: 0
    """

    long_seq_length: int = option(
        4096,
        "Length of the long input in tokens, including padding.",
        role="features",
        lower_bound=2,
        kept_as="max_long_seq_length",
    )
    global_seq_length: int = option(
        230,
        "Length of the global input in tokens, including padding.",
        role="features",
        lower_bound=2,
        kept_as="max_global_seq_length",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureOptions(LengthOptions):
    """Options that the features of every task of the authors' release depend on.

    >>> from etcmodel import options
    >>> options.FeatureOptions(long_seq_length=512)
    FeatureOptions(long_seq_length=512, global_seq_length=230, release_compatible=False)
    """

    release_compatible: bool = option(
        False,
        "Reproduce the bugs of the authors' release (see the README).",
        role="features",
        group=program_help.COMPATIBILITY,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneInputOptions(Options):
    """Options of tasks that are not in the authors' release and whose models have one input.

    >>> from etcmodel import options
    >>> options.OneInputOptions()
    OneInputOptions(global_seq_length=2, release_compatible=False)
    """

    global_seq_length: int = changed(
        FeatureOptions,
        "global_seq_length",
        default=2,
        help_text="No effect: this task has no global tokens.",
    )
    release_compatible: bool = changed(
        FeatureOptions,
        "release_compatible",
        help_text="No effect: this task is not in the authors' release.",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaddingOptions(Options):
    """How the padding of shorter inputs is handled.

    >>> from etcmodel import options
    >>> options.PaddingOptions(skip_padding=True)
    PaddingOptions(skip_padding=True)
    """

    skip_padding: bool = option(
        False,
        "Group inputs of similar length into training batches, encode each batch only up to its "
        "longest input, and exclude padding from losses and probabilities (the authors' release "
        "includes it in HotpotQA and NQ). Faster when lengths vary. XLA-compiled steps still "
        "encode the full length.",
        role="model",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowOptions(Options):
    """What becomes of a text that is longer than the input.

    >>> from etcmodel import options
    >>> options.WindowOptions(stride=128)
    WindowOptions(stride=128)
    """

    stride: int | None = option(
        None,
        "Number of tokens that consecutive windows of a long text share. None: one window, and the "
        "end of the text is cut.",
        role="features",
        lower_bound=0,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """The format of raw files that are tables.

    >>> from etcmodel import options
    >>> options.TableOptions(delimiter=";")
    TableOptions(delimiter=';', quoting=None)
    """

    delimiter: str | None = option(
        None,
        "Character that separates the cells of a table; \\t for a tab. None: the tab, comma or "
        "semicolon found in the header.",
        role="decoding",
        group="data",
    )
    quoting: bool | None = option(
        None,
        "Whether table cells may be in double quotes, and then contain delimiters and line breaks. "
        "None: yes, except in tables separated by tabs.",
        role="decoding",
        group="data",
    )

    def __post_init__(self):
        super().__post_init__()
        self.table()  # Raises an error for invalid values.

    def table(self):
        """The `opener.Table` of raw files."""
        delimiter = "\t" if self.delimiter == "\\t" else self.delimiter
        return opener.Table(delimiter, self.quoting)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyOptions(Options):
    """The vocabulary, and how text is split into its pieces.

    >>> from etcmodel import options
    >>> options.VocabularyOptions(vocab_file="vocab.txt")
    VocabularyOptions(spm_model_file=None, vocab_file='vocab.txt', split_punctuation=False)
    """

    spm_model_file: str | None = option(
        None,
        "SentencePiece model. Takes precedence over --vocab_file.",
        is_file=True,
        group="data",
    )
    vocab_file: str | None = option(
        None,
        ANY_VOCABULARY,
        is_file=True,
        group="data",
        example="vocab.txt",
    )
    split_punctuation: bool = option(
        False,
        "Split text at punctuation before applying the SentencePiece model, as "
        "etc_large_split_punctuation requires. WordPiece always does.",
        role="features",
    )

    def has_vocabulary(self):
        """Whether a vocabulary file is given."""
        return bool(self.vocab_file or self.spm_model_file)

    def require_vocabulary(self):
        """Checks that a vocabulary file is given.

        Raises:
            ValueError: if there is none.
        """
        if not self.has_vocabulary():
            raise ValueError(
                "Either --vocab_file or --spm_model_file must be given. The folder of a model, as "
                "--init_checkpoint, gives one, too."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataOptions(Options):
    """The records of a run, and its initial weights.

    >>> from etcmodel import options
    >>> options.DataOptions(train_data="train-*").initialization
    'random'
    """

    train_data: str | None = option(
        None,
        "Training TFRecords written by preprocess; wildcards allowed.",
        role="training",
        kept_as="train_pattern",
        group="data",
        example="records/train-*",
    )
    num_train_examples: int | None = option(
        None, "Number of training records. None: count them.", role="training", group="data"
    )
    eval_data: str | None = option(
        None,
        "TFRecords to evaluate on, written by preprocess; wildcards allowed.",
        group="evaluation",
        example="records/dev-*",
    )
    initialization: str = option(
        "random",
        "Initial weights of a new run without --init_checkpoint. mimetic (see "
        "etcmodel.models.initialization) lets small models learn from little data.",
        role="training",
        choices=("random", "mimetic"),
        group="model",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResumeOptions(Options):
    """Changes to the options of a run that is resumed.

    >>> from etcmodel import options
    >>> options.ResumeOptions(change=("learning_rate=3e-5",))
    ResumeOptions(change=('learning_rate=3e-5',))
    """

    change: tuple = option(
        (),
        "Change an option of a resumed run from now on, as name=value. Allowed: learning_rate, "
        "learning_rate_schedule, poly_power, num_train_epochs, warmup_proportion, "
        "warmup_steps, start_warmup_step, early_stopping_patience, stop_at_step, "
        "save_checkpoints_steps or steps_per_summary. May be repeated.",
        is_repeated=True,
        group="training",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions(Options):
    """The model, and how it is run.

    >>> from etcmodel import options
    >>> options.ModelOptions(model_config_file="my_model/config.json")
    ModelOptions(model_config_file='my_model/config.json', grad_checkpointing_period=None)
    """

    model_config_file: str | None = option(
        None,
        "JSON file with the model's sizes. None: those of the model in the folder "
        "--init_checkpoint.",
        group="model",
        example="etc_config.json",
    )
    grad_checkpointing_period: int | None = option(
        None,
        "Gradient checkpointing: number of layers per segment whose activations are recomputed in "
        "the backward pass. Saves memory, costs time. None or 0: off.",
        lower_bound=0,
        group="devices",
    )

    aliases = {"etc_config_file": "model_config_file"}
