"""From a file of texts with labels to a trained classifier, in one command.

    etcmodel fit classification reviews.csv --init_checkpoint=my_bert --output_dir=run

Deals the rows to three parts, makes records of them, trains, evaluates and writes a page, by the
other commands of `etcmodel`, which it shows. In --output_dir are then

    data/       train.jsonl, dev.jsonl, test.jsonl: the rows of each part
    records/    these as TFRecords, with their settings and statistics
    best/       the checkpoint with the best score on dev, by which the run is measured
    test_predictions.jsonl, report.html: what it says of test, and a page of it

and what else a training writes. The same command goes on where it was stopped. What follows `--` is
given to the training.
"""

import dataclasses
import json
import os
import pathlib

from etcmodel import atomic_files, bounded_json
from etcmodel.options import TableOptions, changed, option, run_program
from etcmodel.tasks.classification.config import (
    MULTI_LABEL,
    REGRESSION,
    ClassificationFeatureOptions,
)
from etcmodel.tools import kept_options
from etcmodel.tools.fits import commands, splits

__all__ = ["FitOptions", "fit"]

_TASK = "classification"
_DONE = "dealt.json"  # Of the folder of rows.
# Options that parts and records do not depend on; the training refuses its own by itself.
_OF_TRAINING = ("output_dir", "num_train_epochs", "train_batch_size", "learning_rate")
_MOST_TOKENS, _MOST_GLOBAL_TOKENS = 4096, 256
_NUM_MEASURED = 1000  # Texts by which lengths are chosen.
_ROUND = 32  # Lengths are multiples of it.


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitOptions(ClassificationFeatureOptions, TableOptions):
    """What is learned from what, and where it goes."""

    data: str = option(
        "",
        "Texts with labels: a table, JSON lines, Parquet, or a folder with a sub-folder for each "
        "label. It may be given without its flag.",
    )
    init_checkpoint: str = option(
        "", "Folder of the model to begin with, such as a BERT's.", is_needed=True
    )
    output_dir: str = option("", "Directory of all that is made.", is_needed=True)
    long_seq_length: int | None = changed(
        ClassificationFeatureOptions,
        "long_seq_length",
        default=None,
        help_text=f"Tokens of a text. None: of the longest, at most {_MOST_TOKENS}.",
    )
    global_seq_length: int | None = changed(
        ClassificationFeatureOptions,
        "global_seq_length",
        default=None,
        help_text="Global tokens: one for the text and one a sentence. None: of the text with most "
        f"sentences, at most {_MOST_GLOBAL_TOKENS}.",
    )
    dev_share: float = option(
        0.1, "Share of the texts to choose the checkpoint by.", lower_bound=0.001, upper_bound=0.45
    )
    test_share: float = option(
        0.1, "Share of the texts to measure it on.", lower_bound=0.001, upper_bound=0.45
    )
    seed: int = option(0, "Seed of the parts, of initial weights and of the order.", lower_bound=0)
    num_train_epochs: float = option(4.0, "Passes over the training texts.", lower_bound=0)
    train_batch_size: int = option(16, "Texts of a training step.", lower_bound=1)
    learning_rate: float = option(5e-5, "Peak learning rate.", lower_bound=0)

    def fields(self):
        """Flags of `preprocess` that say what the data hold, where they are no defaults: dict."""
        names = ("text_field", "second_text_field", "label_field", "id_field", "problem_type")
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value != defaults[name]}

    def path(self, *names):
        """A path in --output_dir."""
        return os.path.join(self.output_dir, *names)


def fit(options, others=()):
    """Does what `FitOptions` say.

    Args:
        options: `FitOptions`.
        others: sequence of str. Flags for the training.
    Raises:
        ValueError: if the data are too few, or the folder is of another fit.
        SystemExit: as `commands.run`.
    """
    _check(options)
    counts = _dealt(options)
    _preprocess(options)
    steps_of_epoch = max(1, counts[splits.TRAIN] // options.train_batch_size)
    commands.run(
        "train",
        _TASK,
        init_checkpoint=options.init_checkpoint,
        output_dir=options.output_dir,
        train_data=options.path("records", "train-*.tfrecord"),
        eval_data=options.path("records", "dev-*.tfrecord"),
        num_train_epochs=options.num_train_epochs,
        train_batch_size=options.train_batch_size,
        learning_rate=options.learning_rate,
        save_checkpoints_steps=steps_of_epoch,
        random_seed=options.seed,
        skip_padding=True,
        others=others,
    )
    predictions = options.path("test_predictions.jsonl")
    run = {"output_dir": options.output_dir}
    test = {"eval_data": options.path("records", "test-*.tfrecord")}
    commands.run("evaluate", _TASK, **run, **test, predictions_file=predictions)
    commands.run(
        "report",
        run=options.output_dir,
        task=_TASK,
        predictions=predictions,
        eval_gold=options.path("data", "test.jsonl"),
        output=options.path("report.html"),
    )
    print(_closing(options, counts))


def _check(options):
    """Raises ValueError if there are no data or no model, before anything is written."""
    from etcmodel.finetuning import model_folder  # With TensorFlow, which takes seconds to import.
    from etcmodel.preprocessing import input_files
    from etcmodel.text import vocabulary_files

    input_files(options.data)
    model_folder.encoder_config(options.init_checkpoint, _MOST_TOKENS, _MOST_GLOBAL_TOKENS)
    vocabulary_files.of_folder(options.init_checkpoint, {})


def _closing(options, counts):
    place = {"output_dir": options.output_dir}
    of_text = {**place, "input_file": "new.csv", "predictions_file": "answers.jsonl"}
    texts = ", ".join(f"{counts[part]} {part}" for part in splits.PARTS)
    return (
        f"\nThe classifier is in {options.output_dir} (texts: {texts}). The scores above are of "
        f"test, and {options.path('report.html')} shows them with examples. Next:\n"
        f"  {commands.line('export', _TASK, **place)}\n"
        f"  {commands.line('predict', _TASK, **of_text)}{_serving(options, place)}"
    )


def _serving(options, place):
    """What serves texts, if that can be: str."""
    from etcmodel.finetuning import model_folder  # With TensorFlow, which takes seconds to import.

    config = model_folder.encoder_config(options.init_checkpoint, _MOST_TOKENS, _MOST_GLOBAL_TOKENS)
    is_single = options.problem_type != REGRESSION and not options.second_text_field
    if config.model_type != "etc" or not is_single:
        return ""
    served = options.path("served")
    export = commands.line("export", _TASK, **place, export_texts=True, export_dir=served)
    return (
        "\nOr, for texts in a browser and over HTTP:\n"
        f"  {export}\n"
        f"  {commands.line('serve', model_dir=served)}"
    )


def _dealt(options):
    """Writes the parts, unless they are there; returns their numbers of texts."""
    folder = options.path("data")
    size = f" ({os.path.getsize(options.data)} bytes)" if os.path.isfile(options.data) else ""
    known_by = dataclasses.replace(options, data=f"{options.data}{size}")
    kept_options.keep(pathlib.Path(folder), known_by, _OF_TRAINING)
    path = os.path.join(folder, _DONE)
    if os.path.exists(path):
        return bounded_json.read_object(path, "Give another --output_dir.")
    shares = {splits.DEV: options.dev_share, splits.TEST: options.test_share}
    part_of = splits.deal(
        ((_text(x), _stratum(x, options)) for x in _examples(options)), shares, options.seed
    )
    rows = ((part_of(_text(x)), _row(x, options)) for x in _examples(options, tells=False))
    counts = splits.write(folder, rows)
    atomic_files.write_json(path, counts)
    return counts


def _examples(options, tells=True):
    """The `TextExample`s with a label; those that are malformed are counted and told once."""
    from etcmodel.preprocessing import input_files, raw_files
    from etcmodel.tasks.classification.raw_data import parse_row

    bad = []
    for path in input_files(options.data):
        for row in raw_files.read_text_rows(path, options.table(), tells=tells):
            try:
                yield parse_row(row, options, needs_labels=True)
            except ValueError as error:
                bad.append(f"{path}: {row['place']}: {error}")
    if bad and tells:
        print(f"{len(bad)} rows are left out, the first: {bad[0]}")


def _text(example):
    return "\0".join(filter(None, (example.text, example.second_text)))


def _stratum(example, options):
    return None if options.problem_type == REGRESSION else example.label


def _row(example, options):
    """An example as JSON, under the names that its fields have in the data."""
    label = list(example.label) if options.problem_type == MULTI_LABEL else example.label
    row = {options.id_field: example.example_id, options.text_field: example.text}
    if example.second_text is not None:
        row[options.second_text_field] = example.second_text
    return {**row, options.label_field: label}


def _preprocess(options):
    """Makes the records of the parts, of those that have none."""
    lengths = None
    for part in splits.PARTS:
        prefix = options.path("records", part)
        if os.path.exists(f"{prefix}.stats.json"):
            continue
        lengths = lengths or _lengths(options)
        labels = {"labels": ",".join(options.labels) or None}
        if part != splits.TRAIN and options.problem_type != REGRESSION:
            labels = {"labels_file": options.path("records", "train.config.json")}
        commands.run(
            "preprocess",
            _TASK,
            input_pattern=options.path("data", f"{part}.jsonl"),
            output_prefix=prefix,
            init_checkpoint=options.init_checkpoint,
            num_shards=1,
            **lengths,
            **labels,
            **options.fields(),
        )


def _lengths(options):
    """The lengths of the inputs, given or of the longest of some training texts: dict."""
    lengths = {name: getattr(options, name) for name in ("long_seq_length", "global_seq_length")}
    if None in lengths.values():
        found = _measured(options)
        lengths = {name: lengths[name] or found[name] for name in lengths}
    return lengths


def _measured(options):
    from etcmodel.finetuning import model_folder
    from etcmodel.tasks.classification import examples as examples_lib
    from etcmodel.text import vocabulary_files

    folder = options.init_checkpoint
    found = vocabulary_files.of_folder(folder, {})
    file, spm = found.pop("vocab_file", None), found.pop("spm_model_file", None)
    tokenizer = vocabulary_files.open_tokenizer(file, spm, **found)
    encoder_config = model_folder.encoder_config(folder, _MOST_TOKENS, _MOST_GLOBAL_TOKENS)
    most = getattr(encoder_config, "max_length", None) or _MOST_TOKENS
    config = examples_lib.ClassificationInputConfig(
        long_seq_length=min(most, _MOST_TOKENS), global_seq_length=_MOST_GLOBAL_TOKENS
    )
    processor = config.make_processor(tokenizer)
    longest = [2, 2]
    with open(options.path("data", "train.jsonl"), encoding="utf-8") as file:
        for _, line in zip(range(_NUM_MEASURED), file, strict=False):
            example = examples_lib.parse_example(json.loads(line), options)
            _, encoding = examples_lib.make_features(
                dataclasses.replace(example, label=None), config, processor
            )
            lengths = (len(encoding.token_ids), len(encoding.global_ids))
            longest = list(map(max, longest, lengths))
    limits = (config.long_seq_length, config.global_seq_length)
    rounded = (
        min(-(-x // _ROUND) * _ROUND, limit) for x, limit in zip(longest, limits, strict=True)
    )
    return dict(zip(("long_seq_length", "global_seq_length"), rounded, strict=True))


def main(options, words):
    """Does what the flags and the words beside them say."""
    others = [word for word in words if word.startswith("-")]
    names = [word for word in words if not word.startswith("-")]
    if len(names) + bool(options.data) != 1:
        raise ValueError(
            "The data are one file, folder or pattern. Received: "
            f"{', '.join([*names, *filter(None, [options.data])]) or 'none'}"
        )
    fit(dataclasses.replace(options, data=options.data or names[0]), others)


if __name__ == "__main__":
    run_program(FitOptions, main, section="fit", has_others_flags=True, has_words=True)
