"""The raw files of every data set may have any layout, and a bad line costs that line."""

import gzip
import json

import pyarrow
import pyarrow.parquet
import pytest

from etcmodel.tasks.hotpotqa import examples as hotpotqa
from etcmodel.tasks.majority_tagging import examples as majority_tagging
from etcmodel.tasks.nq import examples as nq
from etcmodel.tasks.numerical_reasoning import examples as numerical_reasoning
from etcmodel.tasks.openkp import examples as openkp
from etcmodel.tasks.triviaqa import examples as triviaqa
from etcmodel.tasks.wikihop import examples as wikihop
from tests.tasks.hotpotqa import raw_examples as hotpotqa_examples
from tests.tasks.nq import raw_examples as nq_examples
from tests.tasks.openkp import pages as openkp_pages
from tests.tasks.triviaqa import questions as triviaqa_questions
from tests.tasks.wikihop import raw_examples as wikihop_examples

NUMBERS = {"passage": "2 and 3", "question": "2 plus 3?", "answer": "5"}
# How each is read, and two of its raw examples.
TASKS = {
    "hotpotqa": (
        hotpotqa.read_examples,
        [hotpotqa_examples.raw_example(_id=name) for name in "ab"],
    ),
    "majority_tagging": (
        majority_tagging.read_examples,
        [{"id": name, "tokens": [1, 2, 2], "tags": [2, 2, 2]} for name in "ab"],
    ),
    "nq": (nq.read_examples, [nq_examples.raw_example(example_id=number) for number in (1, 2)]),
    "numerical_reasoning": (
        numerical_reasoning.read_examples,
        [{"id": name, **NUMBERS} for name in "ab"],
    ),
    "openkp": (openkp.read_examples, [openkp_pages.page("a red rose", url=x) for x in "ab"]),
    "triviaqa": (
        triviaqa.read_examples,
        [triviaqa_questions.raw_question(x, wikipedia=["a"], web=["b"]) for x in (1, 2)],
    ),
    "wikihop": (wikihop.read_examples, [wikihop_examples.raw_example(id=x) for x in "ab"]),
}


def lines(raws):
    return "".join(f"{json.dumps(raw)}\n" for raw in raws).encode()


LAYOUTS = {
    "an array": lambda raws: json.dumps(raws).encode(),
    "an indented array": lambda raws: json.dumps(raws, indent=1).encode(),
    "lines with a byte order mark": lambda raws: b"\xef\xbb\xbf" + lines(raws),
    "packed lines": lambda raws: gzip.compress(lines(raws)),
    "a bad line": lambda raws: b'{"id": "cut\n'.join(lines([raw]) for raw in raws),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["a.json", "a.JSONL"])
def test_examples_are_the_same_in_every_layout(tmp_path, task, layout, name, caplog):
    read, raws = TASKS[task]
    plain, path = tmp_path / "plain.jsonl", tmp_path / name
    plain.write_bytes(lines(raws))
    expected = list(read(str(plain)))
    assert len(expected) == len(raws) == 2
    path.write_bytes(LAYOUTS[layout](raws))
    assert list(read(str(path))) == expected
    assert len(caplog.messages) == 2 * (layout == "a bad line")  # The line, and the count.


# HotpotQA's own layout has lists of text and lists, which no column holds.
@pytest.mark.parametrize("task", sorted(TASKS.keys() - {"hotpotqa"}))
def test_examples_may_be_rows_of_parquet(tmp_path, task):
    read, raws = TASKS[task]
    (tmp_path / "a.jsonl").write_bytes(lines(raws))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(raws), tmp_path / "a.parquet")
    assert list(read(str(tmp_path / "a.parquet"))) == list(read(str(tmp_path / "a.jsonl")))
