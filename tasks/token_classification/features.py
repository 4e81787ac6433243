"""Converts typed examples to features, which are the same for every model.

The processor (`EtcProcessor`) arranges the sentences as [CLS] sentences [SEP], words with a space
between them. Each sentence has a global token. The first token of each word stands for it, as in
BERT (Devlin et al. 2019, arXiv:1810.04805, section 5.3).
"""

import itertools
import json

import numpy as np

from etcmodel import finetuning, preprocessing

from . import examples
from .config import TokenClassificationInputConfig

__all__ = ["NOTHING", "ConverterFactory", "make_features"]

NOTHING = -1  # Of tokens that are not the first of a word.


def make_features(example, config, processor):
    """Converts an example.

    Args:
        example: `TaggedText`. Without tags, there are no `labels`.
        config: `TokenClassificationInputConfig`.
        processor: of `config.make_processor`.

    Returns:
        (list of dict, one per window; `text.encoding.Cut`, what is in none of them). Features are
        those of the processor (see `models.features`; L long tokens); `example_id`, one str;
        `words`, one str, their JSON, in the first window, else ''; `word_ids`, int [L], the number
        of the word that a token is the first of, else -1; and, with tags, `tags`, one str, as
        `words`, and `labels`, int [L], the index of the tag of that word, else -1, also for a tag
        that is none of the labels.
    """
    name = f"example {example.example_id!r}"
    sentences = examples.sentences_of(example.words)
    batch = processor.batch_of({"sentences": [" ".join(x) for x in sentences]}, name)
    indices = None
    if example.tags is not None:
        numbers = {label: number for number, label in enumerate(config.labels)}
        tags = itertools.chain(*examples.sentences_of(example.tags))
        indices = np.array([*(numbers.get(tag, NOTHING) for tag in tags), NOTHING])
    first_words, windows = _first_words(batch.encodings[0].source, sentences), []
    for row, encoding in enumerate(batch.encodings):
        words = np.full(config.long_seq_length, NOTHING)
        words[: len(encoding.pieces)] = np.where(
            encoding.pieces >= 0, first_words[encoding.pieces], NOTHING
        )
        features = {"example_id": [example.example_id], "word_ids": words.tolist()}
        features["words"] = ["" if row else _json(example.words)]
        if indices is not None:
            features["labels"] = indices[words].tolist()  # The last one is of no word.
            features["tags"] = ["" if row else _json(example.tags)]
        windows.append({**features, **finetuning.features_of_row(batch, row)})
    return windows, batch.encodings[0].cut


def _first_words(source, sentences):
    """The number of the word that each piece is the first of: int [num_pieces + 1], -1 for none."""
    words = source.word_numbers(sentences)
    is_first = np.diff(words, prepend=NOTHING) != 0
    return np.append(np.where(is_first, words, NOTHING), NOTHING)


def _json(values):
    return json.dumps(values, ensure_ascii=False)


# What a preprocessing worker does with one raw example.


class ConverterFactory(preprocessing.ProcessorConverterFactory):
    """Makes the converter; `fields` are arguments of `TokenClassificationInputConfig`."""

    task = "token_classification"
    input_class = TokenClassificationInputConfig
    read = staticmethod(examples.read_rows)
    deals_records = True  # A text may have many windows.

    def input_config(self, tokenizer):
        config = super().input_config(tokenizer)
        config.check_labels()  # Not before: `fit` makes settings while they are not known yet.
        return config

    def convert(self, row, config, processor):
        example = examples.parse_row(row, config, needs_tags=True)
        windows, cut = make_features(example, config, processor)
        tags = itertools.chain(*examples.sentences_of(example.tags))
        unknown = sum(tag not in config.labels for tag in tags)
        return preprocessing.Converted(
            features=windows,
            counts={"examples_truncated": int(bool(cut)), "words_with_unknown_tags": unknown},
            lengths={"words": sum(map(len, examples.sentences_of(example.words)))},
        )
