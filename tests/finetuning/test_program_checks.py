"""What marks a run, and what the program refuses before it begins."""

import importlib
import json
import shutil

import pytest

import etcmodel
from etcmodel import finetuning
from etcmodel.finetuning import command_line
from etcmodel.tasks.classification import config as base_config
from etcmodel.tasks.classification import predict as base_predict
from etcmodel.tasks.classification import task as base_task
from tests.finetuning import toy
from tests.finetuning.test_program import parsed

pytestmark = pytest.mark.usefixtures("eagerly")


def test_the_options_that_decide_weights_and_features_mark_a_run():
    config = toy.ToyConfig(encoder_config=toy.etc_config(), train_data="a", eval_data="b")
    run_config = toy.ToyTask(config).run_config()
    expected = toy.etc_config().to_dict()
    del expected["grad_checkpointing_period"]  # Affects only memory and time.
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
        "metric_for_best_model": None,
        "layer_decay": 1.0,
        "num_frozen_layers": 0,
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
        ({"run_mode": "train"}, "needs --output_dir, --model_config_file, --train_data."),
        (
            {"run_mode": "evaluate", "output_dir": "x"},
            "needs --model_config_file, --eval_data, --eval_gold.",
        ),
        (
            {"run_mode": "export", "output_dir": "x"},
            "export also needs --model_config_file. There is no run in --output_dir=x that has a "
            "config.",
        ),
        ({"run_mode": "predict"}, "needs --input_file, --export_dir."),
        (
            {"run_mode": "predict_records", "output_dir": "x"},
            "needs --model_config_file, --eval_data, --eval_gold.",
        ),
        ({"run_mode": "continuous_eval"}, "needs --output_dir, --eval_data, --eval_gold."),
        (
            {"run_mode": "predict", "export_dir": "x", "predict_input_file": "gone"},
            "error: --input_file: no such file: 'gone'",
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
    options = {"encoder_config": config, "vocab_file": str(toy_data.vocab)}
    with pytest.raises(ValueError, match="has 6 entries, the model's `vocab_size` is 5"):
        toy.ToyConfig(**options).tokenizer()
    with pytest.raises(ValueError, match="Either --vocab_file or --spm_model_file"):
        toy.ToyConfig(encoder_config=config).tokenizer()


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


# A task in a folder of its own, which may extend another.

EXTENDS = "from etcmodel.tasks.classification.config import ClassificationConfig as Base\n"
ALONE = "from etcmodel.finetuning import FinetuningConfig as Base\n"
CONFIG = "class MyConfig(Base):\n    pass\n"
RECORDS = "class RecordConfig:\n    of_run = staticmethod(lambda config: 'mine')\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package and imports its config."""
    name = f"of_{tmp_path.name}"  # Of this test alone.
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(base, **modules):
        (tmp_path / name).mkdir()
        for module, text in {"__init__": "", "config": base + CONFIG, **modules}.items():
            (tmp_path / name / f"{module}.py").write_text(text)
        return importlib.import_module(f"{name}.config").MyConfig

    return write


def records_of(config_class, **given):
    return config_class(encoder_config=etcmodel.EtcConfig(128), **given).records()


@pytest.mark.parametrize("task", [None, "ours = 1\n"])
def test_a_config_in_another_folder_has_what_the_one_it_extends_has(package, task):
    config_class = package(EXTENDS, **({"task": task} if task else {}))
    assert isinstance(records_of(config_class, labels=("a", "b")), base_task.RecordConfig)
    task_class, predictor = command_line.load_task(config_class)
    assert issubclass(predictor, base_predict.ClassificationPredictor)
    assert predictor.task_class is task_class and task_class.config_class is config_class
    assert task_class.__module__ == base_task.__name__
    found = command_line.load_task(base_config.ClassificationConfig)
    assert found[1] is base_predict.ClassificationPredictor  # As it was.


def test_what_is_beside_a_config_comes_first(package):
    assert records_of(package(EXTENDS, task=RECORDS), labels=("a", "b")) == "mine"


@pytest.mark.parametrize("modules", [{}, {"task": "", "predict": "__all__ = ['Missing']\n"}])
def test_a_config_without_a_task_beside_it_is_named(package, modules):
    config_class = package(ALONE, **modules)
    name = f"^{config_class.__module__}.MyConfig needs a module"
    with pytest.raises(ValueError, match=f"{name} `task` with `RecordConfig`.*e `records`"):
        records_of(config_class)
    with pytest.raises(ValueError, match=f"{name} `predict` with a predictor, .* `load_parts"):
        command_line.load_task(config_class)
    config_class.__module__ = "__main__"
    with pytest.raises(ValueError, match="^__main__.MyConfig needs a module `task`"):
        records_of(config_class)
