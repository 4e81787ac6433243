"""From HotpotQA's files to typed examples: every layout, and the errors."""

import gzip
import json

import pytest

from etcmodel.tasks.hotpotqa import examples
from tests.tasks.hotpotqa.raw_examples import raw_example


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


class TestReading:
    def ids(self, path):
        return [example.example_id for example in examples.read_examples(path)]

    def test_any_layout_of_the_array_reads_alike(self, tmp_path):
        raws = [raw_example(_id="é1"), raw_example(_id="2")]
        for number, text in enumerate(
            [json.dumps(raws), json.dumps(raws, indent=4), "\n\n " + json.dumps(raws, indent=0)]
        ):
            assert self.ids(write(tmp_path / f"{number}.json", text)) == ["é1", "2"]

    def test_json_lines_and_gzip_read_alike(self, tmp_path):
        lines = "\n".join(json.dumps(raw_example(_id=name)) for name in "ab")
        assert self.ids(write(tmp_path / "a.jsonl", lines + "\n")) == ["a", "b"]
        with gzip.open(tmp_path / "a.json.gz", "wt") as file:
            file.write(lines)
        assert self.ids(tmp_path / "a.json.gz") == ["a", "b"]

    def test_the_layout_of_hugging_face_datasets_gives_the_same_example(self):
        raw = raw_example()
        theirs = {
            **{name: raw[name] for name in ("question", "answer", "type", "level")},
            "id": "q1",
            "context": {
                "title": [title for title, _ in raw["context"]],
                "sentences": [sentences for _, sentences in raw["context"]],
            },
            "supporting_facts": {"title": ["one"], "sent_id": [1]},
        }
        assert examples.parse_example(theirs) == examples.parse_example(raw)

    def test_an_unlabeled_example_is_fine(self):
        raw = {name: raw_example()[name] for name in ("_id", "question", "context")}
        example = examples.parse_example(raw)
        assert (example.answer, example.supporting_facts, example.type) == (None, None, "")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "the file holds no examples"),
            ('"text"', "expected a JSON array"),
            ('[{"_id": "a",\n "question" 3}]', "malformed JSON at line 2, column 13"),
            ("[] x", "malformed JSON at line 1, column 4"),
            ('{"_id" 3}', "malformed JSON at line 1, column 8"),
            ("[]", "the file holds no examples"),
            ("[1, 2]", "none of the 2 examples can be used, the first: element 0: an example must"),
        ],
    )
    def test_broken_files_are_named_with_the_place(self, tmp_path, content, message):
        path = write(tmp_path / "broken.json", content)
        with pytest.raises(ValueError, match=rf"broken\.json: {message}"):
            list(examples.read_examples(path))

    def test_malformed_examples_are_left_out_with_a_warning(self, tmp_path, caplog):
        raws = [raw_example(_id="1"), raw_example(_id="2", answer=3), raw_example(_id="3")]
        path = write(tmp_path / "a.json", json.dumps(raws))
        assert self.ids(path) == ["1", "3"]
        assert caplog.messages == [
            f"skipped {path}: element 1: example '2': field `answer` must be a string. Received: 3",
            f"{path}: 1 of 3 examples skipped",
        ]

    def test_an_array_that_breaks_off_is_an_error_after_its_examples(self, tmp_path):
        path = write(tmp_path / "cut.json", json.dumps([raw_example()] * 2)[:-5])
        reader = examples.read_examples(path)
        assert next(reader).example_id == "q1"
        with pytest.raises(ValueError, match=r"cut\.json: malformed JSON"):
            list(reader)

    def test_a_cut_gzip_file_is_an_error(self, tmp_path):
        path = tmp_path / "cut.json.gz"
        path.write_bytes(gzip.compress(json.dumps([raw_example()]).encode())[:-9])
        with pytest.raises(ValueError, match="broken gzip file"):
            list(examples.read_examples(path))

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"question": " "}, "field `question` must not be empty"),
            ({"question": None}, "field `question` must be a string. Received: None"),
            ({"context": [["one"]]}, "field `context` must be a list of pairs"),
            ({"context": [["one", "text"]]}, r"field `context\[0\]` must have a list of sentences"),
            ({"context": {"title": ["a"]}}, "field `context` must have lists `title`, `sentences`"),
            ({"supporting_facts": [["one", -1]]}, r"field `supporting_facts\[0\]` must be a title"),
            ({"answer": 3}, "field `answer` must be a string. Received: 3"),
        ],
    )
    def test_a_bad_field_is_named_with_the_examples_id(self, fields, message):
        with pytest.raises(ValueError, match=f"example 'q1': {message}"):
            examples.parse_example(raw_example(**fields))

    def test_a_missing_field_is_named(self):
        raw = raw_example()
        del raw["context"]
        with pytest.raises(ValueError, match="example 'q1': field `context` is missing"):
            examples.parse_example(raw)
        with pytest.raises(ValueError, match="no field `_id`"):
            examples.parse_example({"question": "x"})
