"""The commands of docs/training.md on sweeps, as they stand there, with a real program."""

import csv
import json
import os
import pathlib
import re

import pytest

from etcmodel.tools import sweep
from etcmodel.tools.sweeps.space import PRESETS, grid
from tests import page

pytestmark = pytest.mark.exhaustive

TEXT = page.read("training.md#sweeps")
RATES = {"1e-05", "0.001", "0.003"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(folder of the sweep, what its command printed)."""
    folder = tmp_path_factory.mktemp("sweep")
    printed = page.run_commands("training.md#sweeps", folder, having="etcmodel sweep")
    return folder / "try" / "sweep", printed


@pytest.fixture
def rows(made):
    with open(made[0] / "trials.csv", newline="") as file:
        return list(csv.DictReader(file))


def evaluations(folder, row):
    text = (folder.parents[1] / row["run"] / "eval_metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_each_trial_has_the_best_accuracy_that_its_run_wrote(made, rows):
    assert {row["learning_rate"] for row in rows} == RATES
    assert {row["state"] for row in rows} == {"complete"}
    for row in rows:
        found = {x["step"]: x["tag_accuracy"] for x in evaluations(made[0], row)}
        assert list(found) == [8, 16]
        assert float(row["tag_accuracy"]) == max(found.values()) == found[int(row["step"])]
    values = [float(row["tag_accuracy"]) for row in rows]
    assert values == sorted(values, reverse=True)


def test_the_runs_have_the_options_that_the_table_tells(made, rows):
    for row in rows:
        run_config = json.loads((made[0].parents[1] / row["run"] / "run_config.json").read_text())
        assert run_config["training"]["learning_rate"] == float(row["learning_rate"])
        assert run_config["notes"]["best_metric"] == "tag_accuracy"
        assert run_config["notes"]["higher_is_better"] is True


def test_the_best_trial_is_printed_in_the_form_that_is_shown(made, rows):
    best, command = made[1].splitlines()[-2:]
    shown, shown_command = re.search(r"```text\n(.*)\n(.*)\n```", TEXT).groups()
    form = re.compile(r"best: trial \d, tag_accuracy 0\.\d+ at step (8|16)")
    assert form.fullmatch(best) and form.fullmatch(shown)
    assert best.startswith(f"best: trial {rows[0]['trial']}, ")
    begin, end = shown_command.split(" … ")
    assert command.startswith(begin + " ")
    assert re.sub(r"[\d.]+|\d{4}", "N", " ".join(command.split()[-2:])) == re.sub(
        r"[\d.]+|\d{4}", "N", end
    )


def test_the_same_command_runs_nothing_again(made, rows, capfd):
    folder = made[0]
    options = sweep.SweepOptions(
        program="majority_tagging",
        output_dir="try/sweep",
        space=("learning_rate=1e-5", "1e-3", "3e-3"),
    )
    kept = json.loads((folder / "sweep.json").read_text())
    with page.working_in(folder.parents[1]):
        sweep.main(options, kept["flags"])
    told = capfd.readouterr()
    assert "3/3 trials are done" in told.err and "starts" not in told.err
    assert told.out.splitlines() == made[1].splitlines()[-2:]
    other = [*kept["flags"], "--random_seed=1"]
    refusal = pytest.raises(ValueError, match="holds a sweep with another list of flags")
    with page.working_in(folder.parents[1]), refusal:
        sweep.main(options, other)
    assert os.listdir(folder / "trials") and pathlib.Path(folder, sweep.PICTURE_FILE).exists()


def test_the_table_of_presets_is_what_there_is():
    table = re.findall(
        r"^\| `(\w+)` \| ([\d, ]+) \| ([\d, ]+) \| ([\d, ]+) \| (\d+) \|$", TEXT, re.M
    )
    assert {name for name, *_ in table} == set(PRESETS)
    for name, *shown, num_trials in table:
        space = PRESETS[name].space
        names = ("learning_rate", "num_train_epochs", "train_batch_size")
        rates, epochs, sizes = (space[x].values for x in names)
        found = [[f"{rate * 1e5:g}" for rate in rates], map(str, epochs), map(str, sizes)]
        assert shown == [", ".join(x) for x in found]
        assert int(num_trials) == len(grid(space))
