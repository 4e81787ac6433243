"""Options that change when a run goes on."""

import dataclasses
import functools
import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import options, training
from etcmodel.finetuning import trained_run
from etcmodel.training import config as training_config
from etcmodel.training import loop as resuming
from etcmodel.training import run as run_lib
from etcmodel.training import run_directory
from etcmodel.training import strategy as strategy_lib
from tests import page
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")

CHANGES = {"learning_rate": 0.003, "num_train_epochs": 6.0, "save_checkpoints_steps": 2}
PATTERN = re.compile(r"[\w .]+ since step .*")


config = functools.partial(toy.config, save_checkpoints_steps=4, steps_per_summary=1)


def task(records, **options):
    return toy.ToyTask(records, evaluates=True, **{"dropout": 0.3, **options})


def metrics(folder):
    lines = (folder / "train_metrics.jsonl").read_text().splitlines()
    return {line["step"]: line for line in map(json.loads, lines)}


def weights(folder, step):
    reader = tf.train.load_checkpoint(f"{folder}/ckpt-{step}")
    names = [x for x in reader.get_variable_to_shape_map() if x.startswith(("model/", "optimizer"))]
    return {name: reader.get_tensor(name) for name in names}


@pytest.fixture(scope="module")
def begun(records, tmp_path_factory):
    """A run at its end, of four steps."""
    folder = tmp_path_factory.mktemp("begun")
    training.train(task(records), config(folder))
    return folder


@pytest.fixture(scope="module")
def changed(records, begun, tmp_path_factory):
    """The same, gone on with other options to step 12, in two goes."""
    folder = tmp_path_factory.mktemp("changed") / "run"
    shutil.copytree(begun, folder)
    first = {**CHANGES, "num_train_epochs": 4.0}
    training.train(task(records), config(folder), changes=first)
    training.train(task(records), config(folder), changes={"num_train_epochs": 6.0})
    return folder


@pytest.fixture
def copy(changed, tmp_path):
    return shutil.copytree(changed, tmp_path / "run")


def test_the_history_tells_each_change(changed):
    entries = json.loads((changed / "history.json").read_text())["changes"]
    told = [tuple(entry[x] for x in ("step", "option", "old", "new")) for entry in entries]
    assert told == [
        (4, "learning_rate", 0.01, 0.003),
        (4, "num_train_epochs", 2.0, 4.0),
        (4, "save_checkpoints_steps", 4, 2),
        (8, "num_train_epochs", 4.0, 6.0),
    ]
    assert [entry["num_train_steps"] for entry in entries] == [8, 8, 8, 12]
    kept = json.loads((changed / "run_config.json").read_text())
    assert kept["training"]["learning_rate"] == 0.01  # As the run began.
    notes = kept["notes"]
    assert (notes["save_checkpoints_steps"], notes["steps_per_summary"]) == (4, 1)
    present = training.read_run_config(str(changed))
    assert present["training"]["learning_rate"] == 0.003
    assert present["notes"]["save_checkpoints_steps"] == 2


def test_training_goes_on_with_the_new_values(changed):
    rates = {step: line["learning_rate"] for step, line in metrics(changed).items()}
    expected = {step + 1: 0.01 * (1 - step / 4) for step in range(4)}
    expected |= {step + 1: 0.003 * (1 - step / 8) for step in range(4, 8)}
    expected[9] = 0.003 * (1 - 8 / 12)  # Its warm-up, of a step, is over.
    for step, rate in expected.items():
        np.testing.assert_allclose(rates[step], rate, rtol=1e-5, err_msg=step)
    steps = sorted(int(x.stem.rpartition("-")[2]) for x in changed.glob("ckpt-*.index"))
    assert steps == [4, 6, 8, 10, 12]


@pytest.mark.slow
def test_without_the_flag_a_run_keeps_what_was_changed(records, changed, copy, capsys):
    for step in (10, 12):
        for file in copy.glob(f"ckpt-{step}.*"):
            file.unlink()
    names = ("model_checkpoint_path", "all_model_checkpoint_paths")
    (copy / "checkpoint").write_text("".join(f'{name}: "ckpt-8"\n' for name in names))
    before = (copy / "history.json").read_text()
    training.train(task(records), config(copy))  # The command of the beginning.
    told = [line.split("  ")[1] for line in capsys.readouterr().err.splitlines()]
    assert [line for line in told if PATTERN.fullmatch(line)] == [
        "learning_rate is 0.003 since step 4, and was 0.01",
        "num_train_epochs is 6.0 since step 8, and was 4.0",
        "save_checkpoints_steps is 2 since step 4, and was 4",
    ]
    assert (copy / "history.json").read_text() == before
    found, expected = weights(copy, 12), weights(changed, 12)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_the_present_values_and_the_same_change_are_accepted(changed):
    run = config(changed)
    present = dataclasses.replace(run, **CHANGES)
    assert training.resumed_config(run) == present
    assert training.resumed_config(present) == present
    assert training.resumed_config(run, CHANGES) == present
    other = dataclasses.replace(run, learning_rate=0.5)
    assert training.resumed_config(other, {"learning_rate": 0.5}).learning_rate == 0.5


def test_how_often_is_known_as_it_began_whatever_the_command_says(records, begun, tmp_path):
    run = shutil.copytree(begun, tmp_path / "run")
    changes = {"save_checkpoints_steps": 2, "num_train_epochs": 4.0}
    given = config(run, save_checkpoints_steps=500)  # What is to change may be given anyhow.
    training.train(task(records), given, changes=changes)
    found = {
        change.option: (change.old, change.new) for change in run_directory.read_changes(str(run))
    }
    assert found["save_checkpoints_steps"] == (4, 2)
    assert training.resumed_config(config(run)).save_checkpoints_steps == 2


def test_none_is_given_as_help_writes_it():
    assert run_directory.parse_changes(["early_stopping_patience=None"]) == {
        "early_stopping_patience": None
    }
    with pytest.raises(ValueError, match="`learning_rate` must have a value"):
        run_directory.parse_changes(["learning_rate=None"])


def test_other_values_are_refused_and_the_way_to_change_is_named(records, changed):
    message = (
        r"with --change=learning_rate=… for what is to change.*"
        "training.learning_rate: 0.003 there, 0.02 now"
    )
    with pytest.raises(training.OtherRunError, match=message):
        training.train(task(records), config(changed, learning_rate=0.02))
    message = "--save_checkpoints_steps=3: the run in .* was changed to --save_checkpoints_steps=2"
    with pytest.raises(ValueError, match=message):
        training.train(task(records), config(changed, save_checkpoints_steps=3))


def test_a_run_does_not_go_on_with_another_number_of_examples(records, begun, changed):
    more = task(records)
    more.num_train_examples = 36
    message = "belongs to a run of 4 steps; with the 36 training examples .* now it would have 6"
    with pytest.raises(training.OtherRunError, match=message):
        training.train(more, config(begun))
    with pytest.raises(training.OtherRunError, match="a run of 12 steps; .* would have 18"):
        training.train(more, config(changed), changes={"num_train_epochs": 9.0})


def test_what_may_not_change_is_refused_by_name(records, changed):
    message = "`train_batch_size` may not change in a run. What may: learning_rate, .*epochs"
    with pytest.raises(ValueError, match=message):
        training.train(task(records), config(changed), changes={"train_batch_size": 6})
    message = r"\(--change could change only learning_rate, .*task.dropout: 0.3 there, 0.1 now"
    with pytest.raises(training.OtherRunError, match=message):
        training.train(task(records, dropout=0.1), config(changed))
    with pytest.raises(ValueError, match="`ema_decay` may not change"):
        training.resumed_config(config(changed), {"ema_decay": 0.9})
    both = {"warmup_steps": 3, "warmup_proportion": 0.2}
    with pytest.raises(ValueError, match="the run has --warmup_steps=3, which comes first. Change"):
        training.resumed_config(config(changed), both)


def test_a_run_cannot_end_before_what_is_done(records, changed):
    before = (changed / "history.json").read_text()
    message = "step 12 of the run is done, and its last one would be 4. Give more .* a later stop_"
    with pytest.raises(ValueError, match=message):
        training.train(task(records), config(changed), changes={"num_train_epochs": 2.0})
    assert (changed / "history.json").read_text() == before


def test_there_must_be_a_run(records, tmp_path):
    message = "--change=learning_rate: there is no run in .* Give the option itself"
    with pytest.raises(ValueError, match=message):
        training.train(task(records), config(tmp_path), changes={"learning_rate": 0.5})
    assert not list(tmp_path.iterdir())


def test_a_worker_does_not_compare_with_what_the_chief_has_just_changed(records, copy, monkeypatch):
    made = {"learning_rate": 0.001}

    class WorkersRun:
        num_steps = 12

        def __init__(self, *parts):  # While all workers build it, the chief may be the first.
            before, after = (training.resumed_config(config(copy), x) for x in (None, made))
            changes = resuming.made_changes(before, after, step=12, num_train_steps=12)
            run_directory.record_changes(str(copy), changes)

        def to_the_end(self):
            return {"error": 1.0}

    monkeypatch.setattr(strategy_lib, "is_chief", lambda strategy: False)
    monkeypatch.setattr(run_lib, "Run", WorkersRun)
    assert training.train(task(records), config(copy), changes=made) == {"error": 1.0}
    assert training.resumed_config(config(copy)).learning_rate == 0.001


def test_evaluators_read_the_present_values(records, changed):
    run = trained_run.TrainedRun.find(str(changed))
    assert run.last_step == 12
    assert {x: run.training[x] for x in ("learning_rate", "num_train_epochs")} == {
        "learning_rate": 0.003,
        "num_train_epochs": 6.0,
    }
    # A process that began to evaluate before the change goes on to the new last step.
    found = training.continuous_eval(task(records), config(changed), num_steps=4)
    assert found == training.evaluate(task(records), config(changed), f"{changed}/ckpt-12")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learning_rate=3e-5", {"learning_rate": 3e-5}),
        ("num_train_epochs=5", {"num_train_epochs": 5.0}),
        ("learning_rate_schedule=constant", {"learning_rate_schedule": "constant"}),
        ("early_stopping_patience=null", {"early_stopping_patience": None}),
    ],
)
def test_changes_are_read_as_their_types(text, expected):
    assert training.parse_changes([text]) == expected


def test_the_help_and_the_page_name_what_may_change():
    (field,) = options.option_fields(options.ResumeOptions)
    text = (page.DOCS / "training.md").read_text(encoding="utf-8")
    section = text.partition("### Other options in the middle")[2].partition("##")[0]
    for name in training_config.CHANGEABLE:
        assert re.search(rf"\b{name}\b", field.metadata["help_text"])
        assert f"`{name}`" in section


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rate", "--change=learning_rate: give name=value"),
        ("learning_rate=fast", "--change: `learning_rate` must be a number. Received: 'fast'"),
        ("learning_rate=-1", "--change: `learning_rate` must be at least 0"),
        ("learning_rate_schedule=up", "`learning_rate_schedule` must be one of"),
        ("poly_power=2", "--change=poly_power=2: `poly_power` is given twice"),
        (
            "learning_rate=[",
            r"--change=learning_rate=\[, line 1: malformed YAML: expected the node",
        ),
        (
            "learning_rate=!!int ''",
            "--change=learning_rate=!!int '', line 1: .* '' is no value of the kind `int`",
        ),
        (
            "learning_rate=" + "[" * 3000,
            r"^--change=learning_rate=\[.{,600} nested deeper than 50 levels.$",
        ),
        (
            "num_train_epochs=" + "9" * 400,
            "^--change=num_train_epochs=9.{,600} fit into signed 64 bits.$",
        ),
        ("learning_rate=.inf", "--change: `learning_rate` must be a finite number"),
        ("hidden_size=3", "--change: `hidden_size` may not change in a run"),
    ],
    ids=lambda value: value[:30],
)
def test_wrong_changes_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        training.parse_changes(["poly_power=1", text])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "must hold a JSON object"),
        ('{"changes": {}}', "`changes` must be a list"),
        ('{"changes": [{"step": 1}]}', "a change must have step, option, old, new"),
        (
            '{"changes": [{"step": -1, "option": "poly_power", "old": 1, "new": 2, '
            '"num_train_steps": 3}]}',
            "`step` must be a number of steps",
        ),
        (
            '{"changes": [{"step": 1, "option": "poly_power", "old": 1, "new": "x", '
            '"num_train_steps": 3}]}',
            "`poly_power` must be a number",
        ),
        (
            '{"changes": [{"step": 1, "option": [], "old": 1, "new": 2, "num_train_steps": 3}]}',
            "`option` must be a name",
        ),
    ],
)
def test_a_damaged_history_is_named(tmp_path, content, message):
    (tmp_path / "history.json").write_text(content)
    with pytest.raises(ValueError, match=f"^{tmp_path}/history.json:? ?.*{message}"):
        run_directory.read_changes(str(tmp_path))
