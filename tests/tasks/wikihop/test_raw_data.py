"""From WikiHop's files to typed examples, and the errors."""

import gzip
import json

import pytest

from etcmodel.tasks.wikihop import examples, metrics
from tests.tasks.wikihop.raw_examples import raw_example


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return str(path)


def ids(path):
    return [example.example_id for example in examples.read_examples(path)]


class TestReading:
    def test_array_lines_and_gzip_read_alike(self, tmp_path):
        raws = [raw_example(id="é1"), raw_example(id="2")]
        lines = "\n".join(map(json.dumps, raws))
        texts = [json.dumps(raws), json.dumps(raws, indent=4), f"\n {lines}\n"]
        for number, text in enumerate(texts):
            assert ids(write(tmp_path / f"{number}.json", text)) == ["é1", "2"]
            packed = gzip.compress(text.encode())
            assert ids(write(tmp_path / f"{number}.json.gz", packed)) == ["é1", "2"]

    def test_an_unlabeled_example_and_empty_documents_are_fine(self):
        raw = raw_example(supports=["", "  "])
        del raw["answer"]
        example = examples.parse_example(raw)
        assert (example.answer, example.documents) == (None, ("", "  "))
        assert examples.parse_example(raw_example(supports=[])).documents == ()

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "the file holds no examples"),
            ('"text"', "expected a JSON array"),
            ('[{"id": "a",\n "query" 3}]', "malformed JSON at line 2, column 10"),
            (json.dumps([raw_example()] * 2)[:-5], "malformed JSON at line 1, column"),
            (b'[{"id":\n"\xff\xfe"}]', "line 2: invalid UTF-8 at character 2"),
            ("[]", "the file holds no examples"),
            ("[1, 2]", "none of the 2 examples can be used, the first: element 0: an example must"),
        ],
    )
    def test_broken_files_are_named_with_the_place(self, tmp_path, content, message):
        path = write(tmp_path / "broken.json", content)
        with pytest.raises(ValueError, match=rf"broken\.json: {message}"):
            list(examples.read_examples(path))

    @pytest.mark.parametrize("num_bytes", [-9, 15])
    def test_a_cut_gzip_file_is_an_error(self, tmp_path, num_bytes):
        packed = gzip.compress(json.dumps([raw_example()]).encode())
        path = write(tmp_path / "cut.json.gz", packed[:num_bytes])
        with pytest.raises(ValueError, match="cut.json.gz: broken gzip file after"):
            list(examples.read_examples(path))

    def test_what_is_named_so_and_is_not_packed_is_read(self, tmp_path):
        path = write(tmp_path / "a.json.gz", json.dumps([raw_example()]))
        assert len(list(examples.read_examples(path))) == 1


class TestMalformedExamples:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"query": None}, "field `query` must be a string"),
            ({"answer": 3}, "field `answer` must be a string. Received: 3"),
            ({"candidates": "avaria"}, "field `candidates` must be a list of strings"),
            ({"candidates": []}, "field `candidates` must not be empty"),
            ({"supports": ["a", 1]}, "field `supports` must be a list of strings"),
        ],
    )
    def test_the_example_and_the_field_are_named(self, fields, message):
        with pytest.raises(ValueError, match=f"example 'w1': {message}"):
            examples.parse_example(raw_example(**fields))

    @pytest.mark.parametrize("name", ["query", "candidates", "supports"])
    def test_a_missing_field_is_named(self, name):
        raw = raw_example()
        del raw[name]
        with pytest.raises(ValueError, match=f"example 'w1': field `{name}` is missing"):
            examples.parse_example(raw)

    @pytest.mark.parametrize("example_id", [None, ""])
    def test_an_example_without_an_id_is_refused(self, example_id):
        with pytest.raises(ValueError, match="an example has no field `id`"):
            examples.parse_example(raw_example(id=example_id))


class TestAnswer:
    def index(self, answer, *candidates, **options):
        raw = raw_example(answer=answer, candidates=list(candidates))
        return examples.parse_example(raw).answer_index(**options)

    def test_it_is_compared_stripped_and_in_lower_case(self):
        assert self.index(" B", "a", "b ") == 1
        assert self.index("A", "a", "A") == 0

    @pytest.mark.parametrize(("answer", "candidate"), [("Zoë", "Zoe\u0308"), ("ZOE\u0308 ", "zoë")])
    def test_accents_may_be_written_in_either_way(self, answer, candidate):
        assert self.index(answer, "zoe", candidate) == 1
        with pytest.raises(ValueError, match="is not one of the 2 candidates"):
            self.index(answer, "zoe", candidate, release_compatible=True)
        example = examples.parse_example(raw_example(answer=answer, candidates=[candidate, "zoe"]))
        assert metrics.metrics([example], {"w1": candidate}) == {"accuracy": 1.0}
        assert metrics.metrics([example], {"w1": "zoe"}) == {"accuracy": 0.0}

    def test_it_is_not_stripped_if_compatible(self):
        assert self.index("B", "a", " b", release_compatible=True) == 1
        with pytest.raises(ValueError, match="'b ' is not one of the 2 candidates: 'a', 'b'"):
            self.index("b ", "a", "b", release_compatible=True)

    def test_an_answer_that_is_no_candidate_is_an_error(self):
        with pytest.raises(ValueError, match="example 'w1': field `answer`: 'd' is not one of"):
            self.index("d", "a", "b")
