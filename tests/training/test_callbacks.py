"""A program's own code in a run."""

import functools
import json

import pytest

from etcmodel import training
from tests import page
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")

config = functools.partial(toy.config, save_checkpoints_steps=2, steps_per_summary=1)


class Recorder(training.Callback):
    def __init__(self):
        self.calls = []

    def on_summary(self, step, metrics):
        self.calls.append(("summary", step, metrics["loss"]))
        metrics.clear()  # It is a copy.

    def on_checkpoint(self, step, path):
        self.calls.append(("checkpoint", step, path))

    def on_evaluation(self, step, metrics):
        self.calls.append(("evaluation", step, dict(metrics)))
        metrics.clear()

    def on_end(self, step, metrics):
        self.calls.append(("end", step, metrics))


class Failing(training.Callback):
    def on_evaluation(self, step, metrics):
        raise KeyError("f1")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_callbacks_are_told_what_happens_in_its_order(records, tmp_path):
    recorder = Recorder()
    task = toy.ToyTask(records, evaluates=True)
    metrics = training.train(task, config(tmp_path), callbacks=[training.Callback(), recorder])
    losses = {line["step"]: line["loss"] for line in lines(tmp_path / "train_metrics.jsonl")}
    evaluations = {line.pop("step"): line for line in lines(tmp_path / "eval_metrics.jsonl")}
    assert recorder.calls == [
        ("summary", 1, losses[1]),
        ("summary", 2, losses[2]),
        ("checkpoint", 2, f"{tmp_path}/ckpt-2"),
        ("evaluation", 2, evaluations[2]),
        ("summary", 3, losses[3]),
        ("summary", 4, losses[4]),
        ("checkpoint", 4, f"{tmp_path}/ckpt-4"),
        ("evaluation", 4, evaluations[4]),
        ("end", 4, metrics),
    ]


def test_an_error_in_a_callback_is_named_and_ends_the_run(records, tmp_path):
    recorder = Recorder()
    message = "The callback Failing failed in on_evaluation at step 2: KeyError: 'f1'"
    with pytest.raises(training.CallbackError, match=message) as error:
        training.train(
            toy.ToyTask(records, evaluates=True),
            config(tmp_path),
            callbacks=[recorder, Failing()],
        )
    assert isinstance(error.value.__cause__, KeyError)
    assert [call[:2] for call in recorder.calls][-2:] == [("checkpoint", 2), ("evaluation", 2)]
    assert (tmp_path / "ckpt-2.index").exists()


def test_what_is_no_callback_is_refused(records, tmp_path):
    with pytest.raises(TypeError, match="instances of `etcmodel.training.Callback`. Received: 3"):
        training.train(toy.ToyTask(records), config(tmp_path), callbacks=[3])
    assert not list(tmp_path.iterdir())


def test_the_class_of_the_page_keeps_the_best_score():
    (code,) = (block for block in page.blocks("training.md") if "Callback" in block)
    names = {}
    exec(code, names)
    best = names["Best"]()
    for step, score in enumerate((0.5, 0.75, 0.25)):
        best.on_evaluation(step, {"f1": score})
    assert best.value == 0.75
