"""Converts OpenKP's JSON lines into sharded TFRecords.

Clean the file with `input_validate_and_dedup` first. Beside the shards this writes the settings
they were made with (`<prefix>.config.json`) and the statistics. Any flag of Apache Beam may be
given too, such as `--runner=DataflowRunner`.

  python -m etcmodel.tasks.openkp.preprocess --input_patterns=OpenKPTrain.jsonl \
    --output_dir=/data --bert_vocab_path=vocab.txt
"""

import dataclasses
import json
import os

from etcmodel import atomic_files
from etcmodel.preprocessing import program
from etcmodel.preprocessing.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(program.PreprocessOptions):
    """OpenKP's options; those of role "features" are arguments of `OpenKpInputConfig`."""

    input_pattern: str = option(
        "",
        "OpenKP's JSONL files, possibly .gz: patterns with commas between. Without a prefix, each "
        "file makes records of its own.",
        flag="input_patterns",
    )
    output_dir: str = option(
        "",
        "Directory of the files, if --output_tf_examples_file_path_prefix is not given. Of "
        "<name>.jsonl come <name>.tfrecord-…, <name>_text_examples.jsonl (what evaluation needs of "
        "the pages), <name>_parse_failures.jsonl (the lines that were left out), and its counts in "
        "example_gen_stats.txt.",
    )
    num_shards: int = option(
        100, "Number of TFRecord files.", flag="output_num_shards", lower_bound=1
    )
    vocab_file: str = option(
        "", "WordPiece vocabulary, one token a line.", flag="bert_vocab_path", is_file=True
    )
    spm_model_file: str = option(
        "",
        "SentencePiece model. If it is given, --bert_vocab_path is ignored.",
        flag="spm_model_path",
        is_file=True,
    )
    long_seq_length: int = option(
        4096,
        "Length of the long input in tokens.",
        role="features",
        flag="long_max_length",
        lower_bound=2,
    )
    global_seq_length: int = option(
        512,
        "Length of the global input in tokens.",
        role="features",
        flag="global_max_length",
        lower_bound=2,
    )
    url_max_code_points: int = option(
        1000, "Length of the longest URL in characters.", role="features", lower_bound=1
    )
    fixed_block_len: int | None = option(
        None,
        "Long tokens of each global token, in place of the VDOM, without visual features.",
        role="features",
        lower_bound=1,
    )
    kp_max_length: int = option(
        5, "Words of the longest key phrase that can be found.", role="features", lower_bound=1
    )
    is_training: bool | None = option(
        None,
        "Whether to drop pages that cannot be trained on. None: those of them that have key "
        "phrases, as in the release.",
        role="features",
    )

    def __post_init__(self):
        if not (self.output_dir and self.input_pattern and not self.output_prefix):
            super().__post_init__()
        elif not (self.vocab_file or self.spm_model_file):
            raise ValueError("Either --bert_vocab_path or --spm_model_path must be given.")
        elif not set(self.input_pattern) & set("*?[,"):
            # A frozen dataclass sets its own derived field so.
            object.__setattr__(self, "output_prefix", self._prefix(self.input_pattern))

    def _prefix(self, file):
        name = os.path.basename(file).removesuffix(".gz").removesuffix(".jsonl")
        return os.path.join(self.output_dir, f"{name}.tfrecord")

    def sets(self):
        """The options of each file, named as it; one set if there is a prefix.

        Raises:
            ValueError: if a pattern matches no file, or two files have one name.
        """
        if self.output_prefix:
            patterns = self._patterns() if "," in self.input_pattern else self.input_pattern
            return [dataclasses.replace(self, input_pattern=patterns)]
        from etcmodel import preprocessing  # With TensorFlow, which takes seconds to import.

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

    def feature_fields(self):
        fields = super().feature_fields()
        fields["long_max_length"] = fields.pop("long_seq_length")
        fields["global_max_length"] = fields.pop("global_seq_length")
        return fields


def load_parts():
    """The class that makes converters, and the function that reads a raw file."""
    from . import conversion, examples  # With TensorFlow, which takes seconds to import.

    return conversion.ConverterFactory, examples.read_lines


def run_job(job):
    """Runs a `preprocessing.Job` and adds its counts to `example_gen_stats.txt`, by input file.

    Returns:
        dict. The statistics.
    """
    from etcmodel import preprocessing  # With TensorFlow.

    statistics = preprocessing.run(job)
    folder = os.path.dirname(job.output_prefix)
    path = os.path.join(folder, "example_gen_stats.txt")
    names = [job.input_pattern] if isinstance(job.input_pattern, str) else job.input_pattern
    counts = {
        "parse_success_count": statistics["examples_written"],
        "parse_fail_count": statistics["examples_read"] - statistics["examples_written"],
    }
    with atomic_files.alone_in(folder):  # Runs for other files may be writing theirs.
        known = _known_counts(path)
        known[",".join(map(os.path.basename, names))] = counts
        atomic_files.write_json(path, known)
    return statistics


def _known_counts(path):
    import tensorflow as tf

    if not tf.io.gfile.exists(path):
        return {}
    try:
        with tf.io.gfile.GFile(path) as file:
            known = json.load(file)
    except ValueError:
        known = None
    return known if isinstance(known, dict) else {}  # If it is not ours, they are told anew.


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts, run_job=run_job)
