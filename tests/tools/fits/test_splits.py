"""How rows are dealt to parts: by seed, by label, and equal texts together."""

import collections
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tools.fits import splits

SHARES = {"dev": 0.1, "test": 0.2}


def counts_of(parts, labels):
    return collections.Counter((labels[key], part) for key, part in parts.items())


def test_each_label_has_its_share_in_each_part():
    labels = {f"{label}{n}": label for label in "ab" for n in range({"a": 200, "b": 50}[label])}
    counts = counts_of(splits.parts_of(labels, SHARES, seed=0), labels)
    assert counts == {
        ("a", "train"): 140,
        ("a", "dev"): 20,
        ("a", "test"): 40,
        ("b", "train"): 35,
        ("b", "dev"): 5,
        ("b", "test"): 10,
    }


def test_the_seed_decides_and_nothing_else():
    labels = {f"{n}": n % 2 for n in range(100)}
    first = splits.parts_of(labels, SHARES, seed=1)
    assert first == splits.parts_of(dict(labels), SHARES, seed=1)
    assert first != splits.parts_of(labels, SHARES, seed=2)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=300), st.integers(0, 5))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_whatever_the_labels_all_are_trained_on_and_shares_are_kept(of_groups, seed):
    labels = dict(enumerate(of_groups))
    parts = splits.parts_of(labels, SHARES, seed)
    assert parts.keys() == labels.keys()
    assert {labels[key] for key, part in parts.items() if part == "train"} == set(of_groups)
    counts = collections.Counter(parts.values())
    # A label that has one group only leaves its share to nobody.
    for part, share in SHARES.items():
        assert counts[part] <= share * len(labels) + 0.5
        assert counts[part] >= share * (len(labels) - 4 * len(set(of_groups))) - 1


def test_equal_texts_are_in_one_part():
    rows = [(f"text {n % 40}", n % 3) for n in range(400)]
    part_of = splits.deal(rows, SHARES, seed=0)
    found = collections.Counter(part_of(f"text {n}") for n in range(40))
    assert found == {"train": 28, "dev": 4, "test": 8}


def test_too_few_texts_are_refused():
    with pytest.raises(ValueError, match="2 different texts with labels are too few .* dev, test"):
        splits.deal([("a", 0), ("a", 0), ("b", 1)], SHARES, seed=0)


def test_parts_are_json_lines(tmp_path):
    rows = [("train", {"text": "é"}), ("test", {"text": "b\nc"}), ("train", {"text": "d"})]
    assert splits.write(str(tmp_path), rows) == {"train": 2, "dev": 0, "test": 1}
    lines = (tmp_path / "train.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"text": "é"}, {"text": "d"}]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "dev.jsonl",
        "test.jsonl",
        "train.jsonl",
    ]
