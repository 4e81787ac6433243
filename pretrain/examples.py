"""Converts documents to windows of sentences: splits long documents and packs short ones."""

import dataclasses

from etcmodel.preprocessing.padding import padded

from . import words

__all__ = ["Windows", "make_windows", "split_document", "tokenize_sentences"]


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence's token ids, with 1 for each token that starts a word, 0 for others."""

    token_ids: tuple
    word_starts: tuple


@dataclasses.dataclass(frozen=True)
class Windows:
    """A converted group of documents.

    Attributes:
        features: list of dict from feature name to list of int, one per window.
        counts: dict of str to int, for the statistics.
    """

    features: list
    counts: dict


def make_windows(documents, config, tokenizer, split_sentences):
    """Features of a group of documents (paper, section 4.1 and appendix C).

    Documents with too few sentences are dropped, documents that are too long are split between
    sentences, and each part goes into the first window with room for it.

    Args:
        documents: list of dict with "id" and "text".
        config: `PretrainInputConfig`.
        tokenizer: `FullTokenizer`.
        split_sentences: function from a text to the list of its sentences.
    Returns:
        `Windows`. Each window has int lists `long_token_ids`, `long_word_starts` (1 at the first
        token of a word), `sentence_ids` (the index of the token's sentence; -1 for padding),
        `long_breakpoints` (1 at the last token of a document) of `long_seq_length`, and
        `global_token_ids`, `global_breakpoints` of `global_seq_length`.
    """
    windows = []
    counts = {"documents": 0, "documents_too_short": 0, "documents_split": 0}
    for document in documents:
        counts["documents"] += 1
        sentences = tokenize_sentences(document["text"], tokenizer, split_sentences)
        if len(sentences) < config.min_sentences or not sentences:
            counts["documents_too_short"] += 1
            continue
        parts = split_document(sentences, config)
        counts["documents_split"] += len(parts) > 1
        for part in parts:
            _add(part, windows, config)
    parts = [part for window in windows for part in window.parts]
    counts["document_parts"] = len(parts)
    counts["sentences"] = sum(map(len, parts))
    counts["long_tokens"] = sum(window.num_tokens for window in windows)
    return Windows([_features(window.parts, config) for window in windows], counts)


def tokenize_sentences(text, tokenizer, split_sentences):
    """The sentences of a text that have tokens: list of `Sentence`."""
    sentences = []
    for sentence in split_sentences(" ".join(text.split())):
        ids, starts = words.tokenize(sentence, tokenizer)
        if ids:
            sentences.append(Sentence(tuple(ids), tuple(starts)))
    return sentences


def split_document(sentences, config):
    """Cuts a document into parts that each fit into a window.

    Sentences that are too long are cut first, between words if possible.

    Args:
        sentences: list of `Sentence`.
        config: `PretrainInputConfig`.
    Returns:
        list of list of `Sentence`.
    """
    parts, part, num_tokens = [], [], 0
    for sentence in sentences:
        for piece in _cut_sentence(sentence, config.long_seq_length):
            is_full = (
                num_tokens + len(piece.token_ids) > config.long_seq_length
                or len(part) == config.global_seq_length
            )
            if is_full:
                parts.append(part)
                part, num_tokens = [], 0
            part.append(piece)
            num_tokens += len(piece.token_ids)
    return [*parts, part]


def _cut_sentence(sentence, max_tokens):
    ids, starts = sentence.token_ids, sentence.word_starts
    begin = 0
    while len(ids) - begin > max_tokens:
        end = begin + max_tokens
        word_ends = (i for i in range(end, begin, -1) if starts[i])
        end = next(word_ends, end)
        yield Sentence(ids[begin:end], (1, *starts[begin + 1 : end]))
        begin = end
    yield Sentence(ids[begin:], (1, *starts[begin + 1 :]))


@dataclasses.dataclass
class _Window:
    parts: list
    num_tokens: int
    num_sentences: int


def _add(part, windows, config):
    """Puts a part of a document into the first window with room for it, or a new one."""
    num_tokens = sum(len(sentence.token_ids) for sentence in part)
    for window in windows if config.pack_documents else ():
        if (
            window.num_tokens + num_tokens <= config.long_seq_length
            and window.num_sentences + len(part) <= config.global_seq_length
        ):
            window.parts.append(part)
            window.num_tokens += num_tokens
            window.num_sentences += len(part)
            return
    windows.append(_Window([part], num_tokens, len(part)))


def _features(parts, config):
    long = {
        name: []
        for name in ("long_token_ids", "long_word_starts", "sentence_ids", "long_breakpoints")
    }
    num_sentences, global_breakpoints = 0, []
    for part in parts:
        for sentence in part:
            long["long_token_ids"] += sentence.token_ids
            long["long_word_starts"] += sentence.word_starts
            long["sentence_ids"] += [num_sentences] * len(sentence.token_ids)
            long["long_breakpoints"] += [0] * len(sentence.token_ids)
            global_breakpoints.append(0)
            num_sentences += 1
        long["long_breakpoints"][-1] = global_breakpoints[-1] = 1
    features = {
        name: padded(values, config.long_seq_length, -1 if name == "sentence_ids" else 0)
        for name, values in long.items()
    }
    token_ids = [config.sentence_global_token_id] * num_sentences
    return {
        **features,
        "global_token_ids": padded(token_ids, config.global_seq_length),
        "global_breakpoints": padded(global_breakpoints, config.global_seq_length),
    }
