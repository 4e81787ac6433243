"""Sequences, token by token: greedy search, beam search and sampling over a decoder's cache.

Model Garden's `beam_search` and `sampling_module` are not used: they finish every candidate that
ends, not only those among the best, normalize scores by another length, know no processors that see
the tokens so far, and have one rule of stopping; the sequences of released models would differ.
"""

from etcmodel.generation.beam import beam_search
from etcmodel.generation.sampling import sample
from etcmodel.generation.settings import GenerationSettings

__all__ = ["GenerationSettings", "beam_search", "sample"]
