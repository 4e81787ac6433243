"""Tags of tokens: from labelled spans of characters to targets, and from logits back to spans.

Tags are BIO, BIOES or BILOU (`B-PER`, `I-PER`, … and `O`), or labels without letters.
"""

import re
from typing import NamedTuple

import numpy as np

from etcmodel.text import answers, targets

OUTSIDE = "O"
_ENTITY_TAG = re.compile(r"[BILESU]-.+", re.DOTALL)
_ENDS, _ALONE = ("E", "L", "S", "U"), ("B", "S", "U")
# What the heads that read a batch of `EtcProcessor` and of other processors take as no label.
_OF_ETC, _OF_OTHERS = -1, -100


def are_entities(labels):
    """Whether labels are tags of entities: "O", and a letter of BIO, BIOES or BILOU and a kind."""
    named = [label for label in labels if label != OUTSIDE]
    return bool(named) and all(map(_ENTITY_TAG.fullmatch, named))


def entities(tags):
    """The entities in the tags of a sentence, by the rules of conlleval.

    Args:
        tags: sequence of str, in BIO (either kind), BIOES or BILOU.
    Returns:
        list of (kind, first word, word behind the last).

    >>> from etcmodel.text import tags
    >>> tags.entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5)]
    """
    found, begin, before, kind_before = [], None, OUTSIDE, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, _, kind = tag.partition("-")
        is_new = letter in _ALONE or before in (OUTSIDE, *_ENDS) or kind != kind_before
        if begin is not None and (is_new or letter == OUTSIDE):
            found.append((kind_before, begin, place))
            begin = None
        if begin is None and letter != OUTSIDE:
            begin = place
        before, kind_before = letter, kind
    return found


class TaggedSpan(NamedTuple):
    """A span of text and its label.

    Attributes:
        content: str. As in the input.
        label: str, without a letter of BIO.
        text, start, end: int. Its characters, `document.texts[text][start:end]`.
    """

    content: str
    label: str
    text: int
    start: int
    end: int


def tag_targets(batch, labels, field="spans"):
    """Turns labelled spans of characters into targets of token classification.

    `extra[field]` of an example is a list of dicts of `start` and `end`, the characters
    `[start, end)`, `label`, and `text` as in `targets.answer_targets`. With `B-PER` and `I-PER`
    among the labels, the first token of a span of `PER` has the former and its others the latter;
    else all have the label itself. The rest of its text has "O".

    Args:
        batch: `ProcessedBatch`, not packed.
        labels: sequence of str, in the order of the model's outputs, "O" among them.
        field: str. The entry of `extra` that holds the spans.
    Returns:
        int32 [batch, long_len]. Tokens without text, and those of a question, have what the losses
        of heads ignore: -1 in batches of `EtcProcessor`, -100 in others.
    Raises:
        ValueError: if "O" is no label; or naming the example, if it has no such field, or a span is
            not within a text, has no token or an unknown label, or shares a token with another one.

    >>> from etcmodel.text.tags import tag_targets
    >>> spans = [{"start": 3, "end": 14, "label": "PER"}]
    >>> batch = etcmodel.EtcProcessor("vocab.txt")(text="By Jane Austen.", extra={"spans": spans})
    >>> tag_targets(batch, ["O", "B-PER", "I-PER"])
    array([[-1,  0,  1,  2,  0, -1]], dtype=int32)
    """
    targets.check_one_a_row(batch)
    numbers = {label: number for number, label in enumerate(labels)}
    if OUTSIDE not in numbers:
        raise ValueError(f"`labels` must have {OUTSIDE!r}. Received: {list(labels)}")
    ignored = _OF_ETC if "token_ids" in batch else _OF_OTHERS
    found = np.full(batch.long_shape, ignored, np.int32)
    for encoding in batch.encodings:
        tags = _tags_of_pieces(encoding, numbers, field)
        tokens = np.flatnonzero(np.isin(encoding.texts, [*targets.answering_texts(encoding)]))
        found[encoding.row, encoding.place + tokens] = tags[encoding.pieces[tokens]]
    return found


def _tags_of_pieces(encoding, numbers, field):
    """The tag of each piece of an example, also of those that are cut off: int32 [num_pieces]."""
    source = encoding.source
    tags, is_free = np.full(len(source.texts), numbers[OUTSIDE]), np.ones(len(source.texts), bool)
    for text, start, end, label in targets.labelled_spans(encoding, field):
        is_in = (source.texts == text) & (source.starts < end) & (source.ends > start)
        first, others = (label if label in numbers else f"{letter}-{label}" for letter in "BI")
        wanted = None
        if label == OUTSIDE or not {first, others} <= numbers.keys():
            wanted = f"have one of the labels {[*numbers]}, with or without their letters B and I"
        elif not is_in.any():
            wanted = "have a token"
        elif not is_free[is_in].all():
            wanted = "share no token with another one"
        if wanted:
            raise ValueError(
                f"A span in `{field}` of {targets.name_of(encoding)} must {wanted}. Received: "
                f"{label!r} of {encoding.document.texts[text][start:end]!r}, [{start}, {end})"
            )
        tags[is_in], is_free[is_in] = numbers[others], False
        tags[np.argmax(is_in)] = numbers[first]
    return tags


def tagged_spans(batch, logits, labels, example=0):
    """Finds the labelled spans of an example, outside of its question.

    The tag of a word is that of its first token, as in `answers.widened`, and where windows
    overlap, that of the window in which the token is farthest from both ends (Devlin et al. 2018's
    code for SQuAD).

    Args:
        batch: `ProcessedBatch`.
        logits: float [batch, long_len, num_labels]. Of token classification.
        labels: sequence of str: as in `tag_targets`.
        example: int. Index of the example among those given to the processor.
    Returns:
        list of `TaggedSpan`, in the order of the text, by the rules of conlleval; a label without a
        letter is one span for all words next to each other that have it.
    Raises:
        ValueError: if the logits are not of the batch and the labels, or not finite; or there is no
            such example.

    >>> from etcmodel.text.tags import tagged_spans
    >>> batch = etcmodel.EtcProcessor("vocab.txt")(text="By Jane Austen.")
    >>> tags = np.eye(3)[[[0, 0, 1, 2, 0, 0]]]
    >>> [tuple(x) for x in tagged_spans(batch, tags, ["O", "B-PER", "I-PER"])]
    [('Jane Austen', 'PER', 0, 3, 14)]
    """
    logits = np.asarray(logits)
    wanted = (*batch.long_shape, len(labels))
    if logits.shape != wanted:
        raise ValueError(
            f"`logits` must have the shape {wanted}, of the token ids and the labels. Received: "
            f"{logits.shape}"
        )
    if not (windows := batch.windows(example)):
        raise ValueError(f"The batch has no example {example}.")
    source, document = windows[0].source, windows[0].document
    best = _best_tags(windows, logits)
    of_text = targets.answering_texts(windows[0])
    found = []
    for text in sorted(of_text):
        words = _words(document.texts[text], source, np.flatnonzero(source.texts == text), best)
        tags = [_lettered(labels[tag]) if tag >= 0 else OUTSIDE for _, _, tag in words]
        for label, first, behind in entities(tags):
            start, end = words[first][0], words[behind - 1][1]
            found.append(TaggedSpan(document.texts[text][start:end], label, text, start, end))
    return found


def _lettered(label):
    """The label as a tag: without a letter it goes on where the word before has it, too."""
    return label if label == OUTSIDE or _ENTITY_TAG.fullmatch(label) else f"I-{label}"


def _best_tags(windows, logits):
    """The tag of each piece of an example: int [num_pieces], -1 for those that were cut off."""
    num_pieces = len(windows[0].source.texts)
    best, depth = np.full(num_pieces, -1), np.full(num_pieces, -1)
    for encoding in windows:
        length = len(encoding.pieces)
        of_window = logits[encoding.row, encoding.place : encoding.place + length]
        if not np.isfinite(of_window).all():
            raise ValueError(f"The logits of row {encoding.row} must be finite: inf or nan.")
        depths = np.minimum(np.arange(length), np.arange(length)[::-1])
        tokens = np.flatnonzero(encoding.pieces >= 0)
        tokens = tokens[depths[tokens] > depth[encoding.pieces[tokens]]]
        best[encoding.pieces[tokens]] = of_window[tokens].argmax(-1)
        depth[encoding.pieces[tokens]] = depths[tokens]
    return best


def _words(text, source, pieces, best):
    """(start, end, tag) of each word: list of lists."""
    words = []
    for piece in pieces:
        start, end = int(source.starts[piece]), int(source.ends[piece])
        if words and (start < words[-1][1] or answers.are_joined(text, start)):
            words[-1][1] = max(end, words[-1][1])
        else:
            words.append([start, end, best[piece]])
    return words
