"""Reads the documents of questions, which are separate files."""

import os

import tensorflow as tf

from etcmodel.preprocessing import raw_files

__all__ = ["PROBLEMS", "EvidenceError", "check_folder", "read_document"]

PROBLEMS = ("malformed", "missing", "undecodable", "empty")


class EvidenceError(ValueError):
    """Raised for a document that cannot be used; `kind` is one of `PROBLEMS`."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def check_folder(folder):
    """Raises ValueError if `--evidence_dir` is given and is not a folder."""
    if folder is not None and not tf.io.gfile.isdir(folder):
        raise ValueError(f"--evidence_dir: no such folder: {folder!r}")


def read_document(page, folder):
    """The text of a `raw_data.Page`, not blank; it may be in a file in `--evidence_dir`.

    Raises:
        EvidenceError: naming the file, if it is missing, cannot be decoded, or is empty; or naming
            the field of the raw question, if it does not identify a file.
    """
    if page.problem:
        raise EvidenceError("malformed", page.problem)
    text, source = page.text, f"{page.source}/{page.name}"
    if text is None and (path := _path(page, folder)) is None:
        where = f"no such file in {folder}" if folder else "--evidence_dir is not given"
        raise EvidenceError("missing", f"{source}: {where}")
    try:
        if text is None:
            text = raw_files.read_text(path, is_metered=False)
        raw_files.check_utf8(text)  # Text from JSON may have half of a surrogate pair.
    except ValueError as error:
        raise EvidenceError("undecodable", f"{source}: {error}") from error
    if not text.strip():
        raise EvidenceError("empty", f"{source}: the document is empty")
    return text


def _path(page, folder):
    """The file of a document, or None. Names must not lead out of the folder."""
    parts = page.name.split("/")
    if not folder or "\0" in page.name or not {"", ".", ".."}.isdisjoint(parts):
        return None
    paths = (os.path.join(folder, page.source, *parts), os.path.join(folder, *parts))
    return next((x for x in paths if tf.io.gfile.exists(x) and not tf.io.gfile.isdir(x)), None)
