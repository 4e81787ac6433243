"""From raw files to records, their settings and what was left out."""

import json

import pytest
import tensorflow as tf

from etcmodel.preprocessing import program
from etcmodel.tasks.triviaqa import preprocess
from tests.tasks.triviaqa.questions import raw_question, write_questions, write_vocab


def run(tmp_path, questions, **fields):
    """(records, settings, statistics, lines of what was left out)."""
    folder = tmp_path / "evidence" / "web"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.txt").write_text("It was the Red King.", encoding="utf-8")
    (folder / "b.txt").write_text("It was mud.", encoding="utf-8")
    (folder / "c.txt").write_bytes(b"\xff")
    options = preprocess.PreprocessOptions(
        input_pattern=write_questions(tmp_path / "web-train.json", questions),
        output_prefix=str(tmp_path / "out"),
        vocab_file=write_vocab(tmp_path),
        num_shards=1,
        long_seq_length=16,
        global_seq_length=8,
        **{"evidence_dir": str(tmp_path / "evidence"), **fields},
    )
    ((_, statistics),) = program.run(options, preprocess.load_parts)
    (path,) = tmp_path.glob("out-*.tfrecord")
    records = [
        tf.train.Example.FromString(record.numpy()).features.feature
        for record in tf.data.TFRecordDataset(str(path))
    ]
    settings = json.loads((tmp_path / "out.config.json").read_text())
    left_out = (tmp_path / "out_left_out.jsonl").read_text().splitlines()
    return records, settings, statistics, list(map(json.loads, left_out))


def test_what_is_left_out_is_counted_and_named(tmp_path):
    questions = [
        raw_question(1, web=["a.txt", "b.txt", "none.txt"]),
        raw_question(2, web=["c.txt"]),
        raw_question(3, web=["b.txt"]),
        {**raw_question(4), "Question": 3},
        raw_question(5, wikipedia=["a.txt"], SearchResults=[{"Filename": "a.txt"}, {"Rank": 1}]),
    ]
    records, settings, statistics, left_out = run(tmp_path, questions)
    ids = [record["question_id"].bytes_list.value[0] for record in records]
    assert ids == [b"q_1", b"q_5"]
    assert list(records[0]["labels/starts"].int64_list.value).index(1) == 8
    expected = {
        "examples_read": 5,
        "examples_written": 2,
        "examples_bad": 1,
        "documents_cut": 0,
        "documents_malformed": 1,
        "documents_missing": 2,
        "documents_undecodable": 1,
        "documents_empty": 0,
        "windows_without_answer": 2,
        "questions_without_answer": 1,
        "questions_without_evidence": 1,
    }
    assert {name: statistics[name] for name in expected} == expected
    (bad,) = statistics["bad_examples"]
    assert "element 3: example 'q_4': field `Question` must be a string" in bad
    assert [(line["place"], line["question_id"]) for line in left_out] == [
        ("element 0", "q_1"),
        ("element 1", "q_2"),
        ("element 4", "q_5"),
    ]
    assert left_out[2]["problems"][1:] == [
        "field `SearchResults[1].Filename` must be the name of a file. Received: None"
    ]
    not_utf8, without_documents = left_out[1]["problems"]
    assert not_utf8.startswith("web/c.txt: invalid UTF-8 at byte 1")
    assert without_documents == "the question has no document that can be used"
    assert settings["task"] == "triviaqa" and settings["stride"] is None


def test_two_separators_move_the_answer(tmp_path):
    questions = [raw_question(1, web=["a.txt"])]
    (record, *_), settings, *_ = run(tmp_path, questions, question_separators=2)
    assert list(record["labels/starts"].int64_list.value).index(1) == 8 + 1
    assert settings["question_separators"] == 2


def test_records_to_evaluate_on_have_texts_and_need_no_answers(tmp_path):
    questions = [raw_question(1, web=["a.txt", "b.txt"], Answer=None)]
    records, settings, statistics, left_out = run(tmp_path, questions, is_training=False)
    assert [record["text"].bytes_list.value[0] for record in records] == [
        b"It was the Red King.",
        b"It was mud.",
    ]
    assert not settings["is_training"] and not left_out and not statistics["bad_examples"]


def test_what_cannot_be_is_refused(tmp_path):
    questions = [raw_question(1, web=["a.txt"])]
    with pytest.raises(ValueError, match="--evidence_dir: no such folder: 'nowhere'"):
        run(tmp_path, questions, evidence_dir="nowhere")
    with pytest.raises(ValueError, match="no example is left to write.*documents missing: 1"):
        run(tmp_path, questions, evidence_dir=None)
