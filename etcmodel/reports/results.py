"""A task's results in a form that the report page can show for any task."""

import collections
import dataclasses

from etcmodel import bounded_json
from etcmodel.preprocessing import raw_files

_MOST_CHARACTERS = 3000  # Per passage on a page.
_MOST_BYTES = 512 << 20  # Of prediction files: they are our own, and may cover many examples.
_ADVICE = "Give --predictions a file of this task."
_KINDS = {str: "a text", list: "a list"}


@dataclasses.dataclass(frozen=True)
class Given:
    """The inputs that a task reads its results from.

    Attributes:
        predictions_file, eval_gold: str. Files as the task's programs write and read them.
        options: dict. The task's options stored with a run: see
            `finetuning.trained_run.run_options`.
        evidence_dir: str or None. Folder of documents in separate files.
        removed: float. Fraction of all examples that are missing from `eval_gold` and score 0.
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
        sentences: tuple of (status, text). The status is "plain" or, for tasks with supporting
            facts, "correct", "missed" or "wrong".
    """

    title: str
    sentences: tuple


@dataclasses.dataclass(frozen=True, kw_only=True)
class Item:
    """One example.

    Attributes:
        key: str. Its id.
        question, prediction, gold: str, in readable form.
        is_right: bool. Whether the filter for wrong answers hides it.
        score: float or None. The score named by `Results.score_name`.
        passages: tuple of `Passage`.
        marked_gold, marked_predicted: tuple of str. Texts to mark in passages and candidates.
        candidates: tuple of str. The answers to choose from.
        others: tuple of (system, its prediction, whether it is right), for comparison.
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
    """How the score depends on the position of the evidence in the input.

    Attributes:
        score_name: str. Name of the score, such as "Answer F1".
        of: str. What the positions are of, such as "the last supporting fact".
        points: tuple of (position, score), both in [0, 1].
    """

    score_name: str
    of: str
    points: tuple


@dataclasses.dataclass(frozen=True)
class Table:
    """A table on the page.

    Attributes:
        title, note: str.
        columns: tuple of str. Column names; the first is for the row names.
        rows: tuple of tuple of str. Each row starts with its name.
    """

    title: str
    note: str
    columns: tuple
    rows: tuple


@dataclasses.dataclass(frozen=True, kw_only=True)
class Results:
    """Everything that a page shows about predictions.

    Attributes:
        metrics: dict of float. The official metrics of the predictions.
        best_metric: str. Name of the main metric.
        items: tuple of `Item`.
        noun: str. What the items are, such as "questions".
        baselines: dict from the description of a system without a model to its metrics.
        score_name: str. Name of an item's score.
        filter_name: str. Label of the filter: what it keeps.
        places: `Places`, or None.
        tables: tuple of `Table`.
        system: str. Name of the system that made the predictions, if several are compared; '' for
            the run.
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
    """Reads predictions from a file with one JSON object: dict.

    Raises:
        ValueError: naming the file, if it does not.
    """
    return bounded_json.read_object(path, _ADVICE, _MOST_BYTES)


def read_rows(path, fields):
    """Reads predictions from a file of JSON lines: list of dict.

    Args:
        path: str.
        fields: dict from the required fields to their types.
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
    """Checks that predictions are for examples of the gold file, at least some of them.

    Otherwise, predictions of another task or for other examples would count as wrong answers.

    Args:
        answers: dict from an example's id to its prediction.
        keys: iterable of the ids in the gold file.
        path: str. The file with the predictions.
        kind: type of a prediction: str or list.
    Raises:
        ValueError: naming the file, if no prediction matches, or one has another type.
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
    """The most frequent value; the first one in case of a tie."""
    return collections.Counter(values).most_common(1)[0][0]


def clipped(text, around=0):
    """Cuts a long text to a part around a character.

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
    """A `Passage` that is not split into sentences."""
    return Passage(title, (("plain", clipped(text, around)),))
