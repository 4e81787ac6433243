"""What a Longformer is told of a batch, in words: which tokens are global and why."""

__all__ = ["LongformerExplanation"]

_USUAL_WINDOW = 512


class LongformerExplanation:
    """One row of a batch, explained; `str` is a table of its tokens.

    Args:
        batch: `LongformerBatch`.
        encoding: one of its encodings.
        config: `LongformerConfig`, a model with one, or None.
    Raises:
        ValueError: if the model is autoregressive and the row has global tokens, which it refuses.
    """

    def __init__(self, batch, encoding, config=None):
        self.encoding = encoding
        self._is_global = batch["global_attention_mask"][encoding.row] > 0
        self._length = batch.long_shape[1]
        for name in ("encoder", "config"):
            config = getattr(config, name, config)
        self._windows = _windows(config)
        if getattr(config, "autoregressive", False) and any(self._is_global):
            raise ValueError(
                "An autoregressive model takes no global tokens, which this batch has: make it by "
                "a processor with `global_tokens='none'`."
            )

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
        distance = abs(query - key)
        is_seen = any(x.sees(query, key) for x in self._windows)
        if key > query and not any(x.right for x in self._windows):
            return False, f"{distance} places later, and tokens see only what is before them"
        told = _span([x.left for x in self._windows], "layer")
        dilations = [x.dilation for x in self._windows]
        if max(dilations) > 1:
            told += f", with dilation {_span(dilations, 'layer or head')}"
        if not is_seen and distance <= max(x.farthest_before for x in self._windows):
            return False, f"{distance} places apart, in a gap of half the window, {told}"
        where = "within" if is_seen else "beyond"
        return is_seen, f"{distance} places apart, {where} half the window, {told}"

    def _token(self, place):
        x = self.encoding
        return x.tokens[place] if place < len(x.token_ids) else "<pad>"

    def _origin(self, place):
        text, (start, end) = int(self.encoding.texts[place]), self.encoding.offsets[place]
        return "" if text < 0 else f"{self.encoding.document.text_names[text]}[{start}:{end}]"


def _windows(config):
    """The windows of all layers and heads: list of `ops.reach.Window`, each once."""
    from etcmodel.ops.reach import Window  # Slow to import, and processors do not need it.

    radii = getattr(config, "radii", (_USUAL_WINDOW // 2,))
    dilations = getattr(config, "dilations", (1,) * len(radii))
    is_causal = getattr(config, "autoregressive", False)
    found = {}
    for radius, dilation in zip(radii, dilations, strict=True):
        for by_head in dilation if isinstance(dilation, tuple) else (dilation,):
            found[Window(radius, 0 if is_causal else radius, by_head)] = None
    return list(found)


def _span(numbers, by):
    """The number, or from which to which."""
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}, by {by}"
