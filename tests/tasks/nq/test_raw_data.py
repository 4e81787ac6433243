"""Reading and checking Natural Questions' files."""

import json

import pytest

from etcmodel.tasks.nq import examples
from tests.tasks.nq.raw_examples import NO_ANSWER, annotation, original_layout, raw_example, span


def write_lines(path, *raws):
    path.write_text("".join(f"{json.dumps(raw)}\n" for raw in raws), encoding="utf-8")
    return str(path)


class TestParseExample:
    def test_both_layouts_give_the_same_example(self):
        simplified = examples.parse_example(raw_example())
        assert examples.parse_example(original_layout(raw_example())) == simplified
        assert simplified.words[3:6] == ("<P>", "it", "opened")
        assert [word for word, tag in zip(simplified.words, simplified.is_html, strict=True) if tag]
        assert simplified.is_html[:4] == (True, False, True, True)

    def test_only_tags_are_html_in_the_simplified_layout(self):
        text = '<Th_colspan="2"> < 3 <- a<b </Th>'
        page = raw_example(document_text=text, long_answer_candidates=[], annotations=[])
        assert examples.parse_example(page).is_html == (True, *[False] * 4, True)

    def test_labels_may_be_missing_and_ids_may_be_negative_or_text(self):
        raw = raw_example(example_id="-7738110294")
        del raw["annotations"]
        example = examples.parse_example(raw)
        assert (example.example_id, example.annotations) == (-7738110294, ())

    @pytest.mark.parametrize("name", ["1_0", "+17", "\u0661\u0667", "1e3", "17.0"])
    def test_what_is_no_number_in_data_is_no_id(self, name):
        with pytest.raises(ValueError, match="must be a 64-bit integer. Received: "):
            examples.parse_example(raw_example(example_id=name))

    def test_several_annotations_are_kept_in_order(self):
        raw = raw_example(annotations=[annotation(), NO_ANSWER, annotation((10, 19), (), "yes", 1)])
        example = examples.parse_example(raw)
        assert [note.yes_no for note in example.annotations] == ["NONE", "NONE", "YES"]
        assert example.annotations[1].long_answer == examples.NO_SPAN

    @pytest.mark.parametrize("value", ["false", "true", "", 0, 1, None])
    def test_only_json_truth_values_are_true_or_false(self, value):
        raw = raw_example()
        raw["long_answer_candidates"][2]["top_level"] = value
        message = r"example 17: field `long_answer_candidates\[2\].top_level` must be a boolean"
        with pytest.raises(ValueError, match=f"{message}. Received: {value!r}"):
            examples.parse_example(raw)
        raw = original_layout(raw_example())
        raw["document_tokens"][5]["html_token"] = value
        message = "example 17: field `document_tokens` must have booleans as html_token"
        with pytest.raises(ValueError, match=f"{message}. Received: {value!r}"):
            examples.parse_example(raw)

    @pytest.mark.parametrize(
        ("candidates", "message"),
        [
            ([(3, 10), (10, 19), (3, 10)], r"\[2\]` overlaps long_answer_candidates\[0\]"),
            ([(10, 19), (3, 10), (9, 11)], r"\[2\]` overlaps long_answer_candidates\[1\]"),
            ([(3, 20), (10, 19)], r"\[1\]` overlaps long_answer_candidates\[0\]"),
            ([(10, 19), (3, 22)], r"\[0\]` overlaps long_answer_candidates\[1\]"),
        ],
    )
    def test_top_level_candidates_must_not_overlap(self, candidates, message):
        boxes = [span(start, end) for start, end in candidates]
        raw = raw_example(long_answer_candidates=boxes, annotations=[])
        with pytest.raises(ValueError, match=f"example 17: field `long_answer_candidates{message}"):
            examples.parse_example(raw)

    def test_top_level_candidates_may_touch_and_hold_others_in_any_order(self):
        boxes = [(10, 19, True), (11, 15, False), (3, 10, True), (11, 18, False)]
        raw = raw_example(
            long_answer_candidates=[
                {**span(start, end), "top_level": top_level} for start, end, top_level in boxes
            ],
            annotations=[],
        )
        assert examples.parse_example(raw).candidates == tuple(boxes)

    @pytest.mark.parametrize(
        ("note", "message"),
        [
            (annotation((3, 10), (), candidate_index=1), r"\(10, 19\).* is \(3, 10\).*: 1"),
            (annotation((3, 9), (), candidate_index=0), r"\(3, 10\).* is \(3, 9\).*: 0"),
            (annotation((-1, -1), (), candidate_index=4), r"\(19, 22\).* is \(-1, -1\).*: 4"),
        ],
    )
    def test_the_long_answer_must_be_the_candidate_that_it_names(self, note, message):
        field = r"field `annotations\[1\].long_answer.candidate_index` names the candidate "
        with pytest.raises(ValueError, match=field + message):
            examples.parse_example(raw_example(annotations=[annotation(), note]))

    def test_the_long_answer_need_not_name_its_candidate(self):
        unnamed = annotation()
        del unnamed["long_answer"]["candidate_index"]
        for note in (unnamed, annotation(candidate_index=-1)):
            example = examples.parse_example(raw_example(annotations=[note]))
            assert example.annotations == examples.parse_example(raw_example()).annotations

    def test_bytes_are_kept_and_null_short_answers_are_not(self):
        note = annotation((3, 10, 30, 99), ((-1, -1), (6, 8, 60, 80), (-1, -1, -1, -1)))
        (parsed,) = examples.annotations_of({"example_id": 1, "annotations": [note]})
        assert parsed.long_answer == (3, 10, 30, 99)
        assert parsed.short_answers == ((6, 8, 60, 80),)


class TestReadLines:
    def test_examples_of_no_use_may_be_left_out_with_a_warning(self, tmp_path, caplog):
        def check(example):
            if example.example_id == 18:
                raise ValueError("example 18: too old")

        raws = [raw_example(), [1], raw_example(example_id=18), raw_example(example_id=19)]
        path = write_lines(tmp_path / "a.jsonl", *raws)
        read = examples.read_examples(path, check)
        assert [example.example_id for example in read] == [17, 19]
        problems = [record.getMessage() for record in caplog.records]
        assert problems[0].startswith(f"skipped {path}: example 2: an example must be a JSON obj")
        assert problems[1:] == [
            f"skipped {path}: example 3: example 18: too old",
            f"{path}: 2 of 4 examples skipped",
        ]

    def test_is_lazy(self, tmp_path):
        path = tmp_path / "a.jsonl"
        path.write_bytes(b"first\n" + b"second\n" * 100_000)
        lines = examples.read_lines(str(path))
        assert next(lines) == "first\n"
        lines.close()
