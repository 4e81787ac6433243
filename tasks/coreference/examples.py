"""Typed examples from files in the format of CoNLL-2012, and from JSON.

Source of the columns: Pradhan et al. 2012, "CoNLL-2012 Shared Task: Modeling Multilingual
Unrestricted Coreference in OntoNotes", section 4 and table 1; of the JSON: the files that the
programs of Lee et al. 2017 (arXiv:1707.07045) make of them.
"""

import collections
import dataclasses
import itertools
import re

from absl import logging

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified, is_int, is_list_of

__all__ = [
    "Document",
    "conll_lines",
    "document_of",
    "example_reader",
    "fields_of",
    "merged",
    "parse_example",
    "parse_row",
    "read_rows",
]

_BEGIN = re.compile(r"#begin document \((.*)\)(?:; part (\d+))?\s*$")
_PART = re.compile(r"(.+/.+)_\d+")  # An id in JSON, of a part of a document of OntoNotes.
_BRACKET = re.compile(r"(\()?([^()|\s]+)(\))?")
_WORD, _SPEAKER, _LEAST_COLUMNS = 3, 9, 5  # Of the columns of a line, from 0.
_COLUMNS_WITH_SPEAKER = 12
_NOTHING = ("-", "_", "*")  # In the last column.


@dataclasses.dataclass(frozen=True)
class Document:
    """A document, or a part of one.

    Attributes:
        example_id: str. Such as "bc/cctv/00/cctv_0000_1" for part 001 of bc/cctv/00/cctv_0000.
        sentences: tuple of tuples of str, the words; never empty.
        speakers: tuple of tuples of str, that of each word; "" or "-" for none.
        clusters: tuple of tuples of (first word, last word), counted through the document from 0;
            sorted; None if they are not known.
    """

    example_id: str
    sentences: tuple
    speakers: tuple
    clusters: tuple | None = None


def parse_row(row, options=None, with_clusters=True, needs_clusters=False):
    """Makes a `Document` from a row of `read_rows`, as `parse_example` does, whatever the options.

    Those of other data sets name fields.
    """
    del options
    return parse_example(fields_of(row), row["id"], with_clusters, needs_clusters)


def parse_example(raw, default_id="", with_clusters=True, needs_clusters=False):
    """Parses and checks a JSON object.

    Clusters that have a span in common are one.

    Args:
        raw: dict of `doc_key`, `sentences`, and maybe `speakers` and `clusters`.
        default_id: str. The id of a document without a `doc_key`.
        with_clusters: bool. Whether to read the clusters; predictions do not need them.
        needs_clusters: bool. Whether they are required, as for records.
    Returns:
        `Document`.
    Raises:
        ValueError: naming the document and the field that is missing or malformed.
    """
    fields = identified(raw, "doc_key", default=default_id)
    sentences = _lists(fields, "sentences")
    if not sentences or not all(x.strip() for x in itertools.chain(*sentences)):
        raise fields.error("sentences", "must have words, and no blank ones", raw["sentences"])
    lengths = [len(sentence) for sentence in sentences]
    speakers = tuple(("",) * length for length in lengths)
    if raw.get("speakers") is not None:
        speakers = _lists(fields, "speakers")
        if [len(x) for x in speakers] != lengths:
            problem = "must have a speaker for each word, in lists as long as the sentences"
            raise fields.error("speakers", problem, raw["speakers"])
    if not with_clusters or raw.get("clusters") is None:
        if needs_clusters:
            raise fields.missing("clusters", why=", and records need it")
        return Document(fields.example_id, sentences, speakers)
    clusters = merged(_clusters(fields, lengths))
    return Document(fields.example_id, sentences, speakers, clusters)


def _lists(fields, name):
    """The lists of strings in a field: tuple of tuples, without empty ones."""
    value = fields.get(name)
    if not is_list_of(value, list) or not all(is_list_of(x, str) for x in value):
        raise fields.error(name, "must be a list of lists of strings, one for each sentence", value)
    for text in itertools.chain(*value):
        fields.check_utf8(name, text)
    return tuple(tuple(x) for x in value if x)


def _clusters(fields, lengths):
    """The clusters in the field of this name: list of lists of [first word, last word]."""
    value = fields.get("clusters")
    starts = list(itertools.accumulate(lengths, initial=0))
    sentence_of = [x for x, length in enumerate(lengths) for _ in range(length)]
    if not is_list_of(value, list) or not all(is_list_of(x, list) for x in value):
        raise fields.error("clusters", "must be a list of lists of [first, last word]", value)
    for span in itertools.chain(*value):
        is_span = len(span) == 2 and all(is_int(x) and 0 <= x < starts[-1] for x in span)
        if not (is_span and span[0] <= span[1] and len({sentence_of[x] for x in span}) == 1):
            problem = (
                f"must have [first, last word] of one sentence, counted from 0 to {starts[-1] - 1}"
            )
            raise fields.error("clusters", problem, span)
    return value


def merged(clusters):
    """Clusters of spans, with those that share a span as one; sorted tuples of tuples."""
    by_span = {}
    for cluster in clusters:
        spans = [tuple(x) for x in cluster]
        whole = set(spans).union(*(by_span[x] for x in spans if x in by_span))
        by_span.update(dict.fromkeys(whole, whole))
    distinct = {id(x): x for x in by_span.values()}.values()
    return tuple(sorted(tuple(sorted(x)) for x in distinct))


def example_reader(with_clusters=True):
    """Makes the function that reads the documents of a raw file: see `raw_files.row_reader`."""
    return raw_files.row_reader(
        lambda row: parse_row(row, with_clusters=with_clusters), read=read_rows, noun="documents"
    )


# The format of CoNLL-2012: a word a line, in columns; a blank line ends a sentence.


def read_rows(path):
    """Streams the raw examples of a file.

    Files that are not known as JSON and the like by the ends of their names are in the format of
    CoNLL-2012: documents, or parts of them, between `#begin document (name); part 000` and
    `#end document`.

    Args:
        path: str. See `opener.read_rows` and `opener.read_lines`.
    Yields:
        dict of str, as `raw_files.read_text_rows`; of a file in CoNLL's format, with `lines` in
        place of `fields`: the (number, cells) of the lines of each sentence; and `document`, its
        name without the part.
    Raises:
        ValueError: naming the file and the line, if it is damaged, or in another format.
    """
    if raw_files.has_rows(path):
        yield from raw_files.read_text_rows(path)
        return
    row = None
    for number, line in raw_files.read_lines(path, keep_blank=True):
        begin = _BEGIN.match(line)
        if row is None and begin:
            key = f"{begin[1]}_{int(begin[2] or 0)}"
            row = {"place": f"line {number}", "id": key, "document": begin[1], "lines": [[]]}
        elif row is not None and line.startswith("#end document"):
            yield row
            row = None
        elif row is None and not line.strip():
            pass
        elif row is None or begin:
            wanted = "#end document" if row else "#begin document (name); part 000"
            raise ValueError(
                f"{path}: line {number} must be `{wanted}`, as in CoNLL-2012; JSON lines need a "
                f"name that ends in .jsonl. Received: {line.strip()[:80]!r}"
            )
        elif line.strip():
            row["lines"][-1].append((number, line.split()))
        elif row["lines"][-1]:
            row["lines"].append([])
    if row is not None:
        raise ValueError(f"{path}: {row['place']} begins a document that has no `#end document`.")


def document_of(row):
    """The name of the document that a readable row of `read_rows` is a part of: str.

    Of JSON, an id has a part if it looks like those of OntoNotes, with a `/` and a number at its
    end: `doc_1` and `doc_2` are two documents.

    >>> from etcmodel.tasks.coreference import examples
    >>> [examples.document_of({"id": x, "fields": {}}) for x in ("nw/a_0", "nw/a_1", "doc_1")]
    ['nw/a', 'nw/a', 'doc_1']
    """
    if "document" in row:
        return row["document"]
    name = str(raw_files.fields_of(row).get("doc_key") or row["id"])
    part = _PART.fullmatch(name)
    return part[1] if part else name


def fields_of(row):
    """The raw example in a row of `read_rows`, as a JSON object.

    Raises:
        ValueError: with the problem, if it cannot be read; naming the line, for too few columns, or
            a bracket without its counterpart in the sentence.
    """
    if "lines" not in row:
        return raw_files.fields_of(row)
    sentences = [sentence for sentence in row["lines"] if sentence]
    clusters, before = collections.defaultdict(list), 0
    for sentence in sentences:
        for number, cells in sentence:
            if len(cells) < _LEAST_COLUMNS:
                raise ValueError(
                    f"line {number} must have the columns of CoNLL-2012, {_LEAST_COLUMNS} at "
                    f"least. Received: {' '.join(cells)}"
                )
        for key, start, end in _spans(sentence):
            clusters[key].append([before + start, before + end])
        before += len(sentence)
    return {
        "doc_key": row["id"],
        "sentences": [[cells[_WORD] for _, cells in sentence] for sentence in sentences],
        "speakers": [[_speaker(cells) for _, cells in sentence] for sentence in sentences],
        "clusters": list(clusters.values()),
    }


def _speaker(cells):
    return cells[_SPEAKER] if len(cells) >= _COLUMNS_WITH_SPEAKER else ""


def _spans(sentence):
    """The (cluster, first word, last word)s in the last column of a sentence."""
    begun = collections.defaultdict(list)
    for place, (number, cells) in enumerate(sentence):
        for part in () if cells[-1] in _NOTHING else cells[-1].split("|"):
            bracket = _BRACKET.fullmatch(part)
            if not bracket or not (bracket[1] or bracket[3]):
                wanted = "such as (12, 12), (12), joined by |, or -"
                raise ValueError(f"line {number} must end in brackets {wanted}: {cells[-1]!r}")
            if bracket[1]:
                begun[bracket[2]].append((place, number))
            if bracket[3]:
                if not begun[bracket[2]]:
                    raise ValueError(
                        f"line {number} closes {part!r}, which is not open in its sentence"
                    )
                yield bracket[2], begun[bracket[2]].pop()[0], place
    for key, places in begun.items():
        if places:
            raise ValueError(f"line {places[0][1]} opens '({key}', which its sentence never closes")


def conll_lines(example_id, sentences, speakers, clusters):
    """The lines of a document in the format of CoNLL-2012, with `-` and `*` in the other columns.

    Args:
        example_id: str. The part of the document is the number behind its last `_`.
        sentences, speakers, clusters: as of `Document`. Of two mentions of one cluster that cross,
            of which brackets would be read as nested, the later one is left out, with a warning.
    Yields:
        str.

    >>> from etcmodel.tasks.coreference import examples
    >>> clusters = [[(0, 1), (3, 3)]]
    >>> lines = examples.conll_lines("x_2", [["The", "cat", "licked", "it"]], [[""] * 4], clusters)
    >>> print("".join(lines))
    #begin document (x); part 002
    x 2 0 The - - - - - - * (0
    x 2 1 cat - - - - - - * 0)
    x 2 2 licked - - - - - - * -
    x 2 3 it - - - - - - * (0)
    <BLANKLINE>
    #end document
    <BLANKLINE>
    """
    name, _, part = example_id.rpartition("_")
    if not (name and part.isascii() and part.isdigit()):
        name, part = example_id, "0"
    brackets = _brackets(example_id, clusters)
    yield f"#begin document ({name}); part {int(part):03d}\n"
    number = itertools.count()
    for words, said_by in zip(sentences, speakers, strict=True):
        for place, (word, speaker) in enumerate(zip(words, said_by, strict=True)):
            at = next(number)
            last = "|".join(text for *_, text in sorted(brackets[at])) or "-"
            cells = (name, int(part), place, word, *"-----", speaker or "-", "*", last)
            yield " ".join("_".join(str(cell).split()) for cell in cells) + "\n"
        yield "\n"
    yield "#end document\n"


def _brackets(example_id, clusters):
    """The brackets at each word: dict to a list of tuples, which end with a str, to be sorted."""
    brackets, crossing = collections.defaultdict(list), []
    for key, cluster in enumerate(clusters):
        kept = []
        for start, end in sorted(cluster):
            if other := next((x for x in kept if x[0] < start < x[1] < end), None):
                crossing.append(f"words {start} to {end}, which cross {other[0]} to {other[1]}")
                continue
            kept.append((start, end))
            if start == end:
                brackets[start].append((2, 0, f"({key})"))
            else:  # Closes the innermost first, then opens the outermost first.
                brackets[end].append((0, -start, f"{key})"))
                brackets[start].append((1, -end, f"({key}"))
    if crossing:
        logging.warning(
            "document %r: of mentions that cross another one of their cluster, %d left out, since "
            "CoNLL's brackets cannot say which one ends; JSON has them. The first: %s",
            *(example_id, len(crossing), crossing[0]),
        )
    return brackets
