"""Converts plain text or JSON lines into sharded TFRecords of windows for pre-training.

Also writes `<prefix>.config.json` (the settings of the records) and the statistics. Flags of Apache
Beam, such as `--runner=DataflowRunner`, are accepted too.

  python -m etcmodel.pretrain.preprocess --input_pattern='books/*.txt.gz' \
    --output_prefix=/data/train --vocab_file=vocab.txt
"""

import dataclasses
import functools
import logging
import os

from etcmodel import atomic_files, bounded_json, hub
from etcmodel.options import TableOptions, changed
from etcmodel.preprocessing import program
from etcmodel.text import vocabulary

from .config import TEXT, WindowOptions, is_of_text

_MODEL_CONFIG = "config.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(WindowOptions, TableOptions, program.PreprocessOptions):
    """Pre-training's options; those of role "features" make a `PretrainInputConfig`."""

    input_pattern: str = changed(
        program.PreprocessOptions,
        "input_pattern",
        help_text=(
            "Text files, or folders of .txt files; wildcards allowed. Also JSON, tables or Parquet "
            "with a `text` field; the format is detected from the content."
        ),
    )

    def __post_init__(self):
        super().__post_init__()
        if self.release_compatible:
            raise ValueError("--release_compatible: the authors released no pre-training.")
        if self.windows != TEXT:
            self._check_model_takes_sentences()

    def _check_model_takes_sentences(self):
        """Raises ValueError if the folder of --init_checkpoint has a model for windows of text."""
        if not self.init_checkpoint:
            return
        path = os.path.join(
            hub.local_folder(self.init_checkpoint, with_weights=False), _MODEL_CONFIG
        )
        if vocabulary.exists(path):
            model_type = bounded_json.read_object(path).get("model_type")
            if is_of_text(model_type):
                raise ValueError(
                    f"--init_checkpoint={self.init_checkpoint}: a model of type {model_type!r} has "
                    f"no global tokens of sentences. Give --windows={TEXT}."
                )

    def feature_fields(self):
        fields = super().feature_fields()
        return {name: value for name, value in fields.items() if name != "release_compatible"}


load_parts = program.parts_beside(__package__)


def run_job(job):
    """Runs a `preprocessing.Job` and completes its statistics.

    Returns:
        dict. The statistics: also `fill_rate` (the share of the long input that is no padding),
        `sentences_per_window`, `document_parts_per_window` and, unless Beam's workers read,
        `documents_repeated`, of the same text as an earlier one.
    """
    from etcmodel import preprocessing  # Imports TensorFlow.

    from .examples import RepeatCounter

    settings, repeats = job.settings, RepeatCounter()
    read = functools.partial(job.read, document_separator=settings["document_separator"])
    if not job.beam_args:
        read = repeats.counting(read)
    statistics = preprocessing.run(dataclasses.replace(job, read=read, advice=_advice(settings)))
    num_windows = statistics["examples_written"]
    room = num_windows * settings["long_seq_length"]
    statistics["fill_rate"] = round(statistics["long_tokens"] / room, 4)
    for name in ("sentences", "document_parts"):
        if name in statistics:  # Windows of text have none.
            statistics[f"{name}_per_window"] = round(statistics[name] / num_windows, 2)
    if not job.beam_args:
        statistics["documents_repeated"] = repeats.num_repeated
        _tell_of(repeats)
    atomic_files.write_json(job.statistics_file, statistics)
    return statistics


def _tell_of(repeats):
    if repeats.num_repeated:
        logging.warning(
            "%s%d of %d documents have the text of an earlier one. All were kept.",
            "At least " if repeats.is_full else "",
            repeats.num_repeated,
            repeats.num_documents,
        )


def _advice(settings):
    """What to try if all documents are too short: str; empty for windows of text."""
    if settings["windows"] == TEXT:
        return ""
    return (
        "Too short are documents with fewer sentences than "
        f"--min_sentences={settings['min_sentences']}, of those that "
        f"--sentence_splitter={settings['sentence_splitter']} finds; a blank line ends a document, "
        "or the file with --document_separator=file."
    )


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts, run_job=run_job)
