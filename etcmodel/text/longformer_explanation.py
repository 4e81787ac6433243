"""What a Longformer is told of a batch, in words: which tokens are global and why."""

__all__ = ["LongformerExplanation"]

_USUAL_WINDOW = 512


class LongformerExplanation:
    """One row of a batch, explained; `str` is a table of its tokens.

    Args:
        batch: `LongformerBatch`.
        encoding: one of its encodings.
        config: `LongformerConfig`, a model with one, or None.
    """

    def __init__(self, batch, encoding, config=None):
        self.encoding = encoding
        self._is_global = batch["global_attention_mask"][encoding.row] > 0
        self._length = batch.long_shape[1]
        for name in ("encoder", "config"):
            config = getattr(config, name, config)
        window = getattr(config, "attention_window", _USUAL_WINDOW)
        self._windows = [window] if isinstance(window, int) else [*window]

    def __str__(self):
        x = self.encoding
        lines = [f"example {x.example}, window {x.window}: row {x.row}"]
        if x.cut:
            lines.append(f"cut: {x.cut.num_tokens} tokens")
        rows = [("place", "token", "from", "global")]
        for place, token in enumerate(x.tokens):
            rows.append((str(place), token, self._origin(place), self.global_reason(place)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def global_reason(self, place):
        """Why a token is global: str, "" for one that is not.

        Args:
            place: int. Of the token in its row.
        """
        if place >= self._length or not self._is_global[place]:
            return ""
        if self.encoding.texts[place] >= 0:
            return "of the question"
        return "the first token"

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
        sees, reason = self._reason(query, key)
        names = [f"{place} {self._token(place)!r}" for place in (query, key)]
        return f"{names[0]} {'sees' if sees else 'does not see'} {names[1]}: {reason}."

    def _reason(self, query, key):
        size = len(self.encoding.token_ids)
        if query >= size or key >= size:
            return False, "padding"
        for name, place in (("the query", query), ("the key", key)):
            if reason := self.global_reason(place):
                return True, f"{name} is global, {reason}"
        distance, radii = abs(query - key), [window // 2 for window in self._windows]
        told = str(radii[0]) if len(set(radii)) == 1 else f"{min(radii)} to {max(radii)}, by layer"
        if distance > max(radii):
            return False, f"{distance} places apart, beyond half the window, {told}"
        return True, f"{distance} places apart, within half the window, {told}"

    def _token(self, place):
        x = self.encoding
        return x.tokens[place] if place < len(x.token_ids) else "<pad>"

    def _origin(self, place):
        text, (start, end) = int(self.encoding.texts[place]), self.encoding.offsets[place]
        return "" if text < 0 else f"{self.encoding.document.text_names[text]}[{start}:{end}]"
