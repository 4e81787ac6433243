"""Cleaning a raw file: valid phrases, each URL once, bad lines."""

import json
import pathlib
import re

import pytest

from etcmodel.tasks.openkp import input_validate_and_dedup
from tests.tasks.openkp.pages import element, page, write_lines


def clean(tmp_path, pages, **options):
    source = write_lines(tmp_path / "raw.jsonl", pages)
    target = tmp_path / "clean.jsonl"
    report = input_validate_and_dedup.clean_file(source, str(target), **options)
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
    assert input_validate_and_dedup.is_whole_words("learn C++ (fast)", ["c++"]) == (True, ["c++"])
    assert input_validate_and_dedup.is_whole_words("learn C+++", ["c++"])[0] is False
    assert input_validate_and_dedup.is_whole_words("anything", [""])[0] is False


def test_a_no_break_space_is_no_border_of_a_word():
    assert input_validate_and_dedup.is_whole_words("a\u00a0cat", ["cat"]) == (False, ["cat"])
    assert input_validate_and_dedup.is_whole_words("a cat\t", ["cat"]) == (False, ["cat"])
    assert input_validate_and_dedup.is_whole_words("a\u00a0cat", ["A\u00a0cat"]) == (
        True,
        ["A\u00a0cat"],
    )
    assert input_validate_and_dedup.is_whole_words("oak  door", ["oak", "door"]) == (
        False,
        ["oak door"],
    )


def one_two(*elements, **fields):
    """A page of two words with these elements, (text, first word, `Id`) each."""
    vdom = [{**element(text, begin), "Id": number} for text, begin, number in elements]
    return page("one two", key_phrases=[["one"]], VDOM=json.dumps(vdom), **fields)


BAD_VDOMS = [
    (page("one two", key_phrases=[["one"]], VDOM=None), "field `VDOM` is missing"),
    (one_two(), "field `VDOM` has no element"),
    (one_two(("one", 0, 1)), "field `VDOM` ends after 1 words, the text has 2"),
    (one_two(("two", 1, 1)), "VDOM element 0: `start_idx` must be 0, the end of the element befo"),
    (one_two(("one", 0, 1), ("two", 1, 2)), "VDOM element 1: `Id` must be 1, that of the first"),
    (one_two(("one", 0, 1), ("TWO", 1, 1)), "`text` must be the words 1 to 2 .* 'two'.*'TWO'"),
    (one_two(("one two", 0, 1), ("two", 1, 1)), "VDOM element 1: `start_idx` and .* in order betw"),
    (one_two(("one", 0, 1), ("two ", 1, 1)), "must lie in order between 1 .* and 2 .*: 1, 3"),
    (one_two(("one\u00a0two", 0, 1)), "`text` must be the words 0 to 1"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_VDOMS)
@pytest.mark.parametrize("is_eval", [False, True])
def test_the_elements_must_be_the_whole_text_of_one_page(tmp_path, bad, message, is_eval):
    good = one_two(("one", 0, 5), ("", 1, 5), ("two", 1, 5), url="good")
    kept, report = clean(tmp_path, [good, bad], is_eval=is_eval)
    assert [raw["url"] for raw in kept] == ["good"] and report.num_bad == 1
    assert re.search(f"line 2: page 'http://example.org/1': .*{message}", report.bad[0])
    with pytest.raises(ValueError, match=f"raw.jsonl: line 2: .*{message}"):
        clean(tmp_path, [good, bad], strict=True, is_eval=is_eval)


def test_empty_words_belong_to_an_element_too(tmp_path):
    raw = page("red\u00a0fox ", "den", key_phrases=[["red\u00a0fox"], ["fox"]])
    kept, _ = clean(tmp_path, [raw])
    assert kept == [{**raw, "KeyPhrases": [["red\u00a0fox"]]}]
    trimmed = json.loads(raw["VDOM"])
    trimmed[0]["text"] = "red\u00a0fox"
    with pytest.raises(ValueError, match=r"words 0 to 2 of the page, 'red\\xa0fox '"):
        clean(tmp_path, [{**raw, "VDOM": json.dumps(trimmed)}], strict=True)


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


def test_pages_of_one_line_are_pages_of_their_own(tmp_path):
    few = page("a red rose", key_phrases=[["rose"]])
    other = page("a red rose", url="other")
    many = page("a red rose", key_phrases=[["rose"], ["red"]])
    kept, report = clean(tmp_path, [" ".join(map(json.dumps, (few, other, many))) + "\n"])
    assert [(p["url"], len(p["KeyPhrases"])) for p in kept] == [(few["url"], 2), ("other", 1)]
    assert (report.num_lines, report.num_written, report.num_duplicates) == (3, 2, 1)
