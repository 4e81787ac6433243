"""The program that every task's `preprocess` is: its shared options, and what it does with them."""

import dataclasses
import logging
import sys

from absl import app, flags
from absl import logging as absl_logging

from etcmodel.preprocessing import options as options_lib
from etcmodel.preprocessing.options import option

__all__ = ["PreprocessOptions", "make_job", "run", "run_program"]

flags.disclaim_key_flags()  # The flags are those of the program that calls, as --help shows them.


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions:
    """Options of every preprocessing program; each field's help says what it means.

    A task's subclass repeats fields for its own flag names, help and defaults, and adds fields.
    Those of role "features" are the arguments of the task's input configuration.
    """

    input_pattern: str = option("", "Raw file (a pattern for several).")
    output_prefix: str = option(
        "",
        "Path and first part of the name of the TFRecord files.",
        flag="output_tf_examples_file_path_prefix",
    )
    num_shards: int = option(256, "Number of TFRecord files.", lower_bound=1)
    statistics_file: str = option(
        "",
        "JSON file for the statistics; by default <prefix>.stats.json.",
        flag="output_tf_examples_stat_filename",
    )
    spm_model_file: str = option(
        "", "SentencePiece model. If it is given, --vocab_file is ignored.", is_file=True
    )
    vocab_file: str = option("", "WordPiece vocabulary, one token a line.", is_file=True)
    do_lower_case: bool = option(
        True, "Lower-case the text and strip accents; for word pieces only."
    )
    split_punctuation: bool = option(
        False,
        "Split text at punctuation before the SentencePiece model, as etc_large_split_punctuation "
        "needs it; word pieces are always split so.",
    )
    global_seq_length: int = option(
        256, "Length of the global input in tokens.", role="features", lower_bound=2
    )
    long_seq_length: int = option(
        2048, "Length of the long input in tokens.", role="features", lower_bound=2
    )
    release_compatible: bool = option(
        False, "Repeat the faults of the authors' release (see the README).", role="features"
    )
    direct_num_workers: int = option(
        0, "Local processes; 0 for one a core, fewer for little input.", lower_bound=0
    )
    strict: bool = option(
        False, "Fail at the first malformed example, instead of counting and listing it."
    )

    def __post_init__(self):
        for name in ("input_pattern", "output_prefix"):
            if not getattr(self, name):
                raise ValueError(f"--{self.flag_name(name)} must be given.")
        if not (self.vocab_file or self.spm_model_file):
            vocab, spm_model = map(self.flag_name, ("vocab_file", "spm_model_file"))
            raise ValueError(f"Either --{vocab} or --{spm_model} must be given.")

    @classmethod
    def flag_name(cls, field_name):
        """Name of the flag of a field."""
        return options_lib.flag_name(cls, field_name)

    def feature_fields(self):
        """dict: arguments of the task's input configuration."""
        return options_lib.select(self, "features")

    def sets(self):
        """The options of each set of records to make: one set, if a subclass does nothing else."""
        return [self]


def make_job(options, factory_class, read, beam_args=()):
    """The `preprocessing.Job` that the options describe.

    Args:
        options: `PreprocessOptions`.
        factory_class: the task's subclass of `preprocessing.ConverterFactory`.
        read: function of a path that yields raw examples as JSON-like dicts.
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
    """Makes the records of all sets, one after the other.

    Args:
        options, beam_args: as in `make_job`.
        load_parts, run_job: as in `run_program`.
    Yields:
        (output prefix, statistics) of each set, when it is made.
    Raises:
        ValueError, OSError: as `preprocessing.run`.
    """
    from etcmodel import preprocessing  # With TensorFlow.

    options_lib.check_files(options)
    for set_options in options.sets():
        job = make_job(set_options, *load_parts(), beam_args)
        yield job.output_prefix, (run_job or preprocessing.run)(job)


def run_program(options_class, load_parts, *, run_job=None):
    """Runs a task's preprocessing program; any flag of Apache Beam may be given too.

    Args:
        options_class: `PreprocessOptions`, or the task's subclass.
        load_parts: function that returns what `make_job` needs: the task's converter factory class
            and its function to read a raw file. Called after the flags were found good, since
            importing TensorFlow takes seconds.
        run_job: function of a `Job` that does it and returns the statistics. None:
            `preprocessing.run`.
    """
    options_lib.define_flags(options_class)

    def main(argv):
        absl_logging.set_verbosity(absl_logging.INFO)
        logging.getLogger("apache_beam").setLevel(logging.ERROR)
        try:
            options = options_class(**options_lib.values_from_flags(options_class))
            for prefix, statistics in run(options, load_parts, argv[1:], run_job):
                _report(prefix, statistics)
        except (ValueError, OSError) as error:
            _fail(error)

    app.run(main, flags_parser=_parse_known_flags)


def _report(prefix, statistics):
    for message in statistics["bad_examples"]:
        logging.warning("skipped %s", message)
    summary = {name: value for name, value in statistics.items() if name != "bad_examples"}
    print(f"{prefix}: " + ", ".join(f"{name}: {value}" for name, value in summary.items()))


def _parse_known_flags(argv):
    """Parses this program's flags and leaves Beam's."""
    try:
        return flags.FLAGS(argv, known_only=True)
    except flags.Error as error:
        _fail(error)


def _fail(error):
    print(f"error: {error}", file=sys.stderr)
    sys.exit(1)
