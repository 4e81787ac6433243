"""Deals the rows of a raw file to three files: to train on, to choose by, to measure on."""

import collections
import contextlib
import hashlib
import json
import math
import os
import random
from collections.abc import Hashable

from etcmodel import atomic_files
from etcmodel.shown_values import listed

__all__ = ["PARTS", "deal", "parts_of", "write"]

PARTS = TRAIN, DEV, TEST = "train", "dev", "test"


def parts_of(labels, shares, seed):
    """Deals groups of rows to parts, each label by itself as far as it has enough of them.

    Args:
        labels: dict of a group's key to what is dealt alike, such as its label.
        shares: dict of "dev" and "test" to their shares of all groups.
        seed: int.
    Returns:
        dict of key to one of `PARTS`. Each label has at least one group to train on.
    """
    by_label = collections.defaultdict(list)
    for key, label in labels.items():
        by_label[label].append(key)
    found, seen, taken = {}, 0, collections.Counter()
    for label in sorted(by_label, key=repr):
        keys = by_label[label]
        random.Random(f"{seed} {label!r}").shuffle(keys)
        seen += len(keys)
        left = iter(keys[1:])  # The first is trained on.
        for part, share in shares.items():
            # What rounding leaves to one label goes to the next, so that all have their share.
            for key in _first(left, math.floor(share * seen + 0.5) - taken[part]):
                found[key] = part
                taken[part] += 1
    return {key: found.get(key, TRAIN) for key in labels}


def _first(items, number):
    return [item for _, item in zip(range(number), items, strict=False)]


def deal(rows, shares, seed):
    """The part of each row: rows of the same text are in one part.

    Args:
        rows: iterable of (text, label): str, and what is dealt alike, hashable.
        shares, seed: see `parts_of`.
    Returns:
        function of a text to its part.
    Raises:
        ValueError: if one of the parts would have no row.
    """
    labels: dict[bytes, Hashable] = {}
    for text, label in rows:
        labels.setdefault(_key(text), label)
    parts = parts_of(labels, shares, seed)
    counts = collections.Counter(parts.values())
    if empty := [part for part in (TRAIN, *shares) if not counts[part]]:
        raise ValueError(
            f"{len(labels)} different texts with labels are too few to be dealt to "
            f"{', '.join((TRAIN, *shares))}: {listed(empty)} would have none."
        )
    return lambda text: parts[_key(text)]


def _key(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def write(folder, rows):
    """Writes the rows of each part as JSON lines; all files appear when they are complete.

    Args:
        folder: str.
        rows: iterable of (part, dict for JSON).
    Returns:
        dict of part to its number of rows.
    """
    counts = dict.fromkeys(PARTS, 0)
    with contextlib.ExitStack() as stack:
        files = {}
        for part in PARTS:
            path = os.path.join(folder, f"{part}.jsonl")
            temporary = stack.enter_context(atomic_files.new_file(path))
            files[part] = stack.enter_context(open(temporary, "w", encoding="utf-8"))
        for part, row in rows:
            files[part].write(json.dumps(row, ensure_ascii=False) + "\n")
            counts[part] += 1
    return counts
