"""What a model of one row of tokens is told of it, in words: what explanations share."""

import abc

__all__ = ["RowExplanation", "config_of", "encoding_of", "head_of", "origin"]


class RowExplanation(abc.ABC):
    """One row of a batch, explained; `str` is a table of its tokens.

    A subclass says what the table tells of a token, and who sees whom.

    Args:
        tokens: sequence of str. The tokens of the row.
        length: int. Of the row, with padding.
    """

    columns = ("place", "token")  # Of the table.

    def __init__(self, tokens, length):
        self._tokens, self._length = tuple(tokens), length

    def __str__(self):
        rows = [self.columns]
        for place, token in enumerate(self._tokens):
            rows.append((str(place), token, *self._cells(place)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        cells = (
            (cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        )
        return "\n".join([*self._head(), *("  ".join(row).rstrip() for row in cells)])

    def why(self, query, key):
        """Why a token sees another one, or does not: one sentence.

        Args:
            query, key: int. Places in the row.
        Raises:
            ValueError: if there is no such place.
        """
        for name, place in (("query", query), ("key", key)):
            if type(place) is not int or not 0 <= place < self._length:
                raise ValueError(
                    f"`{name}` must be a place in a row of {self._length} tokens. "
                    f"Received: {place!r}"
                )
        size = len(self._tokens)
        is_padding = query >= size or key >= size
        sees, reason = (False, "padding") if is_padding else self._reason(query, key)
        names = [f"{x} {self._tokens[x] if x < size else '<pad>'!r}" for x in (query, key)]
        return f"{names[0]} {'sees' if sees else 'does not see'} {names[1]}: {reason}."

    @abc.abstractmethod
    def _head(self):
        """The lines above the table."""

    @abc.abstractmethod
    def _cells(self, place):
        """What the table tells of a token, beside its place and itself: sequence of str."""

    @abc.abstractmethod
    def _reason(self, query, key):
        """(whether one token sees the other, why)."""


def config_of(model):
    """The config of an encoder of a model, of a model, or the config itself."""
    for name in ("encoder", "config"):
        model = getattr(model, name, model)
    return model


def head_of(encoding):
    """The lines above a table: which row it is, and what was cut."""
    lines = [f"example {encoding.example}, window {encoding.window}: row {encoding.row}"]
    if encoding.cut:
        lines.append(f"cut: {encoding.cut.num_tokens} tokens")
    return lines


def origin(encoding, place):
    """Where a token comes from: "document 1[3:7]"; "" of a special token."""
    text, (start, end) = int(encoding.texts[place]), encoding.offsets[place]
    return "" if text < 0 else f"{encoding.document.text_names[text]}[{start}:{end}]"


def encoding_of(batch, example, window):
    """The encoding of a window of an example.

    Raises:
        ValueError: if the batch has none.
    """
    for encoding in batch.encodings:
        if (encoding.example, encoding.window) == (example, window):
            return encoding
    raise ValueError(f"The batch has no window {window} of an example {example}.")
