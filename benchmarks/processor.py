"""Measures how fast the processor makes batches, against the package `tokenizers`.

  pip install tokenizers
  python -m benchmarks.processor --vocab=vocab.txt --text=emma.txt.gz

The text is split into documents of about `--length` word pieces. Both sides tokenize one document
at a time and return ids and offsets; the processor also splits it into sentences and makes the
padded arrays. Rounds take turns on one core; times are CPU seconds of the process, as machines are
busy. The first round of new objects, with empty word caches, is reported separately.
"""

import dataclasses
import json
import os
import re
import statistics
import time

from benchmarks import texts
from etcmodel.options import Options, option, run_program
from etcmodel.text import pieces, processor, tokenization

__all__ = ["ProcessorOptions", "documents_of", "measure", "table"]

_SPACE = re.compile(r"\s")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessorOptions(Options):
    """The text to tokenize, and the number of rounds."""

    vocab: str = option("", "Lower-cased WordPiece vocabulary.", is_file=True, is_needed=True)
    text: tuple = option((), "Text files, compressed with gzip if they end in .gz.", is_needed=True)
    length: int = option(4096, "Length of a document, in word pieces.", lower_bound=1)
    rounds: int = option(7, "Number of rounds after the first.", lower_bound=1)


def documents_of(text, tokenizer, length):
    """The text in documents of `length` word pieces, cut at white space; without the rest.

    Raises:
        ValueError: if so many word pieces have no white space among them.
    """
    found = pieces.Splitter(tokenizer).split([text])
    starts = [0]
    for index in range(length, len(found.starts), length):
        spaces = _SPACE.finditer(text, starts[-1] + 1, int(found.starts[index]) + 1)
        end = max((space.start() for space in spaces), default=None)
        if end is None:
            start = text[starts[-1] : starts[-1] + 40]
            raise ValueError(
                f"--length={length}: no white space to cut at in so many word pieces, from "
                f"{start!r} on. Give more, or another --text."
            )
        starts.append(end)
    return [text[start:end] for start, end in zip(starts[:-1], starts[1:], strict=True)]


def measure(sides, documents, rounds):
    """Seconds of each side and round.

    Args:
        sides: dict from str to a function that makes a new function of a document.
        documents: list of str.
        rounds: int. After the first.
    Returns:
        dict of str to list of float, seconds of all documents; the first entry is the first round.
    """
    functions = {name: make() for name, make in sides.items()}
    seconds = {name: [] for name in sides}
    for _ in range(rounds + 1):
        for name, function in functions.items():
            start = time.process_time()
            for document in documents:
                function(document)
            seconds[name].append(time.process_time() - start)
    return seconds


def table(seconds, num_pieces, reference):
    """A Markdown table: word pieces a second of each side, and the ratio to the reference."""
    lines = [
        "| | word pieces/s, first round | later rounds, median | lowest and highest | ratio |",
        "|---|---|---|---|---|",
    ]
    medians = {name: statistics.median(rest) for name, (_, *rest) in seconds.items()}
    for name, (first, *rest) in seconds.items():
        rates = [num_pieces / value for value in (first, medians[name], max(rest), min(rest))]
        shown = [f"{rate / 1e6:.2f} M" for rate in rates]
        ratio = medians[reference] / medians[name]
        lines.append(f"| {name} | {shown[0]} | {shown[1]} | {shown[2]}, {shown[3]} | {ratio:.2f} |")
    return "\n".join(lines)


def _sides(vocab):
    from tokenizers import BertWordPieceTokenizer

    def packaged():
        tokenizer = BertWordPieceTokenizer(vocab, lowercase=True)

        def encode(text):
            encoding = tokenizer.encode(text)
            return encoding.ids, encoding.offsets

        return encode

    def ours(**settings):
        return lambda: processor.EtcProcessor(vocab, **settings)

    def pieces_alone():
        splitter = pieces.Splitter(tokenization.FullTokenizer(vocab))
        return lambda text: splitter.split([text])

    return {
        "tokenizers": packaged,
        "processor, sentences by 'multilingual'": ours(),
        "processor, sentences by 'simple'": ours(sentence_splitter="simple"),
        "processor, sentences by 'punkt'": ours(sentence_splitter="punkt"),
        "its pieces alone, without sentences": pieces_alone,
    }


def main(options):
    """Runs the benchmark of `ProcessorOptions`, and prints a table."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["RAYON_NUM_THREADS"] = "1"
    tokenizer = tokenization.FullTokenizer(options.vocab)
    text = "\n".join(map(texts.read, options.text))
    documents = documents_of(text, tokenizer, options.length)
    num_pieces = sum(len(tokenizer.tokenize(document)) for document in documents)
    seconds = measure(_sides(options.vocab), documents, options.rounds)
    print(f"{len(documents)} documents, {num_pieces} word pieces")
    print(table(seconds, num_pieces, "tokenizers"))
    print(json.dumps({"word_pieces": num_pieces, "seconds": seconds}))


if __name__ == "__main__":
    run_program(ProcessorOptions, main)
