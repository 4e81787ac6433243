"""What `save_pretrained` writes of a run: a folder whose `predict` tells what the program told."""

import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.models import heads, sequence_classifiers
from etcmodel.tasks.token_classification.predict import TokenClassificationPredictor
from tests.eager import eagerly  # noqa: F401
from tests.tasks import program_rows, programs, record_sets, small_encoders
from tests.tasks.classification.raw_texts import VOCAB
from tests.tasks.classification.test_preprocess import lines, run

pytestmark = pytest.mark.usefixtures("eagerly")
TEXTS = ["it is good", "it is very very bad .", "bad", "it ."]
SECOND = ["very good", "it is bad", "good .", "it"]
LONGT5 = {"model_type": "longt5", "vocab_size": len(VOCAB), **program_rows.LONGT5}


def saved(task, tmp_path, config, **flags):
    """A run of one epoch, as a folder; and what `evaluate` prints and writes."""
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    run_dir = tmp_path / "run"
    given = {"model_config_file": tmp_path / "config.json", "output_dir": run_dir, **flags}
    records = {"train_data": tmp_path / "records" / "train-*.tfrecord"}
    vocab = {"vocab_file": tmp_path / "vocab.txt", "random_seed": 0}
    size = {"learning_rate": 1e-3, "train_batch_size": 2, "num_train_epochs": 2}
    programs.fine_tune(task, run_mode="train", **given, **records, **vocab, **size)
    programs.fine_tune(task, run_mode="save_pretrained", output_dir=run_dir)
    return etcmodel.from_pretrained(run_dir / "pretrained"), run_dir


def told(run_dir):
    data = run_dir.parent / "records" / "train-*.tfrecord"
    programs.fine_tune("classification", run_mode="evaluate", output_dir=run_dir, eval_data=data)
    return record_sets.read_lines(run_dir / "predictions.json")


def of_kind(kind):
    fields = {"attention_type": "block_sparse", "block_size": 2} if kind == "big_bird" else {}
    return small_encoders.entries(kind, len(VOCAB), 16, initializer_range=0.3, **fields)


KINDS = ["longformer", "etc", "etc_modernbert", "big_bird", "gmat", "modernbert"]


@pytest.mark.parametrize(
    "kind", [pytest.param(x, marks=pytest.mark.slow if n else ()) for n, x in enumerate(KINDS)]
)
def test_two_texts_have_the_probabilities_of_the_evaluation(tmp_path, kind):
    rows = [
        {"a": a, "b": b, "label": ["good", "bad"][n % 2]}
        for n, (a, b) in enumerate(zip(TEXTS, SECOND, strict=True))
    ]
    arranged = {"question_separators": 2} if kind == "longformer" else {}
    run(tmp_path, lines(*rows), text_field="a", second_text_field="b", **arranged)
    model, run_dir = saved("classification", tmp_path, of_kind(kind))
    given = [{"question": row["a"], "documents": [row["b"]]} for row in rows]
    found = tf.nn.softmax(model(model.processor(given))).numpy()
    expected = [list(line["probabilities"].values()) for line in told(run_dir)]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(found[:, 0]) > 1e-3 and model.labels == ("bad", "good")
    assert isinstance(model, heads.EncoderWithHead)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["etc", "longformer"])
def test_so_have_several_labels_and_numbers(tmp_path, kind):
    for problem, labels in (
        ("multi_label_classification", [["good"], ["bad", "good"], [], ["bad"]]),
        ("regression", [0.5, -1.0, 2.0, 0.0]),
    ):
        place = tmp_path / problem
        place.mkdir()
        rows = [{"text": x, "label": label} for x, label in zip(TEXTS, labels, strict=True)]
        run(place, lines(*rows), problem_type=problem)
        model, run_dir = saved("classification", place, of_kind(kind))
        found = model.predict(TEXTS, verbose=0)
        if problem == "regression":
            expected = [[line["value"]] for line in told(run_dir)]
        else:
            found = tf.sigmoid(found).numpy()
            expected = [list(line["probabilities"].values()) for line in told(run_dir)]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert model.problem_type == problem


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["etc", "longformer"])
def test_tags_of_words_are_those_of_the_export(tmp_path, kind):
    row = program_rows.ROWS["token_classification"]
    paths = row.make(tmp_path)
    record_sets.make("token_classification", tmp_path, paths, dev=row.of_dev, **row.records)
    with open(paths["vocab"], encoding="utf-8") as file:
        size = len(file.readlines())
    config = small_encoders.entries(kind, size, 96)
    flags = {"train_data": record_sets.patterns("token_classification", tmp_path)[0]}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    given = {"output_dir": tmp_path / "run", "model_config_file": tmp_path / "config.json"}
    flags |= {"train_batch_size": 50, "num_train_epochs": 1, **record_sets.vocabulary(paths)}
    programs.fine_tune("token_classification", run_mode="train", **given, **flags)
    for mode in ("export", "save_pretrained"):
        programs.fine_tune("token_classification", run_mode=mode, output_dir=tmp_path / "run")
    words = ["ann", "lives", "in", "rio", "."]
    predictor = TokenClassificationPredictor(str(tmp_path / "run" / "export"))
    expected = predictor.predict_one(words)
    model = etcmodel.from_pretrained(tmp_path / "run" / "pretrained")
    batch = model.processor(sentences=[" ".join(words)])
    found = tf.nn.softmax(model(batch)[0, 1 : 1 + len(words)]).numpy()
    np.testing.assert_allclose(found.max(-1), expected["probabilities"], atol=1e-5)
    assert [model.labels[x] for x in found.argmax(-1)] == expected["tags"]


@pytest.mark.slow
def test_a_longt5_whose_program_reads_less_than_its_head_is_refused(tmp_path, capsys):
    run(tmp_path, lines(*({"text": x, "label": x[:2]} for x in TEXTS)))
    with pytest.raises(SystemExit):
        saved("classification", tmp_path, LONGT5)
    assert "no class for `from_pretrained` has the model of 'longt5'" in capsys.readouterr().err


class OfHalf(sequence_classifiers.LongformerClassifier):
    """A classifier of one's own, which reads every other token."""

    def read(self, features):
        return {name: x[:, ::2] for name, x in super().read(features).items()}


def test_a_reading_of_ones_own_is_not_taken_for_the_heads():
    config = small_encoders.config("longformer", len(VOCAB), 16)
    assert sequence_classifiers.LongformerClassifier(config).is_plain
    assert not OfHalf(config).is_plain


def test_what_is_missing_is_told(tmp_path, capsys):
    run(tmp_path, lines(*({"text": x, "label": x[:2]} for x in TEXTS)))
    _, run_dir = saved("classification", tmp_path, of_kind("longformer"))
    (tmp_path / "vocab.txt").unlink()
    given = {"run_mode": "save_pretrained", "model_config_file": tmp_path / "config.json"}
    for place, told in ((run_dir, "is not there any more. Put it"), (tmp_path, "has no run to sa")):
        with pytest.raises(SystemExit):
            programs.fine_tune("classification", **given, output_dir=place)
        assert told in capsys.readouterr().err


def test_a_model_that_is_no_head_is_refused(tmp_path, capsys):
    given = {"run_mode": "save_pretrained", "output_dir": tmp_path}
    with pytest.raises(SystemExit):
        programs.fine_tune("hotpotqa", **given, model_config_file=tmp_path / "config.json")
    assert "no class for `from_pretrained` has the model of HotpotQA." in capsys.readouterr().err
