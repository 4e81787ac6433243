"""The program that all tasks share: from flags to predictions, here of the toy task."""

import contextlib
import dataclasses
import json
import re
import shutil
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

import etcmodel
from etcmodel import finetuning, progress_bar, training
from etcmodel.finetuning import predictor as predictor_lib
from etcmodel.finetuning import program as program_lib
from etcmodel.training import saving
from tests.finetuning import toy
from tests.training import terminal

pytestmark = pytest.mark.usefixtures("eagerly")


def parsed(**arguments):
    """The toy's program with these flags."""
    release = finetuning.ReleaseFlags(aliases={"batch_size": "train_batch_size"})
    program = program_lib.Program(toy.ToyTask, toy.ToyPredictor, flags.FlagValues(), release)
    program.define_flags({"learning_rate": 0.5})
    program.flag_values(["toy", *(f"--{name}={value}" for name, value in arguments.items())])
    return program


def model_flags(toy_data, output_dir):
    return {
        "etc_config_file": toy_data.etc_config,
        "vocab_file": toy_data.vocab,
        "output_dir": output_dir,
    }


def eval_flags(toy_data):
    return {"predict_tf_examples_filepattern": toy_data.dev, "toy_gold": toy_data.dev_json}


@pytest.fixture(scope="module")
def trained(toy_data, tmp_path_factory):
    """Directory of a trained and exported toy."""
    output_dir = tmp_path_factory.mktemp("run")
    flags_of_model = model_flags(toy_data, output_dir)
    parsed(
        run_mode="train",
        train_tf_examples_filepattern=toy_data.train,
        batch_size=10,
        num_train_epochs=15,
        weight_decay_rate=0,
        **eval_flags(toy_data),
        **flags_of_model,
    ).main([])
    parsed(run_mode="export", **flags_of_model).main([])
    return output_dir


@pytest.fixture(scope="module")
def predictor(trained):
    return toy.ToyPredictor(str(trained / "export"))


def test_training_measures_whole_documents_and_learns(trained, toy_data):
    (line,) = (trained / "eval_metrics.jsonl").read_text().splitlines()
    predictions = json.loads((trained / "predictions.json").read_text())
    documents = json.loads(toy_data.dev_json.read_text())
    errors = [abs(predictions[str(one["id"])] - one["label"]) for one in documents]
    assert json.loads(line)["error"] == pytest.approx(np.mean(errors), abs=1e-5)
    trivial = np.mean([abs(one["label"]) for one in documents])
    assert np.mean(errors) < 0.5 * trivial


def test_the_end_of_training_tells_the_best_step_and_what_follows(trained, toy_data, capsys):
    """Here of a run that is at its end already."""
    given = {"train_tf_examples_filepattern": toy_data.train, "batch_size": 10}
    given |= {"run_mode": "train", "num_train_epochs": 15, "weight_decay_rate": 0}
    evaluation = eval_flags(toy_data)
    parsed(**given, **evaluation, **model_flags(toy_data, trained)).main([])
    (line,) = map(json.loads, (trained / "eval_metrics.jsonl").read_text().splitlines())
    told = capsys.readouterr().err.split("\n\n")[-1].splitlines()
    export = told.pop(4)
    assert export.startswith("        python ")  # And what pytest was started by.
    assert export.endswith(f" --run_mode=export --output_dir={trained}")
    assert told == [
        f"done    step {line['step']}",
        f"best    step {line['step']}, error {line['error']:.4g}: "
        f"{trained}/best/ckpt-{line['step']}",
        f"folder  {trained}",
        f"next    etcmodel report --run={trained} --output={trained}/report.html",
        f"        etcmodel serve --model_dir={trained}/export",
    ]
    parsed(**given, **model_flags(toy_data, trained)).main([])
    measure = capsys.readouterr().err.splitlines()[-3]
    assert measure.endswith(
        f"--run_mode=evaluate --output_dir={trained} --eval_data=EVAL_DATA --eval_gold=EVAL_GOLD"
    )


def test_another_metric_chooses_the_best_checkpoint(toy_data, tmp_path, monkeypatch, capsys):
    measured = toy.ToyTask.metrics

    def metrics(self, examples, predictions):
        error = measured(self, examples, predictions)["error"]
        return {"error": error, "f1": error / 100}  # Both fall.

    monkeypatch.setattr(toy.ToyTask, "other_metrics", {"f1": True})
    monkeypatch.setattr(toy.ToyTask, "metrics", metrics)
    given = {"train_tf_examples_filepattern": toy_data.train, "batch_size": 10}
    given |= {"run_mode": "train", "num_train_epochs": 2, "save_checkpoints_steps": 1}
    given |= {**eval_flags(toy_data), **model_flags(toy_data, tmp_path)}
    parsed(**given, metric_for_best_model="f1").main([])
    rows = list(map(json.loads, (tmp_path / "eval_metrics.jsonl").read_text().splitlines()))
    assert len(rows) > 1 and rows[-1]["error"] < rows[0]["error"]
    best = max(rows, key=lambda row: row["f1"])
    assert training.best_checkpoint(str(tmp_path)).endswith(f"/ckpt-{best['step']}")
    assert json.loads((tmp_path / "best" / "best_metric.json").read_text()) == best["f1"]
    with pytest.raises(SystemExit):
        parsed(**given).main([])
    assert "task.metric_for_best_model: 'f1' there, None now" in capsys.readouterr().err
    own = toy.ToyTask(toy.ToyConfig(encoder_config=toy.etc_config(), metric_for_best_model="error"))
    assert (own.best_metric, own.higher_is_better) == ("error", False)
    with pytest.raises(SystemExit):
        parsed(**given, metric_for_best_model="loss").main([])
    wanted = "`metric_for_best_model` must be one of error, f1. Received: 'loss'"
    assert wanted in capsys.readouterr().err


def test_an_evaluation_without_the_metric_that_chooses_is_named(tmp_path):
    best = saving.BestCheckpoint(str(tmp_path), "f1", higher_is_better=True, save=None)
    with pytest.raises(ValueError, match="no metric 'f1', which chooses .* It has: em, loss"):
        best.update({"em": 0.5, "loss": 1.0})


@pytest.mark.slow
def test_a_run_without_a_vocabulary_is_told_that_its_export_needs_one(toy_data, tmp_path, capsys):
    given = model_flags(toy_data, tmp_path)
    del given["vocab_file"]
    given |= {"train_tf_examples_filepattern": toy_data.train, "num_train_epochs": 1}
    parsed(run_mode="train", **given).main([])
    export = capsys.readouterr().err.splitlines()[-2]
    assert export.endswith(f" --run_mode=export --output_dir={tmp_path} --vocab_file=VOCAB_FILE")
    with pytest.raises(SystemExit):
        parsed(run_mode="export", output_dir=tmp_path).main([])
    assert "Either --vocab_file or --spm_model_file must be given" in capsys.readouterr().err
    parsed(run_mode="export", output_dir=tmp_path, vocab_file=toy_data.vocab).main([])


def test_evaluation_prints_the_metrics(trained, toy_data, capsys):
    parsed(run_mode="evaluate", **eval_flags(toy_data), **model_flags(toy_data, trained)).main([])
    metrics = json.loads(capsys.readouterr().out)
    (line,) = (trained / "eval_metrics.jsonl").read_text().splitlines()
    assert metrics["error"] == pytest.approx(json.loads(line)["error"], abs=1e-6)


def test_records_are_predicted_without_their_answers(trained, toy_data, tmp_path, capsys):
    documents = json.loads(toy_data.dev_json.read_text())
    unlabeled = [{k: v for k, v in one.items() if k != "label"} for one in documents]
    (tmp_path / "raw.json").write_text(json.dumps(unlabeled))
    path = tmp_path / "answers.json"
    parsed(
        run_mode="predict_records",
        output_dir=trained,
        predict_tf_examples_filepattern=toy_data.dev,
        toy_gold=tmp_path / "raw.json",
        vocab_file=toy_data.vocab,
        predictions_file=path,
    ).main([])
    assert capsys.readouterr().out == f"7 predictions: {path}\n"
    expected = json.loads((trained / "predictions.json").read_text())
    assert json.loads(path.read_text()) == pytest.approx(expected, abs=1e-5)


def test_prediction_from_raw_data_equals_evaluation_from_records(trained, toy_data, capsys):
    path = trained / "answers.json"
    arguments = {
        "run_mode": "predict",
        "output_dir": trained,
        "predict_input_file": toy_data.dev_json,
        "predictions_file": path,
    }
    parsed(**arguments).main([])
    assert capsys.readouterr().out == f"7 predictions: {path}\n"
    expected = json.loads((trained / "predictions.json").read_text())
    assert json.loads(path.read_text()) == pytest.approx(expected, abs=1e-5)

    parsed(**arguments, factor=-2).main([])
    doubled = {document: -2 * total for document, total in expected.items()}
    assert json.loads(path.read_text()) == pytest.approx(doubled, abs=1e-5)


def test_only_decoding_options_that_are_given_replace_those_of_the_export(
    trained, toy_data, tmp_path
):
    received = []

    class RecordingPredictor(toy.ToyPredictor):
        def __init__(self, directory, **options):
            received.append(options)
            super().__init__(directory, **options)

    for arguments in ({"tags": "x,y"}, {"factor": 1.0}):
        program = parsed(
            run_mode="predict",
            export_dir=trained / "export",
            predict_input_file=toy_data.dev_json,
            predictions_file=tmp_path / "answers.json",
            **arguments,
        )
        dataclasses.replace(program, predictor_class=RecordingPredictor).main([])
    assert received == [{}, {"factor": 1.0}]


def test_an_export_keeps_the_options_of_the_model_and_of_decoding(predictor):
    assert predictor.config.tags == ("x", "y") and predictor.config.factor == 1.0
    assert predictor.config.encoder_config.to_dict() == toy.etc_config().to_dict()
    assert predictor.config.train_data is None
    with pytest.raises(ValueError, match="document 4: has no `words`"):
        predictor.predict([{"id": 4}])


@pytest.mark.parametrize("example", ["text", b"text", 3, None, ["a"]])
def test_what_is_no_example_is_refused_and_shown(predictor, example):
    message = "an example must be a dict in the data set's format, .* Received: "
    with pytest.raises(ValueError, match=message + re.escape(repr(example))):
        predictor.predict([example])
    if isinstance(example, str | bytes):
        with pytest.raises(ValueError, match="`examples` must be a list of examples. Received"):
            predictor.predict(example)


def test_outputs_that_are_no_numbers_become_no_predictions(predictor, monkeypatch):
    (document,) = toy.make_documents(1)
    run = predictor._runner

    def broken(records, batch_size):
        return ({**x, "score": x["score"] * np.float32("nan")} for x in run(records, batch_size))

    records, decode = predictor.prepare(document, 0)
    assert decode([*predictor.run(records, 8)]) == predictor.predict([document])["0"]
    monkeypatch.setattr(predictor, "_runner", broken)
    for predict in (
        lambda: predictor.predict([document]),
        lambda: decode([*broken(records, 8)]),  # As a server does it.
    ):
        with pytest.raises(ValueError, match=r"output `score` is not a number \(NaN\)"):
            predict()


def test_predictions_of_a_file_are_counted_on_a_terminal(
    predictor, toy_data, tmp_path, monkeypatch
):
    monkeypatch.setattr(progress_bar, "_SECONDS_BETWEEN_COUNTS", 0.0)
    path = tmp_path / "answers.json"
    written, _ = terminal.showing(
        lambda: predictor.predict_file(str(toy_data.dev_json), str(path), batch_size=2), monkeypatch
    )
    assert re.search(rb"predicting 13 records +\S+ records/s", b"".join(written))
    assert terminal.screen(written) == [""] and len(json.loads(path.read_text())) == 7
    written, _ = terminal.showing(lambda: predictor.predict([]), monkeypatch)
    assert not written  # Nobody waits for a call of a program of one's own.


def test_without_progress_bars_a_file_is_predicted(predictor, toy_data, tmp_path, monkeypatch):
    monkeypatch.delattr(etcmodel, "progress_bar", raising=False)
    monkeypatch.delitem(sys.modules, progress_bar.__name__)
    monkeypatch.setitem(sys.modules, "tqdm", None)  # As if it were not installed.
    path = tmp_path / "answers.json"
    assert predictor.predict_file(str(toy_data.dev_json), str(path)) == 7
    path.write_text("[]")
    with pytest.raises(ValueError, match="the file holds no") as raised:
        predictor.predict_file(str(path), str(path))
    assert raised.value.__context__ is None  # Nothing is told of what is missing.


def test_an_export_of_a_later_version_is_refused(trained, tmp_path):
    folder = shutil.copytree(trained / "export", tmp_path / "export")
    (path,) = folder.glob("*/assets/toy_config.json")
    kept = json.loads(path.read_text())
    assert kept["format_version"] == 1
    path.write_text(json.dumps({**kept, "format_version": 2}))
    with pytest.raises(ValueError, match=f"^{path}: `format_version` is 2, and this version of"):
        toy.ToyPredictor(str(folder))


@pytest.mark.slow
def test_an_export_of_a_run_with_an_average_has_the_average(toy_data, tmp_path):
    flags_of_model = model_flags(toy_data, tmp_path)
    data = {"train_tf_examples_filepattern": toy_data.train, "batch_size": 10}
    averaged = {"num_train_epochs": 2, "ema_decay": 0.9, "learning_rate": 0.1}
    parsed(run_mode="train", **averaged, **data, **flags_of_model).main([])
    parsed(run_mode="export", **flags_of_model).main([])
    documents = json.loads(toy_data.dev_json.read_text())
    found = toy.ToyPredictor(str(tmp_path / "export")).predict(documents)
    reader = tf.train.load_checkpoint(training.best_checkpoint(str(tmp_path)))

    def expected(embedding, kernel):
        ids = toy_data.tokenizer.convert_tokens_to_ids
        names = (f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in (embedding, kernel))
        table, sizes = map(reader.get_tensor, names)
        return {
            str(one["id"]): float(table[ids(one["words"])].sum() + (one["sizes"] @ sizes).sum())
            for one in documents
        }

    assert found == pytest.approx(expected("model/embedding", "model/kernel"), abs=1e-5)
    trained = expected("trained_weights/0", "trained_weights/1")
    assert max(abs(found[key] - trained[key]) for key in found) > 1e-3


def test_another_tasks_export_is_refused(trained):
    class OtherTask(toy.ToyTask):
        name, title = "other", "Other"

    class OtherPredictor(toy.ToyPredictor):
        task_class = OtherTask

    with pytest.raises(ValueError, match="is no export of a Other model"):
        OtherPredictor(str(trained / "export"))


def test_flags_have_the_tasks_names_defaults_and_aliases(toy_data):
    arguments = {"etc_config_file": toy_data.etc_config, "grad_checkpointing_period": 3}
    program = parsed(**arguments, batch_size=5, tags="p,q", long_seq_len=7, output_dir="/out")
    program.resolve_flags()
    config = program.make_task().config
    assert (config.tags, config.long_seq_length, config.eval_gold) == (("p", "q"), 7, None)
    assert config.predictions_file == "/out/predictions.json"
    assert config.encoder_config.grad_checkpointing_period == 3
    training_config = program.training_config()
    assert (training_config.train_batch_size, training_config.learning_rate) == (5, 0.5)
    assert "predict_gold_file" not in program.flag_values


class TestConfigFiles:
    def write(self, tmp_path, toy_data, **task):
        path = tmp_path / "run.yaml"
        content = {
            "program": {"run_mode": "train", "model_config_file": str(toy_data.etc_config)},
            "training": {"train_batch_size": 10, "num_train_epochs": 1.0, "learning_rate": 0.1},
            "task": {"train_data": str(toy_data.train), "vocab_file": str(toy_data.vocab), **task},
        }
        path.write_text(json.dumps(content))  # Which is YAML, too.
        return path

    def test_a_run_needs_no_flags_but_its_file(self, toy_data, tmp_path):
        config = self.write(tmp_path, toy_data, tags=["p", "q"])
        run = tmp_path / "run"
        parsed(config=config, override=f"output_dir={run}", learning_rate=0.2).main([])
        kept = json.loads((run / "run_config.json").read_text())
        assert kept["task"]["tags"] == ["p", "q"] and kept["training"]["learning_rate"] == 0.2
        parsed(config=config, run_mode="export", output_dir=run, learning_rate=0.2).main([])
        assert toy.ToyPredictor(str(run / "export")).config.tags == ("p", "q")

    @pytest.mark.slow
    def test_the_options_of_a_run_are_kept_and_give_it_again(self, toy_data, tmp_path):
        config = self.write(tmp_path, toy_data, tags=["p", "q"], factor=3)
        parsed(config=config, output_dir=tmp_path / "run", eval_batch_size=5).main([])
        kept = tmp_path / "run" / "options.yaml"
        text = kept.read_text()
        program = parsed(config=kept)
        program.resolve_flags()
        task, training_config = program.make_task(), program.training_config()
        assert program.effective_options(task.config, training_config) == text
        assert task.config.tags == ("p", "q") and task.config.factor == 3.0
        assert (training_config.train_batch_size, training_config.eval_batch_size) == (10, 5)
        again = tmp_path / "again"
        parsed(config=kept, output_dir=again).main([])
        parsed(config=kept).main([])  # Goes on with the first run, which is at its end.
        configs = [
            json.loads((run / "run_config.json").read_text()) for run in (kept.parent, again)
        ]
        assert configs[0] == configs[1]

    @pytest.mark.slow
    def test_a_run_goes_on_with_changed_options(self, toy_data, tmp_path, capsys):
        config, run = self.write(tmp_path, toy_data), tmp_path / "run"
        given = {"config": config, "output_dir": run}
        parsed(**given).main([])
        last = json.loads((run / "run_config.json").read_text())["notes"]["num_train_steps"]
        changes = "learning_rate=0.05,num_train_epochs=2,save_checkpoints_steps=3"
        parsed(**given, change=changes).main([])
        parsed(**given).main([])  # The command of the beginning.
        program = parsed(config=run / "options.yaml")
        program.resolve_flags()
        found = program.training_config()
        assert (found.learning_rate, found.num_train_epochs) == (0.05, 2.0)
        assert found.save_checkpoints_steps == 3
        assert "change:" not in (run / "options.yaml").read_text()
        history = json.loads((run / "history.json").read_text())["changes"]
        assert [(x["step"], x["option"]) for x in history] == [
            (last, "learning_rate"),
            (last, "num_train_epochs"),
            (last, "save_checkpoints_steps"),
        ]
        parsed(**given, run_mode="export").main([])
        assert [path.name for path in (run / "export").iterdir()] == [str(2 * last)]
        with pytest.raises(SystemExit):
            parsed(**given, run_mode="export", change=changes).main([])
        assert "error: --change: only --run_mode=train changes" in capsys.readouterr().err

    def test_what_a_file_says_may_not_contradict_the_run(self, trained, toy_data, tmp_path, capsys):
        config = self.write(tmp_path, toy_data, tags=["p"])
        arguments = {"run_mode": "evaluate", "output_dir": trained, **eval_flags(toy_data)}
        with pytest.raises(SystemExit):
            parsed(config=config, **arguments).main([])
        assert "was made with --" in capsys.readouterr().err

    def test_wrong_options_are_an_error_of_one_line(self, toy_data, tmp_path, capsys):
        config = self.write(tmp_path, toy_data, tag="p")
        with pytest.raises(SystemExit):
            parsed(config=config).main([])
        message = f"error: {config}: there is no option `task.tag`. The nearest is `task.tags`.\n"
        assert capsys.readouterr().err == message


def test_predictions_that_are_replaced_are_named(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(predictor_lib.logging, "warning", lambda form, *x: told.append(form % x))
    path = tmp_path / "predictions.json"
    stub = types.SimpleNamespace(
        _counted=contextlib.nullcontext,
        read_examples=lambda path: [],
        predict=lambda examples, batch_size: {},
        task=types.SimpleNamespace(
            write_predictions=lambda path, found: path.write_text(str(found)), num_predictions=len
        ),
    )
    predictor_lib.Predictor.predict_file(stub, "dev.json", path)
    assert told == []
    predictor_lib.Predictor.predict_file(stub, "dev.json", path)
    wanted = "had predictions, such as the evaluation's; those for dev.json replace them."
    assert told == [f"{path} {wanted}"]
