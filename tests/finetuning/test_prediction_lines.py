"""Predictions that are written as they come, and go on where a program was stopped."""

import json
import os

import pytest

from etcmodel.finetuning import prediction_lines

SOURCE = {"export": "a/1", "size": 7}


class Killed(BaseException):
    """Ends the loop as a signal does."""


def maker(total, stop_at=None):
    """(function as `write_lines` takes it; list of the numbers that it was asked to make)."""
    made = []

    def predictions_after(count):
        for number in range(count, total):
            if number == stop_at:
                raise Killed
            made.append(number)
            yield {"id": number, "summary": "ü\n"}

    return predictions_after, made


def written(path):
    return [line["id"] for line in map(json.loads, path.read_text("utf-8").splitlines())]


def test_all_at_once(tmp_path):
    path = tmp_path / "new" / "out.jsonl"
    assert prediction_lines.write_lines(str(path), SOURCE, maker(3)[0]) == 3
    assert written(path) == [0, 1, 2]
    assert list(prediction_lines.read_lines(str(path)))[0] == {"id": 0, "summary": "ü\n"}
    assert [x.name for x in path.parent.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("torn", [b"", b'{"id": 3, "summ', "{ü".encode()[:2]])
def test_a_stopped_program_goes_on(tmp_path, torn):
    path = tmp_path / "out.jsonl"
    with pytest.raises(Killed):
        prediction_lines.write_lines(str(path), SOURCE, maker(5, stop_at=3)[0])
    partial = tmp_path / "out.jsonl.partial"
    assert not path.exists()
    with partial.open("ab") as file:
        file.write(torn)
    predictions_after, made = maker(5)
    assert prediction_lines.write_lines(str(path), SOURCE, predictions_after) == 5
    assert made == [3, 4] and written(path) == [0, 1, 2, 3, 4]
    assert [x.name for x in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_complete_file_is_replaced_only_by_a_complete_one(tmp_path):
    path = tmp_path / "out.jsonl"
    prediction_lines.write_lines(str(path), SOURCE, maker(2)[0])
    with pytest.raises(Killed):
        prediction_lines.write_lines(str(path), SOURCE, maker(4, stop_at=1)[0])
    assert written(path) == [0, 1]
    prediction_lines.write_lines(str(path), SOURCE, maker(4)[0])
    assert written(path) == [0, 1, 2, 3]


def test_lines_may_make_a_file_of_another_form(tmp_path):
    path = tmp_path / "out.json"

    def finish(lines):
        path.write_text(json.dumps([line["id"] for line in lines]))
        return 1

    def broken(lines):
        raise ValueError(f"{len(list(lines))} lines")

    with pytest.raises(Killed):
        prediction_lines.write_lines(str(path), SOURCE, maker(4, stop_at=2)[0], finish)
    with pytest.raises(ValueError, match="4 lines"):
        prediction_lines.write_lines(str(path), SOURCE, maker(4)[0], broken)
    predictions_after, made = maker(4)
    assert prediction_lines.write_lines(str(path), SOURCE, predictions_after, finish) == 1
    assert made == [] and json.loads(path.read_text()) == [0, 1, 2, 3]
    assert [x.name for x in tmp_path.iterdir()] == ["out.json"]


def test_what_fails_at_once_leaves_nothing(tmp_path):
    with pytest.raises(Killed):
        prediction_lines.write_lines(str(tmp_path / "out"), SOURCE, maker(4, stop_at=0)[0])
    assert not list(tmp_path.iterdir())


def test_predictions_of_something_else_are_not_continued(tmp_path):
    path = str(tmp_path / "out.jsonl")
    with pytest.raises(Killed):
        prediction_lines.write_lines(path, SOURCE, maker(5, stop_at=3)[0])
    message = "out.jsonl.partial: these predictions were begun with `export` 'a/1', and now it is "
    with pytest.raises(ValueError, match=f"{message}'a/2'. Remove the file to begin anew"):
        prediction_lines.write_lines(path, {**SOURCE, "export": "a/2"}, maker(5)[0])
    with pytest.raises(ValueError, match="begun with `beams` None, and now it is 4"):
        prediction_lines.write_lines(path, {**SOURCE, "beams": 4}, maker(5)[0])
    (tmp_path / "out.jsonl.partial").write_text("no\n")
    with pytest.raises(ValueError, match="the first line is damaged. Remove the file"):
        prediction_lines.write_lines(path, SOURCE, maker(5)[0])
    (tmp_path / "out.jsonl.partial").write_text('{"export"')
    assert prediction_lines.write_lines(path, SOURCE, maker(5)[0]) == 5


def test_a_file_with_other_content_is_another_source(tmp_path):
    folder = tmp_path / "texts"
    (folder / "a").mkdir(parents=True)
    text, other = folder / "a" / "1.txt", tmp_path / "model.index"
    for path in (text, other):
        path.write_text("rain")
        os.utime(path, ns=(0, 10**18))
    names = [str(folder), str(other), str(tmp_path / "none")]
    states = prediction_lines.file_states(names)
    assert states == dict.fromkeys([str(text), str(other)], "4 bytes of 2001-09-09T01:46:40+00:00")
    other.write_text("snow")  # As long.
    os.utime(other, ns=(0, 10**18 + 10**9))
    changed = prediction_lines.file_states(names)
    assert changed[str(text)] == states[str(text)] and changed[str(other)] != states[str(other)]
    text.write_text("much rain")
    assert prediction_lines.file_states(names)[str(text)].startswith("9 bytes")
