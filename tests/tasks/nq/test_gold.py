"""The gold file and the program that makes a cache of it."""

import gzip
import json

import pytest
import tensorflow as tf

from etcmodel.tasks.nq import examples, metrics
from tests.tasks import programs
from tests.tasks.nq.raw_examples import NO_ANSWER, annotation, gold_of, prediction, raw_example


def written(path, *lines):
    """A file of JSON lines; strings are written as they are."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


class TestGold:
    def test_the_cache_gives_the_same_annotations_without_the_pages(self, tmp_path):
        for index in range(2):
            raws = [raw_example(example_id=10 * index + i) for i in range(3)]
            text = "".join(f"{json.dumps(raw)}\n" for raw in raws)
            (tmp_path / f"dev-{index}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        pattern, cache = str(tmp_path / "dev-*.jsonl.gz"), str(tmp_path / "sub" / "gold.jsonl.gz")
        assert examples.write_gold_cache(pattern, cache) == 6
        assert examples.read_gold(cache) == examples.read_gold(pattern)
        assert list(examples.read_gold(cache)) == [0, 1, 2, 10, 11, 12]
        assert (
            "document_text"
            not in gzip.decompress((tmp_path / "sub" / "gold.jsonl.gz").read_bytes()).decode()
        )
        assert [path.name for path in (tmp_path / "sub").iterdir()] == ["gold.jsonl.gz"]

    def test_wildcards_leave_hidden_files_out_and_places_are_what_they_count(self, tmp_path):
        array = json.dumps([raw_example(example_id=1), {}])
        for name in ("a.json", ".a.json"):
            (tmp_path / name).write_text(array)
        skipped = []
        assert list(examples.read_gold(str(tmp_path / "*.json"), skipped.append)) == [1]
        assert len(skipped) == 1 and skipped[0].startswith(f"{tmp_path}/a.json: element 1: ")
        for name in ("a.json", ".a.json"):
            with tf.io.gfile.GFile(f"ram://gold/{name}", "w") as file:
                file.write(array)
        assert examples.matching_files("ram://gold/*a.json") == ["ram://gold/a.json"]

    def test_the_cache_keeps_the_bytes(self, tmp_path):
        note = annotation((3, 8, 50, 90), ((4, 6, 55, 66), (-1, -1, 70, 80)))
        pattern = written(tmp_path / "dev.jsonl", raw_example(annotations=[note]))
        cache = str(tmp_path / "gold.jsonl")
        examples.write_gold_cache(pattern, cache)
        assert examples.read_gold(cache) == gold_of(note)
        predictions = {"predictions": [prediction((-1, -1, 50, 90), ((4, 6), (-1, -1, 70, 80)))]}
        verdicts = metrics.verdicts(
            examples.read_gold(cache), predictions, long_threshold=1, short_threshold=1
        )
        assert [by_id[17].correct for by_id in verdicts] == [True, True]

    def test_a_cache_of_tokens_alone_is_read(self, tmp_path):
        old = {"example_id": 17, "annotations": [annotation(), NO_ANSWER]}
        cache = written(tmp_path / "gold.jsonl", old)
        assert examples.read_gold(cache) == gold_of(annotation(), NO_ANSWER)

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ([raw_example(), raw_example()], "gold.jsonl: line 2: there is another example 17"),
            ([raw_example(), "", "nothing"], "gold.jsonl: line 3: malformed JSON"),
            ([raw_example(), [1]], "gold.jsonl: line 2: an example must be a JSON object"),
            ([{"example_id": 1}], "line 1: example 1 has no annotation to compare with"),
            ([raw_example(annotations=[])], "line 1: example 17 has no annotation to compare with"),
            ([], "gold.jsonl: the file holds no example: it is empty"),
            (["", ""], "gold.jsonl: the file holds no example: it is empty"),
        ],
    )
    def test_names_the_line_of_what_is_of_no_use(self, tmp_path, lines, message):
        path = written(tmp_path / "gold.jsonl", *lines)
        with pytest.raises(ValueError, match=message):
            examples.read_gold(path)

    @pytest.mark.parametrize(
        ("note", "message"),
        [
            (annotation((9, 1), ()), r"annotations\[0\].long_answer` must have its `start_token`"),
            (
                annotation((-1, 5), ()),
                r"annotations\[0\].long_answer` must have both `start_token`",
            ),
            (
                annotation((5, -1), ()),
                r"annotations\[0\].long_answer` must have both `start_token`",
            ),
            (annotation((3, 8, 9, 9), ()), "long_answer` must have its `start_byte` before"),
            (annotation((3, 8, -1, 9), ()), "long_answer` must have both `start_byte` and"),
            (annotation(short_answers=((4, 4),)), "short_answers` must have its `start_token`"),
            (annotation(short_answers=((4, -1),)), "short_answers` must have both `start_token`"),
        ],
    )
    def test_half_and_backward_spans_are_refused(self, tmp_path, note, message):
        path = written(tmp_path / "gold.jsonl", raw_example(annotations=[note]))
        with pytest.raises(ValueError, match=f"line 1: example 17: field `.*{message}"):
            examples.read_gold(path)

    def test_an_empty_file_among_others_is_named(self, tmp_path):
        written(tmp_path / "dev-0.jsonl", raw_example())
        for name, content in (("dev-1.jsonl", b""), ("dev-1.jsonl.gz", b"")):
            path = tmp_path / name
            path.write_bytes(content)
            with pytest.raises(ValueError, match=f"{name}: the file holds no example: it is empty"):
                examples.write_gold_cache(str(tmp_path / "dev-*"), str(tmp_path / "gold.jsonl"))
            path.unlink()
        assert [path.name for path in tmp_path.iterdir()] == ["dev-0.jsonl"]

    def test_no_file_is_named_by_its_pattern(self, tmp_path):
        with pytest.raises(ValueError, match="No gold file matches '.*none-"):
            examples.read_gold(str(tmp_path / "none-*"))


class TestMakeGoldCache:
    """The program treats the lines that preprocess leaves out as preprocess does."""

    bad = ("nothing", raw_example(example_id=5, annotations=[annotation((9, 1), ())]))

    def test_malformed_lines_are_left_out_named_and_counted(self, tmp_path):
        path = written(tmp_path / "dev.jsonl", raw_example(), *self.bad, raw_example(example_id=18))
        cache = tmp_path / "gold.jsonl.gz"
        program = programs.start("nq", "make_gold_cache", gold_path=path, gold_cache_path=cache)
        printed, logged = programs.finish(program)
        assert printed == f"2 examples, 2 malformed lines left out: {cache}\n"
        first, second = logged.splitlines()
        assert first.startswith(f"left out: {path}: line 2: malformed JSON at column 1")
        assert second.startswith(f"left out: {path}: line 3: example 5: field `annotations[0]")
        assert list(examples.read_gold(str(cache))) == [17, 18]

    def test_preprocess_leaves_out_the_same_lines(self, tmp_path):
        lines = [*self.bad, raw_example(), raw_example(example_id=3, annotations=[{}])]
        path = written(tmp_path / "dev.jsonl", *lines)
        skipped = []
        examples.read_gold(path, skip=skipped.append)
        bad = []
        for line in examples.read_lines(path):
            try:
                examples.parse_line(line)
            except ValueError as error:
                bad.append(str(error))
        assert [message.partition(": ")[2].partition(": ")[2] for message in skipped] == bad

    def test_fails_where_nothing_is_left(self, tmp_path):
        path = written(tmp_path / "dev.jsonl", *self.bad)
        cache = tmp_path / "gold.jsonl.gz"
        program = programs.start("nq", "make_gold_cache", gold_path=path, gold_cache_path=cache)
        logged = program.communicate()[1]
        message = "the file holds no example: all of its 2 lines are malformed"
        assert logged.splitlines()[-1] == f"error: {path}: {message}"
        assert program.returncode == 1 and not cache.exists()
