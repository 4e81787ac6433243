"""Evaluating each checkpoint of a run from beside it."""

import json
import math
import shutil
import threading
import time
from unittest import mock

import pytest
import tensorflow as tf

from etcmodel import training
from etcmodel.training import progress, saving
from tests.training import toy
from tests.training.test_loop import config, lines

pytestmark = pytest.mark.usefixtures("eagerly")

NUM_STEPS = 8
STEPS = [3, 6, 8]


@pytest.fixture(scope="module")
def reference(records, tmp_path_factory):
    """A run that was evaluated by the process that trained it."""
    folder = tmp_path_factory.mktemp("reference")
    training.train(toy.ToyTask(records, evaluates=True), options(folder))
    return folder


@pytest.fixture(scope="module")
def unevaluated(records, tmp_path_factory):
    """The same run without evaluation."""
    folder = tmp_path_factory.mktemp("unevaluated")
    training.train(toy.ToyTask(records), options(folder))
    return folder


@pytest.fixture
def run(unevaluated, tmp_path):
    return shutil.copytree(unevaluated, tmp_path / "run")


def options(folder):
    return config(folder, save_checkpoints_steps=3, keep_checkpoint_max=10)


def evaluate(records, run, **arguments):
    task = toy.ToyTask(records, evaluates=True)
    return training.continuous_eval(task, options(run), **{"num_steps": NUM_STEPS, **arguments})


def evaluations(run):
    return lines(run / "eval_metrics.jsonl")


def best_weights(run):
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(run / "best")))
    names = sorted(reader.get_variable_to_shape_map())
    return {name: reader.get_tensor(name).tolist() for name in names if "VARIABLE" in name}


@pytest.mark.slow
def test_it_makes_what_evaluation_during_training_makes(records, reference, run, capsys):
    metrics = evaluate(records, run)
    assert [line["step"] for line in evaluations(run)] == STEPS
    for line, expected in zip(evaluations(run), evaluations(reference), strict=True):
        assert line == pytest.approx(expected, rel=1e-6)
    assert metrics == {k: v for k, v in evaluations(run)[-1].items() if k != "step"}
    name = "best/best_metric.json"
    assert json.loads((run / name).read_text()) == pytest.approx(
        json.loads((reference / name).read_text()), rel=1e-6
    )
    assert best_weights(run) == best_weights(reference)
    told = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in told] == ["step 3/8", "step 6/8", "step 8/8"]
    assert f"error {metrics['error']:.4g}, the best so far: saved in best/" in told[-1]
    assert summaries(run) == summaries(reference)


def summaries(run):
    """{(step, name)} of what TensorBoard shows of the evaluations."""
    found = set()
    for path in (run / "eval").glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            found |= {(event.step, value.tag) for value in event.summary.value}
    return found


def test_what_training_has_evaluated_is_left_alone(records, reference, tmp_path, capsys):
    run = shutil.copytree(reference, tmp_path / "run")
    before = (run / "eval_metrics.jsonl").read_text()
    best = best_weights(run)
    with mock.patch.object(toy.ToyTask, "evaluate", side_effect=AssertionError):
        metrics = evaluate(records, run)
    assert (run / "eval_metrics.jsonl").read_text() == before and best_weights(run) == best
    assert metrics["error"] == json.loads(before.splitlines()[-1])["error"]
    assert not capsys.readouterr().err


def test_what_was_missed_is_evaluated_and_the_best_stays_the_best(records, reference, tmp_path):
    run = shutil.copytree(reference, tmp_path / "run")
    log = run / "eval_metrics.jsonl"
    first, _, last = log.read_text().splitlines()
    log.write_text(f"{first}\n{last}\n" + '{"step": 6, "err')
    best = best_weights(run)
    evaluate(records, run)
    assert [line["step"] for line in progress.MetricsLog(str(log)).read()] == [3, 8, 6]
    assert best_weights(run) == best


def test_a_training_that_evaluates_a_moment_later_adds_no_second_line(records, run):
    evaluate(records, run)
    (run / "eval_metrics.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in evaluations(run)[:-1])
    )
    log = progress.MetricsLog(str(run / "eval_metrics.jsonl"))
    task = toy.ToyTask(records, evaluates=True)
    measure = task.evaluate

    def measure_while_another_does(predictions):
        log.append(8, {"error": 9.0, "count": 24})
        return measure(predictions)

    task.evaluate = measure_while_another_does
    training.train(task, options(run))
    assert [line["step"] for line in evaluations(run)] == STEPS


def test_a_checkpoint_that_is_deleted_meanwhile_is_left_out(records, run, capsys):
    for path in run.glob("ckpt-3.*"):
        path.unlink()
    (run / "ckpt-6.index").unlink()
    evaluate(records, run)
    assert [line["step"] for line in evaluations(run)] == [8]
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"{run}/ckpt-3 was deleted before it could be evaluated"
    assert told[1].startswith(f"{run}/ckpt-6 was deleted") and told[2].startswith("step 8/8")


def test_a_damaged_checkpoint_is_an_error(records, run):
    (data,) = run.glob("ckpt-6.data*")
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(ValueError, match="ckpt-6: cannot be read: "):
        evaluate(records, run)


def test_it_waits_for_checkpoints_that_are_still_to_come(records, unevaluated, tmp_path):
    """The directory, the run and its checkpoints appear one after the other while it waits."""
    run, events = tmp_path / "run", []

    def copy(pattern):
        for path in unevaluated.glob(pattern):
            shutil.copy(path, run)

    def come(step):
        copy(f"ckpt-{step}.*")
        paths = [f"ckpt-{known}" for known in STEPS if known <= step]
        state = tf.compat.v1.train.generate_checkpoint_state_proto(str(run), paths[-1], paths)
        (run / "checkpoint.tmp").write_text(str(state))
        (run / "checkpoint.tmp").rename(run / "checkpoint")

    steps_of_the_run = iter([run.mkdir, lambda: copy("run_config.json"), *STEPS])

    sleep = time.sleep

    def next_event(seconds):
        if threading.current_thread() is not threading.main_thread():
            sleep(seconds)  # Of what other tests have left running.
            return
        event = next(steps_of_the_run)
        events.append(event)
        come(event) if isinstance(event, int) else event()

    with mock.patch("time.sleep", next_event):
        training.wait_for_run(str(run))
        assert len(events) == 2
        evaluate(records, run)
    assert [line["step"] for line in evaluations(run)] == STEPS
    assert next(steps_of_the_run, None) is None


def test_waiting_ends_after_the_time_that_is_given(records, run, tmp_path):
    with pytest.raises(ValueError, match="nothing: no run has begun there within 0 seconds"):
        training.wait_for_run(str(tmp_path / "nothing"), timeout=0)
    evaluate(records, run, num_steps=100, timeout=0.01)
    assert [line["step"] for line in evaluations(run)] == STEPS


def test_several_devices_evaluate_together(records, reference, run):
    cpus = tf.config.list_logical_devices("CPU")
    strategy = tf.distribute.MirroredStrategy([cpus[0].name])
    evaluate(records, run, strategy=strategy)
    assert evaluations(run)[-1] == pytest.approx(evaluations(reference)[-1], rel=1e-5)


class TestBest:
    def best(self, folder, saved, **options):
        arguments = {"higher_is_better": True, "save": lambda: saved.append(True), **options}
        return saving.BestCheckpoint(str(folder), "f1", **arguments)

    def test_processes_see_what_the_others_have_saved(self, tmp_path):
        first, second = [], []
        one, other = self.best(tmp_path, first), self.best(tmp_path, second)
        one.update({"f1": 0.5})
        other.update({"f1": 0.4})
        other.update({"f1": 0.7})
        one.update({"f1": 0.6})
        assert (len(first), len(second)) == (1, 1)
        assert json.loads((tmp_path / "best" / "best_metric.json").read_text()) == 0.7

    def test_lower_may_be_better_and_equal_is_not(self, tmp_path):
        saved = []
        best = self.best(tmp_path, saved, higher_is_better=False)
        for value in (0.5, 0.5, 0.6, 0.4):
            best.update({"f1": value})
        assert len(saved) == 2

    def test_what_is_no_number_is_no_best(self, tmp_path):
        saved = []
        best = self.best(tmp_path, saved, higher_is_better=False)
        found = [best.update({"f1": value}) for value in (math.nan, 0.1, math.nan, 0.7, 0.05)]
        assert found == [False, True, False, False, True]
        assert json.loads((tmp_path / "best" / "best_metric.json").read_text()) == 0.05

    def test_that_of_an_older_version_is_replaced(self, tmp_path):
        (tmp_path / "best").mkdir()
        (tmp_path / "best" / "best_metric.json").write_text("NaN")
        saved = []
        assert self.best(tmp_path, saved).update({"f1": 0.1}) and saved

    def test_workers_that_save_together_decide_by_themselves(self, tmp_path):
        first, second = [], []
        options = {"is_shared": False}
        chief = self.best(tmp_path, first, **options)
        worker = self.best(tmp_path, second, is_chief=False, **options)
        for value in (0.5, 0.4, 0.6):
            chief.update({"f1": value})
            worker.update({"f1": value})
        assert len(first) == len(second) == 2

    def test_only_one_at_a_time_decides(self, tmp_path):
        """Each of many threads has the best of its own moment; only better ones are saved."""
        saved = []
        barrier = threading.Barrier(8)

        def update(value):
            best = self.best(tmp_path, [], save=lambda: saved.append(value))
            barrier.wait()
            best.update({"f1": value})

        threads = [threading.Thread(target=update, args=(value,)) for value in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert saved == sorted(saved) and saved[-1] == 7
