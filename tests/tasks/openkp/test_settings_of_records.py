"""What training takes from the settings of its records, and what comes after from the run."""

import json

import pytest
from absl import flags

from etcmodel.finetuning import program as program_lib
from etcmodel.finetuning import trained_run
from etcmodel.tasks.openkp.predict import OpenKpPredictor
from etcmodel.tasks.openkp.task import OpenKpTask


@pytest.fixture
def config_of(tmp_path):
    """function(mode, **flags): the options with records that repeat the faults of the release."""
    (tmp_path / "etc_config.json").write_text(json.dumps({"vocab_size": 9}))
    (tmp_path / "train-00000-of-00001.tfrecord").touch()
    (tmp_path / "train.config.json").write_text(json.dumps({"release_compatible": True}))

    def make(mode, **given):
        given |= {
            "run_mode": mode,
            "output_dir": tmp_path / "run",
            "model_config_file": tmp_path / "etc_config.json",
            "train_data": tmp_path / "train-*.tfrecord",
        }
        program = program_lib.Program(OpenKpTask, OpenKpPredictor, flags.FlagValues())
        program.define_flags(defaults={})
        program.flag_values(["openkp", *(f"--{name}={value}" for name, value in given.items())])
        program.resolve_flags()
        return program.make_task().config

    return make


def write_run(folder, config):
    folder.mkdir()
    run_config = {"task": trained_run.run_options(config), "training": {}}
    (folder / "run_config.json").write_text(json.dumps(run_config))


def test_training_repeats_the_faults_that_its_records_have_unless_told_otherwise(config_of):
    assert config_of("train").release_compatible
    assert not config_of("train", release_compatible="false").release_compatible


def test_the_max_loss_needs_the_flag_where_records_have_faults(config_of):
    with pytest.raises(ValueError, match="Give --release_compatible=false, too"):
        config_of("train", label_occurrences="max")
    chosen = config_of("train", label_occurrences="max", release_compatible="false")
    assert not chosen.release_compatible


@pytest.mark.parametrize("begun_with", ["true", "false"])
def test_a_run_keeps_what_it_began_with(config_of, tmp_path, begun_with):
    """Its loss depends on it, so nothing later may say otherwise."""
    begun = config_of("train", release_compatible=begun_with)
    write_run(tmp_path / "run", begun)
    other = "false" if begun.release_compatible else "true"
    for mode in ("train", "export"):
        assert config_of(mode).release_compatible == begun.release_compatible
    with pytest.raises(ValueError, match="--release_compatible.* was made with"):
        config_of("export", release_compatible=other)
