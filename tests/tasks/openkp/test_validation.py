"""Cleaning a raw file: valid phrases, each URL once, bad lines."""

import json
import pathlib

import pytest

from etcmodel.tasks.openkp import validation
from tests.tasks.openkp.pages import page, write_lines


def clean(tmp_path, pages, **options):
    source = write_lines(tmp_path / "raw.jsonl", pages)
    target = tmp_path / "clean.jsonl"
    report = validation.clean_file(source, str(target), **options)
    return [json.loads(line) for line in target.read_text().splitlines()], report


def test_keeps_the_line_with_the_most_phrases_at_the_place_of_the_first(tmp_path):
    few = page("a red rose", key_phrases=[["rose"], ["moon"]])
    other = page("a red rose", url="other")
    many = page("a red rose", key_phrases=[["rose"], ["red"]])
    kept, report = clean(tmp_path, [few, other, many, few])
    assert [(p["url"], p["KeyPhrases"]) for p in kept] == [
        (few["url"], [["rose"], ["red"]]),
        ("other", [["red rose"]]),
    ]
    assert (report.num_lines, report.num_written, report.num_duplicates) == (4, 2, 2)
    assert report.num_phrases_dropped == 2


def test_evaluation_files_keep_the_first_line_of_a_url(tmp_path):
    pages = [page("one", KeyPhrases=None), page("two", KeyPhrases=None)]
    kept, _ = clean(tmp_path, pages, is_eval=True)
    assert kept == pages[:1]


def test_phrases_are_whole_words_even_with_special_characters():
    assert validation.is_whole_words("learn C++ (fast)", ["c++"]) == (True, ["c++"])
    assert validation.is_whole_words("learn C+++", ["c++"])[0] is False
    assert validation.is_whole_words("anything", [""])[0] is False


BAD_LINES = ["{nonsense\n", page("a rose", key_phrases=[["moon"]]), page("x", url=""), '"text"\n']


def test_bad_lines_are_counted_and_named(tmp_path):
    kept, report = clean(tmp_path, [page("a red rose"), *BAD_LINES])
    assert len(kept) == 1 and report.num_bad == 4
    assert report.bad[0].startswith("line 2: malformed JSON")
    assert "no key phrase occurs in the text" in report.bad[1]


@pytest.mark.parametrize("bad", BAD_LINES)
def test_strict_fails_and_writes_nothing(tmp_path, bad):
    with pytest.raises(ValueError, match="raw.jsonl: line 2: "):
        clean(tmp_path, [page("a red rose"), bad], strict=True)
    assert {path.name for path in pathlib.Path(tmp_path).iterdir()} == {"raw.jsonl"}


def test_a_file_without_a_good_line(tmp_path):
    with pytest.raises(ValueError, match="no line of 1 can be kept, the first: line 1: malformed"):
        clean(tmp_path, ["{\n"])
