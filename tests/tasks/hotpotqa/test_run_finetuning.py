"""The programs of the task, run as a user runs them."""

import json
import pathlib
import subprocess
import sys

import pytest

from etcmodel.tasks.hotpotqa import examples, predict
from etcmodel.tools import make_demo_data

REAL_EXAMPLES = pathlib.Path(__file__).parents[4] / "shared" / "real" / "hotpotqa_10.json"
REAL_VOCAB = (
    pathlib.Path(__file__).parents[4] / "shared" / "reference" / "vocab" / "bert_uncased_vocab.txt"
)


def run(module, **arguments):
    """Runs a program of the package: the finished process."""
    flags = [f"--{name}={value}" for name, value in arguments.items()]
    command = [sys.executable, "-m", f"etcmodel.tasks.hotpotqa.{module}", *flags]
    return subprocess.run(command, capture_output=True, text=True)


def succeed(module, **arguments):
    done = run(module, **arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def make_records(folder, source, vocab, lengths, split, is_training):
    succeed(
        "preprocess",
        input_json_filename=source,
        output_tf_examples_file_path_prefix=folder / split,
        vocab_file=vocab,
        long_seq_length=lengths[0],
        global_seq_length=lengths[1],
        num_shards=1,
        is_training=is_training,
        strict=True,
    )


def write_config(folder, vocab):
    config = {
        "vocab_size": len(pathlib.Path(vocab).read_text(encoding="utf-8").splitlines()),
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "local_radius": 8,
        "relative_pos_max_distance": 4,
        "relative_vocab_size": 12,
    }
    (folder / "etc_config.json").write_text(json.dumps(config))


def data_sets():
    """The generated data, and the true examples where they are."""
    return ["generated", "real"] if REAL_EXAMPLES.exists() else ["generated"]


@pytest.fixture(scope="module", params=data_sets())
def made(request, tmp_path_factory):
    """A folder with raw data, vocabulary, config and records, and the records' lengths."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "real":
        lengths, vocab, train, dev = (2048, 256), REAL_VOCAB, REAL_EXAMPLES, REAL_EXAMPLES
    else:
        paths = make_demo_data.make_demo_data(
            dataset="hotpotqa", output_dir=folder, num_train=24, num_dev=6, seed=3
        )
        lengths, vocab, train, dev = (320, 96), paths["vocab"], paths["train"], paths["dev"]
    make_records(folder, train, vocab, lengths, "train", is_training=True)
    make_records(folder, dev, vocab, lengths, "dev", is_training=False)
    write_config(folder, vocab)
    return {"folder": folder, "vocab": vocab, "dev": dev, "lengths": lengths}


def model_flags(made):
    return {
        "etc_config_file": made["folder"] / "etc_config.json",
        "vocab_file": made["vocab"],
        "max_long_seq_length": made["lengths"][0],
        "max_global_seq_length": made["lengths"][1],
        "output_dir": made["folder"] / "model",
    }


def test_trains_evaluates_exports_and_predicts(made):
    folder = made["folder"]
    measured = {
        "predict_tf_examples_filepattern": folder / "dev-*.tfrecord",
        "predict_gold_json_file": made["dev"],
    }
    trained = succeed(
        "run_finetuning",
        run_mode="train",
        train_tf_examples_filepattern=folder / "train-*.tfrecord",
        train_batch_size=4,
        num_train_epochs=1,
        gradient_accumulation_steps=2,
        grad_checkpointing_period=1,
        save_checkpoints_steps=3,
        **measured,
        **model_flags(made),
    )
    assert "examples/s  time left" in trained.stderr
    metrics_lines = (folder / "model" / "train_metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line) for line in metrics_lines]
    assert losses[0]["loss"] > 0 and "answer_begin_loss" in losses[0]

    evaluated = succeed("run_finetuning", run_mode="evaluate", **measured, **model_flags(made))
    metrics = json.loads(evaluated.stdout.splitlines()[-1])
    assert set(metrics) >= {"em", "f1", "sp_f1", "joint_f1"}
    predictions = json.loads((folder / "model" / "predictions.json").read_text())

    succeed("run_finetuning", run_mode="export", **model_flags(made))
    gold = json.loads(pathlib.Path(made["dev"]).read_text(encoding="utf-8"))
    hidden = ("answer", "supporting_facts", "type", "level")
    questions = [{k: v for k, v in example.items() if k not in hidden} for example in gold]
    (folder / "questions.json").write_text(json.dumps(questions))
    succeed(
        "run_finetuning",
        run_mode="predict",
        export_dir=folder / "model" / "export",
        predict_input_json_file=folder / "questions.json",
        predictions_file=folder / "predictions.json",
    )
    from_export = json.loads((folder / "predictions.json").read_text())
    assert from_export == predictions
    assert set(from_export["answer"]) == {example["_id"] for example in gold}

    predictor = predict.HotpotQaPredictor(str(folder / "model" / "export"))
    first = questions[0]["_id"]
    answer, facts = predictor.predict_one(questions[0])
    assert (answer, facts) == (predictions["answer"][first], predictions["sp"][first])
    assert predictor.predict(examples.read_examples(made["dev"]))["sp"] == predictions["sp"]


def fails(made, message, **changes):
    arguments = {
        "run_mode": "train",
        "train_tf_examples_filepattern": made["folder"] / "train-*.tfrecord",
        **model_flags(made),
        "output_dir": made["folder"] / "failing",
        **changes,
    }
    done = run("run_finetuning", **arguments)
    assert done.returncode == 1, done.stderr[-2000:]
    assert message in done.stderr and "Traceback" not in done.stderr, done.stderr[-2000:]


@pytest.mark.parametrize("made", ["generated"], indirect=True)
class TestBadInput:
    def test_records_of_other_lengths(self, made):
        fails(made, "`long_token_ids` has 320 values", max_long_seq_length=512)

    def test_pattern_without_a_file(self, made):
        fails(made, "No file matches", train_tf_examples_filepattern=made["folder"] / "none-*")

    def test_missing_flag(self, made):
        fails(made, "--train_tf_examples_filepattern", train_tf_examples_filepattern="")

    def test_config_with_too_few_labels(self, made):
        path = made["folder"] / "few_labels.json"
        config = json.loads((made["folder"] / "etc_config.json").read_text())
        path.write_text(json.dumps({**config, "relative_vocab_size": 8}))
        fails(made, "`relative_vocab_size` must be at least", etc_config_file=path)

    def test_token_ids_outside_the_vocabulary(self, made):
        path = made["folder"] / "few_tokens.json"
        config = json.loads((made["folder"] / "etc_config.json").read_text())
        path.write_text(json.dumps({**config, "vocab_size": 110}))
        fails(made, "outside the vocabulary of the model, which has 110", etc_config_file=path)

    def test_directory_of_another_run(self, made):
        arguments = {"num_train_epochs": 1, "train_batch_size": 8, **model_flags(made)}
        arguments["output_dir"] = made["folder"] / "other"
        pattern = made["folder"] / "train-*.tfrecord"
        succeed(
            "run_finetuning",
            run_mode="train",
            train_tf_examples_filepattern=pattern,
            **arguments,
        )
        fails(made, "learning_rate", **arguments, learning_rate=1e-3)

    def test_checkpoint_of_another_model(self, made):
        fails(made, "No checkpoint at", init_checkpoint=made["folder"] / "gone")
