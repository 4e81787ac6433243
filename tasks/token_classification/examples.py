"""Typed examples from files in CoNLL's format, JSON and the like."""

import dataclasses
import itertools
import os

from etcmodel import opener
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified, is_list_of

__all__ = [
    "TaggedText",
    "example_reader",
    "fields_of",
    "gather_labels",
    "parse_example",
    "parse_row",
    "read_rows",
    "sentences_of",
]

_ROWS = (".json", ".jsonl", ".ndjson", ".jsonlines", ".parquet", ".arrow", ".feather")
_DOCUMENT = "-DOCSTART-"


@dataclasses.dataclass(frozen=True)
class TaggedText:
    """Words with their tags; `tags` is None if they are not known.

    Attributes:
        example_id: str.
        words: tuple of str, or a tuple of sentences, which are tuples of str; never empty.
        tags: tuple of the same form.
    """

    example_id: str
    words: tuple
    tags: tuple | None = None


def sentences_of(values):
    """Words or tags as a list of sentences; those of an example without sentences are one."""
    return [values] if isinstance(values[0], str) else list(values)


def parse_row(row, options, with_tags=True, needs_tags=False):
    """Makes a `TaggedText` from a row of `read_rows`, as `parse_example` does."""
    fields = fields_of(row, options)
    return parse_example(fields, options, row["id"], with_tags, needs_tags)


def fields_of(row, options):
    """The raw example in a row of `read_rows`, as a JSON object; without tags if no line has them.

    Raises:
        ValueError: with the problem, if it cannot be read; naming a line with too few columns.
    """
    if "lines" not in row:
        return raw_files.fields_of(row)
    words = [
        [_cell(number, cells, options.word_column) for number, cells in sentence]
        for sentence in row["lines"]
    ]
    column = options.tag_column
    numbered = itertools.chain(*row["lines"])
    if not any(
        _place(cells, column) != _place(cells, options.word_column) for _, cells in numbered
    ):
        return {options.words_field: words}
    tags = [
        [_cell(number, cells, column, options.word_column) for number, cells in sentence]
        for sentence in row["lines"]
    ]
    return {options.words_field: words, options.tags_field: tags}


def _place(cells, column):
    """The place of a column, from 0; None if the line is too short."""
    place = column if column >= 0 else len(cells) + column
    return place if 0 <= place < len(cells) else None


def _cell(number, cells, column, other=None):
    """What a line has in a column, which must not be that of the `other`."""
    place = _place(cells, column)
    if place is None or (other is not None and place == _place(cells, other)):
        columns = f"{len(cells)} column{'s' * (len(cells) != 1)}"
        raise ValueError(f"line {number} has {columns}, which is too few: {' '.join(cells)!r}")
    return cells[place]


def parse_example(raw, options, default_id="", with_tags=True, needs_tags=False):
    """Parses and checks a JSON object.

    Args:
        raw: dict. The options name its fields.
        options: `TokenClassificationFeatureOptions`.
        default_id: str. The id of an example without one.
        with_tags: bool. Whether to read the tags; predictions do not need them.
        needs_tags: bool. Whether tags are required, as for records.
    Returns:
        `TaggedText`.
    Raises:
        ValueError: naming the example's id and the field that is missing or malformed.
    """
    fields = identified(raw, options.id_field, default=default_id)
    words = _lists(fields, options.words_field)
    if not with_tags or raw.get(options.tags_field) is None:
        if needs_tags:
            raise fields.missing(options.tags_field, why=", and records need it")
        return TaggedText(fields.example_id, words)
    tags = _lists(fields, options.tags_field)
    if _shape(tags) != _shape(words):
        raise fields.error(
            options.tags_field,
            f"must have a tag for each word. Words: {_shape(words)}; tags: {_shape(tags)}",
            raw[options.tags_field],
        )
    return TaggedText(fields.example_id, words, tags)


def _lists(fields, name):
    """The words or tags in a field: a tuple of str, or of tuples of str."""
    value = fields.get(name)
    lists = [value] if is_list_of(value, str) else value
    if not is_list_of(lists, list) or not all(is_list_of(x, str) for x in lists):
        raise fields.error(name, "must be a list of strings, or of lists of them", value)
    if not lists or not all(lists) or not all(x.strip() for x in itertools.chain(*lists)):
        raise fields.error(name, "must not be empty, nor hold an empty list or string", value)
    for text in itertools.chain(*lists):
        fields.check_utf8(name, text)
    return tuple(value) if lists[0] is not value[0] else tuple(map(tuple, value))


def _shape(values):
    return [len(x) for x in sentences_of(values)]


# CoNLL's format: a word a line, in columns; a blank line ends a sentence.


def read_rows(path):
    """Streams the raw examples of a file.

    A file in CoNLL's format whose first line begins with -DOCSTART- has an example for each of its
    documents; any other one, for each sentence. Files in other formats are known by the ends of
    their names.

    Args:
        path: str. See `opener.read_rows` and `opener.read_lines`.
    Yields:
        dict of str, as `raw_files.read_text_rows`; in CoNLL's format, with `lines` in place of
        `fields`: the (number, cells) of the lines of each sentence.
    Raises:
        ValueError: naming the file, if it is damaged.
    """
    name = opener.unpacked_name(os.fspath(path))
    if os.path.splitext(name)[1].lower() in _ROWS:
        yield from raw_files.read_text_rows(path)
        return
    document, has_documents = [], None
    for number, line in raw_files.read_lines(path, keep_blank=True):
        is_start, is_blank = line.startswith(_DOCUMENT), not line.strip()
        if has_documents is None and not is_blank:
            has_documents = is_start
        if is_start or (is_blank and not has_documents):
            yield from _document_row(path, document)
            document = []
        if not is_start:
            document.append((number, line.split()))
    yield from _document_row(path, document)


def _document_row(path, lines):
    """The row of a document's numbered lines, if it has any that are not blank: an iterator."""
    groups = itertools.groupby(lines, key=lambda line: bool(line[1]))
    sentences = [list(group) for is_filled, group in groups if is_filled]
    if sentences:
        first = sentences[0][0][0]
        name = f"{os.path.basename(path)}:{first}"
        yield {"place": f"line {first}", "id": name, "lines": sentences}


def example_reader(options, with_tags=True):
    """Makes the function that reads the examples of a raw file: see `raw_files.example_reader`."""
    return raw_files.example_reader(
        lambda path: ((row["place"], row) for row in read_rows(path)),
        lambda row: parse_row(row, options, with_tags),
    )


def gather_labels(input_pattern, options):
    """The tags in raw files: a tuple of str, "O" first and the others sorted.

    Raises:
        ValueError: if there are none; names the first example and its problem.
    """
    from etcmodel.preprocessing import input_files  # Imports TensorFlow, which takes seconds.

    found, first = set(), ""
    for path in input_files(input_pattern):
        for row in read_rows(path):
            try:
                tags = parse_row(row, options, needs_tags=True).tags
            except ValueError as error:  # Preprocessing counts and reports it.
                first = first or f", the first: {path}: {row['place']}: {error}"
                continue
            found.update(itertools.chain(*sentences_of(tags)))
    if not found:
        raise ValueError(f"{input_pattern}: no example has tags{first}")
    return tuple(sorted(found, key=lambda tag: (tag != "O", tag)))
