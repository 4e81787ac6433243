"""Folders with names that TensorFlow takes for patterns: refused early, or of no matter."""

import shutil

import numpy as np
import pytest

from etcmodel import checkpoints, program_end, serving, training
from etcmodel.checkpoints import sources, writing
from etcmodel.models import modeling
from tests.training import toy

NAMES = ["run [1]", "run*", "run?", "a[b]/run", "run\\"]
CONFIG = modeling.EtcConfig(vocab_size=3, hidden_size=2, num_attention_heads=1)
VALUES = {"w": np.arange(3, dtype=np.float32)}
every_name = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return toy.write_records(str(tmp_path_factory.mktemp("records")))


@pytest.fixture(scope="module")
def whole_run(records, tmp_path_factory):
    """The directory of a run of two steps."""
    output_dir = tmp_path_factory.mktemp("runs") / "run"
    training.train(toy.ToyTask(records), config(output_dir))
    return output_dir


def config(output_dir):
    return training.TrainingConfig(
        output_dir=str(output_dir), train_batch_size=12, num_train_epochs=1.0
    )


def refused(name, error):
    """The line that a program would end with; it tells the path and each of the characters."""
    line = program_end.error_line(error.value)
    assert "\n" not in line and "to TensorFlow that is a pattern" in line
    assert all(character in line for character in "*?[\\" if character in name)
    assert repr(name)[1:-1] in line
    return line


@every_name
def test_a_run_is_refused_before_it_begins(tmp_path, name):
    with pytest.raises(ValueError) as error:
        config(tmp_path / name)
    assert refused(name, error).startswith("`output_dir` must not have ")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@every_name
def test_a_run_that_was_moved_there_is_not_read(records, whole_run, tmp_path, name):
    moved = shutil.copytree(whole_run, tmp_path / name)
    task, (step, *_) = toy.ToyTask(records, evaluates=True), sorted(moved.glob("ckpt-*.index"))
    checkpoint = str(step.with_suffix(""))
    with pytest.raises(ValueError) as error:
        training.evaluate(task, config(whole_run), checkpoint)
    assert refused(name, error).startswith("The path of a checkpoint must not")
    for path in (str(moved), checkpoint):
        with pytest.raises(ValueError) as error:
            sources.open_source(path)
        refused(name, error)
        with pytest.raises(ValueError) as error:
            checkpoints.initialize(modeling.EtcModel(CONFIG), path)
        refused(name, error)


@every_name
@pytest.mark.parametrize("output_format", [sources.RELEASED, sources.OBJECTS])
def test_a_checkpoint_is_not_written_there(tmp_path, name, output_format):
    source = writing.write(VALUES, str(tmp_path / "source"), sources.SAFETENSORS)
    for write in (
        lambda target: writing.write(VALUES, target, output_format, config=CONFIG),
        lambda target: checkpoints.convert(source, target, output_format),
    ):
        with pytest.raises(ValueError) as error:
            write(str(tmp_path / name))
        assert refused(name, error).startswith("`output_dir` must not have ")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.quick_cases(1)
@every_name
def test_safetensors_are_written_and_read_wherever_they_are(tmp_path, name):
    folder = str(tmp_path / name)
    writing.write(VALUES, folder, sources.SAFETENSORS, config=CONFIG)
    np.testing.assert_array_equal(sources.open_source(folder).read("w"), VALUES["w"])
    model = modeling.EtcModel(CONFIG)
    model(np.array([[1, 2]]), np.array([[0]]))
    checkpoints.save_pretrained(model, str(tmp_path / name / "model"))
    loaded = checkpoints.from_pretrained(str(tmp_path / name / "model"))
    for weight, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)


@every_name
def test_nor_is_an_export(tmp_path, name):
    with pytest.raises(ValueError) as error:
        serving.export_saved_model(None, str(tmp_path / name / "1"), features={}, assets={})
    assert refused(name, error).startswith("The folder of an export must not")
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "saved_model.pb").touch()
    with pytest.raises(ValueError) as error:
        serving.SavedModelRunner(str(tmp_path / name))
    refused(name, error)
