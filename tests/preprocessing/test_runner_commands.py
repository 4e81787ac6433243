"""The page's commands for Dataflow, Flink and Spark: each of their flags is Beam's, or ours."""

import argparse
import importlib
import re
import shlex

import pytest
from absl import flags
from apache_beam.options import pipeline_options
from apache_beam.runners import runner as beam_runner

from etcmodel import options
from etcmodel.preprocessing import beam_flags
from tests import page

TEXT = page.read("training.md#preprocessing")
COMMAND = re.compile(r"^etcmodel preprocess (\w+) (.*)$", re.M)


def commands():
    """(task, runner, arguments) of each command of the page's blocks."""
    for block in re.findall(r"^```sh\n(.*?)^```", TEXT, re.M | re.S):
        for task, arguments in COMMAND.findall(block.replace("\\\n", " ")):
            words = shlex.split(arguments)
            (runner,) = (word for word in words if word.startswith("--runner="))
            yield task, runner.partition("=")[2], words


COMMANDS = list(commands())


def own_options(task, words):
    """(our program's options, what is left: Beam's flags)."""
    module = importlib.import_module(f"etcmodel.tasks.{task}.preprocess")
    values = flags.FlagValues()
    program = options.ProgramFlags({"preprocess": module.PreprocessOptions}, values)
    program.define()
    _, *left = values(["program", *words], known_only=True)
    return module.PreprocessOptions(**program.values("preprocess")), left


def beams_parser():
    """A parser of the options of Beam's own module, which refuses all others."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_value_provider_argument = parser.add_argument
    for value in list(vars(pipeline_options).values()):
        if isinstance(value, type) and "_add_argparse_args" in vars(value):
            value._add_argparse_args(parser)
    return parser


def unknown_flags(words):
    """Those that Beam's own parser does not know."""
    return beams_parser().parse_known_args(words)[1]


def test_the_page_has_a_command_for_each_runner():
    runners = [runner for _, runner, _ in COMMANDS]
    assert sorted(runners) == ["DataflowRunner", "FlinkRunner", "SparkRunner"]


@pytest.mark.parametrize(("task", "runner", "words"), COMMANDS, ids=[x[1] for x in COMMANDS])
def test_each_flag_is_ours_or_beams_own(task, runner, words):
    ours, left = own_options(task, words)
    assert ours.vocab_file.endswith("vocab.txt")
    assert len(left) >= 5 and unknown_flags(left) == []
    known = beam_flags.parse(left)
    assert known.runner_flag == f"--runner={runner}"
    assert isinstance(known.runner, type(beam_runner.create_runner(runner)))


def test_what_only_one_runner_takes_arrives():
    given = {runner: own_options(task, words)[1] for task, runner, words in COMMANDS}
    found = {runner: beam_flags.parse(left).options for runner, left in given.items()}
    cloud = found["DataflowRunner"].view_as(pipeline_options.GoogleCloudOptions)
    assert (cloud.project, cloud.region) == ("my-project", "us-central1")
    flink = found["FlinkRunner"].view_as(pipeline_options.FlinkRunnerOptions)
    assert (flink.flink_master, flink.parallelism) == ("flink-host:8081", 16)
    spark = found["SparkRunner"].view_as(pipeline_options.SparkRunnerOptions)
    assert spark.spark_master_url == "spark://spark-host:7077"
    for name in ("FlinkRunner", "SparkRunner"):
        portable = found[name].view_as(pipeline_options.PortableOptions)
        assert portable.environment_type == "DOCKER"


@pytest.mark.parametrize("wrong", ["--flink_masters=host:8081", "--temp_locations=gs://a"])
def test_a_misspelled_flag_would_be_found(wrong):
    assert unknown_flags(["--runner=FlinkRunner", wrong]) == [wrong]
