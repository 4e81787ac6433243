"""The program that all tasks share: from flags to predictions, here of the toy task."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from absl import flags

from etcmodel import finetuning, training
from etcmodel.finetuning import program as program_lib
from tests.finetuning import toy


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
        num_train_epochs=30,
        weight_decay_rate=0,
        **eval_flags(toy_data),
        **flags_of_model,
    ).main([])
    parsed(run_mode="export", **flags_of_model).main([])
    return output_dir


def test_training_measures_whole_documents_and_learns(trained, toy_data):
    (line,) = (trained / "eval_metrics.jsonl").read_text().splitlines()
    predictions = json.loads((trained / "predictions.json").read_text())
    documents = json.loads(toy_data.dev_json.read_text())
    errors = [abs(predictions[str(one["id"])] - one["label"]) for one in documents]
    assert json.loads(line)["error"] == pytest.approx(np.mean(errors), abs=1e-5)
    trivial = np.mean([abs(one["label"]) for one in documents])
    assert np.mean(errors) < 0.5 * trivial


def test_evaluation_prints_the_metrics(trained, toy_data, capsys):
    parsed(run_mode="evaluate", **eval_flags(toy_data), **model_flags(toy_data, trained)).main([])
    metrics = json.loads(capsys.readouterr().out)
    (line,) = (trained / "eval_metrics.jsonl").read_text().splitlines()
    assert metrics["error"] == pytest.approx(json.loads(line)["error"], abs=1e-6)


def test_records_are_predicted_without_their_answers(trained, toy_data, tmp_path, capsys):
    documents = json.loads(toy_data.dev_json.read_text())
    unlabelled = [{k: v for k, v in one.items() if k != "label"} for one in documents]
    (tmp_path / "raw.json").write_text(json.dumps(unlabelled))
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


def test_an_export_keeps_the_options_of_the_model_and_of_decoding(trained):
    predictor = toy.ToyPredictor(str(trained / "export"))
    assert predictor.config.tags == ("x", "y") and predictor.config.factor == 1.0
    assert predictor.config.etc_config.to_dict() == toy.etc_config().to_dict()
    assert predictor.config.train_pattern is None
    with pytest.raises(ValueError, match="document 4: has no `words`"):
        predictor.predict([{"id": 4}])


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
    assert (config.tags, config.max_long_seq_length, config.gold_file) == (("p", "q"), 7, None)
    assert config.predictions_file == "/out/predictions.json"
    assert config.etc_config.grad_checkpointing_period == 3
    training_config = training.training_config_from_flags(program.flag_values)
    assert (training_config.train_batch_size, training_config.learning_rate) == (5, 0.5)
    assert "predict_gold_file" not in program.flag_values


def test_the_options_that_decide_weights_and_features_mark_a_run():
    config = toy.ToyConfig(etc_config=toy.etc_config(), train_pattern="a", eval_pattern="b")
    run_config = toy.ToyTask(config).run_config()
    expected = toy.etc_config().to_dict()
    del expected["grad_checkpointing_period"]  # Of memory and time alone.
    assert run_config.pop("etc_config") == expected
    assert run_config == {
        "train_pattern": "a",
        "num_train_examples": None,
        "max_long_seq_length": 2,
        "max_global_seq_length": 230,
        "initialization": "random",
        "do_lower_case": True,
        "split_punctuation": False,
        "release_compatible": False,
        "tags": ("x", "y"),
        "vocab_sha256": [],
    }


def test_a_run_keeps_its_vocabulary(toy_data, tmp_path, capsys):
    records = tmp_path / "train-00000-of-00001.tfrecord"
    shutil.copy(toy_data.train, records)
    settings = {"vocab_sha256": toy_data.tokenizer.source_sha256()}
    (tmp_path / "train.config.json").write_text(json.dumps(settings))
    other = tmp_path / "vocab.txt"
    other.write_text("\n".join(reversed(toy.VOCAB)))
    model = {"etc_config_file": toy_data.etc_config, "output_dir": tmp_path / "run"}
    train = {"run_mode": "train", "train_tf_examples_filepattern": records, "batch_size": 10}

    def check_refused(**arguments):
        with pytest.raises(SystemExit):
            parsed(vocab_file=other, **arguments, **model).main([])
        assert f"another vocabulary than '{other}'" in capsys.readouterr().err

    check_refused(**train)
    parsed(**train, **model).main([])  # Training alone needs no vocabulary.
    check_refused(run_mode="export")
    parsed(run_mode="export", vocab_file=toy_data.vocab, **model).main([])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"run_mode": "train"}, "needs --output_dir, --etc_config_file, --train_tf_examples_file"),
        ({"run_mode": "evaluate", "output_dir": "x"}, "filepattern, --toy_gold."),
        ({"run_mode": "export", "output_dir": "x"}, "export also needs --etc_config_file."),
        ({"run_mode": "predict"}, "needs --predict_input_file, --export_dir."),
        ({"run_mode": "predict_records", "output_dir": "x"}, "filepattern, --toy_gold."),
        ({"run_mode": "continuous_eval"}, "needs --output_dir, --predict_tf_examples_filepatt"),
        (
            {"run_mode": "predict", "export_dir": "x", "predict_input_file": "gone"},
            "error: --predict_input_file: no such file: 'gone'",
        ),
        (
            {"run_mode": "export", "etc_config_file": "{etc_config}", "output_dir": "x"},
            "`output_dir` must hold a checkpoint",
        ),
    ],
)
def test_a_mode_names_what_it_lacks(toy_data, capsys, arguments, message):
    named = {name: str(v).format(etc_config=toy_data.etc_config) for name, v in arguments.items()}
    with pytest.raises(SystemExit) as exit_info:
        parsed(**named).main([])
    assert exit_info.value.code == 1 and message in capsys.readouterr().err


def test_a_vocabulary_larger_than_the_models_is_refused(toy_data):
    config = toy.etc_config()
    config.vocab_size = 5
    options = {"etc_config": config, "vocab_file": str(toy_data.vocab)}
    with pytest.raises(ValueError, match="has 6 entries, the model's `vocab_size` is 5"):
        toy.ToyConfig(**options).tokenizer()
    with pytest.raises(ValueError, match="Either --vocab_file or --spm_model_file"):
        toy.ToyConfig(etc_config=config).tokenizer()


def test_results_appear_only_when_they_are_complete(tmp_path):
    path = tmp_path / "new" / "result.txt"

    def parts():
        yield "half"
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        finetuning.write_text(str(path), parts())
    assert not path.exists()
    finetuning.write_text(str(path), ["é\n", "b\n"])
    assert path.read_text(encoding="utf-8") == "é\nb\n"
    finetuning.write_json(str(path), {"a": ["é"]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": ["é"]}
    assert [name.name for name in path.parent.iterdir()] == ["result.txt"]
