"""Reads documents from raw files, in groups that are packed together."""

import hashlib
import os

from etcmodel import opener
from etcmodel.preprocessing import json_fields, raw_files

__all__ = ["RepeatCounter", "read_groups"]

# About 64 windows of 4096 word pieces: the last one, which is not full, matters little.
CHARACTERS_PER_GROUP = 1 << 20
_BLOCK = 1 << 20  # Characters of a text that are compared at a time.


def read_groups(
    path,
    document_separator="blank_line",
    characters_per_group=CHARACTERS_PER_GROUP,
    table=None,
):
    """Streams the documents of a file in groups.

    Args:
        path: str. Prose in UTF-8; or JSON, a table, Parquet or Arrow with a `text` (and optionally
            an `id`) each, as detected by `opener.read_rows`; or a folder of `.txt` files of prose.
        document_separator: 'blank_line' or 'file'. What ends a document of prose.
        characters_per_group: int. A group ends when it has this many characters.
        table: `opener.Table`. The format of tables.
    Yields:
        dict with "documents", a list of {"id": str, "text": str}; or, for something unreadable,
        such as a line that should be JSON and is not, with "error": str.
    Raises:
        ValueError: if the file is malformed; names the file and the line.
    """
    group, size = [], 0
    for document in _documents_of(path, document_separator, table):
        if "error" in document:
            yield document
            continue
        group.append(document)
        size += len(document["text"])
        if size >= characters_per_group:
            yield {"documents": group}
            group, size = [], 0
    if group:
        yield {"documents": group}


def _documents_of(path, separator, table):
    if not opener.is_folder(path):
        yield from _documents(path, separator, table)
        return
    for name in opener.text_files(path):
        yield from _documents(os.path.join(path, name), separator, table)


def _documents(path, separator, table):
    block, start = [], 1
    for row in opener.read_rows(path, table=table, may_be_prose=True):
        if row.unit != opener.PROSE:
            yield _document_of(row, f"{path}:{row.number}")
            continue
        try:
            raw_files.check_utf8(row.value)
        except ValueError as error:
            raise ValueError(f"{path}:{row.number}: {error}") from error
        if row.value.strip() or separator == "file":
            start = start if block else row.number
            block.append(row.value)
        elif block:
            yield {"id": f"{path}:{start}", "text": "".join(block)}
            block = []
    if block:
        name = str(path) if separator == "file" else f"{path}:{start}"
        yield {"id": name, "text": "".join(block)}


def _document_of(row, place):
    if row.problem:
        return {"error": f"{place}: {row.problem}"}
    raw = row.value
    if not isinstance(raw, dict) or not isinstance(raw.get("text"), str):
        found = f": its fields are {sorted(map(str, raw))}" if isinstance(raw, dict) else ""
        return {"error": f"{place}: no object with a string `text`{found}"}
    try:
        document_id = json_fields.id_of(raw, "id", default=place)
    except ValueError as error:
        return {"error": f"{place}: {error}"}
    return {"id": document_id, "text": raw["text"]}


class RepeatCounter:
    """Counts documents whose text is that of an earlier one, white space apart; drops none.

    Args:
        most: int. The number of different texts to remember, of which 8 bytes each are kept: about
            100 MB. Repeats of later ones are not found.
    Attributes:
        num_documents, num_repeated: int. Of all documents read.
    """

    def __init__(self, most=1 << 20):
        self._most, self._known = most, set()
        self.num_documents = self.num_repeated = 0

    @property
    def is_full(self):
        """Whether there may be more repeats than were counted."""
        return len(self._known) >= self._most

    def counting(self, read):
        """Returns a function that reads groups as `read` does, and counts their documents."""

        def groups(path):
            for group in read(path):
                for document in group.get("documents", ()):
                    self._add(document["text"])
                yield group

        return groups

    def _add(self, text):
        self.num_documents += 1
        found = hashlib.blake2b(digest_size=8)
        for start in range(0, len(text), _BLOCK):  # All words at once take many times its memory.
            letters = "".join(text[start : start + _BLOCK].split())
            found.update(letters.encode("utf-8", "surrogatepass"))
        key = found.digest()
        if key in self._known:
            self.num_repeated += 1
        elif not self.is_full:
            self._known.add(key)
