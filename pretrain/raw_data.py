"""Plain text and JSON lines to documents, read in groups that are packed together."""

import gzip
import json
import zlib

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
        dict with "documents", a list of {"id": str, "text": str}; or, for a malformed line of
        JSON, with "error": str.
    Raises:
        ValueError: if the file cannot be read as such; names the file.
    """
    group, size = [], 0
    try:
        for document in _documents(path, document_separator):
            if "error" in document:
                yield document
                continue
            group.append(document)
            size += len(document["text"])
            if size >= characters_per_group:
                yield {"documents": group}
                group, size = [], 0
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8: {error}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: broken gzip file: {error}") from error
    if group:
        yield {"documents": group}


def _documents(path, document_separator):
    name = str(path).removesuffix(".gz")
    with _open(path) as file:
        lines = (line.decode("utf-8") for line in file)
        if name.endswith(".jsonl"):
            yield from _parse_lines(lines, path)
        elif document_separator == "file":
            yield {"id": str(path), "text": "".join(lines)}
        else:
            yield from _blocks(lines, path)


def _open(path):
    if "://" in str(path):
        import tensorflow as tf  # Slow to import, and local files do not need it.

        file = tf.io.gfile.GFile(path, "rb")
    else:
        file = open(path, "rb")  # noqa: SIM115
    return gzip.open(file) if str(path).endswith(".gz") else file


def _blocks(lines, path):
    block, start = [], 1
    for number, line in enumerate(lines, start=1):
        if line.strip():
            start = start if block else number
            block.append(line)
        elif block:
            yield {"id": f"{path}:{start}", "text": "".join(block)}
            block = []
    if block:
        yield {"id": f"{path}:{start}", "text": "".join(block)}


def _parse_lines(lines, path):
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            raw = json.loads(line)
        except json.JSONDecodeError as error:
            yield {"error": f"{place}: malformed JSON: {error}"}
            continue
        if not isinstance(raw, dict) or not isinstance(raw.get("text"), str):
            yield {"error": f"{place}: no object with a string `text`"}
            continue
        yield {"id": str(raw.get("id", place)), "text": raw["text"]}
