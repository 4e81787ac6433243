"""The commands of docs/programs.md, as the page has them, and `doctor`, in a shell."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from tests import page
from tests.warm import python as warm

pytestmark = pytest.mark.slow


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_the_whole_way_from_data_to_answers(tmp_path):
    text = page.read("programs.md#the-whole-way")
    script = re.search(r"```sh\n(.*?)```", text, re.DOTALL)[1]
    bash = shutil.which("bash")
    done = run([bash, "-e", "-c", script], cwd=tmp_path, env=warm.environment())
    assert done.returncode == 0, done.stderr[-3000:]
    assert (
        "done    step 4\n"
        "best    not known: nothing was evaluated\n"
        "folder  try/run\n"
        "next    etcmodel evaluate wikihop --output_dir=try/run --eval_data=EVAL_DATA\n"
        "        etcmodel export wikihop --output_dir=try/run\n"
        "        etcmodel serve --model_dir=try/run/export\n"
    ) in done.stderr
    assert not re.search(r"WARNING|AutoGraph|\.(cc|h|py):\d+\]", done.stderr)
    assert "etcmodel export wikihop --output_dir=try/run\n" in script
    questions = json.loads((tmp_path / "try" / "wikihop_dev.json").read_text())
    answers = json.loads((tmp_path / "try" / "answers.json").read_text())
    assert len(questions) == 16
    assert set(answers) == {question["id"] for question in questions}
    for question in questions:
        assert answers[question["id"]] in question["candidates"]
    run_config = json.loads((tmp_path / "try" / "run" / "run_config.json").read_text())
    assert run_config["training"]["train_batch_size"] == 16
    (steps,) = (tmp_path / "try" / "run" / "export").iterdir()
    assert steps.name == "4"


def test_the_doctor_finds_this_machine_in_order():
    done = run([sys.executable, "-m", "etcmodel", "doctor"])
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    *lines, last = done.stdout.splitlines()
    assert last == "nothing is broken"
    by_what = dict(re.fullmatch(r"ok +(.*?): (.*)", x).groups() for x in lines if x[:2] == "ok")
    assert re.fullmatch(r"right; \d+ GFLOP/s in float32", by_what["matrix product"])
    assert by_what["ETC's values"] == "a forward pass and a step of training are right"
    forward, share, train = map(
        float,
        re.fullmatch(
            r"forward pass ([\d.]+) s \(([\d.]+) of the speed of matrix products\), "
            r"training step ([\d.]+) s",
            by_what["ETC of 2 layers of 256 on 2048 tokens"],
        ).groups(),
    )
    assert min(forward, share, train) > 0
