"""Trains a model from raw data, in one command.

    python -m etcmodel.tools.fit reviews.csv --init_checkpoint=my_bert --output_dir=run

Splits the rows into three parts, converts them to records, trains, evaluates and writes a report,
with the other commands of `etcmodel`, which it prints. If a second file is given, it is dev, all of
the first file is for training, and there is no test: then dev takes the place of test below.
--output_dir will contain

    data/       train.jsonl, dev.jsonl, test.jsonl: the rows of each part
    records/    these as TFRecords, with their settings and statistics
    best/       the checkpoint with the best score on dev, which is evaluated on test
    test_predictions.json or .jsonl, report.html: its predictions for test, and a report on them

and the other files of a training. The same command resumes where it was stopped. Flags after `--`
are passed to the training.
"""

import collections
import contextlib
import dataclasses
import hashlib
import importlib
import itertools
import json
import math
import os
import pathlib
import random
import shlex
import subprocess
import sys
from collections.abc import Hashable

from etcmodel import atomic_files, bounded_json, file_systems, opener, program_end
from etcmodel.options import (
    Options,
    TableOptions,
    VocabularyOptions,
    changed,
    option,
    option_fields,
    run_program,
    shared,
)
from etcmodel.shown_values import listed, shown
from etcmodel.tasks.classification.config import REGRESSION
from etcmodel.tools import kept_options

__all__ = [
    "DATA_SETS",
    "DataSet",
    "FitOptions",
    "deal",
    "fit",
    "keep_rows",
    "options_class",
    "parts_of",
    "write",
]

PARTS = TRAIN, DEV, TEST = "train", "dev", "test"
_FLAG = "--data_set="  # The first word; without it, the task is classification.
# Options that parts and records do not depend on; the training checks its own.
_OF_TRAINING = ("output_dir", "num_train_epochs", "train_batch_size", "learning_rate")
_MOST_TOKENS, _MOST_GLOBAL_TOKENS = 4096, 256
_MOST_NAMED = 20  # Of the rows that are left out.
_LENGTHS = ("long_seq_length", "global_seq_length")
_NUM_MEASURED = 1000  # Number of texts for choosing the lengths.
_ROUND = 32  # Lengths are multiples of this.
_BYTES_OF_SHARD = 1 << 26  # Per shard of raw data.
_BLOCK = 1 << 20  # Bytes to read at once.


# The differences between data sets.


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSet:
    """How to run the programs of a data set, and how to split its rows.

    Attributes:
        raw_file: str. The name of the data in --help.
        needed: tuple of str. Fields that a training example must have.
        unknown: tuple. Values of such a field of which nothing can be learned.
        alike: tuple of str. Examples with equal values in all of these fields go to the same part;
            so do those of one document, if the data set's `examples` have `document_of`.
        dealt_by: str. The field to stratify the split by. '' for none.
        fields: dict from the fields that rows keep of an example to the option that names the field
            or column, or to the name itself. Empty if rows are JSON objects, which stay unchanged.
        changed: dict from an option of `preprocess` or `FitOptions` to changes of its declaration.
        preprocessing: dict of further flags of `preprocess`.
        of_others: dict of flags of `preprocess` for parts other than the training part.
        raw_flags: tuple of str. The flag for the raw file, for each of `PARTS`.
        output_flag: str. The flag for the records' location.
        prefixes: tuple of str. The shards' prefix after that location, for each of `PARTS`.
        training: dict of further flags of `train`.
        evaluation: dict of further flags of evaluations.
        has_gold: bool. Whether evaluations also need the raw file.
        answers: str. File extension of predictions.
        gathers_labels: bool. Whether `preprocess` collects labels from the training rows.
        exports_texts: bool. Whether an export may take texts to label.
    """

    raw_file: str
    needed: tuple
    alike: tuple
    unknown: tuple = (None, ())
    dealt_by: str = ""
    fields: dict = dataclasses.field(default_factory=dict)
    changed: dict = dataclasses.field(default_factory=dict)
    preprocessing: dict = dataclasses.field(default_factory=dict)
    of_others: dict = dataclasses.field(default_factory=lambda: {"is_training": False})
    raw_flags: tuple = ("input_pattern",) * 3
    output_flag: str = "output_prefix"
    prefixes: tuple = ("", "", "")
    training: dict = dataclasses.field(default_factory=lambda: {"skip_padding": True})
    evaluation: dict = dataclasses.field(default_factory=dict)
    has_gold: bool = True
    answers: str = ".json"
    gathers_labels: bool = False
    exports_texts: bool = False


DATA_SETS = {
    "classification": DataSet(
        raw_file="reviews.csv",
        needed=("label",),
        alike=("text", "second_text"),
        dealt_by="label",
        fields={
            "example_id": "id_field",
            "text": "text_field",
            "second_text": "second_text_field",
            "label": "label_field",
        },
        changed={
            "long_seq_length": {
                "default": None,
                "help_text": f"Tokens of a text. None: of the longest, at most {_MOST_TOKENS}.",
            },
            "global_seq_length": {
                "default": None,
                "help_text": "Global tokens: one for the text and one a sentence. None: of the "
                f"text with most sentences, at most {_MOST_GLOBAL_TOKENS}.",
            },
        },
        of_others={},
        has_gold=False,
        answers=".jsonl",
        gathers_labels=True,
        exports_texts=True,
    ),
    "coreference": DataSet(
        raw_file="train.english.v4_gold_conll",
        needed=("clusters",),
        unknown=(None,),
        alike=("sentences",),
        fields={
            "example_id": "doc_key",
            "sentences": "sentences",
            "speakers": "speakers",
            "clusters": "clusters",
        },
        changed={
            "train_batch_size": {
                "default": 1,
                "help_text": "Number of documents per training step.",
            }
        },
        of_others={},
        evaluation={"eval_batch_size": 1},  # All spans of a long document fill the memory.
        has_gold=False,
    ),
    "hotpotqa": DataSet(
        raw_file="hotpot_train_v1.1.json",
        needed=("answer", "supporting_facts"),
        alike=("question",),
        preprocessing={"debug": False},
    ),
    "nq": DataSet(raw_file="nq-train.jsonl", needed=("annotations",), alike=("question",)),
    "openkp": DataSet(
        raw_file="OpenKPTrain.jsonl", needed=("key_phrases",), alike=("url",), answers=".jsonl"
    ),
    "squad": DataSet(
        raw_file="train-v2.0.json",
        needed=("answers",),
        unknown=(None,),  # Without any, a question has no answer.
        alike=("context",),
    ),
    "summarization": DataSet(
        raw_file="documents.jsonl",
        needed=("summary",),
        alike=("text",),
        fields={"example_id": "id_fields", "text": "text_fields", "summary": "summary_fields"},
        of_others={},
        training={},
        has_gold=False,
        answers=".jsonl",
    ),
    "token_classification": DataSet(
        raw_file="eng.train",
        needed=("tags",),
        alike=("words",),
        fields={"example_id": "id_field", "words": "words_field", "tags": "tags_field"},
        of_others={},
        has_gold=False,
        gathers_labels=True,
    ),
    "triviaqa": DataSet(raw_file="wikipedia-train.json", needed=("answers",), alike=("question",)),
    "wikihop": DataSet(
        raw_file="train.json",
        needed=("answer",),
        alike=("query",),
        of_others={},
        raw_flags=("input_pattern", "dev_input_pattern", "dev_input_pattern"),
        output_flag="output_dir",
        prefixes=("/train/tf_examples", "/dev/tf_examples", "/dev/tf_examples"),
    ),
}


# Options.


def _share_option(help_text):
    return option(0.1, help_text, lower_bound=0.001, upper_bound=0.45, group="data")


def _training_option(default, help_text, lower_bound):
    return option(default, help_text, lower_bound=lower_bound, group="training")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitOptions(Options):
    """The options shared by all data sets: the data, the model and the output."""

    data: str = option(
        "",
        "Raw data, in the format that preprocess reads; a pattern for several files. For texts "
        "with labels, also a folder with a subfolder for each label. The flag's name may be left "
        "out.",
        group="data",
    )
    eval_data: str = option(
        "",
        "Raw data to select the best checkpoint and evaluate it on, in the same format. May follow "
        "--data without the flag's name. Defaults to a split of the rows of --data into three "
        "parts.",
        group="data",
    )
    init_checkpoint: str = option(
        "", "Folder of the model to start from, such as BERT.", is_needed=True
    )
    output_dir: str = option("", "Directory for all output files.", is_needed=True)
    dev_share: float = _share_option(
        "Fraction of the rows for dev, to select the best checkpoint on."
    )
    test_share: float = _share_option(
        "Fraction of the rows for test, to evaluate the best checkpoint on."
    )
    seed: int = option(
        0, "Seed of the split, the initial weights and the example order.", lower_bound=0
    )
    num_train_epochs: float = _training_option(
        4.0, "Number of passes over the training examples.", 0
    )
    train_batch_size: int = _training_option(16, "Number of examples per training step.", 1)
    learning_rate: float = _training_option(5e-5, "Peak learning rate.", 0)
    data_set: str = ""  # No flag: a key of `DATA_SETS`.

    @property
    def kind(self):
        """The `DataSet`."""
        return DATA_SETS[self.data_set]

    @property
    def parts(self):
        """The existing `PARTS`; the last one is evaluated on."""
        return (TRAIN, DEV) if self.eval_data else PARTS

    @property
    def gathers_labels(self):
        """Whether labels are collected from the training rows."""
        is_regression = getattr(self, "problem_type", None) == REGRESSION
        return self.kind.gathers_labels and not is_regression and not self.labels

    def path(self, *names):
        """A path in --output_dir."""
        return os.path.join(self.output_dir, *names)

    def rows(self, part):
        """The file of a part's rows."""
        return self.path("data", f"{part}.jsonl")

    def prefix(self, part):
        """The prefix of a part's records."""
        return self.path("records", part) + self.kind.prefixes[PARTS.index(part)]

    def statistics(self, part):
        """The statistics of `preprocess`: dict; None if the part's records are not made yet."""
        path = f"{self.prefix(part)}.stats.json"
        return bounded_json.read_object(path) if os.path.exists(path) else None

    def evaluated(self, part):
        """Flags for an evaluation on a part."""
        gold = {"eval_gold": self.rows(part)} if self.kind.has_gold else {}
        return {"eval_data": f"{self.prefix(part)}-*.tfrecord", **gold, **self.kind.evaluation}

    def evidence(self):
        """The flag for documents beside the raw data, if given."""
        folder = getattr(self, "evidence_dir", None)
        return {"evidence_dir": folder} if folder else {}


def _preprocess_of(data_set):
    return importlib.import_module(f"etcmodel.tasks.{data_set}.preprocess")


def _examples_of(data_set):
    return importlib.import_module(f"etcmodel.tasks.{data_set}.examples")


def _own_fields(data_set):
    """Options of a data set's `preprocess` that describe its rows and features."""
    known = {field.name for field in option_fields(FitOptions) + option_fields(VocabularyOptions)}
    known |= {"is_training", "debug"}  # `fit` sets them.
    return [
        field
        for field in option_fields(_preprocess_of(data_set).PreprocessOptions)
        if field.metadata["role"] in ("features", "decoding") and field.name not in known
    ]


def options_class(data_set):
    """Makes the class of a data set's options: `FitOptions` with some options of `preprocess`.

    Args:
        data_set: str. A key of `DATA_SETS`.
    Raises:
        ValueError: if it is none.
    """
    if data_set not in DATA_SETS:
        raise ValueError(f"{_FLAG}{data_set}: it must be one of {', '.join(DATA_SETS)}.")
    base, changes = _preprocess_of(data_set).PreprocessOptions, DATA_SETS[data_set].changed
    shared_fields = [field for field in option_fields(FitOptions) if field.name in changes]
    own = [
        (field.name, field.type, changed(of, field.name, **changes.get(field.name, {})))
        for of, fields in ((base, _own_fields(data_set)), (FitOptions, shared_fields))
        for field in fields
    ]
    return dataclasses.make_dataclass(
        FitOptions.__name__,
        [*own, ("data_set", str, data_set)],
        bases=(FitOptions,),
        frozen=True,
        kw_only=True,
    )


# The steps.


def fit(options, others=()):
    """Runs all steps.

    Args:
        options: `FitOptions`.
        others: sequence of str. Further flags for the training.
    Raises:
        ValueError: if there are too few data, or the folder belongs to another fit.
        SystemExit: as `run`.
    """
    _check(options)
    keep_rows(options)
    _preprocess(options)
    of_run = {"output_dir": options.output_dir}
    steps_of_epoch = options.statistics(TRAIN)["examples_written"] // options.train_batch_size
    run(
        "train",
        options.data_set,
        init_checkpoint=options.init_checkpoint,
        **of_run,
        train_data=f"{options.prefix(TRAIN)}-*.tfrecord",
        **options.evaluated(DEV),
        num_train_epochs=options.num_train_epochs,
        train_batch_size=options.train_batch_size,
        learning_rate=options.learning_rate,
        save_checkpoints_steps=max(1, steps_of_epoch),
        random_seed=options.seed,
        **options.kind.training,
        others=others,
    )
    measured = options.parts[-1]
    predictions = options.path(f"{measured}_predictions{options.kind.answers}")
    evaluated = options.evaluated(measured)
    run("evaluate", options.data_set, **of_run, **evaluated, predictions_file=predictions)
    run(
        "report",
        run=options.output_dir,
        task=options.data_set,
        predictions=predictions,
        eval_gold=options.rows(measured),
        **options.evidence(),
        output=options.path("report.html"),
    )
    print(_closing(options))


def _check(options):
    """Raises ValueError for everything that the steps would reject, before writing anything."""
    from etcmodel.finetuning import model_folder  # Imports TensorFlow, which takes seconds.
    from etcmodel.preprocessing import input_files, program
    from etcmodel.text import vocabulary_files

    for data in filter(None, (options.data, options.eval_data)):
        input_files(data)
    folder, lengths = options.init_checkpoint, _given_lengths(options)
    model_folder.encoder_config(
        folder,
        lengths.get("long_seq_length", _MOST_TOKENS),
        lengths.get("global_seq_length", _MOST_GLOBAL_TOKENS),
    )
    preprocess = _preprocess_of(options.data_set)
    flags = {**_preprocess_flags(options, TRAIN), **vocabulary_files.of_folder(folder, {})}
    made = preprocess.PreprocessOptions(**flags)
    if not options.gathers_labels:  # Otherwise, the labels are not known yet.
        program.make_job(made, *preprocess.load_parts())


def _closing(options):
    name, place, kind = options.data_set, {"output_dir": options.output_dir}, options.kind
    answered = {
        "input_file": f"new{os.path.splitext(kind.raw_file)[1]}",
        "predictions_file": f"answers{kind.answers}",
    }
    lines = [
        f"\nThe model is in {options.output_dir}. The scores above are of {options.parts[-1]}, and "
        f"{options.path('report.html')} shows them with examples. Next:",
        f"  {line('export', name, **place)}",
        f"  {line('predict', name, **place, **answered, **options.evidence())}",
    ]
    if _takes_texts(options):
        served = options.path("served")
        lines += [
            "Or, for texts in a browser and over HTTP:",
            f"  {line('export', name, **place, export_texts=True, export_dir=served)}",
            f"  {line('serve', model_dir=served)}",
        ]
    else:
        lines.append(f"  {line('serve', model_dir=options.path('export'))}")
    return "\n".join(lines)


def _takes_texts(options):
    """Whether an export that takes texts is possible."""
    is_of_labels = options.kind.exports_texts and options.problem_type != REGRESSION
    if not is_of_labels or options.second_text_field:
        return False
    from etcmodel.finetuning import model_folder  # Imports TensorFlow, which takes seconds.

    folder = options.init_checkpoint
    config = model_folder.encoder_config(folder, _MOST_TOKENS, _MOST_GLOBAL_TOKENS)
    return config.model_type == "etc"


# Rows, and their split into parts.


def keep_rows(options):
    """Writes the rows of each part, unless they exist.

    Args:
        options: `FitOptions`.
    Raises:
        ValueError: if they exist for other data or options; or if there are too few.
    """
    folder = options.path("data")
    digests = {name: _digest(getattr(options, name)) for name in ("data", "eval_data")}
    if not os.path.exists(os.path.join(folder, kept_options.FILE)):
        counts = write(options, _dealt(options))
        print(f"{folder}: {', '.join(f'{part}: {x} rows' for part, x in counts.items())}")
    kept_options.keep(pathlib.Path(folder), options, _OF_TRAINING, digests)


def _digest(data):
    """SHA-256 of raw data, including file names in a folder: str; '' for none."""
    from etcmodel.preprocessing import input_files

    if not data:
        return ""
    paths = input_files(data)
    digest = hashlib.sha256()
    for path in paths:
        names = sorted(opener.text_files(path, tells=False)) if opener.is_folder(path) else [""]
        for name in names:
            of_file = _digest_of_file(os.path.join(path, name) if name else path)
            digest.update(f"{name}\0{of_file}\n".encode())
    return digest.hexdigest()


def _digest_of_file(path):
    digest = hashlib.sha256()
    with file_systems.gfile().GFile(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _dealt(options):
    """Yields (part, row) of all rows, and then tells of those that are alike."""
    seen = _Seen()
    if options.eval_data:
        for part, data in ((TRAIN, options.data), (DEV, options.eval_data)):
            for (keys, label), row in _examples(options, data):
                seen.note(part, keys[0], label)
                yield part, row
    else:
        shares = {DEV: options.dev_share, TEST: options.test_share}
        found = (x for x, _ in _examples(options, options.data))
        part_of = deal(found, shares, options.seed)
        for (keys, label), row in _examples(options, options.data, tells=False):
            seen.note(TRAIN, keys[0], label)
            yield part_of(keys), row
    seen.tell(options)


class _Seen:
    """Counts rows with the text of an earlier row where that misleads."""

    def __init__(self):
        self._labels, self._trained = {}, set()
        self._num_other, self._first, self._num_both, self._num_dev = 0, "", 0, 0

    def note(self, part, text, label):
        key = _key(text)
        label = frozenset(label) if isinstance(label, tuple) else label  # Several, in any order.
        if self._labels.setdefault(key, label) != label:
            self._num_other += 1
            self._first = self._first or text.replace("\0", " ")  # Between two texts.
        if part == TRAIN:
            self._trained.add(key)
        else:
            self._num_dev += 1
            self._num_both += key in self._trained

    def tell(self, options):
        if self._num_other:
            print(
                f"{self._num_other} rows have the text of an earlier row, but another label; no "
                f"model gets both right. The first text: {shown(self._first)}",
                flush=True,
            )
        if self._num_both:
            kind = options.kind
            given = (x for x in kind.alike if getattr(options, kind.fields.get(x, x), True))
            alike = " and ".join(x.replace("_", " ") for x in given)
            print(
                f"{options.eval_data}: {self._num_both} of {self._num_dev} rows have the {alike} "
                f"of a row of {options.data}. The scores on them say nothing about new ones.",
                flush=True,
            )


def _keys(example, raw, options):
    """What a row must share with no other part: its text and, if it is known, its document."""
    values = filter(None, (getattr(example, name) for name in options.kind.alike))
    text = "\0".join(x if isinstance(x, str) else json.dumps(x) for x in values)
    document_of = getattr(_examples_of(options.data_set), "document_of", None)
    document = document_of(raw) if document_of else ""
    return (text, document) if document else (text,)


def _stratum(example, kind):
    value = getattr(example, kind.dealt_by) if kind.dealt_by else None
    return None if isinstance(value, float) else value  # Numbers are not classes.


def _examples(options, data, tells=True):
    """Yields ((keys, stratum), row for JSON) of trainable examples, and reports skipped ones.

    Raises:
        ValueError: if nothing is left.
    """
    from etcmodel.preprocessing import input_files

    num_read, num_bad, named = 0, 0, []
    for path in input_files(data):
        for place, raw in _raw_rows(path, options, tells):
            num_read += 1
            try:
                found = _parsed(raw, options)
            except ValueError as error:
                num_bad += 1
                if len(named) < _MOST_NAMED:
                    named.append(f"{path}: {place}: {error}")
            else:
                yield found
    if num_bad == num_read:
        raise ValueError(
            f"{data}: none of the {num_read} rows can be learned from, the first: {named[0]}"
            if num_read
            else f"{data}: there are no rows."
        )
    if num_bad and tells:
        also = ["then:", *named[1:]] if named[1:] else []
        told = "\n  ".join([f"{num_bad} rows are left out, the first: {named[0]}", *also])
        print(told, flush=True)


def _raw_rows(path, options, tells):
    """Yields (place, input of `_parsed`), as the `examples` of the data set read them."""
    from etcmodel.preprocessing import raw_files

    examples = _examples_of(options.data_set)
    if hasattr(examples, "read_questions"):
        return ((row["place"], row["question"]) for row in examples.read_questions(path))
    if not options.kind.fields:
        return raw_files.read_json_elements(path)
    if hasattr(examples, "read_rows"):
        rows = examples.read_rows(path)
    else:
        table = TableOptions(**shared(TableOptions, options)).table()
        rows = raw_files.read_text_rows(path, table, tells=tells)
    return ((row["place"], row) for row in rows)


def _parsed(raw, options):
    """((keys, stratum), row for JSON); ValueError if it is malformed or not trainable."""
    from etcmodel.preprocessing import raw_files

    kind, row, examples = options.kind, raw, _examples_of(options.data_set)
    if kind.fields:
        example = examples.parse_row(raw, options)
        known = {x: y for x, y in kind.fields.items() if getattr(example, x) is not None}
        row = {_name(getattr(options, y, y)): getattr(example, x) for x, y in known.items()}
    else:
        raw_files.check_readable(raw)
        example = examples.parse_example(raw)
    for name in kind.needed:
        if getattr(example, name) in kind.unknown:
            raise ValueError(f"there is no {name.replace('_', ' ')} to learn from")
    return (_keys(example, raw, options), _stratum(example, kind)), row


def _name(names):
    """The (first) field that an option names."""
    return names[0] if isinstance(names, tuple) and names else names or "id"


def parts_of(labels, shares, seed):
    """Splits groups of rows into parts, stratified by label if a label has enough groups.

    Args:
        labels: dict from a group's key to its stratum, such as its label.
        shares: dict from "dev" and "test" to their fractions of all groups.
        seed: int.
    Returns:
        dict from key to one of `PARTS`. Each label has at least one training group.
    """
    by_label = collections.defaultdict(list)
    for key, label in labels.items():
        by_label[label].append(key)
    found, seen, taken = {}, 0, collections.Counter()
    for label in sorted(by_label, key=repr):
        keys = by_label[label]
        random.Random(f"{seed} {label!r}").shuffle(keys)
        seen += len(keys)
        left = iter(keys[1:])  # The first is for training.
        for part, share in shares.items():
            # Rounding errors carry over to the next label, so that the totals are right.
            for key in itertools.islice(left, max(0, math.floor(share * seen + 0.5) - taken[part])):
                found[key] = part
                taken[part] += 1
    return {key: found.get(key, TRAIN) for key in labels}


def deal(rows, shares, seed):
    """Assigns rows to parts; rows that share a key go to the same part, as do those in between.

    Args:
        rows: iterable of (keys, label): a tuple of str, such as a row's text and the name of its
            document; and a hashable stratum.
        shares, seed: see `parts_of`.
    Returns:
        function from a row's keys to its part.
    Raises:
        ValueError: if a part would be empty.
    """
    above: dict[bytes, bytes] = {}  # To another key of the group; the topmost leads to itself.

    def top(key):
        while (higher := above.setdefault(key, key)) != key:
            above[key] = key = above[higher]
        return key

    by_key: dict[bytes, Hashable] = {}
    for keys, label in rows:
        *others, highest = (top(_key(text)) for text in keys)
        above.update(dict.fromkeys(others, highest))
        by_key.setdefault(highest, label)
    labels: dict[bytes, Hashable] = {}
    for key, label in by_key.items():
        labels.setdefault(top(key), label)
    parts = parts_of(labels, shares, seed)
    counts = collections.Counter(parts.values())
    if empty := [part for part in (TRAIN, *shares) if not counts[part]]:
        raise ValueError(
            f"{len(labels)} different rows with labels are too few to be dealt to "
            f"{', '.join((TRAIN, *shares))}: {listed(empty)} would have none. Rows of one text or "
            "document count as one. With a second file, --eval_data, nothing is dealt."
        )
    return lambda keys: parts[top(_key(keys[0]))]


def _key(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def write(options, rows):
    """Writes the rows of each part as JSON lines; the files appear when all are complete.

    Args:
        options: `FitOptions`.
        rows: iterable of (part, dict for JSON).
    Returns:
        dict of part to its number of rows.
    """
    counts = dict.fromkeys(options.parts, 0)
    with contextlib.ExitStack() as stack:
        files = {}
        for part in options.parts:
            temporary = stack.enter_context(atomic_files.new_file(options.rows(part)))
            files[part] = stack.enter_context(open(temporary, "w", encoding="utf-8"))
        for part, row in rows:
            files[part].write(_json_line(row))
            counts[part] += 1
    return counts


def _json_line(row):
    text = json.dumps(row, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # Half of a surrogate pair can only be written as an escape.
        text = json.dumps(row)
    return f"{text}\n"


# Records.


def _preprocess(options):
    """Makes the records of parts that have none."""
    lengths = None
    for part in options.parts:
        if options.statistics(part) is None:
            lengths = lengths or _lengths(options)
            run("preprocess", options.data_set, **{**_preprocess_flags(options, part), **lengths})


def _preprocess_flags(options, part):
    """Flags of `preprocess` for a part: dict from name to value."""
    kind, rows = options.kind, options.rows(part)
    number = PARTS.index(part)
    defaults = {field.name: field.default for field in _own_fields(options.data_set)}
    given = {name: getattr(options, name) for name in defaults}
    size = os.path.getsize(rows) if os.path.exists(rows) else 0
    return {
        kind.raw_flags[number]: rows,
        kind.output_flag: options.path("records", part),
        "init_checkpoint": options.init_checkpoint,
        "num_shards": 1 + size // _BYTES_OF_SHARD,
        **kind.preprocessing,
        **{x: value for x, value in given.items() if value not in (None, defaults[x])},
        **(_flags_of_others(options) if part != TRAIN else {}),
    }


def _flags_of_others(options):
    labels_file = {"labels_file": options.path("records", "train.config.json")}
    return {**options.kind.of_others, **(labels_file if options.gathers_labels else {})}


def _given_lengths(options):
    """The lengths of the inputs that are given or have a default: dict."""
    lengths = {name: getattr(options, name) for name in _LENGTHS}
    return {name: length for name, length in lengths.items() if length is not None}


def _lengths(options):
    """Lengths that are not given, from the longest of a sample of training texts: dict."""
    given = _given_lengths(options)
    return {} if len(given) == 2 else {**_measured(options), **given}


def _measured(options):
    """The lengths for classification."""
    from etcmodel.finetuning import model_folder
    from etcmodel.tasks.classification import config as examples_lib_config
    from etcmodel.tasks.classification import examples as examples_lib_examples
    from etcmodel.tasks.classification import features as examples_lib
    from etcmodel.text import vocabulary_files

    folder = options.init_checkpoint
    found = vocabulary_files.of_folder(folder, {})
    file, spm = found.pop("vocab_file", None), found.pop("spm_model_file", None)
    tokenizer = vocabulary_files.open_tokenizer(file, spm, **found)
    encoder_config = model_folder.encoder_config(folder, _MOST_TOKENS, _MOST_GLOBAL_TOKENS)
    most = getattr(encoder_config, "max_length", None) or _MOST_TOKENS
    config_class = examples_lib_config.ClassificationInputConfig
    limits = (min(most, _MOST_TOKENS), _MOST_GLOBAL_TOKENS)
    lengths = dict(zip(_LENGTHS, limits, strict=True))
    config = config_class(**{**shared(config_class, options), **lengths})
    processor = config.make_processor(tokenizer)
    longest = [2, 2]
    with open(options.rows(TRAIN), encoding="utf-8") as file:
        for row in itertools.islice(file, _NUM_MEASURED):
            example = examples_lib_examples.parse_example(json.loads(row), options)
            _, encoding = examples_lib.make_features(
                dataclasses.replace(example, label=None), config, processor
            )
            lengths = (len(encoding.token_ids), len(encoding.global_ids))
            longest = list(map(max, longest, lengths))
    rounded = (
        min(-(-x // _ROUND) * _ROUND, limit) for x, limit in zip(longest, limits, strict=True)
    )
    return dict(zip(_LENGTHS, rounded, strict=True))


# Commands of `etcmodel`, as a user would type them.


def line(*words, **flags):
    """A command as typed in a shell: str."""
    return shlex.join(["etcmodel", *words, *_written(flags)])


def run(*words, others=(), reads=False, **flags):
    """Prints and runs a command; signals are passed to the command, which saves and ends.

    Args:
        *words: str, such as "train", "classification".
        others: sequence of str. Further flags, which take precedence.
        reads: bool. Whether to return what the command writes to standard output.
        **flags: flags by name without dashes; None is left out.
    Returns:
        str, if `reads`; otherwise None.
    Raises:
        SystemExit: with the status of a failed command, which prints the reason itself.
        program_end.Interrupted: if a signal ended it.
    """
    arguments = [*words, *_written(flags), *others]
    processes, received = [], []

    def pass_on(signum, frame):
        del frame
        received.append(signum)
        for process in processes:
            process.send_signal(signum)

    with program_end.on_signals(pass_on):
        print(f"\n$ {shlex.join(['etcmodel', *arguments])}", flush=True)
        # In its own session, it gets Ctrl-C only once, from here: a second one would prevent
        # saving.
        command = [sys.executable, "-m", "etcmodel", *arguments]
        pipe = subprocess.PIPE if reads else None
        processes.append(subprocess.Popen(command, stdout=pipe, text=True, start_new_session=True))
        if received:
            pass_on(received[0], None)
        output, _ = processes[0].communicate()
    if received:
        raise program_end.Interrupted("The same command continues", received[0])
    if status := processes[0].returncode:
        sys.exit(status)
    return output


def _written(flags):
    return [f"--{name}={_text_of(value)}" for name, value in flags.items() if value is not None]


def _text_of(value):
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def main(options, words):
    """Runs the program with its flags and words."""
    others = [word for word in words if word.startswith("-")]
    names = [word for word in words if not word.startswith("-")]
    free = [name for name in ("data", "eval_data") if not getattr(options, name)]
    data = dict(zip(free, names, strict=False))
    if len(names) > len(free) or not (options.data or names):
        given = [*filter(None, (options.data, options.eval_data)), *names]
        raise ValueError(
            "The data are one file, folder or pattern, and perhaps a second one to evaluate on. "
            f"Received: {', '.join(given) or 'none'}"
        )
    fit(dataclasses.replace(options, **data), others)


def _data_set():
    """The data set in the first word, which is removed from the program's words."""
    if sys.argv[1:2] and sys.argv[1].startswith(_FLAG):
        return sys.argv.pop(1).removeprefix(_FLAG)
    return "classification"


if __name__ == "__main__":
    with program_end.ends_in_one_line():
        found = options_class(_data_set())
    __doc__ = __doc__.replace("reviews.csv", DATA_SETS[found.data_set].raw_file)
    run_program(found, main, section="fit", has_others_flags=True, has_words=True)
