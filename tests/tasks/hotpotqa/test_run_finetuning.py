"""The programs of the task, on generated data and on true examples."""

import contextlib
import io
import json
import pathlib

import pytest
from absl import flags

from etcmodel.tasks.hotpotqa import examples, predict
from etcmodel.tools import make_demo_data
from tests import page
from tests.tasks import programs
from tests.tasks.hotpotqa.program_runs import (
    LENGTHS,
    REAL_EXAMPLES,
    REAL_VOCAB,
    eval_flags,
    model_flags,
    predict_flags,
    preprocess_here,
    run_here,
    train_flags,
    write_config,
    write_gold,
    write_questions,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Generated data, its records, and a model's configuration."""
    folder = tmp_path_factory.mktemp("generated")
    paths = make_demo_data.make_demo_data(
        dataset="hotpotqa", output_dir=folder, num_train=12, num_dev=6, seed=3
    )
    lengths, vocab, dev = LENGTHS["generated"], paths["vocab"], paths["dev"]
    preprocess_here(folder, paths["train"], vocab, lengths, "train")
    preprocess_here(folder, dev, vocab, lengths, "dev")
    write_config(folder, vocab)
    return {"folder": folder, "dev": dev, "model": model_flags(folder, vocab, lengths)}


@pytest.fixture(scope="module")
def trained(generated):
    """The same with a trained, evaluated and exported model, and what the programs printed."""
    folder = generated["folder"]
    measured = eval_flags(folder, write_gold(folder, generated["dev"]))
    training = programs.start(
        "hotpotqa",
        "run_finetuning",
        gradient_accumulation_steps=2,
        **train_flags(folder),
        **generated["model"],
    )
    _, training_log = programs.finish(training)
    run_here(run_mode="export", **generated["model"])
    with contextlib.redirect_stdout(io.StringIO()) as evaluation:
        run_here(run_mode="evaluate", **measured, **generated["model"])
    return {**generated, "training_log": training_log, "evaluation": evaluation.getvalue()}


def test_training_reports_its_progress_and_losses(trained):
    assert "examples/s  time left" in trained["training_log"]
    lines = (trained["folder"] / "model" / "train_metrics.jsonl").read_text().splitlines()
    losses = json.loads(lines[0])
    assert losses["loss"] > 0 and "answer_begin_loss" in losses


def test_evaluation_prints_the_official_metrics(trained):
    metrics = json.loads(trained["evaluation"].splitlines()[-1])
    assert set(metrics) >= {"em", "f1", "sp_f1", "joint_f1"}
    counts = {name: number for name, number in metrics.items() if name.startswith("counts/")}
    assert sum(counts.values()) == 6
    num_right = sum(counts.get(f"counts/{kind}", 0) for kind in ("A_A", "Y_Y", "N_N"))
    assert metrics["em"] == pytest.approx(num_right / 6)


def test_the_exported_model_answers_like_the_trained_one(trained):
    folder = trained["folder"]
    questions = write_questions(folder, trained["dev"])
    printed, log = programs.run("hotpotqa", "run_finetuning", **predict_flags(folder))
    assert printed.splitlines()[-1] == f"6 predictions: {folder / 'predictions.json'}"
    assert "questions.json: element 0: example 'bare': field `question` is missing" in log
    assert "questions.json: element 7: example 'long': the CLS token and the question need" in log
    assert "questions.json: 2 of 8 examples skipped" in log
    predictions = json.loads((folder / "model" / "predictions.json").read_text())
    assert json.loads((folder / "predictions.json").read_text()) == predictions
    assert set(predictions["answer"]) == {question["_id"] for question in questions}

    predictor = predict.HotpotQaPredictor(str(folder / "model" / "export"))
    first = questions[0]["_id"]
    expected = (predictions["answer"][first], predictions["sp"][first])
    assert predictor.predict_one(questions[0]) == expected
    assert predictor.predict(examples.read_examples(trained["dev"]))["sp"] == predictions["sp"]
    place, export = folder / "page", folder / "model" / "export"
    found = page.run_python("hotpotqa.md", "runs/hotpotqa/export", place, export)
    assert found["answer"] in ("yes", "no") or found["answer"] in "River Ember It is 88 km long."
    assert found["supporting_facts"] in ([], [["River Ember", 0]])


def test_a_decoding_option_may_be_chosen_anew_at_prediction(trained, tmp_path):
    write_questions(trained["folder"], trained["dev"])
    options = {**predict_flags(trained["folder"]), "predictions_file": tmp_path / "all.json"}
    run_here(**options, supporting_fact_threshold=0.0)
    facts = json.loads((tmp_path / "all.json").read_text())["sp"]
    gold = json.loads(pathlib.Path(trained["dev"]).read_text(encoding="utf-8"))
    for example in gold:
        listed = {(title, sentence) for title, sentence in facts[example["_id"]]}
        assert listed >= {
            (title, sentence)
            for title, sentences in example["context"]
            for sentence in range(len(sentences))
        }


@pytest.mark.skipif(not REAL_EXAMPLES.exists(), reason="needs the true examples beside the project")
@pytest.mark.parametrize("num_word_edges", [0, 64])
@pytest.mark.exhaustive
def test_true_examples_go_the_whole_way(tmp_path, capsys, num_word_edges):
    lengths = LENGTHS["real"]
    for split in ("train", "dev"):
        preprocess_here(
            tmp_path, REAL_EXAMPLES, REAL_VOCAB, lengths, split, num_word_edges=num_word_edges
        )
    write_config(tmp_path, REAL_VOCAB)
    model = model_flags(tmp_path, REAL_VOCAB, lengths)
    measured = eval_flags(tmp_path, REAL_EXAMPLES)
    step = {"skip_padding": True} if num_word_edges else {"grad_checkpointing_period": 1}
    run_here(**train_flags(tmp_path), **step, **measured, **model)
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(metrics) >= {"em", "f1", "sp_f1", "joint_f1"}
    predictions = json.loads((tmp_path / "model" / "predictions.json").read_text())

    run_here(run_mode="export", **model)
    write_questions(tmp_path, REAL_EXAMPLES)
    run_here(**predict_flags(tmp_path))
    assert json.loads((tmp_path / "predictions.json").read_text()) == predictions
    gold = json.loads(REAL_EXAMPLES.read_text(encoding="utf-8"))
    assert set(predictions["answer"]) == {example["_id"] for example in gold}


@pytest.mark.exhaustive
def test_a_run_is_described_by_files_alone(generated, capsys):
    """Of canonical names; what the run was told is kept, and taken again as a file."""
    folder = generated["folder"]
    (folder / "model.yaml").write_text(
        f"program:\n  model_config_file: {folder}/etc_config.json\n"
        "training: {train_batch_size: 4, num_train_epochs: 9, learning_rate: 1e-3}\n"
    )
    (folder / "data.yaml").write_text(
        f"train_data: {folder}/train-*.tfrecord\n"
        f"task:\n  eval_data: {folder}/dev-*.tfrecord\n"
        f"  eval_gold: {generated['dev']}\n  vocab_file: {generated['model']['vocab_file']}\n"
        f"num_train_epochs: 1.0\noutput_dir: {folder}/by_files\n"
    )
    config = ["--config", folder / "model.yaml", "--config", folder / "data.yaml"]
    module = ["-m", "etcmodel.tasks.hotpotqa.run_finetuning"]
    override = ["--override=training.save_checkpoints_steps=2", "--learning_rate=2e-3"]
    printed, _ = programs.finish(programs.start_python(*module, *config, *override))
    kept = json.loads((folder / "by_files" / "run_config.json").read_text())
    assert kept["training"]["learning_rate"] == 2e-3 and kept["notes"]["num_train_steps"] == 3
    assert kept["task"]["max_long_seq_length"] == LENGTHS["generated"][0]  # The records'.
    run_here(config=folder / "by_files" / "options.yaml", run_mode="evaluate")
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert metrics == pytest.approx(json.loads(printed.splitlines()[-1]), abs=1e-5)


class TestBadInput:
    """Errors are a line on stderr, and the program exits with 1."""

    def arguments(self, generated, **changes):
        folder = generated["folder"]
        return {
            **train_flags(folder),
            **generated["model"],
            "output_dir": folder / "failing",
            **changes,
        }

    def fails(self, capsys, generated, message, **changes):
        with pytest.raises(SystemExit) as exit_info:
            run_here(**self.arguments(generated, **changes))
        printed = capsys.readouterr().err
        assert exit_info.value.code == 1 and "Traceback" not in printed
        assert printed.splitlines()[-1].startswith("error: ") and message in printed

    def test_missing_flag(self, capsys, generated):
        self.fails(
            capsys,
            generated,
            "--run_mode=train also needs --train_data.",
            train_tf_examples_filepattern="",
        )

    def test_records_of_other_lengths(self, capsys, generated):
        message = (
            f"--long_seq_length=512: the data of {generated['folder']}/train.config.json was made "
            "with --long_seq_length=320. Leave the flag out, or give that value."
        )
        self.fails(capsys, generated, message, max_long_seq_length=512)

    def test_pattern_without_a_file(self, capsys, generated):
        pattern = generated["folder"] / "none-*"
        self.fails(
            capsys, generated, f"No file matches '{pattern}'", train_tf_examples_filepattern=pattern
        )

    def test_evaluation_without_the_answers(self, capsys, generated):
        self.fails(
            capsys,
            generated,
            "--run_mode=train also needs --eval_gold.",
            predict_tf_examples_filepattern="dev-*",
        )

    def test_missing_file(self, capsys, generated):
        self.fails(
            capsys, generated, "--vocab_file: no such file: 'gone.txt'", vocab_file="gone.txt"
        )

    def test_option_outside_its_range(self, capsys, generated):
        with pytest.raises(flags.Error, match=r"2.0 is not a number in the range \[0, 1\]"):
            self.fails(capsys, generated, "", supporting_fact_threshold=2)

    def test_config_with_too_few_labels(self, capsys, generated, tmp_path):
        path = self.changed_config(generated, tmp_path, relative_vocab_size=8)
        self.fails(
            capsys, generated, "`relative_vocab_size` must be at least", etc_config_file=path
        )

    def test_token_ids_outside_the_vocabulary(self, capsys, generated, tmp_path):
        path = self.changed_config(generated, tmp_path, vocab_size=110)
        message = "allowed are 0 to 109 (the ids of the model's vocabulary)"
        self.fails(capsys, generated, message, etc_config_file=path)

    def test_directory_of_another_run(self, capsys, trained):
        output_dir = trained["folder"] / "model"
        self.fails(
            capsys, trained, "training.learning_rate", learning_rate=1e-3, output_dir=output_dir
        )

    def test_checkpoint_that_is_not_there(self, capsys, generated):
        gone = generated["folder"] / "gone"
        self.fails(capsys, generated, str(gone), init_checkpoint=gone)

    def changed_config(self, generated, folder, **changes):
        config = json.loads((generated["folder"] / "etc_config.json").read_text())
        (folder / "etc_config.json").write_text(json.dumps({**config, **changes}))
        return folder / "etc_config.json"
