"""Training targets from examples' `extra`: labels, and positions of answers."""

import numpy as np

from etcmodel.text.documents import QUESTION

__all__ = ["answer_targets", "label_targets", "span_ends"]

_ANSWER = ("start", "end", "text")
_INT32 = np.iinfo(np.int32)


def answer_targets(batch, field="answer"):
    """Turns answers given as characters into targets for `EtcForQuestionAnswering`.

    `extra[field]` of an example is None if the text has no answer, or a dict of `start` and `end`,
    the characters `[start, end)`, and `text`: the end of the text's name, such as
    "documents[1].text"; by default the first text that is not a question. An example, or a window
    of one, without the answer has its first token ([CLS]) as the target (Devlin et al. 2018,
    arXiv:1810.04805, section 4.3).

    Args:
        batch: `ProcessedBatch`, not packed.
        field: str. The entry of `extra` that holds the answer.
    Returns:
        dict of `start`, `end`: int32 [batch]. The first and the last long token of the answer.
    Raises:
        ValueError: naming the example, if it has no such field, or the answer is not within a text.

    >>> from etcmodel.text.targets import answer_targets
    >>> example = {"text": "By Jane Austen.", "extra": {"answer": {"start": 3, "end": 14}}}
    >>> batch = etcmodel.EtcProcessor("vocab.txt")(example)
    >>> answer_targets(batch)
    {'start': array([2], dtype=int32), 'end': array([3], dtype=int32)}
    """
    _check_one_a_row(batch)
    spans = [_target(encoding, field) for encoding in batch.encodings]
    starts, ends = np.array(spans, np.int32).reshape(-1, 2).T
    return {"start": starts, "end": ends}


def label_targets(batch, field):
    """Returns the labels in examples' `extra`.

    Args:
        batch: `ProcessedBatch`, not packed.
        field: str. All windows of an example have its label.
    Returns:
        Array [batch, …] of `extra[field]`; ints and booleans as int32.
    Raises:
        ValueError: naming the example, if it has no such field; naming the field, if it holds no
            numbers, or whole ones beyond int32.
    """
    _check_one_a_row(batch)
    values = [_extra(encoding, field) for encoding in batch.encodings]
    try:
        labels = np.array(values)
    except ValueError:  # Lists of different lengths.
        labels = np.array(None)
    if labels.dtype.kind not in "iubf":
        raise ValueError(
            f"`extra[{field!r}]` must hold numbers, as many in each example. Received: {values}"
        )
    if labels.dtype.kind == "f":
        return labels.astype(np.float32)
    if ((labels < _INT32.min) | (labels > _INT32.max)).any():
        raise ValueError(
            f"`extra[{field!r}]` holds whole numbers beyond int32: write them as floats, such as "
            f"3e9. Received: {values}"
        )
    return labels.astype(np.int32)


def span_ends(spans, places):
    """Marks the tokens at both ends of spans of characters, such as all occurrences of an answer.

    Args:
        spans: iterable of (start, end): characters `[start, end)`.
        places: int [2, num_tokens]. The characters of each token, in order; -1 for tokens without
            text.
    Returns:
        int64 0/1 [2, num_tokens]: 1 at the first and at the last token of each span that lies
        between the first and the last character of the tokens as a whole.
    """
    (tokens,) = np.nonzero(places[0] >= 0)
    starts, ends = places[:, tokens]
    labels = np.zeros(places.shape, np.int64)
    for start, end in spans:
        first = np.searchsorted(ends, start, side="right")
        last = np.searchsorted(starts, end, side="left") - 1
        if starts[0] <= start and end <= ends[-1] and first <= last:
            labels[0, tokens[first]] = labels[1, tokens[last]] = 1
    return labels


def _check_one_a_row(batch):
    """Raises ValueError if a row of the batch has several examples."""
    if len(batch.encodings) != batch.long_shape[0]:
        raise ValueError(
            "Targets are one a row, but rows of this batch hold several examples: leave out `pack`."
        )


def _extra(encoding, field):
    extra = encoding.document.extra
    if field not in extra:
        raise ValueError(f"{_name(encoding)} has no `extra[{field!r}]`. It has: {sorted(extra)}")
    return extra[field]


def _name(encoding):
    name = encoding.document.example_id
    return f"Example {name!r}" if name else f"Example {encoding.example} of the batch"


def _target(encoding, field):
    answer = _extra(encoding, field)
    span = None
    if answer is not None:
        if not isinstance(answer, dict) or not {"start", "end"} <= {*answer} <= {*_ANSWER}:
            raise ValueError(
                f"`{field}` of {_name(encoding)} must be None or a dict of {_ANSWER}. Received: "
                f"{answer!r}"
            )
        text = _text_of(encoding, answer.get("text"), field)
        start, end = answer["start"], answer["end"]
        length = len(encoding.document.texts[text])
        if not (type(start) is type(end) is int and 0 <= start < end <= length):
            raise ValueError(
                f"`{field}` of {_name(encoding)} must have 0 <= start < end <= {length}, the "
                f"length of its text. Received: {start=}, {end=}"
            )
        span = encoding.token_span(start, end, text)
    return (encoding.place, encoding.place) if span is None else span


def _text_of(encoding, name, field):
    """The index of the text of that name, by default of the first one that is not a question."""
    document = encoding.document
    names = {}
    for block in document.blocks:
        if block.kind != QUESTION and block.text >= 0:
            names.setdefault(block.text, document.text_names[block.text])
    for number, full_name in names.items():
        if name is None or full_name == name or full_name.endswith(f".{name}"):
            return number
    raise ValueError(
        f"`{field}` of {_name(encoding)} is in no text {name!r}. There are: {[*names.values()]}"
    )
