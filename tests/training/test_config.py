"""From command line to a checked configuration."""

import math

import pytest
from absl import flags

from etcmodel import options
from etcmodel.training import config as config_lib


def parse(*arguments, **defaults):
    """The configuration of these arguments, and the flags."""
    values = flags.FlagValues()
    sections = {"training": config_lib.TrainingConfig}
    program = options.ProgramFlags(sections, values, defaults=defaults)
    program.define()
    values(["program", *arguments])
    return config_lib.TrainingConfig(**program.values("training")), values


def test_flags_default_to_the_configuration_and_to_the_release():
    config, _ = parse()
    assert config == config_lib.TrainingConfig()
    released = {
        "init_checkpoint": None,
        "output_dir": None,
        "learning_rate": 5e-5,
        "learning_rate_schedule": "poly_decay",
        "poly_power": 1.0,
        "optimizer": "adamw",
        "num_train_epochs": 3.0,
        "warmup_proportion": 0.1,
        "start_warmup_step": 0,
        "train_batch_size": 32,
        "predict_batch_size": 8,
        "save_checkpoints_steps": 500,
        "random_seed": 0,
        "tpu_name": None,
        "tpu_zone": None,
        "gcp_project": None,
    }
    assert {name: getattr(config, name) for name in released} == released


def test_flags_reach_the_configuration():
    config, _ = parse("--learning_rate=1e-3", "--optimizer=lamb", "--num_gpus=2", "--output_dir=/x")
    assert (config.learning_rate, config.optimizer, config.num_gpus) == (1e-3, "lamb", 2)
    assert config.output_dir == "/x"


def test_a_task_has_its_own_defaults():
    config, _ = parse("--train_batch_size=16", train_batch_size=64, weight_decay_rate=0.1)
    assert (config.train_batch_size, config.weight_decay_rate) == (16, 0.1)


def test_every_flag_has_a_help_text():
    _, values = parse()
    for name in values:
        assert len(values[name].help) > 5, name


def test_what_decides_the_result_is_told_apart_from_how_it_is_run():
    fields = config_lib.TrainingConfig(eval_batch_size=3).result_fields()
    assert {"learning_rate", "train_batch_size", "init_checkpoint"} <= set(fields)
    assert not {"output_dir", "eval_batch_size", "tpu_name"} & set(fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"optimizer": "sgd"}, "`optimizer` must be one of .*'lamb'.*Received: 'sgd'"),
        ({"mixed_precision": "float16"}, "`mixed_precision` must be one of"),
        ({"train_batch_size": 0}, "`train_batch_size` must be at least 1. Received: 0"),
        ({"learning_rate": -1.0}, "`learning_rate` must be at least 0"),
        ({"warmup_proportion": 1.5}, "`warmup_proportion` must be between 0 and 1. Received: 1.5"),
        ({"num_train_epochs": math.inf}, "`num_train_epochs` must be a finite number"),
        ({"random_seed": -1}, "`random_seed` must be between 0 and 4294967295. Received: -1"),
        ({"gradient_clip_norm": 0.0}, "`gradient_clip_norm` must be above 0. Not to clip, give"),
        ({"num_gpus": -2}, "`num_gpus` must be at least -1"),
        (
            {"train_batch_size": 10, "gradient_accumulation_steps": 4},
            "a multiple of gradient_accumulation_steps=4. Received: 10",
        ),
    ],
)
def test_wrong_values_are_named(fields, message):
    with pytest.raises(ValueError, match=message):
        config_lib.TrainingConfig(**fields)


def test_steps_are_rounded_down():
    config = config_lib.TrainingConfig(train_batch_size=4, num_train_epochs=1.5)
    assert config.num_train_steps(11) == 4


def test_less_than_one_batch_is_refused():
    with pytest.raises(ValueError, match="less than one batch of train_batch_size=32"):
        config_lib.TrainingConfig(num_train_epochs=1.0).num_train_steps(5)
