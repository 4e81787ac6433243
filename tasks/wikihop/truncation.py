"""Drops sentences from the documents with the most sentences, until an example fits."""

import heapq

__all__ = ["truncate_documents"]


def truncate_documents(documents, *, max_num_sentences, max_num_tokens):
    """Drops the last sentence of the document with the most sentences, until both limits hold.

    Among documents of equal length, the first is cut; a document that was just cut goes to the end
    of its equals.

    Args:
        documents: list of list of sentences, each a list of tokens.
        max_num_sentences, max_num_tokens: int. Limits over all documents.

    Returns:
        list of int. The number of sentences to keep of each document.
    """
    kept = [len(sentences) for sentences in documents]
    num_sentences = sum(kept)
    num_tokens = sum(len(tokens) for sentences in documents for tokens in sentences)
    heap = [(-count, index, index) for index, count in enumerate(kept)]
    heapq.heapify(heap)
    order = len(heap)
    while num_sentences and (num_sentences > max_num_sentences or num_tokens > max_num_tokens):
        count, _, index = heapq.heappop(heap)
        kept[index] -= 1
        num_sentences -= 1
        num_tokens -= len(documents[index][kept[index]])
        heapq.heappush(heap, (count + 1, order, index))
        order += 1
    return kept
