"""Packs encodings into the rows of a batch, and pads them."""

import dataclasses

import numpy as np

from etcmodel.text.encoding import ProcessedBatch

__all__ = ["make_batch", "pack"]

_LONG = {"token_ids": "token_ids", "segment_ids": "segment_ids"}
_GLOBAL = {"global_token_ids": "global_ids", "global_segment_ids": "global_segment_ids"}
_SIDES = {  # Where the tokens of a pair are counted from.
    "links": ("place", "global_place"),
    "edges": ("global_place", "global_place"),
    "long_edges": ("place", "place"),
}
_NONE = -1


def pack(encodings, long_limit, global_limit):
    """Assigns each encoding to the first row that has room for it.

    Args:
        encodings: list of `Encoding`.
        long_limit, global_limit: int. The most tokens of a row.
    Returns:
        list of `Encoding`, in the same order, with `row`, `place`, `global_place` and `number`.
    """
    used, placed = [], []
    for encoding in encodings:
        sizes = np.array([len(encoding.token_ids), len(encoding.global_ids), 1])
        limits = np.array([long_limit, global_limit, np.inf])
        row = next((i for i, x in enumerate(used) if (x + sizes <= limits).all()), len(used))
        if row == len(used):
            used.append(np.zeros(3, np.int64))
        place, global_place, number = map(int, used[row])
        placed.append(
            dataclasses.replace(
                encoding, row=row, place=place, global_place=global_place, number=number + 1
            )
        )
        used[row] = used[row] + sizes
    return placed


def make_batch(encodings, config, pad_id):
    """Puts encodings into padded arrays.

    Args:
        encodings: list of `Encoding`, not empty.
        config: `ProcessorConfig`.
        pad_id: int. The id of padding.
    Returns:
        `ProcessedBatch`.
    """
    if config.pack:
        encodings = pack(encodings, config.max_long_len, config.max_global_len)
    else:
        encodings = [dataclasses.replace(x, row=row) for row, x in enumerate(encodings)]
    num_rows = max(x.row for x in encodings) + 1
    multiple = config.pad_to_multiple_of
    if config.pad_to == "max":
        long_len, global_len = config.max_long_len, config.max_global_len
    else:
        long_len = max(1, *(x.place + len(x.token_ids) for x in encodings))  # Models need one.
        global_len = max(x.global_place + len(x.global_ids) for x in encodings)
    shape, global_shape = ([num_rows, _rounded(n, multiple)] for n in (long_len, global_len))
    features = _token_features(encodings, shape, global_shape, pad_id, config.position_ids)
    for name in encodings[0].pairs:
        features[name] = _padded_pairs(encodings, name, num_rows, multiple)
    return ProcessedBatch(features, encodings, config.relation_names)


def _token_features(encodings, shape, global_shape, pad_id, has_positions):
    features = {name: np.zeros(shape, np.int32) for name in ("token_ids", "segment_ids")}
    features |= {name: np.zeros(global_shape, np.int32) for name in _GLOBAL}
    for name in ("token_ids", "global_token_ids"):
        features[name][:] = pad_id
    features["links"] = np.full(shape, _NONE, np.int32)
    for prefix, sides in (("", shape), ("global_", global_shape)):
        features[f"{prefix}example_ids"] = np.zeros(sides, np.int32)
        if has_positions:
            features[f"{prefix}position_ids"] = np.zeros(sides, np.int32)
    for x in encodings:
        where = (x.row, slice(x.place, x.place + len(x.token_ids)))
        global_where = (x.row, slice(x.global_place, x.global_place + len(x.global_ids)))
        for name, field in _LONG.items():
            features[name][where] = getattr(x, field)
        for name, field in _GLOBAL.items():
            features[name][global_where] = getattr(x, field)
        features["links"][where] = np.where(x.links >= 0, x.links + x.global_place, _NONE)
        features["example_ids"][where] = x.number
        features["global_example_ids"][global_where] = x.number
        if has_positions:
            features["position_ids"][where] = np.arange(len(x.token_ids))
            features["global_position_ids"][global_where] = np.arange(len(x.global_ids))
    return features


def _padded_pairs(encodings, name, num_rows, multiple):
    """int32 [num_rows, num_pairs, 2], padded by -1."""
    sides = _SIDES[name.partition("/")[0]]
    rows = [[np.zeros([0, 2], np.int32)] for _ in range(num_rows)]
    for x in encodings:
        shift = [getattr(x, side) for side in sides]
        rows[x.row].append(x.pairs[name] + np.array(shift, np.int32))
    joined = [np.concatenate(row) for row in rows]
    longest = _rounded(max(map(len, joined)), multiple)
    padded = np.full([num_rows, longest, 2], _NONE, np.int32)
    for row, pairs in enumerate(joined):
        padded[row, : len(pairs)] = pairs
    return padded


def _rounded(length, multiple):
    return -(-length // multiple) * multiple
