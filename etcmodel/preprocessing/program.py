"""The program behind every task's `preprocess`, and its shared options."""

import dataclasses
import functools
import importlib
import logging
import os

from absl import flags

from etcmodel import extras, hub, opener, program_end, quiet
from etcmodel import options as options_lib
from etcmodel.options import changed, option
from etcmodel.text import tokenization

# Failures in Beam and Dask are reported in one line; their own logs have stack traces.
_TOLD_BY_US = ("apache_beam", "distributed")
_CHECKPOINT = ".ckpt"

flags.disclaim_key_flags()  # So that --help shows the flags as those of the calling program.


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(options_lib.FeatureOptions, options_lib.VocabularyOptions):
    """Options of every preprocessing program; the help of each field describes it.

    A task's subclass adds fields and aliases, and changes defaults of inherited fields. Options of
    role "features", except those of the vocabulary, are the arguments of the task's input
    configuration.

    >>> from etcmodel.preprocessing import program
    >>> files = {"input_pattern": "*.csv", "output_prefix": "train", "vocab_file": "vocab.txt"}
    >>> program.PreprocessOptions(**files).long_seq_length
    2048
    """

    needed = ("input_pattern", "output_prefix", "init_checkpoint")  # Or a vocabulary.

    input_pattern: str = option("", "Raw file, or a pattern for several.", example="train.json")
    init_checkpoint: str = option(
        "",
        "Folder of the model to train, such as BERT: its vocabulary is used, and text is "
        "lower-cased as that model requires. If it is the path of a checkpoint, --do_lower_case is "
        "checked against its name.",
        example="my_bert",
    )
    output_prefix: str = option(
        "", "Path and file name prefix of the TFRecord files.", example="records/train"
    )
    num_shards: int = option(256, "Number of TFRecord files.", lower_bound=1, upper_bound=99_999)
    statistics_file: str = option(
        "", "JSON file for the statistics. Defaults to <prefix>.stats.json."
    )
    do_lower_case: bool = option(True, "Lower-case the text and strip accents; WordPiece only.")
    global_seq_length: int = changed(options_lib.FeatureOptions, "global_seq_length", default=256)
    long_seq_length: int = changed(options_lib.FeatureOptions, "long_seq_length", default=2048)
    direct_num_workers: int = option(
        0, "Number of local processes. 0: one per core, fewer for small inputs.", lower_bound=0
    )
    strict: bool = option(
        False, "Fail at the first malformed example instead of counting and listing it."
    )

    def __post_init__(self):
        super().__post_init__()
        self.check_inputs()
        self.require_vocabulary()
        if self.vocab_file and not self.spm_model_file:
            tokenization.validate_case_matches_checkpoint(self.do_lower_case, self.init_checkpoint)

    def check_inputs(self):
        """Checks that the input and the output are given.

        Raises:
            ValueError: naming the flag that is missing.
        """
        for name in ("input_pattern", "output_prefix"):
            if not getattr(self, name):
                raise ValueError(f"--{name} must be given.")

    def feature_fields(self):
        """The arguments of the task's input configuration: dict."""
        of_text = {field.name for field in dataclasses.fields(options_lib.VocabularyOptions)}
        fields = options_lib.select(self, "features")
        return {name: value for name, value in fields.items() if name not in of_text}

    def sets(self):
        """The options of each set of records to make; one set by default."""
        return [self]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizerTypeOptions(PreprocessOptions):
    """Adds a choice between the two kinds of vocabulary, if files of both are given."""

    tokenizer_type: str | None = option(
        None,
        "Vocabulary to use: --vocab_file (BERT) or --spm_model_file (ALBERT). None: whichever is "
        "given.",
        choices=("BERT", "ALBERT"),
    )

    def __post_init__(self):
        super().__post_init__()
        needed = {"BERT": "vocab_file", "ALBERT": "spm_model_file"}.get(self.tokenizer_type)
        if needed and not getattr(self, needed):
            raise ValueError(f"--tokenizer_type={self.tokenizer_type} also needs --{needed}.")

    @property
    def chosen_spm_model_file(self):
        """`spm_model_file`; None if WordPiece with `vocab_file` is chosen."""
        return None if self.tokenizer_type == "BERT" else self.spm_model_file


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelsOptions(options_lib.Options):
    """Adds a file with the `labels` of a subclass, which may also be collected from the input."""

    labels_file: str | None = option(
        None,
        "File with the labels, one per line; or the settings of other records, "
        "<prefix>.config.json, to reuse their labels. None: collect the labels from the input.",
        is_file=True,
        group="data",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.labels_file and self.labels:
            raise ValueError("--labels_file does not go with --labels.")

    def with_labels(self, gather):
        """The options with the labels that are given, in the file, or else in the input.

        Args:
            gather: function of the input's pattern and the options that returns a tuple of str.
        """
        if self.labels:
            return self
        from etcmodel.preprocessing import raw_files

        if self.labels_file:
            found = raw_files.read_labels(self.labels_file)
        else:
            found = gather(self.input_pattern, self)
        return dataclasses.replace(self, labels=found, labels_file=None)


def parts_beside(package):
    """The `load_parts` of a program whose package has its converter in a module `features`.

    Args:
        package: str. The program's `__package__`.
    Returns:
        function that returns the module's `ConverterFactory` and the `read` of that class.

    >>> from etcmodel.preprocessing import program
    >>> factory_class, read = program.parts_beside("etcmodel.tasks.classification")()
    >>> factory_class.task, next(read("reviews.csv"))["place"]
    ('classification', 'line 2')
    """

    def load_parts():
        # Imports TensorFlow, which takes seconds.
        factory_class = importlib.import_module(f"{package}.features").ConverterFactory
        return factory_class, factory_class.read

    return load_parts


def make_job(options, factory_class, read, beam_args=()):
    """The `preprocessing.Job` that the options describe.

    Args:
        options: `PreprocessOptions`.
        factory_class: the task's subclass of `preprocessing.ConverterFactory`.
        read: function that takes a path and yields raw examples as JSON-like dicts.
        beam_args: sequence of str. Beam's own flags.
    Raises:
        ValueError: if the vocabulary does not fit.
    """
    from etcmodel import preprocessing

    factory = factory_class(
        vocab_file=options.vocab_file,
        spm_model_file=options.spm_model_file,
        do_lower_case=options.do_lower_case,
        fields=options.feature_fields(),
        split_punctuation=options.split_punctuation,
    )
    if isinstance(options, options_lib.TableOptions):
        read = functools.partial(read, table=options.table())
    return preprocessing.Job(
        input_pattern=options.input_pattern,
        output_prefix=options.output_prefix,
        num_shards=options.num_shards,
        read=read,
        make_converter=factory,
        settings=factory.settings(),
        statistics_file=options.statistics_file or f"{options.output_prefix}.stats.json",
        strict=options.strict,
        direct_num_workers=options.direct_num_workers,
        beam_args=tuple(beam_args),
        deals_records=factory_class.deals_records,
        line_files={
            name: f"{options.output_prefix.removesuffix('.tfrecord')}_{name}.jsonl"
            for name in factory_class.line_files
        },
    )


def run(options, load_parts, beam_args=(), run_job=None):
    """Makes the records of all sets, in sequence.

    Args:
        options, beam_args: as in `make_job`.
        load_parts, run_job: as in `run_program`.
    Yields:
        (output prefix, statistics) of each set, when it is finished.
    Raises:
        ValueError, OSError: as in `preprocessing.run`; ValueError also if several sets share a
            statistics file.
    """
    from etcmodel import preprocessing  # Imports TensorFlow.

    options_lib.check_files(options)
    sets = options.sets()
    if len(sets) > 1 and len({x.statistics_file or x.output_prefix for x in sets}) < len(sets):
        raise ValueError(
            f"--statistics_file: it would keep the statistics of the last of {len(sets)} sets of "
            "records alone. Leave it out: each set has its <prefix>.stats.json."
        )
    for set_options in sets:
        job = make_job(set_options, *load_parts(), beam_args)
        yield job.output_prefix, (run_job or preprocessing.run)(job)


def run_program(options_class, load_parts, *, run_job=None):
    """Runs a task's preprocessing program, which also accepts flags of Apache Beam.

    Args:
        options_class: `PreprocessOptions`, or the task's subclass.
        load_parts: function that returns the arguments of `make_job`: the task's converter factory
            class and its function to read a raw file. Called after the flags are checked, since
            importing TensorFlow takes seconds.
        run_job: function that runs a `Job` and returns the statistics. None: `preprocessing.run`.

    >>> import subprocess, sys
    >>> command = [sys.executable, "-m", "etcmodel.tasks.classification.preprocess", "--help"]
    >>> print(subprocess.run(command, capture_output=True, text=True).stdout[:80])
    Converts texts with labels (JSON lines, CSV, or folders) into sharded TFRecords.
    """
    program_flags = options_lib.ProgramFlags({"preprocess": options_class})
    program_flags.define()

    def main(argv):
        quiet.show_own_messages()
        with program_end.ends_in_one_line():
            program_flags.resolve_aliases()
            program_flags.read_config()
            options = read_options(options_class, program_flags)
            _check_beam_flags(argv[1:], options.direct_num_workers)
            for prefix, statistics in run(options, load_parts, argv[1:], run_job):
                _report(prefix, statistics)

    options_lib.run_main(main, program=program_flags, known_only=True)


def read_options(options_class, program_flags, flag_values=flags.FLAGS):
    """The options from flags; those of the vocabulary may come from a model's folder.

    Args:
        options_class: `PreprocessOptions`, or the task's subclass.
        program_flags: the program's `options.ProgramFlags`.
        flag_values: parsed `flags.FlagValues`.
    Raises:
        ValueError: naming the flag, if one is invalid, or contradicts the folder.
    """
    from etcmodel.text import vocabulary_files  # With NumPy, for which --help need not wait.

    values = program_flags.values("preprocess")
    folder = values["init_checkpoint"]
    if folder and _CHECKPOINT not in os.path.basename(folder):
        if not opener.is_folder(hub.local_folder(folder, with_weights=False)):
            raise ValueError(
                f"--init_checkpoint: no such folder: {folder!r}. Give that of the model to train, "
                "or leave it out and give --vocab_file."
            )
        given = options_lib.values_from_flags(options_class, flag_values, only_given=True)
        values |= vocabulary_files.of_folder(folder, given)
        if "piece_id_offset" in values:
            from etcmodel.models import piece_ids  # Imports TensorFlow.

            values[piece_ids.OPTION] = piece_ids.of_folder(folder, given)
    return options_class(**values)


def _check_beam_flags(beam_args, direct_num_workers):
    if not beam_args:
        return
    logging.disable(logging.WARNING)  # Beam warns about optional parts that are not installed.
    try:
        with extras.needed("beam"):
            from etcmodel.preprocessing import beam_flags  # Beam takes seconds to import.

        beam_flags.parse(beam_args, direct_num_workers, own_names=list(flags.FLAGS))
    finally:
        logging.disable(logging.NOTSET)
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in _TOLD_BY_US:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _report(prefix, statistics):
    for message in statistics["bad_examples"]:
        logging.warning("skipped %s", message)
    if num_cut := statistics.get("examples_out_of_global_tokens"):
        logging.warning(
            "%d examples were cut though more of them fits into --long_seq_length: they have more "
            "sentences than --global_seq_length has global tokens. Raise it, whatever the model.",
            num_cut,
        )
    summary = {name: value for name, value in statistics.items() if name != "bad_examples"}
    print(f"{prefix}: " + ", ".join(f"{name}: {value}" for name, value in summary.items()))
