"""Reads examples from files and folders, tables, data sets and lists, repeatedly.

pandas and Hugging Face's `datasets` are recognized by their attributes, and never imported.
TensorFlow is not needed.
"""

import abc
import dataclasses
import difflib
import itertools
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from etcmodel import shown_values
from etcmodel.text import readers
from etcmodel.text.documents import Document
from etcmodel.text.labels import Labels, finite
from etcmodel.text.processor_config import Configured
from etcmodel.text.truncation import CutTotals

LABEL = "label"

_MEMORY = 512 << 20  # Bytes of examples held in memory to shuffle a stream.
_UNKNOWN_CLASS = -1  # In a Hugging Face `Dataset`.
_SIMILAR = 0.8  # Of names: `documnets`, `texts`.
_MAY_BE_BLANK = ("id", "question", "title")  # Cells of tables.
_DATA_FILE = re.compile(
    r"\S+\.(csv|tsv|tab|jsonl?|ndjson|jsonlines|parquet|arrow|feather|txt)(\.(gz|bz2|xz|zstd?))*",
    re.IGNORECASE,
)


def is_path(given):
    """Whether this is a path, not a text: it exists, or is one word with a data file's suffix."""
    if isinstance(given, os.PathLike):
        return True
    if not isinstance(given, str) or not given or "\n" in given or "\0" in given:
        return False
    if "://" in given:
        return not re.search(r"\s", given)
    return bool(_DATA_FILE.fullmatch(given)) or (len(given) < 4096 and os.path.exists(given))


def _is_frame(given):
    return hasattr(given, "iloc") and hasattr(given, "columns")


def _is_data_set(given):
    return hasattr(given, "column_names") and hasattr(given, "features")


def is_table(given):
    """Whether this has examples with columns: a path, pandas's `DataFrame`, or a `datasets` one."""
    return is_path(given) or _is_frame(given) or _is_data_set(given)


@dataclasses.dataclass(frozen=True)
class Columns:
    """Maps columns of rows, or keys of objects, to the parts of an example.

    Parts without a name here keep their own: `text`, `question`, `id`, `label`, and, unless a text
    is named, the other fields of `readers.read`. All other columns go to the example's `extra`.

    Attributes:
        text, question, id: str.
        second_text: str. A text to compare with the first, which then takes the question's place.
        label: str. The label of the text.
    """

    text: str | None = None
    second_text: str | None = None
    question: str | None = None
    label: str | None = None
    id: str | None = None

    def __post_init__(self):
        for name, value in vars(self).items():
            if value is not None and not isinstance(value, str):
                raise ValueError(
                    f"`{name}` must be the name of a column. Received: {shown_values.shown(value)}"
                )
        if self.second_text and self.question:
            raise ValueError("`second_text` and `question` cannot both be: give one of the two.")

    def example(self, row, where, has_label=True):
        """Returns the example of a row: dict that `readers.read` takes.

        Args:
            row: mapping of column to value.
            where: str. The row's name in errors.
            has_label: bool. Whether its label is needed.
        Raises:
            ValueError: naming the missing column, or the likely intended one.
        """
        row = {str(name): _plain(value) for name, value in row.items()}
        extra = row.pop("extra", None) or {}
        if not isinstance(extra, dict):
            raise ValueError(f"{where}: `extra` must be an object. Received: {extra!r}")
        chosen = {field: name for field, name in vars(self).items() if name is not None}
        for field, name in chosen.items():
            if name not in row and not (field == LABEL and name in extra):
                raise ValueError(f"{where} has no `{name}`, the `{field}`. {_names(row)}")
        rest = {name: x for name, x in row.items() if name not in chosen.values()}
        known = ("question", "id") if self.text or self.second_text else readers.FIELDS
        fields = {name: rest.pop(name) for name in known if name in rest and name not in chosen}
        if not chosen:
            _check_names(rest, where, (*readers.FIELDS, *[LABEL] * has_label))
        if self.label in row:
            rest[self.label] = row[self.label]
        fields |= {name: row[chosen[name]] for name in ("text", "question", "id") if name in chosen}
        if self.second_text:
            fields["question"] = fields.pop("text", None if self.text else rest.pop("text", None))
            # Without the first, the second one would be a text alone.
            _check_there(fields["question"], f"`{self.text or 'text'}`, the first text", where)
            _check_there(row[self.second_text], f"`{self.second_text}`, the second text", where)
            fields["documents"] = [row[self.second_text]]
        elif self.text:
            _check_there(fields["text"], f"`{self.text}`, the text", where)
        for name in _MAY_BE_BLANK:
            if fields.get(name) == "" and not (name == "question" and self.second_text):
                del fields[name]
        return {**fields, "extra": {**extra, **rest}}


def _check_there(value, name, where):
    """Raises ValueError for an empty cell, as pandas has it, or null."""
    if value is None:
        raise ValueError(
            f"{where}: {name}, is missing (None or NaN). Leave such rows out, or fill them with ''."
        )


def _plain(value):
    """A value as a Python object, from NumPy's or pandas's missing ones."""
    if type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, float) and value != value
    ):
        return None
    if not hasattr(value, "tolist"):
        return value
    return _plain(value.item()) if value.ndim == 0 else value.tolist()


def _names(row):
    return f"It has: {shown_values.listed([f'`{name}`' for name in row])}"


def _check_names(names, where, known):
    """Refuses names that are probably misspelled fields: they would be ignored silently."""
    for name in names:
        near = difflib.get_close_matches(name, known, 1, _SIMILAR)
        if near and name not in (*known, LABEL):
            argument = near[0] if near[0] in Columns.__dataclass_fields__ else "text"
            shown = repr(name) if argument == near[0] else "'…'"
            raise ValueError(
                f"{where} has `{name}`, which is no field. If it is the `{near[0]}`, call it so; "
                f"else say which columns are what, such as `{argument}={shown}`."
            )


class Examples:
    """Examples that can be read again and again, each with its name in errors.

    Args:
        given: str or path-like, a file or a folder as for `opener.read_rows`; a `DataFrame`,
            `Series` or Hugging Face `Dataset`; a list or another iterable that can be read more
            than once; or a function without arguments that returns an iterator. Its items are
            examples as for `readers.read`, rows (dicts of column to value), or pairs of one of
            these and a label.
        columns: `Columns`.
    Raises:
        ValueError: if it is none of these.
    """

    def __init__(self, given, columns=Columns()):  # noqa: B008  # It is frozen.
        self._columns = columns
        self.name = os.fspath(given) if is_path(given) or isinstance(given, str) else "the data"
        self._rows, self.size = _reader(given)
        self._features = getattr(given, "features", None) if _is_data_set(given) else None

    def read(self, labels=None, target=None, rng=None):
        """Yields (name in errors, example) for each example.

        Args:
            labels: `labels.Labels` of the target; None: it is a number, or several.
            target: str. The entry of `extra` that a model should learn, which is replaced by the
                result of `Labels.target`.
            rng: `numpy.random.Generator`. Shuffles, differently each time; None: the original
                order.
        Raises:
            ValueError: naming the example and its field.
        """
        rows = self._rows() if rng is None else _shuffled(self._rows(), rng, self.name)
        for where, content in rows:
            example = self._example(content, where, target is not None)
            if target is not None:
                example = self._with_target(example, target, labels, where)
            yield where, example

    def class_names(self, column):
        """Returns the label names that a Hugging Face `Dataset` has for a column: tuple of str."""
        found = self._features.get(column) if hasattr(self._features, "get") else None
        return tuple(getattr(found, "names", None) or ())

    def told(self, target):
        """Yields (name in errors, value of the target) for each example: see `read`."""
        for where, content in self._rows():
            yield where, self._told(self._example(content, where), target, where)

    def _told(self, example, target, where):
        extra = _extra(example)
        if target not in extra:
            has = f"There is: {', '.join(map(repr, extra))}" if extra else "Nothing is told of it."
            raise ValueError(f"{where} has no label `{target}`. {has}")
        value, names = extra[target], self.class_names(target)
        if value is None or value == "" or (names and value == _UNKNOWN_CLASS):
            raise ValueError(f"{where}: the label `{target}` is missing.")
        if names and isinstance(value, int):  # A data set's numbers are not a model's.
            return names[value]
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def _with_target(self, example, target, labels, where):
        value = self._told(example, target, where)
        try:
            value = _number(value) if labels is None else labels.target(value)
        except ValueError as error:
            is_told = "must be" not in str(error) or "Received" in str(error)
            received = "" if is_told else f". Received: {shown_values.shown(value)}"
            raise ValueError(f"{where}: `{target}` {error}{received}") from None
        extra = {**_extra(example), target: value}
        if isinstance(example, Document):
            return dataclasses.replace(example, extra=extra)
        return {**example, "extra": extra}

    def _example(self, content, where, has_label=True):
        label = ()
        if isinstance(content, tuple) and len(content) == 2:
            content, *label = content
        told = {self._columns.label or LABEL: _plain(label[0])} if label else {}
        if isinstance(content, Document):
            return dataclasses.replace(content, extra={**content.extra, **told})
        if isinstance(content, Mapping):
            content = self._columns.example(content, where, has_label)
        elif self._columns != Columns(label=self._columns.label):
            raise ValueError(f"{where} is no row with columns: it is of {type(content).__name__}")
        if not told:
            return content
        fields = content if isinstance(content, dict) else {"text": content}
        return {**fields, "extra": {**fields.get("extra", {}), **told}}


def _reader(given):
    """(function that yields (name, content) of each example, how many or None)."""
    if isinstance(given, (str, os.PathLike)):
        return lambda: readers.read_json_lines(given), None
    if isinstance(given, Mapping) and any(map(_is_data_set, given.values())):
        splits = ", ".join(map(repr, given))
        raise ValueError(f"`examples` has several data sets, {splits}: give one of them.")
    if _is_frame(given):
        names = [str(name) for name in given.columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"`examples` has several columns of one name, {shown_values.named(twice)}: give "
                "each its own."
            )
        read = lambda: (dict(zip(names, x, strict=True)) for x in given.itertuples(False, None))  # noqa: E731
    elif callable(given) and not hasattr(given, "__iter__"):
        read = given
    elif isinstance(given, Mapping) or not hasattr(given, "__iter__") or hasattr(given, "__next__"):
        raise ValueError(
            "`examples` must be readable more than once: a list, or the path of a file, or a "
            f"function that begins anew. Received: {type(given).__name__}"
        )
    else:
        read = lambda: map(_plain, given)  # noqa: E731
    size = len(given) if hasattr(given, "__len__") else None
    return lambda: ((f"examples[{number}]", x) for number, x in enumerate(read())), size


def _extra(example):
    if isinstance(example, Document):
        return example.extra
    return (example.get("extra") or {}) if isinstance(example, dict) else {}


def _number(value):
    """Returns the value; a table's cell as the number that it spells."""
    if not isinstance(value, str):
        return value
    try:
        number = finite(value)
        return int(value) if re.fullmatch(r"\s*[-+]?\d+\s*", value) else number
    except ValueError:
        pass
    raise ValueError(
        f"is a word, {shown_values.shown(value)}: give all of them in the order of the model's "
        "outputs, such as labels=['neg', 'pos']"
    )


def _shuffled(rows, rng, name):
    """Shuffles rows: all together if they fit into memory, else those near to each other."""
    held, size = [], 0
    for row in rows:
        size += _size(row[1])
        held.append(row)
        if size > _MEMORY:
            if size < float("inf"):
                logging.warning(
                    "%s: too large to be shuffled as a whole: each example moves among %d. Mix the "
                    "file first, if it is sorted.",
                    name,
                    len(held),
                )
                size = float("inf")
            place = int(rng.integers(len(held)))
            held[place], held[-1] = held[-1], held[place]
            yield held.pop()
    for place in rng.permutation(len(held)):
        yield held[place]


def _size(content):
    """Its approximate size in bytes."""
    if isinstance(content, (str, bytes)):
        return len(content) + 50
    if isinstance(content, Mapping):
        return 200 + sum(map(_size, content.values()))
    return 100 + sum(map(_size, content)) if isinstance(content, (list, tuple)) else 50


class ReadsExamples(Configured, abc.ABC):
    """The base of processors: makes batches from examples of any source.

    Attributes:
        vocabulary: sequence of str.
    """

    vocabulary: Any

    @property
    def vocab_size(self) -> int:
        """int: all ids are below it."""
        return len(self.vocabulary)

    @abc.abstractmethod
    def make_batch(
        self, named: Iterable[tuple[str, Any]], settings: dict[str, Any] | None, totals: CutTotals
    ) -> Any:
        """Makes the batch of examples, each with its name in errors."""

    def batches(
        self,
        examples: Any,
        batch_size: int,
        settings: dict[str, Any] | None = None,
        **columns: str | None,
    ) -> Iterator[Any]:
        """Yields the batches of many examples, one after the other.

        Args:
            examples: see `Examples`; or an iterable that can be read only once.
            batch_size: int. Examples per batch; the last one may have fewer. With windows or
                packing, a batch may have more or fewer rows.
            settings: dict. As in `__call__`.
            **columns: fields of `Columns`.
        Yields:
            Batches as from `__call__`. What was truncated in all of them is logged at the end.
        Raises:
            ValueError: naming file and line, or the number of the example.

        >>> processor = etcmodel.EtcProcessor("vocab.txt")
        >>> [batch["token_ids"].shape for batch in processor.batches("reviews.csv", batch_size=3)]
        [(3, 6), (1, 4)]
        """
        if hasattr(examples, "__next__"):
            once, examples = examples, lambda: once
        yield from self.batches_of(
            Examples(examples, Columns(**columns)).read(), batch_size, settings
        )

    def batches_of(
        self,
        named: Iterator[tuple[str, Any]],
        batch_size: int,
        settings: dict[str, Any] | None = None,
    ) -> Iterator[Any]:
        """Like `batches`, from the results of `Examples.read`."""
        if type(batch_size) is not int or batch_size < 1:
            raise ValueError(f"`batch_size` must be an int of at least 1. Received: {batch_size!r}")
        totals = CutTotals()
        try:
            while chunk := list(itertools.islice(named, batch_size)):
                yield self.make_batch(chunk, settings, totals)
        finally:
            totals.log()

    def dataset(
        self,
        examples: Any,
        batch_size: int,
        settings: dict[str, Any] | None = None,
        targets: str | Callable[[Any], Any] | None = None,
        *,
        text: str | None = None,
        second_text: str | None = None,
        question: str | None = None,
        label: str | None = None,
        id: str | None = None,
        labels: Iterable[str] | Labels | None = None,
        shuffle: bool | None = None,
        seed: int = 0,
    ) -> Any:
        """Makes a `tf.data.Dataset` of batches: see `datasets.make_dataset`.

        Args:
            text, second_text, question, label, id: see `Columns`; `label` also gives the targets.

        >>> processor = etcmodel.EtcProcessor("vocab.txt")
        >>> dataset = processor.dataset("reviews.csv", 2, label="label", labels=["neg", "pos"])
        >>> features, targets = next(iter(dataset))
        >>> features["token_ids"].shape[0], targets.dtype
        (2, tf.int32)
        """
        from etcmodel.text import datasets  # TensorFlow is slow to import.

        return datasets.make_dataset(
            self,
            examples,
            batch_size,
            settings,
            targets,
            columns=Columns(text, second_text, question, label, id),
            labels=labels,
            shuffle=shuffle,
            seed=seed,
        )
