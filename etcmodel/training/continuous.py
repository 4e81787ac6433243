"""Evaluates each new checkpoint of a run, in a separate process from the training."""

import os
import sys
import time

import tensorflow as tf
from absl import logging

from etcmodel.durations import format_duration
from etcmodel.training import best as best_lib
from etcmodel.training import evaluator as evaluator_lib
from etcmodel.training import history, loop, progress, run_directory
from etcmodel.training import strategy as strategy_lib

__all__ = ["continuous_eval", "wait_for_run"]

_SECONDS_BETWEEN_LOOKS = 1.0


def wait_for_run(output_dir, timeout=None):
    """Waits until a run has started in a directory, or there is a checkpoint.

    Args:
        output_dir: str. Need not exist yet.
        timeout: float. Seconds to wait. None: no limit.
    Raises:
        ValueError: if neither exists after that time.

    >>> from etcmodel import training
    >>> training.wait_for_run("my_run", timeout=1.0) is None
    True
    >>> training.wait_for_run("other_run", timeout=0.0)
    Traceback (most recent call last):
        ...
    ValueError: other_run: no run has begun there within 0 seconds.
    """
    start = time.monotonic()
    is_first = True
    while run_directory.read_run_config(output_dir) is None:
        if tf.train.latest_checkpoint(output_dir):
            return
        if timeout is not None and time.monotonic() - start >= timeout:
            raise ValueError(f"{output_dir}: no run has begun there within {timeout:g} seconds.")
        if is_first:
            logging.info("Waiting for a run to begin in %s.", output_dir)
            is_first = False
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def continuous_eval(task, config, strategy=None, *, num_steps=None, timeout=None):
    """Evaluates all checkpoints of a run that are not evaluated yet, and waits for new ones.

    As during training, each gets a line in `eval_metrics.jsonl` and summaries for TensorBoard, and
    replaces the one in `best/` if it is better. If the training process evaluates as well, steps in
    `eval_metrics.jsonl` are not evaluated again. A checkpoint that is deleted before it can be read
    is skipped.

    Args:
        task: Task with an `eval_dataset`.
        config: TrainingConfig with the output_dir of the run.
        strategy: tf.distribute.Strategy. None: the one that `config` names.
        num_steps: int. The last step of the run, after which this ends. None: not known.
        timeout: float. Ends after this many seconds without a new checkpoint. None: no limit.
    Returns:
        Dict of floats: the metrics of the highest evaluated step; empty if there is none.

    >>> from etcmodel import training
    >>> data = {"token_ids": [[2, 7], [2, 8]]}, [0, 1]
    >>> task = training.HeadTask(lambda: etcmodel.from_pretrained("my_model"), data, data)
    >>> config = training.TrainingConfig(output_dir="my_run")
    >>> sorted(training.continuous_eval(task, config, num_steps=1))
    ['accuracy', 'loss']
    """
    strategy = strategy or strategy_lib.build_strategy(config)
    evaluation = _Evaluation(task, config, strategy, num_steps)
    latest_checkpoints = tf.train.checkpoints_iterator(config.output_dir, timeout=timeout)
    for latest in latest_checkpoints:
        evaluation.catch_up()
        if num_steps is not None:
            # Training may have been resumed with other options in the meantime.
            evaluation.num_steps = history.num_train_steps(config.output_dir, num_steps)
            if _step(latest) >= evaluation.num_steps:
                break
    return evaluation.last_metrics()


class _Evaluation:
    """Evaluates one checkpoint after the other with the same model."""

    def __init__(self, task, config, strategy, num_steps):
        self._output_dir, self.num_steps = config.output_dir, num_steps
        self._strategy = strategy
        with strategy.scope():
            self._model = loop.build_model(task, config)
        self._evaluator = evaluator_lib.Evaluator(
            task=task,
            predictor=evaluator_lib.Predictor(self._model, strategy, "evaluating"),
            batch_size=config.eval_batch_size,
        )
        self._log = progress.MetricsLog(os.path.join(self._output_dir, loop.EVAL_LOG))
        self._summaries = tf.summary.create_file_writer(os.path.join(self._output_dir, "eval"))
        self._metric, self._best = task.best_metric, None
        self._step = None
        if task.best_metric:
            self._best = best_lib.BestCheckpoint(
                self._output_dir,
                task.best_metric,
                higher_is_better=task.higher_is_better,
                save=lambda: best_lib.save_best(self._output_dir, self._model, self._step),
            )
        self._left_out = set()

    def last_metrics(self):
        """Metrics of the highest step in the log: dict of floats."""
        lines = self._log.read()
        metrics = dict(max(lines, key=lambda line: line["step"], default={}))
        metrics.pop("step", None)
        return metrics

    def catch_up(self):
        """Evaluates the checkpoints that have not been evaluated, the earliest first."""
        while (path := self._next()) is not None:
            start = time.monotonic()
            if self._restore(path):
                self._evaluate(start)
            else:
                self._left_out.add(path)
                self._tell(f"{path} was deleted before it could be evaluated")

    def _next(self):
        state = tf.train.get_checkpoint_state(self._output_dir)
        known = {line["step"] for line in self._log.read()}
        paths = state.all_model_checkpoint_paths if state else ()
        waiting = [p for p in paths if _step(p) not in known and p not in self._left_out]
        return min(waiting, key=_step, default=None)

    def _restore(self, path):
        """Restores the weights; returns False if the checkpoint has been deleted."""
        try:
            with self._strategy.scope():
                run_directory.restore_weights(self._model, path)
        except ValueError:
            if _is_whole(path):
                raise
            return False
        self._step = _step(path)
        return True

    def _evaluate(self, start):
        metrics = self._evaluator.evaluate(num_steps=-1)
        is_best = self._best is not None and self._best.update(metrics)
        with self._summaries.as_default(self._step):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)
        self._summaries.flush()
        self._log.append_new(
            self._step, metrics
        )  # Last, since this line marks the step as evaluated.
        of_all = "" if self.num_steps is None else f"/{self.num_steps}"
        shown = f"  {self._metric} {metrics[self._metric]:.4g}" if self._metric else ""
        shown += ", the best so far: saved in best/" * is_best
        seconds = format_duration(time.monotonic() - start)
        self._tell(f"step {self._step}{of_all}{shown}  evaluated in {seconds}")

    def _tell(self, line):
        print(line, file=sys.stderr, flush=True)


def _step(path):
    step = path.rpartition("-")[2]
    return int(step) if step.isdigit() else 0


def _is_whole(path):
    return bool(tf.io.gfile.glob(f"{path}.index") and tf.io.gfile.glob(f"{path}.data-*"))
