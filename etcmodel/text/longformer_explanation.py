"""What a Longformer is told of a batch, in words: which tokens are global and why."""

from etcmodel.text import row_explanation

__all__ = ["LongformerExplanation"]

_USUAL_WINDOW = 512


class LongformerExplanation(row_explanation.RowExplanation):
    """One row of a batch, explained; `str` is a table of its tokens.

    Args:
        batch: `LongformerBatch`.
        encoding: one of its encodings.
        config: `LongformerConfig`, a model with one, or None.
    Raises:
        ValueError: if the model is autoregressive and the row has global tokens, which it refuses.
    """

    columns = ("place", "token", "from", "global")

    def __init__(self, batch, encoding, config=None):
        super().__init__(encoding.tokens, batch.long_shape[1])
        self.encoding = encoding
        self._is_global = batch["global_attention_mask"][encoding.row] > 0
        config = row_explanation.config_of(config)
        self._windows = _windows(config)
        if getattr(config, "autoregressive", False) and any(self._is_global):
            raise ValueError(
                "An autoregressive model takes no global tokens, which this batch has: make it by "
                "a processor with `global_tokens='none'`."
            )

    def _head(self):
        return row_explanation.head_of(self.encoding)

    def _cells(self, place):
        return row_explanation.origin(self.encoding, place), self.global_reason(place)

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

    def _reason(self, query, key):
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
