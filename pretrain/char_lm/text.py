"""A file's bytes, and its parts."""

import dataclasses
import hashlib
import os

import numpy as np
import tensorflow as tf

__all__ = ["Text", "read_text", "unigram_bits"]

_SHARE = 20  # Dev and test text each have 1 / 20 of the bytes.


@dataclasses.dataclass(frozen=True)
class Text:
    """The parts of a file, in order, as uint8 arrays.

    Attributes:
        path: str.
        sha256: str. Digest of the file.
        train, dev, test: uint8 [bytes].
    """

    path: str
    sha256: str
    train: np.ndarray
    dev: np.ndarray
    test: np.ndarray

    @property
    def notes(self):
        """dict for JSON that identifies the text of a run."""
        path = self.path if "://" in self.path else os.path.abspath(self.path)
        return {"text_file": path, "text_sha256": self.sha256}

    def check_same(self, notes, directory):
        """Raises ValueError if the `notes` of the run in a directory identify another text."""
        if notes.get("text_sha256", self.sha256) != self.sha256:
            raise ValueError(
                f"--text_file={self.path}: the run in {directory} was made with another text, "
                f"{notes.get('text_file')!r} as it was then. Give that one."
            )


def read_text(path, dev_bytes=None, test_bytes=None):
    """The `Text` of a file.

    Args:
        path: str.
        dev_bytes, test_bytes: int or None. None: 5 % of the file, rounded down.
    Raises:
        ValueError: if no text would be left to train on.
    """
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    dev, test = (len(content) // _SHARE if x is None else x for x in (dev_bytes, test_bytes))
    end = len(content) - dev - test
    if end < 2:
        raise ValueError(
            f"{path}: has {len(content)} bytes, of which {dev} and {test} are dev and test text: "
            "too few are left to train on."
        )
    parts = np.split(np.frombuffer(content, np.uint8), [end, end + dev])
    return Text(path, hashlib.sha256(content).hexdigest(), *parts)


def unigram_bits(of, by):
    """Bits per character of a text under a unigram model of another text.

    Each character's count is increased by one, so that none is impossible.

    Args:
        of, by: uint8 arrays.
    Returns:
        float.
    """
    counts = np.bincount(by, minlength=256) + 1
    return float(-np.log2(counts / counts.sum())[of].mean())
