"""Runners of Beam that tell little or break: finished work is kept, and errors are one line."""

import json
import pathlib
import subprocess

import pytest

from etcmodel import preprocessing
from tests.preprocessing import jobs
from tests.preprocessing.jobs import files
from tests.warm import python as warm

ROOT = pathlib.Path(__file__).parents[2]
RAW = ROOT / "tests" / "reference" / "small" / "hotpotqa" / "raw"
VOCAB = ROOT / "tests" / "reference" / "small" / "vocab" / "bert_uncased_vocab.txt"
RUNNERS = "tests.preprocessing.runners"


@pytest.fixture
def make_job(tmp_path):
    """A function of the runner's flags, or none, to a `Job` over two files."""

    def make(*args, lines=("a b", "bad", "none", "c d e"), folder="beam"):
        out = folder if args else "local"
        return jobs.make(tmp_path, lines, lines, out=out, num_shards=3, beam_args=args)

    return make


def run_program(out, *args):
    """HotpotQA's program over two real raw files."""
    command = [warm.python(), "-m", "etcmodel.tasks.hotpotqa.preprocess"]
    command += [f"--input_pattern={RAW}/*labelled.json", f"--output_prefix={out}/train"]
    own = ["--num_shards=3", "--long_seq_length=256", "--global_seq_length=32", "--debug=false"]
    return subprocess.run(
        [*command, *args, *own, f"--vocab_file={VOCAB}"], cwd=ROOT, capture_output=True, text=True
    )


def logged(done):
    """What a program told, without time and place, and without how far it had come by then."""
    lines = [line.partition("] ")[2] for line in done.stderr.splitlines()]
    return [line for line in lines if " examples done, " not in line]


@pytest.mark.slow
def test_a_runner_without_metrics_loses_nothing_in_the_real_program(tmp_path):
    local = run_program(tmp_path / "local")
    flags = ["--runner", f"{RUNNERS}.Minimal", "--minimal-level", "3", "--experiment=a"]
    beam = run_program(tmp_path / "beam", *flags)
    assert (local.returncode, beam.returncode) == (0, 0), beam.stderr
    assert files(tmp_path / "beam") == files(tmp_path / "local")
    statistics = json.loads((tmp_path / "beam" / "train.stats.json").read_text())
    assert statistics["examples_read"] == 14 and statistics["mean_long_tokens"] > 0
    assert logged(beam) == logged(local)


def test_names_of_folders_are_no_patterns(make_job, tmp_path):
    preprocessing.run(make_job())
    preprocessing.run(make_job("--runner=DirectRunner", folder="run [1]*"))
    assert files(tmp_path / "run [1]*") == files(tmp_path / "local")


def test_a_runner_that_breaks_when_all_is_done_loses_nothing(make_job, tmp_path, caplog):
    preprocessing.run(make_job())
    preprocessing.run(make_job(f"--runner={RUNNERS}.BreaksAtTheEnd"))
    assert files(tmp_path / "beam") == files(tmp_path / "local")
    told = f"All is done, but --runner={RUNNERS}.BreaksAtTheEnd says: lost the connection"
    assert [record.getMessage() for record in caplog.records] == [told]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            [f"--runner={RUNNERS}.DoesNothing"],
            r"DoesNothing\) failed: it ended, but only 0 of 2 input files are read to their end",
        ),
        ([f"--runner={RUNNERS}.Cancelled"], r"Cancelled\) failed: its job ended as CANCELLED$"),
        (
            ["--runner=PortableRunner", "--job_endpoint=localhost:1", "--job_server_timeout=1"],
            r"failed: FutureTimeoutError\. Is the service of --job_endpoint=localhost:1 up\?$",
        ),
        (["--runner=PortableRunner"], "failed: You must specify a --job_endpoint when using"),
        (
            ["--runner=DataflowRunner"],
            r"failed: Pipeline has validations errors: Missing GCS path option: temp_location\. ",
        ),
        (
            [f"--runner={RUNNERS}.Minimal", "--runtime_type_check"]
            + ["--performance_runtime_type_check"],
            "failed: You cannot turn on runtime_type_check and performance_runtime_type_check",
        ),
    ],
)
def test_a_runner_that_fails_is_told_in_one_line(make_job, tmp_path, args, message):
    with pytest.raises(OSError, match=message) as caught:
        preprocessing.run(make_job(*args))
    assert str(caught.value).startswith(f"The Beam pipeline ({args[0]}) failed: ")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "beam").iterdir()) == []


@pytest.mark.parametrize("name", ["Minimal", "BreaksAtTheEnd"])
def test_malformed_input_is_told_as_such_whatever_the_runner_says(make_job, tmp_path, name):
    with pytest.raises(ValueError, match="0.txt: broken"):
        preprocessing.run(make_job(f"--runner={RUNNERS}.{name}", lines=["a", "broken"]))
    assert list((tmp_path / "beam").iterdir()) == []
