"""Plain text and JSON lines to documents, read in groups that are packed together."""

from etcmodel.preprocessing import raw_files

__all__ = ["read_groups"]

# About 64 windows of 4096 word pieces: the last one, which is not full, matters little.
CHARACTERS_PER_GROUP = 1 << 20


def read_groups(path, document_separator="blank_line", characters_per_group=CHARACTERS_PER_GROUP):
    """Streams the documents of a file in groups.

    Args:
        path: str. Text in UTF-8, or JSON lines with a `text` (and perhaps an `id`) each where the
            name ends in `.jsonl`; compressed where it then ends in `.gz`; local or remote.
        document_separator: 'blank_line' or 'file'. What ends a document of a text file.
        characters_per_group: int. A group ends when it has as many.
    Yields:
        dict with "documents", a list of {"id": str, "text": str}; or, for a line that is not JSON
        or not UTF-8 where JSON is expected, with "error": str.
    Raises:
        ValueError: if the file cannot be read as such; names the file and the line.
    """
    group, size = [], 0
    for document in _documents(path, document_separator):
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


def _documents(path, document_separator):
    if str(path).removesuffix(".gz").endswith(".jsonl"):
        yield from _parse_lines(path)
    elif document_separator == "file":
        yield {"id": str(path), "text": "".join(line for _, line in _text_lines(path))}
    else:
        yield from _blocks(path)


def _text_lines(path):
    for number, line in raw_files.read_lines(path, keep_blank=True):
        try:
            raw_files.check_utf8(line)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
        yield number, line


def _blocks(path):
    block, start = [], 1
    for number, line in _text_lines(path):
        if line.strip():
            start = start if block else number
            block.append(line)
        elif block:
            yield {"id": f"{path}:{start}", "text": "".join(block)}
            block = []
    if block:
        yield {"id": f"{path}:{start}", "text": "".join(block)}


def _parse_lines(path):
    for number, line in raw_files.read_lines(path):
        place = f"{path}:{number}"
        try:
            raw = raw_files.load_json_line(line)
        except ValueError as error:
            yield {"error": f"{place}: {error}"}
            continue
        if not isinstance(raw, dict) or not isinstance(raw.get("text"), str):
            yield {"error": f"{place}: no object with a string `text`"}
            continue
        yield {"id": str(raw.get("id", place)), "text": raw["text"]}
