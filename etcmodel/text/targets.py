"""Training targets from examples' `extra`: labels, and positions of answers."""

import numpy as np

from etcmodel import shown_values
from etcmodel.text.documents import QUESTION

__all__ = [
    "answer_targets",
    "answering_texts",
    "check_one_a_row",
    "label_targets",
    "labelled_spans",
    "name_of",
    "span_ends",
]

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
    check_one_a_row(batch)
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
    check_one_a_row(batch)
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


def check_one_a_row(batch):
    """Raises ValueError if a row of the batch has several examples."""
    if len(batch.encodings) != batch.long_shape[0]:
        raise ValueError(
            "Targets are one a row, but rows of this batch hold several examples: leave out `pack`."
        )


def _extra(encoding, field):
    extra = encoding.document.extra
    if field not in extra:
        raise ValueError(f"{name_of(encoding)} has no `extra[{field!r}]`. It has: {sorted(extra)}")
    return extra[field]


def name_of(encoding):
    """How errors name an encoding's example: str."""
    name = encoding.document.example_id
    return f"Example {name!r}" if name else f"Example {encoding.example} of the batch"


def _target(encoding, field):
    answer = _extra(encoding, field)
    if answer is None:
        return encoding.place, encoding.place
    if not isinstance(answer, dict) or not {"start", "end"} <= {*answer} <= {*_ANSWER}:
        raise ValueError(
            f"`{field}` of {name_of(encoding)} must be None or a dict of {_ANSWER}. Received: "
            f"{answer!r}"
        )
    text, start, end = _span(encoding, answer, field)
    return encoding.token_span(start, end, text) or (encoding.place, encoding.place)


def labelled_spans(encoding, field):
    """The spans in an example's `extra`, see `tags.tag_targets`: list of (text, start, end, label).

    Raises:
        ValueError: naming the example, if they are none, or not within a text.
    """
    spans = _extra(encoding, field)
    is_list = isinstance(spans, list | tuple)
    for span in spans if is_list else [spans]:
        wanted = {"start", "end", "label"}
        if not (isinstance(span, dict) and wanted <= {*span} <= {*wanted, "text"}):
            raise ValueError(
                f"`{field}` of {name_of(encoding)} must be a list of dicts of start, end, label "
                f"and perhaps text. Received: {shown_values.shown(span)}"
            )
    return [(*_span(encoding, span, field), span["label"]) for span in spans]


def _span(encoding, span, field):
    """(text, start, end) of a dict of characters and perhaps the name of their text."""
    text = _text_of(encoding, span.get("text"), field)
    start, end = span["start"], span["end"]
    length = len(encoding.document.texts[text])
    if not (type(start) is type(end) is int and 0 <= start < end <= length):
        raise ValueError(
            f"`{field}` of {name_of(encoding)} must have 0 <= start < end <= {length}, the "
            f"length of its text. Received: {start=}, {end=}"
        )
    return text, start, end


def _text_of(encoding, name, field):
    """The index of the text of that name, by default of the first one that is not a question."""
    names = answering_texts(encoding)
    for number, full_name in names.items():
        if name is None or full_name == name or full_name.endswith(f".{name}"):
            return number
    raise ValueError(
        f"`{field}` of {name_of(encoding)} is in no text {name!r}. There are: {[*names.values()]}"
    )


def answering_texts(encoding):
    """The names of an example's texts but its question, by their numbers: dict."""
    document = encoding.document
    blocks = (x for x in document.blocks if x.kind != QUESTION and x.text >= 0)
    return {block.text: document.text_names[block.text] for block in blocks}
