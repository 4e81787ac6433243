"""The programs of the task, from raw texts to served labels, for every encoder and problem."""

import json
import pathlib

import numpy as np
import pytest

from etcmodel.preprocessing import program
from etcmodel.tasks.classification import config, predict, preprocess
from tests.models import bags
from tests.tasks import programs, stopping
from tests.tasks.classification.raw_texts import VOCAB, write_vocab

pytestmark = pytest.mark.slow

LENGTHS = {"long_seq_length": 24, "global_seq_length": 6}
SIZES = {
    "vocab_size": len(VOCAB),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.1,
}
ETC = {**SIZES, "local_radius": 4, "relative_pos_max_distance": 4, "relative_vocab_size": 12}
LONGFORMER = {
    **SIZES,
    "model_type": "longformer",
    "attention_window": 8,
    "max_position_embeddings": 32,
}
BIGBIRD = {
    **SIZES,
    "model_type": "big_bird",
    "block_size": 2,
    "num_random_blocks": 1,
    "max_position_embeddings": 32,
}
GMAT = {**SIZES, "model_type": "gmat", "chunk_size": 12, "num_memory_tokens": 2}
LONGT5 = {
    "model_type": "longt5",
    "vocab_size": len(VOCAB),
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 16,
    "num_layers": 1,
    "num_heads": 2,
    "local_radius": 4,
    "dropout_rate": 0.0,
    "initializer_factor": 0.5,
}
ETC_MODERNBERT = {
    **{name: SIZES[name] for name in SIZES if "dropout" not in name},
    "model_type": "etc_modernbert",
    "local_attention": 8,
    "relative_pos_max_distance": 4,
    "relative_vocab_size": 12,
    **{f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")},
}
BAG = {"model_type": "bag", "vocab_size": len(VOCAB)}  # A system from outside the library.
CONFIGS = {
    "bag": BAG,
    "big_bird": BIGBIRD,
    "etc": ETC,
    "etc_modernbert": ETC_MODERNBERT,
    "gmat": GMAT,
    "longformer": LONGFORMER,
    "longt5": LONGT5,
}

# A program that knows nothing of this package: from records to logits.
TENSORFLOW_ALONE = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
records = [record.numpy() for record in tf.data.TFRecordDataset(sys.argv[2])]
outputs = model.signatures["serving_default"](examples=tf.constant(records))
assert not any(name.startswith(("etcmodel", "tf_keras", "official")) for name in sys.modules)
print(json.dumps(outputs["logits"].numpy().tolist()))
"""


def raw_texts(count, seed, label_of):
    """Texts of eight words, in which "good" and "bad" may occur."""
    random = np.random.default_rng(seed)
    raws = []
    for number in range(count):
        words = random.choice(["it", "is", "very", "."], 8).tolist()
        found = [word for word in ("good", "bad") if random.random() < 0.5]
        for word in found:
            words[random.integers(8)] = word
        found = [word for word in ("good", "bad") if word in words]
        raws.append({"id": f"t{number}", "text": " ".join(words), "label": label_of(found)})
    return raws


LABELS = {
    config.SINGLE_LABEL: lambda found: "yes" if "good" in found else "no",
    config.MULTI_LABEL: list,
    config.REGRESSION: lambda found: float(len(found)),
}


def make_records(folder, problem_type):
    for name, count, seed in (("train", 256, 1), ("dev", 60, 2)):
        raws = raw_texts(count, seed, LABELS[problem_type])
        text = "".join(f"{json.dumps(raw)}\n" for raw in raws)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
        is_dev = name == "dev" and problem_type != config.REGRESSION
        options = preprocess.PreprocessOptions(
            input_pattern=str(folder / f"{name}.jsonl"),
            output_prefix=str(folder / name),
            vocab_file=write_vocab(folder),
            labels_file=str(folder / "train.config.json") if is_dev else None,
            problem_type=problem_type,
            num_shards=1,
            strict=True,
            **LENGTHS,
        )
        list(program.run(options, preprocess.load_parts))


def train(folder, encoder, capsys, **flags):
    """Trains and evaluates; returns the metrics."""
    (folder / "config.json").write_text(json.dumps(CONFIGS[encoder]), encoding="utf-8")
    run = {"output_dir": folder / "run", "eval_data": folder / "dev-*.tfrecord"}
    programs.fine_tune(
        "classification",
        run_mode="train",
        model_config_file=folder / "config.json",
        vocab_file=folder / "vocab.txt",
        train_data=folder / "train-*.tfrecord",
        train_batch_size=16,
        learning_rate=1e-2,
        save_checkpoints_steps=50,
        eval_batch_size=20,
        **run,
        **{"num_train_epochs": 10, **flags},
    )
    programs.fine_tune("classification", run_mode="evaluate", eval_batch_size=20, **run)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def export_and_predict(folder):
    """Predictions of the export, by one who was told nothing but where the texts are."""
    programs.fine_tune("classification", run_mode="export", output_dir=folder / "run")
    unlabeled = [{"id": raw["id"], "text": raw["text"]} for raw in lines(folder / "dev.jsonl")]
    text = "".join(f"{json.dumps(raw)}\n" for raw in [*unlabeled, {"text": 3}])
    (folder / "unlabeled.jsonl").write_text(text, encoding="utf-8")
    programs.fine_tune(
        "classification",
        run_mode="predict",
        export_dir=folder / "run" / "export",
        input_file=folder / "unlabeled.jsonl",
        predictions_file=folder / "predictions.jsonl",
        predict_batch_size=7,
    )
    return lines(folder / "predictions.jsonl")


@pytest.fixture(autouse=True)
def bag():
    with bags.registered():
        yield


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("encoder", sorted(CONFIGS))
def test_one_label_from_raw_files_to_served_answers(encoder, tmp_path, capsys, caplog):
    make_records(tmp_path, config.SINGLE_LABEL)
    metrics = train(tmp_path, encoder, capsys, class_weights="balanced")
    assert metrics["accuracy"] >= 0.95 and metrics["macro_f1"] >= 0.95
    assert metrics["expected_calibration_error"] < 0.2
    evaluated = lines(tmp_path / "run" / "predictions.json")
    predicted = export_and_predict(tmp_path)
    assert [told["id"] for told in predicted] == [
        raw["id"] for raw in lines(tmp_path / "dev.jsonl")
    ]
    assert "line 61: example 'unlabeled.jsonl:61': field `text` must be" in caplog.text
    for one, other in zip(predicted, evaluated, strict=True):
        assert one["label"] == other["label"]
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-4)

    (version,) = (tmp_path / "run" / "export").iterdir()
    (records,) = tmp_path.glob("dev-*.tfrecord")
    serving = programs.start_python("-c", TENSORFLOW_ALONE, version, records)
    logits = json.loads(programs.finish(serving)[0].splitlines()[-1])
    labels = [["no", "yes"][int(np.argmax(row))] for row in logits]
    assert labels == [told["label"] for told in evaluated]
    predictor = predict.ClassificationPredictor(str(tmp_path / "run" / "export"))
    one = predictor.predict_one({"text": "it is very good"})
    assert one["label"] == "yes" and sum(one["probabilities"].values()) == pytest.approx(1)


@pytest.mark.exhaustive
def test_several_labels(tmp_path, capsys):
    make_records(tmp_path, config.MULTI_LABEL)
    metrics = train(tmp_path, "etc", capsys, pooling="mean")
    assert metrics["micro_f1"] >= 0.95 and metrics["macro_f1"] >= 0.95
    gold = [raw["label"] for raw in lines(tmp_path / "dev.jsonl")]
    found = [told["labels"] for told in export_and_predict(tmp_path)]
    right = sum(sorted(a) == sorted(b) for a, b in zip(gold, found, strict=True))
    assert right / len(gold) >= 0.9
    rows = (f'"{raw["id"]}"|"{raw["text"]}"\n' for raw in lines(tmp_path / "dev.jsonl"))
    (tmp_path / "table.txt").write_text("id|text\n" + "".join(rows), encoding="utf-8")
    programs.fine_tune(
        "classification",
        run_mode="predict",
        export_dir=tmp_path / "run" / "export",
        input_file=tmp_path / "table.txt",
        predictions_file=tmp_path / "of_table.jsonl",
        delimiter="|",
    )
    assert [told["labels"] for told in lines(tmp_path / "of_table.jsonl")] == found
    (tmp_path / "stopped").mkdir()
    stopping.assert_a_stopped_prediction_goes_on(
        predict.ClassificationPredictor(str(tmp_path / "run" / "export")),
        tmp_path / "unlabeled.jsonl",
        tmp_path / "stopped",
    )


@pytest.mark.exhaustive
def test_a_regression(tmp_path, capsys):
    make_records(tmp_path, config.REGRESSION)
    metrics = train(
        tmp_path, "etc", capsys, num_train_epochs=40, early_stopping_patience=5, pooling="mean"
    )
    assert metrics["mse"] < 0.15 and metrics["pearson"] > 0.8 and metrics["spearman"] > 0.7
    gold = [raw["label"] for raw in lines(tmp_path / "dev.jsonl")]
    found = [told["value"] for told in export_and_predict(tmp_path)]
    assert np.mean((np.array(gold) - found) ** 2) == pytest.approx(metrics["mse"], abs=1e-3)


def test_records_with_other_labels_than_the_run_are_refused(tmp_path, capsys):
    make_records(tmp_path, config.SINGLE_LABEL)
    settings = json.loads((tmp_path / "dev.config.json").read_text(encoding="utf-8"))
    settings["labels"] = ["yes", "no"]
    pathlib.Path(tmp_path / "dev.config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(SystemExit):
        train(tmp_path, "etc", capsys, num_train_epochs=1)
    assert "dev.config.json: the records have other labels than the run" in capsys.readouterr().err
