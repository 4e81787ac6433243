"""Converts typed examples to features, which are the same for every model.

The processor (`EtcProcessor`) arranges the sentences as [CLS] sentences [SEP], words with a space
between them; each sentence has a global token. Spans are of words: each word that has tokens, all
of them in the window, has a slot, counted from 0.
"""

import itertools
import json

import numpy as np

from etcmodel import finetuning, preprocessing

from . import examples
from .config import CoreferenceInputConfig

__all__ = ["GENRES", "NOTHING", "ConverterFactory", "genre_of", "make_features"]

NOTHING = -1
# Of OntoNotes, by the beginnings of its documents' names; 0 is of any other one.
GENRES = ("", "bc", "bn", "mz", "nw", "pt", "tc", "wb")


def genre_of(example_id):
    """The number of a document's genre: int."""
    genre = example_id.partition("/")[0]
    return GENRES.index(genre) if genre in GENRES else 0


def make_features(example, config, processor):
    """Converts a document.

    Args:
        example: `Document`. Without clusters, there are no features of mentions.
        config: `CoreferenceInputConfig`.
        processor: of `config.make_processor`.

    Returns:
        (list of dict, one per window; `text.encoding.Cut`, what is in none of them). Features are
        those of the processor (see `models.features`; L long tokens); int [L] `word_ids`, the slot
        of the word that a token is of, else -1, and `speaker_ids`, from 1, by the document's
        speakers, 0 for none; int [1] `genres`. Of decoding: `example_id`, one str; `document`, one
        str, its JSON, in the first window, else ''; int [L] `words`, the number in the document of
        each slot's word, -1 behind the last. With clusters also int [L] `mention_starts`,
        `mention_ends` and `mention_clusters`: slots and clusters of the mentions in the window, -1
        behind the last.
    Raises:
        ValueError: naming the document, if it has more mentions than there are long tokens.
    """
    name = f"document {example.example_id!r}"
    batch = processor.batch_of({"sentences": [" ".join(x) for x in example.sentences]}, name)
    source = batch.encodings[0].source
    numbers = np.append(source.word_numbers(example.sentences), NOTHING)  # The last is of no piece.
    sizes = np.bincount(numbers[numbers != NOTHING], minlength=1)
    speakers = _speaker_ids(example.speakers)
    windows = []
    for row, encoding in enumerate(batch.encodings):
        of_tokens = numbers[encoding.pieces]
        found, slots, counts = np.unique(of_tokens, return_inverse=True, return_counts=True)
        is_whole = (found != NOTHING) & (counts == sizes[found])
        words = found[is_whole]
        slots = np.where(is_whole, np.cumsum(is_whole) - 1, NOTHING)[slots]
        features = {
            "example_id": [example.example_id],
            "document": ["" if row else _json(example)],
            "word_ids": slots,
            "speaker_ids": np.where(slots != NOTHING, speakers[of_tokens], 0),
            "genres": [genre_of(example.example_id)],
            "words": words,
        }
        if example.clusters is not None:
            features |= _mentions(example.clusters, words)
            count = len(features["mention_starts"])
            if count > config.long_seq_length:
                raise ValueError(
                    f"{name} has {count} mentions, and there is room for one for each token, "
                    f"{config.long_seq_length}: the clusters are not of this text, or it is cut"
                )
        windows.append({**_padded(features, config), **finetuning.features_of_row(batch, row)})
    return windows, batch.encodings[0].cut


def _speaker_ids(speakers):
    """The speaker of each word of a document: int [num_words + 1], from 1, 0 for none."""
    ids = {"": 0, "-": 0}
    return np.array([*(ids.setdefault(x, len(ids) - 1) for x in itertools.chain(*speakers)), 0])


def _mentions(clusters, words):
    """The mentions whose first and last words are in a window, by its slots."""
    slots = {word: slot for slot, word in enumerate(words.tolist())}
    found = [
        (slots[start], slots[end], number)
        for number, cluster in enumerate(clusters)
        for start, end in cluster
        if start in slots and end in slots
    ]
    names = ("mention_starts", "mention_ends", "mention_clusters")
    return {name: [x[place] for x in found] for place, name in enumerate(names)}


def _padded(features, config):
    """Lists of the records' lengths."""
    whole = {"example_id", "document", "genres"}
    length = config.long_seq_length
    fill = {"speaker_ids": 0}
    return {
        name: values
        if name in whole
        else [*map(int, values), *[fill.get(name, NOTHING)] * (length - len(values))]
        for name, values in features.items()
    }


def _json(example):
    names = ("sentences", "speakers", "clusters")
    found = {name: getattr(example, name) for name in names}
    return json.dumps(found, ensure_ascii=False)


# What a preprocessing worker does with one raw example.


class ConverterFactory(preprocessing.ProcessorConverterFactory):
    """Makes the converter; `fields` are arguments of `CoreferenceInputConfig`."""

    task = "coreference"
    input_class = CoreferenceInputConfig
    read = staticmethod(examples.read_rows)
    deals_records = True  # A document may have many windows.

    def convert(self, row, config, processor):
        example = examples.parse_row(row, needs_clusters=True)
        windows, cut = make_features(example, config, processor)
        return preprocessing.Converted(
            features=windows,
            counts={"examples_truncated": int(bool(cut))},
            lengths={
                "words": sum(map(len, example.sentences)),
                "mentions": sum(map(len, example.clusters)),
            },
        )
