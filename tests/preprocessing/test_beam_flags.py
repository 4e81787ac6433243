"""Flags of Apache Beam: every spelling that Beam accepts, and one line for all others."""

import argparse
import subprocess
import sys

import pytest
from apache_beam.options.pipeline_options import (
    DebugOptions,
    DirectOptions,
    GoogleCloudOptions,
    PipelineOptions,
    WorkerOptions,
)
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.runners.portability.portable_runner import PortableRunner

from etcmodel.preprocessing import beam_flags
from tests.preprocessing import runners

MINIMAL = "--runner=tests.preprocessing.runners.Minimal"
VALUES = {
    "--runner": MINIMAL.partition("=")[2],
    "--beam_services": "{}",
    "--transform_name_mapping": '{"a": "b"}',
    "--sdk_harness_log_level_overrides": '{"a": "INFO"}',
    "--gcs_custom_audit_entries": '{"a": "b"}',
    "--profile_sample_rate": "0.5",
}
NOT_ALLOWED_HERE = {"--no_wait_until_finish"}


def actions():
    """An argparse action for every option of every class of options that is loaded."""
    classes = [PipelineOptions]
    for options_class in classes:
        classes += options_class.__subclasses__()
    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    parser.add_value_provider_argument = parser.add_argument
    for options_class in classes:
        options_class._add_argparse_args(parser)
    return parser._actions


def spellings():
    """(arguments, the same in other words, flag) for each way to write each option."""
    for action in actions():
        for flag in set(action.option_strings) - NOT_ALLOWED_HERE:
            if action.nargs == 0:
                yield [flag]
                continue
            value = VALUES.get(flag, str(action.choices[0]) if action.choices else "3")
            yield [f"{flag}={value}"]
            yield [flag, value]


@pytest.mark.exhaustive
def test_every_spelling_that_beam_accepts_is_accepted():
    refused = {}
    all_spellings = list(spellings())
    for args in all_spellings:
        try:
            beam_flags.parse(args)
        except ValueError as error:
            refused[" ".join(args)] = str(error)
    assert not refused
    assert len(all_spellings) > 300
    flags = {args[0].partition("=")[0] for args in all_spellings}
    further = {"--worker_machine_type", "--disk_type", "--experiment", "--dataflow_service_option"}
    assert further | {"--no_use_public_ips", "--job-server-timeout", "--minimal_more"} < flags


def test_values_arrive_whichever_way_they_are_given():
    args = ["--experiment", "a", "--experiments=b,c", "--labels", "d=e", "--worker_disk_type=ssd"]
    options = beam_flags.parse([*args, "--num_workers", "3"]).options
    assert options.view_as(DebugOptions).experiments[:3] == ["a", "b", "c"]
    assert options.view_as(GoogleCloudOptions).labels == ["d=e"]
    worker = options.view_as(WorkerOptions)
    assert (worker.disk_type, worker.num_workers) == ("ssd", 3)
    args = ["--minimal-level=4", "--no_minimal_part", "--minimal_place=1", "--minimal_place", "2"]
    minimal = beam_flags.parse([MINIMAL, *args]).options.view_as(runners.MinimalOptions)
    assert (minimal.level_of_it, minimal.minimal_part) == (4, False)
    assert minimal.minimal_places == ["1", "2"]


def test_flags_of_a_runner_are_known_when_its_module_is_named():
    code = """
from etcmodel.preprocessing import beam_flags
for args in (["--minimal_level", "3"], ["--minimal_level", "3", "%s"]):
    try:
        print(type(beam_flags.parse(args).runner).__name__)
    except ValueError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code % MINIMAL], capture_output=True, text=True)
    unknown = "Unknown flag '--minimal_level': it is not one of Apache Beam's either."
    assert done.stdout.splitlines()[0].startswith(unknown), done.stderr
    assert done.stdout.splitlines()[1:] == ["Minimal"]


def test_beams_own_runner_needs_no_download():
    for args in ([], ["--runner=DirectRunner"], ["--runner=direct"], ["--runner", "directrunner"]):
        assert type(beam_flags.parse(args).runner) is fn_runner.FnApiRunner
    assert type(beam_flags.parse(["--runner=portable"]).runner) is PortableRunner


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--long_seq_len=3"], r"'--long_seq_len=3': .* Did you mean --long_seq_length\?"),
        (["--exp=3"], r"Unknown flag '--exp=3': .* Did you mean --expansion_port\?"),
        (["--worker_machine_typo", "x"], r"typo': .* Did you mean --worker_machine_type\?"),
        (["-runner=DirectRunner"], r"'-runner=DirectRunner': .* Did you mean --runner\?"),
        (["--no_streaming"], "Unknown flag '--no_streaming'"),
        (["--streaming", "x"], "Unknown argument 'x': it belongs to no flag."),
        (["--", "--streaming"], "Unknown flag '--'"),
        (["--streaming=x"], "--streaming: ignored explicit argument 'x'"),
        (["--num_workers"], "--num_workers: expected one argument"),
        (["--num_workers=x"], "--num_workers: invalid int value: 'x'"),
        (["--direct_running_mode=x"], "--direct_running_mode: invalid choice: 'x'"),
        (["--beam_services=x"], "--beam_services: invalid .* value: 'x'"),
        (["--gcs_custom_audit_entries=[]", "--streaming"], r"'--gcs_custom_audit_entries=\[\]' of"),
        (["--job_name", "x", "--gcs_custom_audit_entries=x"], "'--gcs_custom_audit_entries=x' of"),
        (["-h"], "--help shows the flags of this program"),
        (["--runner=Direkt"], "--runner=Direkt: .* Valid values are DataflowRunner, .*qualified"),
        (["--runner="], "--runner=: .* Valid values are"),
        (["--runner=gone.Runner"], "--runner=gone.Runner: No module named 'gone'. Install "),
        (["--runner=tests.preprocessing.runners.Gone"], "runners.Gone: .* no attribute 'Gone'"),
        (["--runner=tests.preprocessing.runners.Unmakable"], "Unmakable: there is no license"),
        (["--runner=collections.OrderedDict"], "--runner=.*: this is no PipelineRunner"),
        (["--no_wait_until_finish"], "--no_wait_until_finish: .* when the job is done. Leave it"),
    ],
)
def test_what_is_refused_is_told_in_one_line_that_names_it(args, message):
    with pytest.raises(ValueError, match=message) as caught:
        beam_flags.parse(args, own_names=["long_seq_length", "num_shards"])
    assert "\n" not in str(caught.value)


def test_the_flags_that_may_be_of_a_service_that_is_down_are_named():
    args = ["--job_endpoint", "localhost:99", "--flink_master=http://a-b.c:8", "--job_name=a:b"]
    question = beam_flags.parse(args).services_question()
    services = "--job_endpoint=localhost:99 --flink_master=http://a-b.c:8"
    assert question == f"Is the service of {services} up?"
    assert beam_flags.parse(["--job_name=x"]).services_question() == ""


def test_flags_that_contradict_the_jobs_are_refused():
    with pytest.raises(ValueError, match="=3 of Apache Beam contradicts direct_num_workers=2"):
        beam_flags.parse(["--direct_num_workers=3"], 2)
    message = "--direct_running_mode=in_memory.* contradicts --direct_num_workers=2"
    for args, num_workers in (([], 2), (["--direct_num_workers=2"], 0)):
        with pytest.raises(ValueError, match=message):
            beam_flags.parse(["--direct_running_mode=in_memory", *args], num_workers)


@pytest.mark.parametrize(
    ("args", "num_workers", "expected"),
    [
        ([], 0, (4, "multi_processing")),
        ([], 1, (1, "in_memory")),
        (["--direct_num_workers=2"], 0, (2, "multi_processing")),
        (["--direct_running_mode=multi_threading"], 3, (3, "multi_threading")),
        (["--direct_running_mode=in_memory"], 0, (1, "in_memory")),
    ],
)
def test_local_workers(args, num_workers, expected):
    options = beam_flags.parse(args, num_workers, default_num_workers=4).options
    direct = options.view_as(DirectOptions)
    assert (direct.direct_num_workers, direct.direct_running_mode) == expected


def test_a_runner_whose_package_is_missing_is_named_with_the_remedy():
    code = """
import sys
sys.modules["dask"] = None  # As if it were not installed.
from etcmodel.preprocessing import beam_flags
try:
    beam_flags.parse(["--runner=apache_beam.runners.dask.dask_runner.DaskRunner"])
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "DaskRunner: " in done.stdout and "pip install 'apache-beam[dask]'" in done.stdout
    assert done.stdout.count("\n") == 1
