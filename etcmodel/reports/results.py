"""What a task tells of its predictions, for a page that knows no task."""

import collections
import dataclasses

from etcmodel import bounded_json
from etcmodel.preprocessing import raw_files

__all__ = [
    "Given",
    "Item",
    "Passage",
    "Places",
    "Results",
    "Table",
    "check_answers",
    "clipped",
    "most_frequent",
    "plain_passage",
    "read_object",
    "read_rows",
]

_MOST_CHARACTERS = 3000  # Of a passage on a page.
_MOST_BYTES = 512 << 20  # Of predictions: they are not foreign files, and may be of many examples.
_ADVICE = "Give --predictions a file of this task."
_KINDS = {str: "a text", list: "a list"}


@dataclasses.dataclass(frozen=True)
class Given:
    """What a task reads its results from.

    Attributes:
        predictions_file, eval_gold: str. As the task's programs write and take them.
        options: dict. The task's options that are kept with a run: see
            `finetuning.trained_run.run_options`.
        evidence_dir: str or None. Folder of documents that are files of their own.
        removed: float. Share of all examples that `eval_gold` lacks, and that count as 0.
    """

    predictions_file: str
    eval_gold: str
    options: dict = dataclasses.field(default_factory=dict)
    evidence_dir: str | None = None
    removed: float = 0.0


@dataclasses.dataclass(frozen=True)
class Passage:
    """A part of the input.

    Attributes:
        title: str; '' for none.
        sentences: tuple of (status, text). The status is "plain", or with supporting facts
            "correct", "missed" or "wrong".
    """

    title: str
    sentences: tuple


@dataclasses.dataclass(frozen=True, kw_only=True)
class Item:
    """One example.

    Attributes:
        key: str. Its id.
        question, prediction, gold: str, as people read them.
        is_right: bool. Whether the filter for wrong answers hides it.
        score: float or None. By the task's `Results.score_name`.
        passages: tuple of `Passage`.
        marked_gold, marked_predicted: tuple of str. What is marked in passages and candidates.
        candidates: tuple of str. The answers that there are to choose from.
        others: tuple of (system, its prediction, whether that is right), to compare with.
    """

    key: str
    question: str
    prediction: str
    gold: str
    is_right: bool
    score: float | None = None
    passages: tuple = ()
    marked_gold: tuple = ()
    marked_predicted: tuple = ()
    candidates: tuple = ()
    others: tuple = ()


@dataclasses.dataclass(frozen=True)
class Places:
    """How the score depends on where in the input the evidence stands.

    Attributes:
        score_name: str. What the scores are, such as "Answer F1".
        of: str. What stands there, such as "the last supporting fact".
        points: tuple of (place, score), both in [0, 1].
    """

    score_name: str
    of: str
    points: tuple


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        title, note: str.
        columns: tuple of str, the first that of the rows' names.
        rows: tuple of tuple of str, the first of each its name.
    """

    title: str
    note: str
    columns: tuple
    rows: tuple


@dataclasses.dataclass(frozen=True, kw_only=True)
class Results:
    """All that a page shows of predictions.

    Attributes:
        metrics: dict of float, the official metrics of the predictions.
        best_metric: str. The one that counts most.
        items: tuple of `Item`.
        noun: str. What the items are, such as "questions".
        baselines: dict of what a system without a model does to its metrics.
        score_name: str. What an item's score is.
        filter_name: str. What the filter leaves.
        places: `Places`, or None.
        tables: tuple of `Table`.
        system: str. What made the predictions, where several are compared; '' for the run.
    """

    metrics: dict
    best_metric: str
    items: tuple
    noun: str
    baselines: dict
    score_name: str
    filter_name: str = "Wrong answers only"
    places: Places | None = None
    tables: tuple = ()
    system: str = ""


def read_object(path):
    """The predictions of a file that holds one JSON object: dict.

    Raises:
        ValueError: naming the file, if it does not.
    """
    return bounded_json.read_object(path, _ADVICE, _MOST_BYTES)


def read_rows(path, fields):
    """The predictions of a file of JSON lines: list of dict.

    Args:
        path: str.
        fields: dict of what each must have to its type.
    Raises:
        ValueError: naming the file and the line, if something is missing or of another type.
    """
    rows = list(raw_files.read_json_values(path))
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or any(
            not isinstance(row.get(field), kind) for field, kind in fields.items()
        ):
            raise ValueError(
                f"{path}: line {number} must be a JSON object with {', '.join(fields)}. {_ADVICE}"
            )
    return rows


def check_answers(answers, keys, path, kind=str):
    """Checks that predictions are of the gold file's examples, at least some of them.

    Those of another task, or of other examples, would else count as wrong answers.

    Args:
        answers: dict of an example's id to what is predicted.
        keys: iterable of the ids of the gold file.
        path: str. The file of the predictions.
        kind: type. What a prediction is: str or list.
    Raises:
        ValueError: naming the file, if none is, or one is of another type.
    """
    found = [key for key in keys if key in answers]
    if not found:
        raise ValueError(
            f"{path}: no prediction is of an example of the gold file. Give --predictions and "
            "--eval_gold of the same examples, and the --task that they are of."
        )
    for key in found:
        if not isinstance(answers[key], kind):
            raise ValueError(f"{path}: the prediction of {key!r} must be {_KINDS[kind]}. {_ADVICE}")


def most_frequent(values):
    """The most frequent value; of equally frequent ones the first."""
    return collections.Counter(values).most_common(1)[0][0]


def clipped(text, around=0):
    """A part of a long text, around a character of it.

    Args:
        text: str.
        around: int.
    """
    if len(text) <= _MOST_CHARACTERS:
        return text
    start = max(0, min(around - _MOST_CHARACTERS // 2, len(text) - _MOST_CHARACTERS))
    end = start + _MOST_CHARACTERS
    return "… " * (start > 0) + text[start:end] + " …" * (end < len(text))


def plain_passage(text, title="", around=0):
    """A `Passage` without sentences of its own."""
    return Passage(title, (("plain", clipped(text, around)),))
