"""Counts what was truncated in one batch or many."""

from absl import logging

__all__ = ["CutTotals"]


class CutTotals:
    """Counts examples, tokens and blocks of text, and how many of them were truncated."""

    def __init__(self):
        self._num_cut = self._num_examples = 0
        self._tokens = self._blocks = (0, 0)  # The truncated ones, and all.

    def add(self, encodings):
        """Counts the examples of a batch by its `encoding.Encoding`s."""
        for x in encodings:
            if x.window == 0:  # It counts what all of the example's windows leave out.
                self._num_examples += 1
                self._num_cut += bool(x.cut)
                self._tokens = _sum(self._tokens, x.cut.num_tokens, len(x.source.ids))
                self._blocks = _sum(self._blocks, x.cut.num_blocks, len(x.document.blocks))

    def log(self):
        """Logs a warning line if anything was truncated."""
        if self._num_cut:
            logging.warning(
                "Cut: %d of %d examples; %d of %d tokens, %d of %d blocks of text.",
                self._num_cut,
                self._num_examples,
                *self._tokens,
                *self._blocks,
            )


def _sum(counts, num_cut, num):
    return counts[0] + num_cut, counts[1] + num
