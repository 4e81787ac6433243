"""What a fresh clone checks: every kind of case; and the report says what it does not."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.reference import cases, small_samples

SMALL = pathlib.Path(cases.__file__).parent / "small"
REPOSITORY = SMALL.parents[2]
MAX_BYTES = 12_000_000
TOPICS = ("core", "hotpotqa", "nq", "openkp", "tokenization", "wikihop")
ALL_NAMES = json.loads((SMALL / cases.ALL_CASES).read_text(encoding="utf-8"))


@pytest.fixture
def small_copy(monkeypatch):
    monkeypatch.setenv(cases.ROOT_VARIABLE, str(SMALL))


def test_it_stays_small():
    files = [path for path in SMALL.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MAX_BYTES


@pytest.mark.usefixtures("small_copy")
@pytest.mark.parametrize("topic", TOPICS)
def test_it_has_every_kind_of_case(topic):
    kept = {}
    for case in cases.load_cases(topic):
        kept.setdefault(cases.kind_of(case), []).append(case["name"])
        assert cases.resolve(topic, case.get("file", "manifest.json")).is_file(), case["name"]
    assert set(kept) == set(ALL_NAMES[topic])
    for kind, names in kept.items():
        assert set(names) <= set(ALL_NAMES[topic][kind])


@pytest.mark.usefixtures("small_copy")
@pytest.mark.parametrize("topic", small_samples.SAMPLES)
def test_it_has_the_samples(topic):
    kept = [case["name"] for case in cases.load_cases(topic)]
    assert sorted(kept) == sorted(small_samples.SAMPLES[topic][0])
    assert set(kept) < {name for names in ALL_NAMES[topic].values() for name in names}


@pytest.mark.usefixtures("small_copy")
def test_it_has_every_task_model():
    kept = [case["name"] for case in cases.load_cases("core") if case["kind"] == "tasks"]
    assert kept == ALL_NAMES["core"]["tasks"]
    assert {"nq", "hotpotqa_span", "hotpotqa_bio", "openkp_text", "wikihop"} <= set(kept)


@pytest.mark.usefixtures("small_copy")
def test_it_has_nearly_all_core_cases():
    num_all = sum(map(len, ALL_NAMES["core"].values()))
    assert len(cases.load_cases("core")) >= 0.95 * num_all


REPORTED = """
import pytest

def named(*names):
    return pytest.mark.parametrize("case", [{"name": name} for name in names])

@pytest.mark.reference("letters")
@named("a", "b", "z")
def test_letters(case):
    assert case["name"] != "b"

@pytest.mark.reference("digits")
@named("0", "1")
def test_digits(case):
    pass
"""


def test_the_report_counts_against_the_full_list(tmp_path):
    kinds = {"a": "vowels", "b": "others", "z": "others"}
    write_manifest(tmp_path / "letters", [{"name": n, "kind": kind} for n, kind in kinds.items()])
    write_manifest(tmp_path / "digits", [{"name": "0"}, {"name": "1"}])  # Not listed: all there is.
    all_names = {"letters": {"vowels": list("aeiouyå"), "others": ["b", "z", "x"]}}
    (tmp_path / cases.ALL_CASES).write_text(json.dumps(all_names))
    (tmp_path / "test_them.py").write_text(REPORTED)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "--rootdir", tmp_path, tmp_path],
        cwd=REPOSITORY,
        env={**os.environ, cases.ROOT_VARIABLE: str(tmp_path), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    lines = run.stdout.splitlines()
    assert [line for line in lines if line.startswith(("letters ", "digits "))] == [
        "digits all: 2 of 2 passed",
        "letters vowels: 1 of 7 passed, 6 not run: e, i, o, u, y …",
        "letters others: 1 of 3 passed, 1 not run: x",
    ], run.stdout


def write_manifest(folder, entries):
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"cases": entries}))
