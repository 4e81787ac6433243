"""The release's flags: aliases, what is translated, and what has no effect."""

import contextlib
import io

import pytest
from absl import flags

from etcmodel import finetuning, options, training
from etcmodel.finetuning import program as program_lib
from tests.finetuning import toy

RELEASE = finetuning.ReleaseFlags(
    aliases={"batch_size": "train_batch_size", "config_file": "model_config_file"},
    modes={"do_train": "train", "do_eval": "continuous_eval", "do_predict": "predict_records"},
    train_data_is_eval_data="train_tf_examples_filepattern",
    predict_means_eval=True,
    predictions_name=("output_name", ".json"),
)


def parse(*arguments):
    """The toy's program after these arguments."""
    program = program_lib.Program(toy.ToyTask, toy.ToyPredictor, flags.FlagValues(), RELEASE)
    program.define_flags({})
    program.flag_values(["toy", *arguments])
    return program


def resolved(*arguments):
    """The flags' values and the lines that are told."""
    program = parse(*arguments)
    with contextlib.redirect_stderr(io.StringIO()) as told:
        program.resolve_flags()
    return program.flag_values, told.getvalue().splitlines()


def refused(*arguments):
    with pytest.raises(ValueError) as error_info:
        resolved(*arguments)
    return str(error_info.value)


def test_an_alias_sets_the_flag_it_stands_for():
    values, lines = resolved("--batch_size=5", "--config_file=x.json")
    assert (values.train_batch_size, values.model_config_file, lines) == (5, "x.json", [])
    assert values["train_batch_size"].present
    assert resolved()[0].train_batch_size == training.TrainingConfig().train_batch_size


@pytest.mark.parametrize("order", [1, -1])
def test_a_flag_and_its_alias_may_say_the_same_only(order):
    arguments = ["--batch_size=5", "--train_batch_size=5"][::order]
    assert resolved(*arguments)[0].train_batch_size == 5
    message = refused(*["--batch_size=5", "--train_batch_size=6"][::order])
    assert message == "--batch_size=5 contradicts --train_batch_size=6. Give one of them."


@pytest.mark.parametrize(
    ("argument", "mode"),
    [
        ("--do_train=true", "train"),
        ("--do_train=True", "train"),
        ("--do_eval", "continuous_eval"),
        ("--do_predict=1", "predict_records"),
    ],
)
def test_a_job_of_the_release_is_a_mode(argument, mode):
    values, (line,) = resolved(argument)
    assert values.run_mode == mode and line.endswith(f"=true is read as --run_mode={mode}.")


def test_jobs_that_are_not_wanted_change_nothing():
    values, _ = resolved("--do_train=true", "--do_eval=false", "--nodo_predict")
    assert values.run_mode == "train"
    values, lines = resolved("--do_eval=false", "--run_mode=evaluate")
    assert values.run_mode == "evaluate" and not lines


def test_contradicting_jobs_are_refused():
    assert refused("--do_train", "--do_eval").startswith("--do_train and --do_eval are jobs of")
    assert "nothing to do: --do_train=false" in refused("--do_train=false")
    message = "--do_eval=true contradicts --run_mode=train. Give one of them."
    assert refused("--do_eval", "--run_mode=train") == message


def test_the_records_of_an_evaluation_are_those_of_the_release():
    arguments = ["--do_eval", "--train_tf_examples_filepattern=dev-*"]
    values, lines = resolved(*arguments)
    assert values.eval_data == "dev-*"
    assert not values["train_data"].present
    assert lines[1] == (
        "--train_tf_examples_filepattern of an evaluation is read as --eval_data=dev-*."
    )
    values, lines = resolved(*arguments, "--predict_tf_examples_filepattern=other-*")
    assert values.eval_data == "other-*"
    assert values.train_data == "dev-*" and len(lines) == 1
    values, _ = resolved("--do_train", "--train_tf_examples_filepattern=train-*")
    assert values.train_data == "train-*"


def test_predicting_records_means_evaluating_all_checkpoints():
    records = "--predict_tf_examples_filepattern=dev-*"
    values, lines = resolved("--run_mode=predict", records, "--predict_batch_size=3")
    assert values.run_mode == "continuous_eval" and values.eval_batch_size == 3
    assert lines == [
        "--run_mode=predict with --eval_data is read as --run_mode=continuous_eval.",
        "--predict_batch_size of an evaluation is read as --eval_batch_size=3.",
    ]
    values, lines = resolved("--run_mode=predict", records, "--predict_input_file=x.json")
    assert values.run_mode == "predict" and not lines


def test_predictions_may_be_named_in_the_output_directory():
    values, _ = resolved("--do_predict", "--output_dir=/out", "--output_name=inference")
    assert values.predictions_file == "/out/inference.json"


@pytest.mark.parametrize("value", ["true", "True", "1", None])
def test_the_release_asks_for_a_tpu_by_a_flag(value):
    argument = "--use_tpu" if value is None else f"--use_tpu={value}"
    values, lines = resolved(argument, "--tpu_name=t", "--tpu_zone=z", "--gcp_project=p")
    config = training.TrainingConfig(**options.values_from_flags(training.TrainingConfig, values))
    assert config.distribution_strategy == "tpu"
    assert (config.tpu_name, config.tpu_zone, config.gcp_project) == ("t", "z", "p")
    assert lines == ["--use_tpu=true is read as --distribution_strategy=tpu."]


def test_no_tpu_is_the_default_and_may_be_said():
    for arguments in ((), ("--use_tpu=False",), ("--nouse_tpu",)):
        values, lines = resolved(*arguments)
        assert values.distribution_strategy == "one_device" and not lines
    message = "--use_tpu=true contradicts --distribution_strategy=mirrored. Give one of them."
    assert refused("--use_tpu", "--distribution_strategy=mirrored") == message
    assert "--use_tpu=false contradicts" in refused("--nouse_tpu", "--distribution_strategy=tpu")


def test_flags_without_effect_are_told_in_a_line_each():
    given = ["--iterations_per_loop=1000", "--num_tpu_cores=32", "--verbose_logging", "--master=x"]
    _, lines = resolved(*given, "--tpu_job_name=j")
    assert len(lines) == 5
    assert lines[0].startswith("--iterations_per_loop has no effect here: ")
    assert all(line.count("\n") == 0 and line.endswith(".") for line in lines)


def test_nothing_is_recomputed_for_a_period_of_0(toy_data):
    arguments = ["--grad_checkpointing_period=0", f"--etc_config_file={toy_data.etc_config}"]
    program = parse(*arguments)
    program.resolve_flags()
    assert program.make_task().config.encoder_config.grad_checkpointing_period == 0


def test_every_flag_is_explained():
    values = parse().flag_values
    for name in ("batch_size", "do_eval", "use_tpu", "num_tpu_cores", "output_name"):
        assert len(values[name].help) > 20, name
    assert values["config_file"].help == "Alias of --model_config_file."


def test_what_is_translated_is_told_by_the_program(capsys):
    with pytest.raises(SystemExit):
        parse("--do_train", "--iterations_per_loop=5").main([])
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "--do_train=true is read as --run_mode=train."
    assert told[1].startswith("--iterations_per_loop has no effect")
    assert told[2].startswith("error: --run_mode=train also needs --output_dir")
