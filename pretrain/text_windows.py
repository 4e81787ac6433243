"""Windows of text: documents are concatenated and cut into pieces of full length."""

from etcmodel.preprocessing.padding import Repeated, padded

from . import words
from .examples import Windows

__all__ = ["make_text_windows"]


def make_text_windows(documents, config, tokenizer):
    """Features of a group of documents, for models without global tokens.

    Sources: Gupta and Berant 2020, section 4.1; Beltagy et al. 2020, section 5, for the lengths.

    Args:
        documents: list of dict with "id" and "text".
        config: `PretrainInputConfig`.
        tokenizer: `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer`.
    Returns:
        `Windows`. Each window has int lists of `long_seq_length`: `long_token_ids`, with the start
        and end tokens of a text, and the end token between two documents; `long_word_starts` (1 at
        the first token of a word, or of its part in the window); and `sentence_ids` (0; -1 for
        padding, only in the last window of the group).
    """
    first, last = words.end_token_ids(tokenizer)
    ids, starts = [], []
    counts = {"documents": 0, "documents_too_short": 0}
    for document in documents:
        counts["documents"] += 1
        new_ids, new_starts = words.tokenize(" ".join(document["text"].split()), tokenizer)
        counts["documents_too_short"] += not new_ids
        if ids and new_ids:
            ids.append(last)
            starts.append(1)
        ids += new_ids
        starts += new_starts
    size = config.long_seq_length - 2
    features = [
        _features(ids[i : i + size], starts[i : i + size], (first, last), config)
        for i in range(0, len(ids), size)
    ]
    counts["long_tokens"] = len(ids) + 2 * len(features)
    return Windows(features, counts)


def _features(ids, starts, ends, config):
    ids, starts = [ends[0], *ids, ends[1]], [1, 1, *starts[1:], 1]
    length = config.long_seq_length
    return {
        "long_token_ids": padded(ids, length),
        "long_word_starts": padded(starts, length),
        "sentence_ids": padded(Repeated(0, len(ids)), length, -1),
    }
