"""Converts documents to windows of sentences: splits long documents and packs short ones."""

import dataclasses

from etcmodel import preprocessing
from etcmodel.preprocessing.padding import Repeated, padded
from etcmodel.text import sentence_splitting
from etcmodel.text.byte_bpe import ByteLevelTokenizer

from . import examples
from .config import TEXT, PretrainInputConfig

__all__ = [
    "ConverterFactory",
    "Windows",
    "end_token_ids",
    "make_text_windows",
    "make_windows",
    "split_document",
    "tokenize",
    "tokenize_sentences",
]

# Tokenizes a text and marks where words start.


_CONTINUES_WORD = "##"
_STARTS_WORD = "▁"
# The tokens at the start and at the end of a text, in order of precedence.
_FIRST, _LAST = ("[CLS]", "<s>", "<cls>"), ("[SEP]", "</s>", "<sep>")


def tokenize(text, tokenizer):
    """Tokenizes a text for whole-word masking.

    Words are the units that the tokenizer splits a text into first: at white space and punctuation
    for WordPiece, by its pattern for byte-level BPE; with a SentencePiece model, they begin at "▁".

    Args:
        text: str.
        tokenizer: `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer`.
    Returns:
        (list of ids, list of 1 for each that starts a word and 0 for the others).
    """
    if isinstance(tokenizer, ByteLevelTokenizer):
        return tokenizer.tokenize_words(text)
    tokens = tokenizer.tokenize(text)
    if tokenizer.sp_model:
        starts = [int(token.startswith(_STARTS_WORD)) for token in tokens]
    else:
        starts = [int(not token.startswith(_CONTINUES_WORD)) for token in tokens]
    return list(tokenizer.convert_tokens_to_ids(tokens)), [1, *starts[1:]] if starts else []


def end_token_ids(tokenizer):
    """The ids of the tokens at the start and at the end of a text: (int, int).

    Args:
        tokenizer: see `tokenize`.
    Raises:
        ValueError: naming the vocabulary, if it lacks one of them.
    """
    found = [
        next((tokenizer.vocab[token] for token in names if token in tokenizer.vocab), None)
        for names in (_FIRST, _LAST)
    ]
    if None in found:
        names = _LAST if found[0] is not None else _FIRST
        raise ValueError(
            f"The vocabulary {str(tokenizer.source_file)!r} has none of the tokens "
            f"{', '.join(names)}, which stand at the ends of a window of text."
        )
    return tuple(found)


# Windows of sentences: long documents are split, short ones packed.


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
        if config.fixed_block_len:
            sentences = list(_blocks(sentences, config))
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
        ids, starts = tokenize(sentence, tokenizer)
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


def _blocks(sentences, config):
    """Yields blocks of `fixed_block_len` tokens in place of sentences; none crosses windows.

    They are those of the paper's ablation (section 4.2), and may end within a word.
    """
    ids = [x for sentence in sentences for x in sentence.token_ids]
    starts = [x for sentence in sentences for x in sentence.word_starts]
    for window in range(0, len(ids), config.long_seq_length):
        last = min(window + config.long_seq_length, len(ids))
        for begin in range(window, last, config.fixed_block_len):
            end = min(begin + config.fixed_block_len, last)
            yield Sentence(tuple(ids[begin:end]), (1, *starts[begin + 1 : end]))


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


# Windows of text: documents are concatenated and cut into pieces of full length.


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
    first, last = end_token_ids(tokenizer)
    ids, starts = [], []
    counts = {"documents": 0, "documents_too_short": 0}
    for document in documents:
        counts["documents"] += 1
        new_ids, new_starts = tokenize(" ".join(document["text"].split()), tokenizer)
        counts["documents_too_short"] += not new_ids
        if ids and new_ids:
            ids.append(last)
            starts.append(1)
        ids += new_ids
        starts += new_starts
    size = config.long_seq_length - 2
    features = [
        _window_features(ids[i : i + size], starts[i : i + size], (first, last), config)
        for i in range(0, len(ids), size)
    ]
    counts["long_tokens"] = len(ids) + 2 * len(features)
    return Windows(features, counts)


def _window_features(ids, starts, ends, config):
    ids, starts = [ends[0], *ids, ends[1]], [1, 1, *starts[1:], 1]
    length = config.long_seq_length
    return {
        "long_token_ids": padded(ids, length),
        "long_word_starts": padded(starts, length),
        "sentence_ids": padded(Repeated(0, len(ids)), length, -1),
    }


# Pre-training's part of the preprocessing: what a worker does to one group of documents.


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `PretrainInputConfig`."""

    task = "pretrain"
    read = staticmethod(examples.read_groups)

    def input_config(self, tokenizer):
        config = PretrainInputConfig(**self.fields)
        word_pieces = getattr(tokenizer, "wordpiece_tokenizer", None)
        if word_pieces is not None:
            tokenizer.require_tokens([word_pieces.unk_token])
        if config.windows == TEXT:
            end_token_ids(tokenizer)  # Raises an error if the vocabulary has none.
        return config

    def convert(self, raw, config, tokenizer):
        if "error" in raw:
            raise ValueError(raw["error"])
        documents = raw["documents"]
        if config.windows == TEXT:
            windows = make_text_windows(documents, config, tokenizer)
        else:
            split_sentences = sentence_splitting.sentence_splitter(config.sentence_splitter)
            windows = make_windows(documents, config, tokenizer, split_sentences)
        return preprocessing.Converted(features=windows.features, counts=windows.counts)
