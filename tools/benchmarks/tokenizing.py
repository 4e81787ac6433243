"""How long raw files take to become records, beside tokenizing their texts alone.

Both sides take turns in one process, on the processor's seconds of the process (CPU), as machines
are busy. Ours reads, converts and serializes; the package `tokenizers` gives the ids of the texts
that ours tokenizes. Ours begins each round without a word remembered.
"""

import contextlib
import dataclasses
import gc
import importlib
import os
import statistics
import time

from etcmodel import extras, opener
from etcmodel.tools.benchmarks import varied_copies

__all__ = ["TEXTS", "Share", "convert_file", "make_job", "measure", "read_examples", "table"]


def make_job(task, path, vocab_file, folder, **fields):
    """The `preprocessing.Job` of a raw file.

    Args:
        task: str. A data set's folder.
        path: str. The raw file.
        vocab_file: str.
        folder: str. Where the records would go.
        **fields: further options of the task.
    """
    from etcmodel.preprocessing import program

    module = importlib.import_module(f"etcmodel.tasks.{task}.preprocess")
    options = module.PreprocessOptions(
        input_pattern=path,
        output_prefix=os.path.join(folder, "records"),
        vocab_file=vocab_file,
        **fields,
    )
    (options,) = options.sets()
    return program.make_job(options, *module.load_parts())


def read_examples(task, path):
    """The examples of a raw file, as the task's `read_examples` yields them."""
    return importlib.import_module(f"etcmodel.tasks.{task}.examples").read_examples(path)


def convert_file(job, convert, path, limit=None):
    """Reads, converts and serializes the raw examples of a file, at most `limit`.

    Returns:
        (number of raw examples, number of records).
    """
    from etcmodel.preprocessing import records

    num_read = num_records = 0
    for raw in job.read(path):
        if num_read == limit:
            break
        num_read += 1
        converted, serialized = records.convert_example(convert, raw)
        if converted.problem:
            raise ValueError(f"{path}: example {num_read}: {converted.problem}")
        num_records += len(serialized)
    return num_read, num_records


def _hotpotqa_text(example):
    pieces = [example.question]
    for paragraph in example.paragraphs:
        pieces += [paragraph.title, *paragraph.sentences]
    return " ".join(pieces)


def _nq_text(example):
    words = [example.question]
    for candidate in example.candidates:
        if candidate.top_level:
            part = slice(candidate.start, candidate.end)
            pairs = zip(example.words[part], example.is_html[part], strict=True)
            words += [word for word, is_html in pairs if not is_html]
    return " ".join(words)


def _openkp_text(example):
    return example.text


def _wikihop_text(example):
    return " ".join([*example.candidates, example.query, *example.documents])


# By data set: function of an example of its `read_examples` to all the text that is tokenized.
TEXTS = {
    "hotpotqa": _hotpotqa_text,
    "nq": _nq_text,
    "openkp": _openkp_text,
    "wikihop": _wikihop_text,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Share:
    """What was measured of one data set.

    Attributes:
        dataset: str.
        megabytes, text_megabytes: float. The raw file, unpacked; the text in it that is tokenized,
            in UTF-8.
        num_examples, num_records: int.
        seconds, tokenizing_seconds: list of float, one a round.
        is_varied: bool. Whether the file is of varied copies.
    """

    dataset: str
    megabytes: float
    text_megabytes: float
    num_examples: int
    num_records: int
    seconds: list
    tokenizing_seconds: list
    is_varied: bool

    @property
    def shares(self):
        """Speed of ours, as a share of tokenizing alone: list of float, one a round."""
        pairs = zip(self.tokenizing_seconds, self.seconds, strict=True)
        return [alone / whole for alone, whole in pairs]


def measure(dataset, source, vocab_file, folder, *, megabytes, rounds, seed=0):
    """Measures a raw file, or varied copies of its examples if it is smaller than wanted.

    Args:
        dataset: str. A key of `TEXTS`.
        source: str. A raw file; as `varied_copies.copies` asks if it is small.
        vocab_file: str. WordPiece vocabulary, lower-cased.
        folder: str. For the copies; what is there is replaced.
        megabytes: float. In 10^6 bytes.
        rounds: int. After a first one that is not told.
        seed: int. Of the copies.
    Returns:
        `Share`.
    """
    is_varied = _size(source) < megabytes * 1e6
    path = os.path.join(folder, f"{dataset}.json") if is_varied else source
    if is_varied:
        varied_copies.write(dataset, source, path, megabytes * 1e6, seed)
    job = make_job(dataset, path, vocab_file, folder)
    texts = list(map(TEXTS[dataset], read_examples(dataset, path)))
    tokenize = _tokenizer(vocab_file)
    seconds, alone = [], []
    for _ in range(rounds + 1):
        convert = job.make_converter()  # Which a worker does once.
        gc.collect()
        start = time.process_time()
        num_examples, num_records = convert_file(job, convert, path)
        middle = time.process_time()
        for text in texts:
            tokenize(text)
        seconds.append(middle - start)
        alone.append(time.process_time() - middle)
    return Share(
        dataset=dataset,
        megabytes=_size(path) / 1e6,
        text_megabytes=sum(len(text.encode("utf-8", "replace")) for text in texts) / 1e6,
        num_examples=num_examples,
        num_records=num_records,
        seconds=seconds[1:],
        tokenizing_seconds=alone[1:],
        is_varied=is_varied,
    )


def _size(path):
    """Bytes of a raw file, unpacked."""
    try:
        with contextlib.closing(opener.open_bytes(path)) as file:
            return sum(map(len, iter(lambda: file.read(opener.BLOCK), b"")))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _tokenizer(vocab_file):
    """Function of a text to its ids, by the package `tokenizers`, on one core."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with extras.needed("text"):
        from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(vocab_file, lowercase=True)
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def table(shares):
    """The `Share`s as a Markdown table."""
    lines = [
        "| data set | raw MB | text MB | examples | records | MB/s | tokenizing alone, MB/s "
        "| share | lowest and highest |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for x in shares:
        median = statistics.median
        cells = [
            f"{x.dataset}, varied copies" if x.is_varied else x.dataset,
            f"{x.megabytes:.2f}",
            f"{x.text_megabytes:.2f}",
            str(x.num_examples),
            str(x.num_records),
            f"{x.megabytes / median(x.seconds):.2f}",
            f"{x.megabytes / median(x.tokenizing_seconds):.2f}",
            f"{median(x.shares):.2f}",
            f"{min(x.shares):.2f}, {max(x.shares):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
