"""Typed examples from files in CoNLL's format, JSON and the like."""

import dataclasses
import itertools
import os
import re

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

_DOCUMENT = "-DOCSTART-"
# With a space, since words begin with "#", too, such as "#id".
_COMMENT = re.compile(r"#\s+(id\b|[\w.:]+\s*=)")


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


def sentences_of(words, values=None):
    """Words, or values of their form, as a list of sentences; words without sentences are one."""
    values = words if values is None else values
    return [values] if isinstance(words[0], str) else values


def parse_row(row, options, with_tags=True, needs_tags=False):
    """Makes a `TaggedText` from a row of `read_rows`, as `parse_example` does."""
    fields = fields_of(row, options, with_tags)
    return parse_example(fields, options, row["id"], with_tags, needs_tags)


def fields_of(row, options, with_tags=True):
    """The raw example in a row of `read_rows`, as a JSON object; without tags if no column has any.

    Raises:
        ValueError: with the problem, if it cannot be read; naming a line with other columns than
            the file's first line.
    """
    if "lines" not in row:
        return raw_files.fields_of(row)
    count = row["columns"]
    for number, cells in itertools.chain(*row["lines"]):
        if len(cells) != count or not all(cells):
            raise ValueError(
                f"line {number} must have {count} columns, as the first one has, and none of them "
                f"empty. Received: {cells}"
            )
    word, tag = (_place(count, x) for x in (options.word_column, options.tag_column))
    if count == 1:
        word, tag = 0, None  # Words alone.
    if word is None or (with_tags and count > 1 and tag in (None, word)):
        raise ValueError(
            f"lines have {count} columns, which is too few for --word_column={options.word_column} "
            f"and --tag_column={options.tag_column}"
        )
    columns = {options.words_field: word}
    if with_tags and tag is not None:
        columns[options.tags_field] = tag
    return {
        name: [[cells[column] for _, cells in sentence] for sentence in row["lines"]]
        for name, column in columns.items()
    }


def _place(count, column):
    """The place of a column among so many, from 0; None if there is none."""
    place = column if column >= 0 else count + column
    return place if 0 <= place < count else None


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
        problem = "must be a list of strings, or of lists of them; numbers need names first"
        raise fields.error(name, problem, value)
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
    documents; any other one, for each sentence. Columns are separated by tabs, or else by spaces.
    Comments before a sentence, such as "# id 7" or "# text = …", are left out. Files in other
    formats are known by the ends of their names.

    Args:
        path: str. See `opener.read_rows` and `opener.read_lines`.
    Yields:
        dict of str, as `raw_files.read_text_rows`; in CoNLL's format, with `lines` in place of
        `fields`, the (number, cells) of the lines of each sentence; and `columns`, the number of
        cells of the file's first line.
    Raises:
        ValueError: naming the file, if it is damaged, or seems to be JSON.
    """
    if raw_files.has_rows(path):
        yield from raw_files.read_text_rows(path)
        return
    sentences, sentence, has_documents, columns = [], [], None, None
    for number, line in itertools.chain(raw_files.read_lines(path, keep_blank=True), [(0, "")]):
        is_start, is_blank = line.startswith(_DOCUMENT), not line.strip()
        if has_documents is None and not is_blank:
            has_documents = is_start
            if line.lstrip()[0] in "[{":
                raise ValueError(f"{path}: line {number} seems to be JSON. Name the file .jsonl")
        if (is_start or is_blank) and sentence:
            sentences.append(sentence)
            sentence = []
        if sentences and (is_start or not number or not has_documents):
            first = sentences[0][0][0]
            row = {"place": f"line {first}", "id": f"{os.path.basename(path)}:{first}"}
            yield {**row, "lines": sentences, "columns": columns}
            sentences = []
        if not (is_start or is_blank or (not sentence and _COMMENT.match(line))):
            sentence.append((number, _cells(line)))
            columns = columns or len(sentence[0][1])


def _cells(line):
    """The cells of a line in columns: list of str."""
    line = line.rstrip("\r\n")
    if "\t" in line:
        return [cell.strip() for cell in line.split("\t")]
    return list(filter(None, line.split(" ")))


def example_reader(options, with_tags=True):
    """Makes the function that reads the examples of a raw file: see `raw_files.row_reader`."""
    return raw_files.row_reader(lambda row: parse_row(row, options, with_tags), read=read_rows)


def gather_labels(input_pattern, options):
    """The tags in raw files: a tuple of str, "O" first and the others sorted.

    Raises:
        ValueError: if there are none; names the first example and its problem.
    """

    def tags_of(row):
        return itertools.chain(*sentences_of(parse_row(row, options, needs_tags=True).tags))

    found = raw_files.gather_labels(input_pattern, read_rows, tags_of, "tags")
    return tuple(sorted(found, key=lambda tag: (tag != "O", tag)))
