"""The soak of training finds what is half-written or another result: folders that are made so."""

import json

import pytest
import tensorflow as tf

from tests.soak import killed_runs

FIRST, SECOND = ({"step": step, "loss": 1 / step, "examples_per_second": 9.0} for step in (2, 4))


def make_run(folder, lines=(FIRST, SECOND), value=2.0):
    """The files of a run of four steps."""
    for part, step in (("best", 2), ("", 4)):
        (folder / part).mkdir(parents=True, exist_ok=True)
        checkpoint = tf.train.Checkpoint(weight=tf.Variable([0.5, value]))
        manager = tf.train.CheckpointManager(checkpoint, folder / part, 1, checkpoint_name="ckpt")
        manager.save(checkpoint_number=step)
    for name, written in (("train", lines), ("eval", (SECOND,))):
        text = "".join(json.dumps(line) + "\n" for line in written)
        (folder / f"{name}_metrics.jsonl").write_text(text)
    (folder / "best" / "best_metric.json").write_text("0.25")
    (folder / "options.yaml").write_text("a: 1\n")
    return folder


@pytest.fixture(scope="module")
def through(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "through")


@pytest.fixture
def folder(tmp_path):
    return make_run(tmp_path / "run")


def test_equal_runs_have_no_differences(folder, through):
    (folder / "train").mkdir()
    (folder / "train" / "events.out.tfevents.1").touch()
    assert killed_runs.differences(folder, through) == []


def cut(name):
    def damage(folder):
        (path,) = folder.glob(name)
        path.write_bytes(path.read_bytes()[:-3])

    return damage


def append(name, text):
    return lambda folder: (folder / name).open("a").write(text)


HALF_WRITTEN = {
    "ckpt-4.data": (cut("ckpt-4.data*"), "checkpoint: "),
    "ckpt-4.index": (cut("ckpt-4.index"), "checkpoint: "),
    "no ckpt-4": (lambda folder: (folder / "ckpt-4.index").unlink(), "checkpoint: "),
    "best": (cut("best/ckpt-2.data*"), "best/checkpoint: "),
    "best_metric.json": (
        lambda x: (x / "best/best_metric.json").write_text(""),
        "best/best_metric",
    ),
    "options.yaml": (append("options.yaml", "b: ["), "options.yaml: "),
    "a line within": (append("train_metrics.jsonl", '{"st\n'), "train_metrics.jsonl: "),
    "a step again": (append("eval_metrics.jsonl", '{"step": 4}\n'), "eval_metrics.jsonl: steps"),
}


@pytest.mark.parametrize("name", HALF_WRITTEN)
def test_what_is_half_written_is_found(folder, name):
    damage, problem = HALF_WRITTEN[name]
    assert killed_runs.problems_of_folder(folder) == []
    damage(folder)
    (found,) = killed_runs.problems_of_folder(folder)
    assert found.startswith(problem)


def test_what_is_not_final_may_be_half_written(folder):
    (folder / "ckpt-6_temp").mkdir()
    (folder / "ckpt-6_temp" / "part-00000-of-00001.index").write_text("half")
    append("train_metrics.jsonl", '{"step": 6, "lo')(folder)
    assert killed_runs.problems_of_folder(folder) == []


def test_another_result_is_found(folder, through, tmp_path):
    (folder / "ckpt-3.index.tmp").touch()
    assert killed_runs.differences(folder, through) == ["other files: ['ckpt-3.index.tmp']"]
    other = make_run(tmp_path / "other", value=2.0000002)
    found = killed_runs.differences(other, through)
    assert [line[:20] for line in found] == ["another value in '':", "another value in 'be"]
    (other / "best" / "best_metric.json").write_text("0.5")
    assert any("best metric: 0.5, not 0.25" in x for x in killed_runs.differences(other, through))


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ((FIRST, {**SECOND, "examples_per_second": 1.0}), ""),
        ((FIRST, {"step": 3, "loss": 7.0}, {**SECOND, "loss": 8.0}), ""),
        ((FIRST, {**SECOND, "loss": 8.0}), "other metrics: "),
        ((SECOND,), "no metrics of steps [2]"),
    ],
)
def test_metrics_of_the_same_steps_are_compared(tmp_path, through, lines, problem):
    found = killed_runs.differences(make_run(tmp_path / "run", lines), through)
    assert [line[: len(problem)] for line in found] == [problem] * bool(problem)


@pytest.mark.parametrize(
    ("status", "errors", "is_wrong"),
    [
        (0, "", False),
        (-9, "", False),
        (143, "interrupted: step 3 is saved\n", False),
        (143, "", True),
        (1, "error: x\n", True),
        (143, "Traceback\ninterrupted\n", True),
        (-11, "", True),
    ],
)
def test_how_a_process_may_end(status, errors, is_wrong):
    answer = {"status": status, "err": errors, "sent": 1}
    assert bool(killed_runs.problems_of_end(answer)) == is_wrong
    assert killed_runs.problems_of_end({**answer, "status": -9, "sent": 0})
