"""Subjects of `draw_attention`: built-in examples, and structures in JSON files."""

import dataclasses
import json

import numpy as np
import tensorflow as tf

from etcmodel import attention_picture
from etcmodel.models import input_checks, input_utils, multihop_utils
from etcmodel.models.side_inputs import side_inputs_of
from etcmodel.ops import relations
from etcmodel.ops.structure import GlobalLocalStructure
from etcmodel.pictures import style

__all__ = ["EXAMPLES", "Subject", "draw", "pair_labels", "read_subject"]


@dataclasses.dataclass(frozen=True)
class Subject:
    """The subject of a picture.

    Attributes:
        structure: `GlobalLocalStructure` of a batch of one.
        local_radius: int. Number of long tokens attended to on each side.
        long_tokens: tuple of str, one per long token; or empty.
        global_tokens: tuple of str, one per global token; or empty.
    """

    structure: GlobalLocalStructure
    local_radius: int
    long_tokens: tuple = ()
    global_tokens: tuple = ()


def _words(texts):
    """All words, with the index of the text that each is from."""
    pairs = [(word, number) for number, text in enumerate(texts) for word in text.split()]
    return tuple(word for word, _ in pairs), [number for _, number in pairs]


_SENTENCES = (
    "The river rises on moors .",
    "It is 88 km long .",
    "Two dams hold it back .",
    "Salmon spawn below .",
)


def _document():
    """Sentences, each with a global token that attends to no other sentence (paper, figure 3a)."""
    words, sentences = _words(_SENTENCES)
    structure = input_utils.make_structure_from_example_ids(
        [[1] * len(words)], [[1] * len(_SENTENCES)], [sentences], 3, use_hard_g2l_mask=True
    )
    names = tuple(f"sentence {number + 1}" for number in range(len(_SENTENCES)))
    return Subject(structure, 4, words, names)


def _paragraphs():
    """A question and two paragraphs, with tokens for paragraphs and sentences (figure 3b)."""
    words, texts = _words(("How long is the river ?", *_SENTENCES))
    names = ("question", "paragraph A", "A: 1st", "A: 2nd", "paragraph B", "B: 1st", "B: 2nd")
    sentence_of, paragraph_of = (0, 2, 3, 5, 6), (-1, 1, 1, 4, 4)
    ends_paragraph = np.isin(texts, (0, 2, 4)) & (np.diff(texts, append=-1) != 0)
    structure = multihop_utils.make_structure(
        long_paragraph_breakpoints=[ends_paragraph.astype(int)],
        long_paragraph_ids=[[paragraph_of[text] for text in texts]],
        long_sentence_ids=[[sentence_of[text] for text in texts]],
        global_paragraph_breakpoints=[[1, 0, 0, 1, 0, 0, 1]],
        relative_pos_max_distance=3,
        use_hard_g2l_mask=True,
        ignore_hard_g2l_mask=[[1, 0, 0, 0, 0, 0, 0]],
    )
    return Subject(structure, 4, words, names)


def _fixed_blocks():
    """A global token for every 6 long tokens, and padding at the end."""
    words, _ = _words(_SENTENCES)
    words += ("[PAD]",) * (30 - len(words))
    is_real = [[int(word != "[PAD]") for word in words]]
    structure, global_token_ids = input_utils.make_fixed_block_structure(is_real, 6, 3)
    names = (f"block {number + 1}" for number in range(global_token_ids.shape[1]))
    names = (name if x else "[PAD]" for name, x in zip(names, global_token_ids[0], strict=True))
    return Subject(structure, 4, words, tuple(names))


EXAMPLES = {"document": _document, "paragraphs": _paragraphs, "fixed_blocks": _fixed_blocks}

_REQUIRED = ("local_radius", "long_segment_ids", "long_example_ids", "global_example_ids")
_LEAST = {"local_radius": 1, "max_distance": 0}
_MOST_LABELS = 1000
_ROWS = {  # The tokens that a field has an entry for, and the entries' type.
    "long_segment_ids": ("long", int),
    "long_example_ids": ("long", int),
    "global_example_ids": ("global", int),
    "links": ("long", int),
    "label_links": ("long", int),
    "global_segment_ids": ("global", int),
    "ignore_hard_g2l_mask": ("global", int),
    "ignore_hard_l2g_mask": ("long", int),
    "long_tokens": ("long", str),
    "global_tokens": ("global", str),
}


def read_subject(path):
    """Reads the JSON file of a structure.

    Returns:
        `Subject`.
    Raises:
        ValueError: naming the file and the field, if it cannot be read or is not a structure.
    """
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        _check_fields(fields)
        return _subject(fields)
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def _subject(fields):
    radius = fields.pop("local_radius")
    words = {name: tuple(fields.pop(name, ())) for name in ("long_tokens", "global_tokens")}
    for name in set(fields) & set(_ROWS):
        rows = fields[name] if name.endswith("links") else [fields[name]]
        tensors = tuple(tf.constant([row], tf.int32) for row in rows)
        fields[name] = tensors if name.endswith("links") else tensors[0]
    named = [_relation(entry) for entry in fields.pop("relations", ())]
    structure = GlobalLocalStructure(**fields).with_relations(*named)
    input_checks.check_structure(structure, radius, _MOST_LABELS)
    return Subject(structure, radius, **words)


def _relation(entry):
    """A relation, from its fields for one example."""
    known = set(relations.Relation._fields)
    if not isinstance(entry, dict) or not {"kind", "name", "ids"} <= set(entry) <= known:
        raise ValueError(f"a relation must have kind, name and ids, of {sorted(known)}: {entry!r}")
    fields = dict(entry)
    kind = fields.pop("kind")
    if kind not in relations.KINDS:
        raise ValueError(f"the kind of a relation must be one of {[*relations.KINDS]}: {kind!r}")
    return relations.KINDS[kind](**{**fields, "ids": tf.constant([entry["ids"]], tf.int32)})


def _check_fields(fields):
    if not isinstance(fields, dict):
        raise ValueError("it must hold a JSON object of the structure's fields")
    known = {*GlobalLocalStructure._fields, *_ROWS, *_LEAST}
    if unknown := sorted(set(fields) - known):
        raise ValueError(f"unknown fields {unknown}; there are {sorted(known)}")
    if missing := [name for name in _REQUIRED if name not in fields]:
        raise ValueError(f"it lacks {missing}")
    lengths = {side: fields[f"{side}_example_ids"] for side in ("long", "global")}
    lengths = {side: len(row) if isinstance(row, list) else 0 for side, row in lengths.items()}
    for name, value in fields.items():
        if name in _LEAST:
            if type(value) is not int or value < _LEAST[name]:
                raise ValueError(f"{name!r} must be a number from {_LEAST[name]} up: {value!r}")
        elif name == "relations":
            if not isinstance(value, list):
                raise ValueError(f"'relations' must be a list of relations: {value!r}")
        elif name not in _ROWS:
            if type(value) is not bool:
                raise ValueError(f"{name!r} must be true or false: {value!r}")
        elif not name.endswith("links"):
            _check_row(name, value, lengths)
        elif isinstance(value, list):
            for row in value:
                _check_row(name, row, lengths)
        else:
            raise ValueError(f"{name!r} must be a list of lists, each with a number a token")


def _check_row(name, row, lengths):
    side, kind = _ROWS[name]
    if not isinstance(row, list) or not all(type(x) is kind for x in row):
        what = "numbers" if kind is int else "words"
        raise ValueError(f"{name!r} must hold lists of {what}, one for each token: {row!r}")
    if len(row) != lengths[side]:
        raise ValueError(f"{name!r} has {len(row)} entries for {lengths[side]} {side} tokens")


def pair_labels(structure, local_radius):
    """The relative label of every pair of tokens.

    Args:
        structure: `GlobalLocalStructure` of a batch of one.
        local_radius: int.
    Returns:
        dict of int arrays [queries, keys] by piece ('g2g', 'g2l', 'l2g', 'l2l');
        `attention_picture.MASKED` where the query may not attend to the key, 0 for pairs of a
        structure without labels.
    """
    dense = side_inputs_of(structure, local_radius)
    labels = {}
    for piece in ("g2g", "g2l", "l2g", "l2l"):
        att_mask = getattr(dense, f"{piece}_att_mask")[0].numpy()
        ids = getattr(dense, f"{piece}_relative_att_ids")
        ids = np.zeros_like(att_mask) if ids is None else ids[0].numpy()
        labels[piece] = np.where(att_mask, ids, attention_picture.MASKED)
    labels["l2l"] = attention_picture.from_windows(labels["l2l"], local_radius)
    return labels


def draw(subject, title="", theme=style.LIGHT):
    """A `matplotlib.figure.Figure`: see `attention_picture.draw`.

    Args:
        subject: `Subject`.
        title: str.
        theme: `style.Theme`.
    Raises:
        ValueError: if there are no long tokens, or too many tokens to draw.
    """
    structure = subject.structure
    shape = [np.shape(ids)[1] for ids in (structure.long_example_ids, structure.global_example_ids)]
    attention_picture.check_sizes(*shape)
    names = {x.label: x.name for x in structure.relations if x.label is not None}
    return attention_picture.draw(
        pair_labels(structure, subject.local_radius),
        attention_picture.Legend(structure.labels, structure.has_labels, names),
        local_radius=subject.local_radius,
        long_tokens=subject.long_tokens,
        global_tokens=subject.global_tokens,
        title=title,
        theme=theme,
    )
