"""What a sweep tries, of which program, and what it refuses."""

import dataclasses
import math
import subprocess
import sys

import pytest

from etcmodel.cli.commands import COMMANDS
from etcmodel.tools import sweep
from etcmodel.tools.sweeps import space as space_lib
from etcmodel.tools.sweeps.space import PRESETS, Choices, Range
from tests.tools import sweep_program

RATE, EPOCHS, BATCH = "learning_rate", "num_train_epochs", "train_batch_size"


def grid_of(name):
    return {name: set(dimension.values) for name, dimension in PRESETS[name].space.items()}


@pytest.mark.parametrize(
    ("name", "rates", "epochs", "batch_sizes", "num_trials"),
    [
        ("nq", {3e-5, 5e-5}, {3, 5}, {64}, 4),
        ("nq_large", {3e-5, 5e-5}, {2, 3}, {64}, 4),
        ("hotpotqa", {3e-5, 5e-5}, {3, 5, 7, 9}, {32, 64}, 16 * 11),
        ("hotpotqa_large", {1e-5, 2e-5, 3e-5, 5e-5, 7e-5}, {2, 5, 9, 13}, {32, 64, 128}, 60),
        ("wikihop", {1e-5, 2e-5, 3e-5, 4e-5, 5e-5}, {5, 10, 15}, {64}, 15),
        ("wikihop_large", {2e-5, 3e-5, 4e-5, 5e-5}, {5, 10}, {64}, 8),
        ("openkp", {3e-5, 5e-5}, {2, 3}, {64}, 4),
    ],
)
def test_presets_are_the_papers_grids(name, rates, epochs, batch_sizes, num_trials):
    found = grid_of(name)
    assert (found[RATE], found[EPOCHS], found[BATCH]) == (rates, epochs, batch_sizes)
    assert len(space_lib.grid(PRESETS[name].space)) == num_trials
    others = set(found) - {RATE, EPOCHS, BATCH}
    assert others == ({"supporting_fact_threshold"} if name == "hotpotqa" else set())


def test_hotpotqas_thresholds_are_eleven_from_0_to_1():
    found = PRESETS["hotpotqa"].space["supporting_fact_threshold"].values
    assert len(found) == 11
    assert all(math.isclose(x, i / 10) for i, x in enumerate(found))


def test_presets_are_all_that_there_are():
    assert set(PRESETS) == {
        *("nq", "nq_large", "hotpotqa", "hotpotqa_large", "wikihop", "wikihop_large", "openkp")
    }
    assert {preset.program for preset in PRESETS.values()} <= set(COMMANDS["train"].names())


def test_a_flags_commas_part_values_and_dimensions():
    texts = space_lib.parse_all(["name=nan", "1_000", "-inf", "1e999"])
    assert texts == {"name": Choices(("nan", "1_000", "-inf", "1e999"))}
    items = ["learning_rate=1e-5", "3e-05", "optimizer=lamb", "adamw", "num_train_epochs=2:5"]
    assert space_lib.parse_all([*items, "weight_decay_rate=1e-4:1e-1:log"]) == {
        "learning_rate": Choices((1e-5, 3e-5)),
        "optimizer": Choices(("lamb", "adamw")),
        "num_train_epochs": Range(2, 5),
        "weight_decay_rate": Range(1e-4, 1e-1, True),
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("learning_rate", "--space=learning_rate: give name=value,value"),
        ("x=", "--space=x=: give name=value,value"),
        ("x=1:2:3", "--space=x=1:2:3: give name=value,value"),
        ("x=2:1", "--space=x=2:1: a range begins below its end. Received: 2:1"),
        ("x=0:1:log", "--space=x=0:1:log: a range with `log` begins above 0. Received: 0"),
        ("x=a:b", "--space=x=a:b: a range is of numbers. Received: a and b"),
        ("x=1,1", "--space=x=1,1: give each value once"),
    ],
)
def test_another_form_is_refused(text, line):
    with pytest.raises(ValueError) as error:
        space_lib.parse(text)
    assert str(error.value).startswith(line)


def test_a_program_whose_runs_have_phases_is_refused():
    with pytest.raises(ValueError, match="`program` must be .* Received: 'char_lm'"):
        sweep.SweepOptions(program="char_lm", output_dir="it", space=("learning_rate=1",))


def test_an_option_that_stands_twice_is_refused():
    with pytest.raises(ValueError, match="--space: `x` is given twice"):
        space_lib.parse_all(["x=1", "x=2"])


def test_a_yaml_file_has_the_same_forms(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(
        "learning_rate: {low: 1e-5, high: 1e-4, log: true}\n"
        "num_train_epochs: [3, 5]\noptimizer: lamb\njit_compile: [true, false]\n"
    )
    assert space_lib.read_yaml(str(path)) == {
        "learning_rate": Range(1e-5, 1e-4, True),
        "num_train_epochs": Choices((3, 5)),
        "optimizer": Choices(("lamb",)),
        "jit_compile": Choices(("true", "false")),
    }
    path.write_text("learning_rate: {low: 1}\n")
    with pytest.raises(ValueError, match=r"space.yaml: `learning_rate`: a range has `low`, `high`"):
        space_lib.read_yaml(str(path))
    for text in ("x: " + "[" * 3000, "x: !!int ''", "x: " + "9" * 400, "k" * 9999, "x: {low: [a]}"):
        path.write_text(text + "\n")
        with pytest.raises(ValueError, match="^[^\n]*space.yaml[^\n]*$") as error:
            space_lib.read_yaml(str(path))
        assert len(str(error.value)) < 700


def test_flags_replace_what_a_file_and_a_preset_say(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text("learning_rate: [1.0]\nnum_train_epochs: [7]\n")
    options = sweep.SweepOptions(
        output_dir=str(tmp_path / "it"),
        preset="openkp",
        space_file=str(path),
        space=("learning_rate=2.0",),
    )
    plan = sweep.make_plan(options, ["--train_data=x"])
    assert {name: x.values for name, x in plan.space.items()} == {
        RATE: (2.0,),
        EPOCHS: (7,),
        BATCH: (64,),
    }
    assert plan.command[1:] == ("-m", "etcmodel.tasks.openkp.run_finetuning", "--run_mode=train")
    assert plan.trial_flags({RATE: 3e-5, EPOCHS: 2, "x": "a"}, "out") == [
        *("--train_data=x", "--learning_rate=3e-05", "--num_train_epochs=2", "--x=a"),
        "--output_dir=out",
    ]


@pytest.mark.parametrize(
    ("about", "flags", "line"),
    [
        ({"output_dir": None}, [], "A sweep also needs --output_dir."),
        ({"program": None}, [], "A sweep also needs --program, or a --preset, which has one."),
        ({"space": ()}, [], "There is nothing to try: give --space, --space_file or --preset."),
        ({"space": ("x=1:2",)}, [], "`x` has a range, of which there is no grid"),
        ({"sampler": "tpe"}, [], "--sampler=tpe also needs --num_trials."),
        ({"output_dir": "gs://a"}, [], "--output_dir: a sweep's data base is a local file"),
        ({}, ["word"], "Flags of the program follow `--`. Received: 'word'"),
        ({}, ["--output_dir=x"], "The sweep itself gives --output_dir. Leave it out behind `--`."),
        ({}, ["--learning_rate=1"], "The sweep itself gives --learning_rate."),
        ({}, ["--run_mode=evaluate"], "The sweep itself gives --run_mode."),
        ({"space": ("output_dir=1",)}, [], "The sweep itself gives --output_dir. Leave it out of"),
        (
            {"space": ("learning_rat=1",)},
            [],
            "`etcmodel train nq` has no --learning_rat to be tried. The nearest is --learning_rate",
        ),
    ],
)
def test_what_does_not_fit_is_told_before_anything_runs(about, flags, line):
    given = {"program": "nq", "output_dir": "it", "space": ("learning_rate=1",), **about}
    with pytest.raises(ValueError) as error:
        sweep.make_plan(sweep.SweepOptions(**given), flags)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"program": "nq"}, 'another program: "fake", not "nq". Give the same to go on with it'),
        ({"space": {"x": Choices((1, 3))}}, r'another space: {"x": \[1, 2\]}, not {"x": \[1, 3\]}'),
        ({"flags": ("--a=b",)}, r'another list of flags: \[\], not \["--a=b"\]'),
        ({"sampler": "tpe", "num_trials": 3}, 'another sampler: "grid", not "tpe"'),
        ({"seed": 1}, "another seed: 0, not 1"),
    ],
)
def test_the_folder_of_another_sweep_is_refused(tmp_path, change, line):
    plan = sweep_program.plan(tmp_path, x=(1, 2))
    space_lib.claim_folder(plan)
    space_lib.claim_folder(dataclasses.replace(plan, num_processes=3, pruner="median"))
    with pytest.raises(ValueError, match=line):
        space_lib.claim_folder(dataclasses.replace(plan, **change))


def test_a_program_that_does_not_begin_is_told():
    plan = space_lib.Plan(
        folder="it",
        program="it",
        command=(sys.executable, "-c", "raise SystemExit('want of a package')"),
        title="etcmodel train it",
        space={"x": Choices((1,))},
    )
    with pytest.raises(ValueError, match="`etcmodel train it --help` .*: want of a package"):
        sweep._check_names(plan)


def test_the_command_takes_the_programs_flags_behind_two_dashes(tmp_path):
    words = ["--program=nq", f"--output_dir={tmp_path}", "--space=seed=1", "--", "--seed=2"]
    command = [sys.executable, "-m", "etcmodel", "sweep", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: The sweep itself gives --seed. Leave it out behind `--`.\n"
