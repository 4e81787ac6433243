"""Converts OpenKP's JSON lines into sharded TFRecords.

Clean the file with `input_validate_and_dedup` first. Also writes `<prefix>.config.json` (the
settings of the records) and the statistics. Flags of Apache Beam, such as
`--runner=DataflowRunner`, are accepted too.

  python -m etcmodel.tasks.openkp.preprocess --input_pattern=OpenKPTrain.jsonl \
    --output_dir=/data --vocab_file=vocab.txt
"""

import dataclasses
import os

from etcmodel import atomic_files, bounded_json, opener
from etcmodel.options import WORD_PIECES, changed, option
from etcmodel.preprocessing import program

from .config import OpenKpExampleOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(OpenKpExampleOptions, program.PreprocessOptions):
    """OpenKP's options; those of role "features" are arguments of `OpenKpInputConfig`."""

    aliases = {
        "input_patterns": "input_pattern",
        "output_tf_examples_file_path_prefix": "output_prefix",
        "output_tf_examples_stat_filename": "statistics_file",
        "output_num_shards": "num_shards",
        "bert_vocab_path": "vocab_file",
        "spm_model_path": "spm_model_file",
    }
    help_texts = {
        "input_pattern": "OpenKP's JSONL files, packed or not: patterns with commas between. "
        "Without a prefix, each file makes records of its own.",
        "vocab_file": WORD_PIECES,
    }

    output_dir: str = option(
        "",
        "Directory for the output files, if --output_prefix is not given. <name>.jsonl produces "
        "<name>.tfrecord-…, <name>_text_examples.jsonl (the parts of the pages that evaluation "
        "needs), <name>_parse_failures.jsonl (the skipped lines) and counts in "
        "example_gen_stats.txt.",
    )
    num_shards: int = changed(program.PreprocessOptions, "num_shards", default=100)
    is_training: bool | None = changed(OpenKpExampleOptions, "is_training", default=None)

    def __post_init__(self):
        super().__post_init__()
        if not self.output_prefix and not set(self.input_pattern) & set("*?[,"):
            # How a frozen dataclass sets a derived field.
            object.__setattr__(self, "output_prefix", self._prefix(self.input_pattern))

    def check_inputs(self):
        if not (self.output_dir and self.input_pattern and not self.output_prefix):
            super().check_inputs()

    def _prefix(self, file):
        name = opener.unpacked_name(file)
        name = name[: -len(".jsonl")] if name.lower().endswith(".jsonl") else name
        return os.path.join(self.output_dir, f"{name}.tfrecord")

    def sets(self):
        """The options of each file, with outputs named after it; one set if there is a prefix.

        Raises:
            ValueError: if a pattern matches no file, or two files have one name.
        """
        if self.output_prefix:
            patterns = self._patterns() if "," in self.input_pattern else self.input_pattern
            return [dataclasses.replace(self, input_pattern=patterns)]
        from etcmodel import preprocessing  # Imports TensorFlow, which takes seconds.

        sets = {}
        for file in preprocessing.input_files(self._patterns()):
            prefix = self._prefix(file)
            if other := sets.get(prefix):
                raise ValueError(
                    f"{other.input_pattern} and {file} would make files of the same names. Give "
                    "each another --output_dir."
                )
            sets[prefix] = dataclasses.replace(self, input_pattern=file, output_prefix=prefix)
        return list(sets.values())

    def _patterns(self):
        return [pattern.strip() for pattern in self.input_pattern.split(",")]


load_parts = program.parts_beside(__package__)


def run_job(job):
    """Runs a `preprocessing.Job` and adds its counts to `example_gen_stats.txt`, by input file.

    Returns:
        dict. The statistics.
    """
    from etcmodel import preprocessing  # Imports TensorFlow.

    statistics = preprocessing.run(job)
    folder = os.path.dirname(job.output_prefix)
    path = os.path.join(folder, "example_gen_stats.txt")
    names = [job.input_pattern] if isinstance(job.input_pattern, str) else job.input_pattern
    counts = {
        "parse_success_count": statistics["examples_written"],
        "parse_fail_count": statistics["examples_read"] - statistics["examples_written"],
    }
    with atomic_files.alone_in(folder):  # Runs for other files may be writing at the same time.
        known = _known_counts(path)
        known[",".join(map(os.path.basename, names))] = counts
        atomic_files.write_json(path, known)
    return statistics


def _known_counts(path):
    import tensorflow as tf

    if not tf.io.gfile.exists(path):
        return {}
    try:
        return bounded_json.read_object(path)
    except ValueError:
        return {}  # If the file is not ours, it is replaced.


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts, run_job=run_job)
