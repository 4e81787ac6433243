"""Text generation, token by token: greedy search, beam search and sampling, with a cache.

Model Garden's `beam_search` and `sampling_module` are not used: they finish every candidate that
ends, not only those among the best, normalize scores by another length, have no processors that
depend on the tokens so far, and have only one stopping rule; the sequences of released models would
differ.
"""

from etcmodel.generation.beam import beam_search
from etcmodel.generation.sampling import sample
from etcmodel.generation.settings import GenerationSettings

__all__ = ["GenerationSettings", "beam_search", "sample"]
