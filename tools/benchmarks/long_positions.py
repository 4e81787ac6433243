"""Compares an ETC initialized from BERT on a long text with the same BERT on the text's chunks.

The vector of a text is the mean of its hidden states. The vector of the long input (3,000 tokens at
once) is compared, by cosine, with the mean vector of the text's chunks, each as long as BERT's
position table; for several local radii, and for several ways of filling the rest of a longer table.
Cosines between chunk vectors of different texts serve as a baseline.

  python -m etcmodel.tools.benchmarks.long_positions --model=<folder of a BERT> \
    --texts=one.txt.gz,two.txt.gz
"""

import dataclasses
import itertools
import os

import numpy as np

import etcmodel
from etcmodel.options import Options, option, run_program
from etcmodel.text import tokenization
from etcmodel.tools.benchmarks import texts as texts_lib

CHARACTERS_PER_TOKEN = 10  # More than enough to fill the input.


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongPositionsOptions(Options):
    """The texts and the settings of the measurement."""

    model: str = option("", "Folder of a Hugging Face BERT.", is_needed=True)
    texts: tuple = option(
        (), "Text files, compressed with gzip if they end in .gz.", is_needed=True
    )
    tokens: int = option(3000, "Length of the long input, in tokens.", lower_bound=3)
    radii: tuple[int, ...] = option((128, 256, 512), "Local radii, in tokens.")
    skip: int = option(
        20000, "Number of characters to skip at the beginning of each text.", lower_bound=0
    )


def read_ids(path, tokenizer, num_tokens, skip=0):
    """The ids of the first `num_tokens` word pieces of a file: list of int."""
    text = texts_lib.read(path, skip + CHARACTERS_PER_TOKEN * num_tokens)[skip:]
    return tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))[:num_tokens]


def cosine(one, other):
    """The cosine of two vectors."""
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def tables(table, size):
    """Ways of extending the position table: dict from name to [size, hidden_size]."""
    rows, length = np.arange(size), len(table)
    is_forward = rows // length % 2 == 0
    random = np.random.default_rng(0).normal(0, 0.02, [size - length, table.shape[1]])
    return {
        "repeated": table[rows % length],
        "there and back": table[np.where(is_forward, rows % length, length - 1 - rows % length)],
        "stretched": table[rows * (length - 1) // (size - 1)],
        "last row": table[np.minimum(rows, length - 1)],
        "random": np.concatenate([table, random]),
    }


class Reader:
    """Vectors of word pieces between [CLS] and [SEP]."""

    def __init__(self, tokenizer):
        self._ends = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])

    def __call__(self, model, ids):
        cls, sep = self._ends
        return model.embed(np.array([[cls, *ids, sep]], np.int32)).numpy()[0]


def main(options):
    """Runs the benchmark of `LongPositionsOptions`, and prints a table."""
    tokenizer = tokenization.FullTokenizer(os.path.join(options.model, "vocab.txt"))
    read = Reader(tokenizer)
    texts = [read_ids(path, tokenizer, options.tokens - 2, options.skip) for path in options.texts]
    short = etcmodel.from_pretrained(options.model)
    table = short.position_embedding.embedding_table.numpy()[: short.config.local_radius]
    length = len(table) - 2
    wanted = [
        np.mean([read(short, ids[i : i + length]) for i in range(0, len(ids), length)], axis=0)
        for ids in texts
    ]
    pairs = [cosine(*pair) for pair in itertools.combinations(wanted, 2)]
    print("between texts:", *(f"{value:.3f}" for value in pairs))
    print("| radius | positions beyond the table | cosine to the chunks' mean |\n|---|---|---|")
    for radius in options.radii:
        model = etcmodel.from_pretrained(options.model, local_radius=radius)
        longer = model.position_embedding.embedding_table
        for name, values in tables(table, longer.shape[0]).items():
            longer.assign(values)
            found = [cosine(read(model, a), b) for a, b in zip(texts, wanted, strict=True)]
            print(f"| {radius} | {name} |", ", ".join(f"{value:.3f}" for value in found), "|")


if __name__ == "__main__":
    run_program(LongPositionsOptions, main)
