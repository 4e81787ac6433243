"""What the encoder of a LongT5 or PEGASUS-X is told of a batch, in words."""

from etcmodel.text import row_explanation

__all__ = ["LongT5Explanation", "PegasusXExplanation", "explanation"]


def explanation(batch, tokens, row, config):
    """The explanation of a row, by the kind of the model.

    Args:
        batch: `Seq2SeqBatch`.
        tokens: sequence of str. Of the row.
        row: int.
        config: `LongT5Config`, `PegasusXConfig`, or a model with one.
    Raises:
        ValueError: if the config is of neither.
    """
    kinds = {"longt5": LongT5Explanation, "pegasus_x": PegasusXExplanation}
    config = row_explanation.config_of(config)
    kind = kinds.get(getattr(config, "model_type", None))
    if kind is None:
        raise ValueError(
            "`config` must be that of a LongT5 or PEGASUS-X, or such a model, which decides who "
            f"sees whom. Received: {type(config).__name__}"
        )
    return kind(batch, tokens, row, config)


class _Explanation(row_explanation.RowExplanation):
    """One row of a batch, explained; `str` is a table of its tokens.

    Args: as of `explanation`.
    """

    def __init__(self, batch, tokens, row, config):
        super().__init__(tokens, batch["input_ids"].shape[1])
        self._row, self._config = row, config
        self._num_cut = batch.num_cut[row] if batch.num_cut else 0

    def _head(self):
        cut = [f"cut: {self._num_cut} tokens"] if self._num_cut else []
        return [f"row {self._row}", *cut, self.global_reason]


class LongT5Explanation(_Explanation):
    """One row of a batch for a LongT5, explained; `str` is a table of its tokens and their blocks.

    Source: Guo et al. 2022 (arXiv:2112.07916), section 3.1.

    Args: as of `explanation`.
    """

    columns = ("place", "token", "block")

    @property
    def global_reason(self):
        """What is global: one sentence."""
        if self._config.blocks_of is None:
            return "Nothing is global: the attention is local."
        number, size = self._num_blocks(), self._config.global_block_size
        if not number:
            return f"Nothing is global: no block of {size} tokens is full."
        return (
            f"Each of {number} full blocks of {size} tokens is one more key, the sum of its tokens "
            "in that layer, which every token sees; it sees nothing and is kept for no other layer."
        )

    def _num_blocks(self):
        size = self._config.blocks_of
        return 0 if size is None else len(self._tokens) // size

    def _block(self, place):
        """The block that a token is counted to; the last full one has those behind it, too."""
        return min(place // self._config.global_block_size, self._num_blocks() - 1)

    def _cells(self, place):
        return (str(self._block(place)) if self._num_blocks() else "",)

    def _reason(self, query, key):
        distance, radius = abs(query - key), self._config.local_radius
        if distance <= radius:
            return True, f"{distance} places apart, within the radius of {radius}"
        told = f"{distance} places apart, beyond the radius of {radius}"
        if not self._num_blocks():
            return False, told
        return False, f"{told}; but it sees block {self._block(key)}, whose sum has it"


class PegasusXExplanation(_Explanation):
    """One row of a batch for a PEGASUS-X, explained; `str` is a table of its tokens and blocks.

    Source: Phang et al. 2022 (arXiv:2208.04347), section 3.

    Args: as of `explanation`.
    """

    @property
    def columns(self):
        """tuple of str: of the table."""
        staggered = ("staggered block",) if self._config.stagger_local_blocks else ()
        return ("place", "token", "block", *staggered)

    @property
    def global_reason(self):
        """What is global: one sentence."""
        return (
            f"The model has {self._config.num_global_tokens} global tokens of its own, none of the "
            "text: every token sees them, and they see all."
        )

    def _blocks(self, place):
        """The blocks of a token: in even layers, and, staggered, in odd ones."""
        size = self._config.block_size
        shifts = (0, size // 2) if self._config.stagger_local_blocks else (0,)
        return [(place + shift) // size for shift in shifts]

    def _cells(self, place):
        return tuple(map(str, self._blocks(place)))

    def _reason(self, query, key):
        size = f"of {self._config.block_size} tokens"
        same = [a == b for a, b in zip(self._blocks(query), self._blocks(key), strict=True)]
        if all(same):
            return True, f"both are in block {self._blocks(query)[0]}, {size}"
        if any(same):
            layers = "even layers" if same[0] else "odd layers, whose blocks are staggered"
            return True, f"both are in one block {size} in {layers}"
        return False, f"in no layer in one block {size}; what it needs goes through global tokens"
