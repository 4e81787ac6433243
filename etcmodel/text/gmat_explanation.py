"""What a GMAT is told of a batch, in words: chunks, and what the memory is."""

from etcmodel.text import row_explanation

__all__ = ["GmatExplanation"]

_USUAL_CHUNK = 512


class GmatExplanation(row_explanation.RowExplanation):
    """One row of a batch, explained; `str` is a table of its tokens and their chunks.

    Args:
        batch: `GmatBatch`.
        encoding: one of its encodings.
        config: `GmatConfig`, a model with one, or None for chunks of 512 and a learned memory.
    """

    columns = ("place", "token", "from", "chunk")

    def __init__(self, batch, encoding, config=None):
        super().__init__(encoding.tokens, batch.long_shape[1])
        self._encoding, config = encoding, row_explanation.config_of(config)
        self._chunk_size = getattr(config, "chunk_size", _USUAL_CHUNK)
        self._num_memory = getattr(config, "num_memory_tokens", None)
        self._num_compression = getattr(config, "num_compression_layers", 0)
        self._memory_ids = batch.get("memory_ids")
        if self._memory_ids is not None:
            self._num_memory = int(batch["memory_mask"][encoding.row].sum())

    @property
    def global_reason(self):
        """What the memory is, which all tokens see and which sees all tokens: one sentence."""
        if self._num_memory == 0:
            return "There is no memory: no token sees beyond its chunk."
        if self._memory_ids is None:
            number = "" if self._num_memory is None else f", {self._num_memory} vectors"
            return f"The memory is the model's own{number}: every token sees it, and it sees all."
        ids = self._memory_ids[self._encoding.row][: self._num_memory]
        tokens = " ".join(self._encoding.vocabulary[x] for x in ids)
        return (
            f"The memory is the first tokens of the question, {tokens!r}: every token sees it, "
            "and it sees all."
        )

    def _head(self):
        return [*row_explanation.head_of(self._encoding), self.global_reason]

    def _cells(self, place):
        chunk = place // self._chunk_size
        return row_explanation.origin(self._encoding, place), str(chunk)

    def _reason(self, query, key):
        chunks = [place // self._chunk_size for place in (query, key)]
        if chunks[0] == chunks[1]:
            return True, f"both are in chunk {chunks[0]}, of {self._chunk_size} tokens"
        told = f"chunks {chunks[0]} and {chunks[1]}, of {self._chunk_size} tokens"
        if self._num_memory == 0:
            return False, f"{told}, and there is no memory"
        if self._num_compression:
            layers = f"the first {self._num_compression} layers"
            return False, f"{told}; what it needs goes through the memory, in {layers}"
        return False, f"{told}; what it needs goes through the memory"
