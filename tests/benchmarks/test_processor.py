"""The benchmark of the processor."""

import pytest

from benchmarks import processor as benchmark
from etcmodel.text import processor, tokenization


@pytest.fixture
def tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "##b"]), "utf-8")
    return tokenization.FullTokenizer(str(path))


def test_any_white_space_will_do_to_cut_at_but_some_is_needed(tokenizer):
    documents = benchmark.documents_of("a\nb\n" * 20, tokenizer, length=8)
    assert [len(tokenizer.tokenize(document)) for document in documents] == [8] * 4
    with pytest.raises(ValueError, match="--length=8: no white space .* from 'abbbbb"):
        benchmark.documents_of("a" + "b" * 50, tokenizer, length=8)


def test_a_text_is_cut_into_documents_that_are_measured_on_all_sides(tokenizer):
    documents = benchmark.documents_of("a b a b " * 10, tokenizer, length=8)
    assert [len(tokenizer.tokenize(document)) for document in documents] == [8] * 4
    counts = []
    sides = {
        "one": lambda: lambda text: counts.append(len(tokenizer.tokenize(text))),
        "two": lambda: processor.EtcProcessor(str(tokenizer.source_file)),
    }
    seconds = benchmark.measure(sides, documents, rounds=2)
    assert [len(values) for values in seconds.values()] == [3, 3] and counts == [8] * 12
    lines = benchmark.table({"one": [4, 2, 2], "two": [8, 1, 1]}, 10**6, "one").splitlines()
    assert lines[2:] == [
        "| one | 0.25 M | 0.50 M | 0.50 M, 0.50 M | 1.00 |",
        "| two | 0.12 M | 1.00 M | 1.00 M, 1.00 M | 2.00 |",
    ]
