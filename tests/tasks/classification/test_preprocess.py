"""From raw files to records and their settings."""

import json
import pathlib

import pytest
import tensorflow as tf

from etcmodel.preprocessing import program, raw_files
from etcmodel.tasks.classification import config, preprocess
from tests.tasks import programs, small_encoders
from tests.tasks.classification.raw_texts import VOCAB, write_vocab


def run(tmp_path, content, name="train.jsonl", **fields):
    """(records, settings, statistics) of a file's content."""
    raw = tmp_path / name
    if content is not None:
        raw.write_text(content, encoding="utf-8")
    given = {"num_shards": 1, "long_seq_length": 12, "global_seq_length": 4}
    given |= {"output_prefix": str(tmp_path / "records" / "train"), **fields}
    options = preprocess.PreprocessOptions(
        input_pattern=str(raw), vocab_file=write_vocab(tmp_path), **given
    )
    ((prefix, statistics),) = program.run(options, preprocess.load_parts)
    records = [
        tf.train.Example.FromString(record.numpy()).features.feature
        for record in tf.data.TFRecordDataset(f"{prefix}-00000-of-00001.tfrecord")
    ]
    settings = json.loads(pathlib.Path(f"{prefix}.config.json").read_text(encoding="utf-8"))
    return records, settings, statistics


def lines(*raws):
    return "".join(f"{json.dumps(raw)}\n" for raw in raws)


def label_lists(records):
    return [list(record["labels"].int64_list.value) for record in records]


def test_labels_are_gathered_and_kept_with_the_settings(tmp_path):
    content = lines(*({"text": "it", "label": label} for label in ("good", "bad", 10, 9, "bad")))
    records, settings, _ = run(tmp_path, content)
    assert settings["labels"] == ["9", "10", "bad", "good"]
    assert label_lists(records) == [[3], [2], [1], [0], [2]]
    assert settings["problem_type"] == config.SINGLE_LABEL and settings["task"] == "classification"


def test_labels_are_told_with_their_numbers_and_single_ones_as_possible_mistakes(tmp_path, caplog):
    caplog.set_level("INFO")
    labels = ["low"] * 20 + ["high"] * 2 + ["Low", "urgnt"]
    _, settings, _ = run(tmp_path, lines(*({"text": "it", "label": x} for x in labels)))
    assert settings["labels"] == ["Low", "high", "low", "urgnt"]  # All are outputs.
    file = tmp_path / "train.jsonl"
    told = [x for x in caplog.records if x.getMessage().startswith(f"{file}: ")]
    assert [(x.levelname, x.getMessage()) for x in told] == [
        ("INFO", f"{file}: 4 labels: low 20, high 2, Low 1, urgnt 1"),
        (
            "WARNING",
            f"{file}: found only once: 'Low', 'urgnt'. If that is a mistake, correct it, or give "
            "the right labels as --labels: what has others is then not learned.",
        ),
    ]


def test_of_few_examples_no_label_stands_out(tmp_path, caplog):
    labels = ["low"] * 19 + ["high"]
    run(tmp_path, lines(*({"text": "it", "label": x} for x in labels)))
    assert "found only once" not in caplog.text


def test_labels_of_other_records_are_taken_from_their_settings(tmp_path):
    run(tmp_path, lines(*({"text": "it", "label": label} for label in ("a", "b", "c"))))
    labels_file = str(tmp_path / "records" / "train.config.json")
    content = lines({"text": "it", "label": "c"}, {"text": "it", "label": "new"})
    records, settings, statistics = run(tmp_path, content, "dev.jsonl", labels_file=labels_file)
    assert label_lists(records) == [[2]] and settings["labels"] == ["a", "b", "c"]
    (bad,) = statistics["bad_examples"]
    assert "dev.jsonl: element 1: line 2: example 'dev.jsonl:2': field `label`: 'new'" in bad


def test_records_with_other_labels_than_the_run_are_refused(tmp_path, capsys):
    content = lines({"text": "it", "label": "good"}, {"text": "is", "label": "bad"})
    for name in ("train", "dev"):
        run(tmp_path, content, output_prefix=str(tmp_path / name))
    settings = json.loads((tmp_path / "dev.config.json").read_text(encoding="utf-8"))
    (tmp_path / "dev.config.json").write_text(json.dumps({**settings, "labels": ["good", "bad"]}))
    config = small_encoders.entries("etc", len(VOCAB), 12)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    given = {"model_config_file": tmp_path / "config.json", "output_dir": tmp_path / "run"}
    given["train_batch_size"] = 2
    for name in ("train", "eval"):
        given[f"{name}_data"] = tmp_path / f"{name.replace('eval', 'dev')}-*.tfrecord"
    with pytest.raises(SystemExit):
        programs.fine_tune("classification", run_mode="train", **given)
    assert "config.json: the records have other labels than the model" in capsys.readouterr().err


def test_bad_examples_are_counted_with_their_place(tmp_path):
    good = {"text": "it is", "label": "good"}
    content = lines(good, {"label": "bad"}, {"text": "it"}, {**good, "label": "bad"}) + "{\n"
    records, _, statistics = run(tmp_path, content)
    assert len(records) == 2 and statistics["examples_bad"] == 3
    no_text, no_label, no_json = statistics["bad_examples"]
    assert "element 1: line 2: example 'train.jsonl:2': field `text` is missing" in no_text
    assert (
        "element 2: line 3: example 'train.jsonl:3': field `label` is missing or empty, and "
        "records need it. Its fields: ['text']"
    ) in no_label
    assert "element 4: line 5: malformed JSON" in no_json


def test_a_table_with_several_labels_and_two_texts(tmp_path):
    content = "a,b,y\nit,is,good|bad\nit,very,\n"
    fields = {"text_field": "a", "second_text_field": "b", "label_field": "y"}
    records, settings, _ = run(
        tmp_path, content, "train.csv", problem_type=config.MULTI_LABEL, **fields
    )
    assert settings["labels"] == ["bad", "good"] and settings["second_text_field"] == "b"
    assert label_lists(records) == [[1, 1], [0, 0]]
    assert list(records[0]["segment_ids"].int64_list.value)[:5] == [0, 0, 0, 1, 1]


def test_a_folder_of_texts(tmp_path):
    for label, name in (("good", "1"), ("bad", "1"), ("bad", "2")):
        (tmp_path / "texts" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "texts" / label / f"{name}.txt").write_text("it is", encoding="utf-8")
    records, settings, _ = run(tmp_path, None, "texts")
    assert settings["labels"] == ["bad", "good"] and label_lists(records) == [[0], [0], [1]]
    ids = [record["example_id"].bytes_list.value[0] for record in records]
    assert ids == [b"bad/1.txt", b"bad/2.txt", b"good/1.txt"]


def test_hidden_files_and_folders_are_no_labels(tmp_path, caplog):
    names = ("good/1.txt", "bad/deep/1.TXT", ".ipynb_checkpoints/1.txt", "good/._1.txt", "a.json")
    for name in names:
        (tmp_path / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "texts" / name).write_text("it is", encoding="utf-8")
    records, settings, _ = run(tmp_path, None, "texts")
    assert settings["labels"] == ["bad", "good"] and label_lists(records) == [[0], [1]]
    told = "left out: 2 hidden (such as .ipynb_checkpoints), 1 not .txt (such as a.json)"
    assert [told in message for message in caplog.messages] == [True]  # Once.


def test_a_quote_in_a_tsv_swallows_no_rows(tmp_path):
    texts = ("plain zero", '" alone', "plain one", "plain two", 'who said "', "last")
    content = "text\tlabel\n" + "".join(f"{text}\t{i % 2}\n" for i, text in enumerate(texts))
    records, _, statistics = run(tmp_path, content, "train.tsv")
    assert label_lists(records) == [[0], [1]] * 3 and statistics["examples_bad"] == 0


def test_tables_are_read_as_the_options_say(tmp_path):
    content = "text|label\n'it'|a\n\"it | is\"|b\n"
    records, settings, statistics = run(tmp_path, content, "a.txt", delimiter="|", quoting=True)
    assert settings["labels"] == ["a", "b"] and len(records) == 2
    assert not {"delimiter", "quoting"} & settings.keys()
    run(tmp_path, "text\tlabel\nit\ta\nis\tb\n", "a.txt", delimiter="\\t")
    with pytest.raises(ValueError, match="`delimiter` must be one character"):
        run(tmp_path, content, "a.txt", delimiter="||")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "txt,class\nit,good\nis,bad\n"),
        ("a.jsonl", lines({"txt": "it", "class": "good"}, {"txt": "it", "class": "bad"})),
    ],
)
def test_a_missing_column_is_named_beside_those_that_are_there(tmp_path, name, content):
    there = r"Its fields: \['class', 'txt'\]"
    with pytest.raises(ValueError, match=f"{name}: no example has a label.*`label` .*{there}"):
        run(tmp_path, content, name, text_field="txt")
    there = r"Its fields: \['class', 'txt'\]"
    with pytest.raises(ValueError, match=f"field `text` is missing. {there}"):
        run(tmp_path, content, name, label_field="class", labels=("good", "bad"))


def test_numbers_need_no_labels(tmp_path):
    content = lines({"text": "it", "label": 0.5}, {"text": "it", "label": "x"})
    records, settings, statistics = run(tmp_path, content, problem_type=config.REGRESSION)
    assert records[0]["labels"].float_list.value == [0.5] and settings["labels"] == []
    assert "field `label` must be a finite number. Received: 'x'" in statistics["bad_examples"][0]


def test_what_cannot_be_is_refused(tmp_path):
    one = lines({"text": "it", "label": "good"})
    with pytest.raises(ValueError, match="needs at least 2 labels. Received: \\['good'\\]"):
        run(tmp_path, one)
    file = str(tmp_path / "train.jsonl")
    with pytest.raises(ValueError, match="--labels_file does not go with --labels"):
        run(tmp_path, one, labels=("good", "bad"), labels_file=file)
    with pytest.raises(ValueError, match="a regression"):
        run(tmp_path, one, problem_type=config.REGRESSION, labels_file=file)
    with pytest.raises(ValueError, match="--question_separators is for two texts"):
        run(tmp_path, one, question_separators=2)


def test_files_of_labels(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes(b"\xef\xbb\xbfb\n\na \n")
    assert raw_files.read_labels(str(path)) == ("b", "a")
    path.write_bytes(b"bad\n\xff\n")
    with pytest.raises(ValueError, match="labels.txt: line 2: invalid UTF-8"):
        raw_files.read_labels(str(path))
    path = tmp_path / "labels.json"
    for content in ("{}", '{"labels": []}', '{"labels": [1]}', "[", "[1]"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match="labels.json"):
            raw_files.read_labels(str(path))


def test_texts_of_more_sentences_than_global_tokens_are_told(tmp_path):
    content = lines({"text": "it. " * 5, "label": "good"}, {"text": "it " * 30, "label": "bad"})
    (tmp_path / "train.jsonl").write_text(content, encoding="utf-8")
    given = {"input_pattern": tmp_path / "train.jsonl", "vocab_file": write_vocab(tmp_path)}
    given |= {"long_seq_length": 12, "global_seq_length": 4, "num_shards": 1}
    _, logged = programs.run(
        "classification", "preprocess", output_prefix=tmp_path / "train", **given
    )
    statistics = json.loads((tmp_path / "train.stats.json").read_text(encoding="utf-8"))
    assert statistics["examples_truncated"] == 2
    assert statistics["examples_out_of_global_tokens"] == 1  # Of 12 tokens, 8 are there.
    assert "1 examples were cut though more of them fits into --long_seq_length" in logged
