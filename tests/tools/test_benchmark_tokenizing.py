"""Preprocessing beside tokenizing alone: what is counted as text, and what the table says."""

import gzip
import json
import pathlib

import pytest

from etcmodel.tools import benchmark_preprocessing as benchmark
from etcmodel.tools import make_demo_data
from etcmodel.tools.benchmarks import tokenizing
from tests.tasks.nq import raw_examples as nq


def share(seconds, alone, **fields):
    return tokenizing.Share(
        **{"dataset": "nq", "megabytes": 6.0, "text_megabytes": 2.0, "num_examples": 7}
        | {"num_records": 9, "seconds": seconds, "tokenizing_seconds": alone, "is_varied": True}
        | fields
    )


def test_the_share_is_of_the_rounds_in_turn():
    one = share([4.0, 2.0, 3.0], [1.0, 2.0, 1.5])
    assert one.shares == [0.25, 1.0, 0.5]
    (*_, row) = tokenizing.table([one]).splitlines()
    assert row == "| nq, varied copies | 6.00 | 2.00 | 7 | 9 | 2.00 | 4.00 | 0.50 | 0.25, 1.00 |"


def test_the_text_of_a_page_is_what_lies_in_its_candidates(tmp_path):
    path = tmp_path / "raw.jsonl"
    path.write_text(json.dumps(nq.raw_example()), encoding="utf-8")
    (example,) = tokenizing.read_examples("nq", str(path))
    text = tokenizing.TEXTS["nq"](example)
    assert text == f"{nq.QUESTION} it opened in may . red roof blue old"


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    """Paths of generated questions and their vocabulary."""
    folder = tmp_path_factory.mktemp("questions")
    return make_demo_data.make_demo_data(
        dataset="hotpotqa", output_dir=str(folder), num_train=3, num_dev=1, seed=0
    )


@pytest.mark.slow
def test_a_large_file_is_measured_as_it_is_and_of_a_small_one_copies(questions, capsys):
    flags = {"hotpotqa": questions["train"], "vocab_file": questions["vocab"], "rounds": 2}
    for megabytes, is_varied in ((0.0, False), (0.02, True)):
        benchmark.main(benchmark.BenchmarkOptions(**flags, megabytes=megabytes))
        *_, row, in_json = capsys.readouterr().out.splitlines()
        assert row.startswith("| hotpotqa, varied" if is_varied else "| hotpotqa |")
        (found,) = json.loads(in_json)
        assert found["is_varied"] == is_varied
        assert found["megabytes"] >= megabytes and 0 < found["text_megabytes"] < found["megabytes"]
        assert len(found["seconds"]) == len(found["tokenizing_seconds"]) == 2
        assert (found["num_examples"] == 3) == (not is_varied)
        assert found["num_records"] == found["num_examples"]


@pytest.mark.slow
def test_a_packed_file_has_the_size_of_its_content(questions, tmp_path, capsys):
    content = pathlib.Path(questions["train"]).read_bytes()
    packed = tmp_path / "train.json.gz"
    packed.write_bytes(gzip.compress(content))
    flags = {"hotpotqa": str(packed), "vocab_file": questions["vocab"], "rounds": 1}
    benchmark.main(benchmark.BenchmarkOptions(**flags, megabytes=0.9 * len(content) / 1e6))
    (found,) = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["megabytes"] == len(content) / 1e6 and not found["is_varied"]
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ValueError, match=f"^{packed}: broken gzip file: "):
        benchmark.main(benchmark.BenchmarkOptions(**flags))


def test_a_vocabulary_is_asked_for():
    with pytest.raises(ValueError, match="^--vocab_file must be given with raw files.$"):
        benchmark.BenchmarkOptions(nq="nq.jsonl")
