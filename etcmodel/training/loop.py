"""The run modes that every task program has: train, evaluate, predict."""

import contextlib
import os

import orbit
import tensorflow as tf
import tf_keras
from absl import logging

from etcmodel import checkpoints
from etcmodel.training import evaluator as evaluator_lib
from etcmodel.training import optimizer as optimizer_lib
from etcmodel.training import progress as progress_lib
from etcmodel.training import run_directory
from etcmodel.training import strategy as strategy_lib
from etcmodel.training import trainer as trainer_lib

__all__ = ["evaluate", "load_model", "predict", "train"]


def train(task, config, strategy=None):
    """Trains a task's model, or continues the run in `config.output_dir` where it stopped.

    Writes there: `run_config.json`, checkpoints `ckpt-<step>`, `train_metrics.jsonl`, summaries
    for TensorBoard and, if the task has evaluation data, `eval_metrics.jsonl` and the checkpoint
    with the best metric in `best/`.

    Args:
        task: Task.
        config: TrainingConfig with an output_dir.
        strategy: tf.distribute.Strategy. None: the one that `config` names.
    Returns:
        Dict of floats: the last evaluation's metrics, empty without evaluation data.
    Raises:
        ValueError: if the directory belongs to a run with other options (OtherRunError), or the
            devices do not divide the batch.
        NonFiniteLossError: if the loss becomes infinite or not a number.
    """
    if not config.output_dir:
        raise ValueError("`output_dir` must be given for training")
    strategy = strategy or strategy_lib.build_strategy(config)
    run_config = {"training": config.result_fields(), "task": task.run_config()}
    is_chief = strategy_lib.is_chief(strategy)
    run_directory.claim_directory(config.output_dir, run_config, write=False)
    run = _Run(task, config, strategy)
    # Only now: options that the model or the data refuse must not claim the directory.
    run_directory.claim_directory(config.output_dir, run_config, write=is_chief)
    with _quiet_orbit():
        return run.to_the_end()


def load_model(task, config, checkpoint=None, strategy=None):
    """The task's model with trained weights.

    Args:
        task: Task.
        config: TrainingConfig.
        checkpoint: str. Path prefix of a checkpoint. None: the best one of `config.output_dir`,
            else the latest.
        strategy: tf.distribute.Strategy. None: TensorFlow's default placement.
    Returns:
        tf_keras.Model.
    Raises:
        ValueError: if there is no checkpoint, or it lacks a weight of the model.
    """
    checkpoint = checkpoint or run_directory.best_checkpoint(config.output_dir)
    with (strategy or tf.distribute.get_strategy()).scope():
        model = _build_model(task, config)
        status = tf.train.Checkpoint(model=model).restore(checkpoint).expect_partial()
        checkpoints.check_restored(status, model, checkpoint)
    return model


def predict(task, config, checkpoint=None, strategy=None, make_dataset=None):
    """Iterates over the predictions for every example.

    Args:
        task, config, checkpoint: as in `load_model`.
        strategy: tf.distribute.Strategy. None: the one that `config` names.
        make_dataset: function from a batch size to a data set of feature dicts. None: the task's
            evaluation data.
    Yields:
        Dicts of NumPy arrays, one per example: its features and the model's outputs.
    """
    strategy = strategy or strategy_lib.build_strategy(config)
    model = load_model(task, config, checkpoint, strategy)
    predictor = evaluator_lib.Predictor(model, strategy)
    yield from predictor(make_dataset or task.eval_dataset, config.predict_batch_size)


def evaluate(task, config, checkpoint=None, strategy=None):
    """Metrics of a checkpoint on the task's evaluation data: dict of floats.

    Args:
        task, config, checkpoint, strategy: as in `predict`.
    """
    strategy = strategy or strategy_lib.build_strategy(config)
    predictor = evaluator_lib.Predictor(load_model(task, config, checkpoint, strategy), strategy)
    evaluator = evaluator_lib.Evaluator(
        task=task, predictor=predictor, batch_size=config.eval_batch_size
    )
    return evaluator.evaluate(num_steps=-1)


class _Run:
    """The parts of one training run, put together; `to_the_end` runs it."""

    def __init__(self, task, config, strategy):
        self._task, self._config, self._strategy = task, config, strategy
        self._num_steps = config.num_train_steps(task.num_train_examples)
        self._is_chief = strategy_lib.is_chief(strategy)
        self._train_log = self._metrics_log("train")
        self._eval_log = self._metrics_log("eval")
        # Read before anything that workers do together, so that all of them see the same lines.
        self._evaluations = {line.pop("step"): line for line in self._eval_log.read()}
        self._build()
        self._restore_or_initialize()
        if self._is_chief:
            self._train_log.forget_after(self._step)
            self._eval_log.forget_after(self._step)
        self._controller = self._build_controller()

    @property
    def _step(self):
        return int(self._global_step.numpy())

    def to_the_end(self):
        """Trains and evaluates until the last step; returns the last evaluation's metrics."""
        controller = self._controller
        if controller.evaluator is None:
            controller.train(self._num_steps, checkpoint_at_completion=False)
            return {}
        if self._step and self._step not in self._evaluations:
            controller.evaluate()  # The run was stopped between a checkpoint and its evaluation.
        controller.train_and_evaluate(
            train_steps=self._num_steps, eval_interval=self._config.save_checkpoints_steps
        )
        return self._evaluations[self._num_steps]

    def _metrics_log(self, name):
        path = os.path.join(self._config.output_dir, f"{name}_metrics.jsonl")
        return progress_lib.MetricsLog(path)

    def _build(self):
        learning_rate = optimizer_lib.build_learning_rate(self._config, self._num_steps)
        with self._strategy.scope():
            self._model = _build_model(self._task, self._config)
            self._optimizer = optimizer_lib.build_optimizer(self._config, learning_rate)
            self._global_step = orbit.utils.create_global_step()
        self._checkpoints = run_directory.CheckpointWriter(
            output_dir=self._config.output_dir,
            strategy=self._strategy,
            model=self._model,
            optimizer=self._optimizer,
            global_step=self._global_step,
            keep=self._config.keep_checkpoint_max,
        )

    def _restore_or_initialize(self):
        if self._checkpoints.restore():
            logging.info("Continuing %s at step %d.", self._config.output_dir, self._step)
        elif self._config.init_checkpoint:
            with self._strategy.scope():
                self._task.initialize(self._model, self._config.init_checkpoint)

    def _build_controller(self):
        trainer = trainer_lib.Trainer(
            task=self._task,
            model=self._model,
            optimizer=self._optimizer,
            config=self._config,
            strategy=self._strategy,
            global_step=self._global_step,
        )
        output_dir = self._config.output_dir
        return orbit.Controller(
            strategy=self._strategy,
            trainer=trainer,
            evaluator=self._build_evaluator(),
            global_step=self._global_step,
            steps_per_loop=self._steps_to_next_stop,
            train_actions=self._train_actions(),
            eval_actions=self._eval_actions(),
            summary_dir=os.path.join(output_dir, "train") if self._is_chief else None,
            eval_summary_dir=os.path.join(output_dir, "eval") if self._is_chief else None,
        )

    def _build_evaluator(self):
        if self._task.eval_dataset(self._config.eval_batch_size) is None:
            return None
        return evaluator_lib.Evaluator(
            task=self._task,
            predictor=evaluator_lib.Predictor(self._model, self._strategy),
            batch_size=self._config.eval_batch_size,
        )

    def _steps_to_next_stop(self, step):
        """Inner loops end where metrics are reported or a checkpoint is due."""
        intervals = (self._config.steps_per_summary, self._config.save_checkpoints_steps)
        return min(interval - int(step) % interval for interval in intervals)

    def _train_actions(self):
        """Called after each inner loop; metrics come first, so that a checkpoint has them all."""
        reports = [
            lambda metrics: self._train_log.append(self._step, metrics),
            progress_lib.ProgressLine(
                global_step=self._global_step,
                num_steps=self._num_steps,
                batch_size=self._config.train_batch_size,
            ),
        ]
        return [*(reports if self._is_chief else ()), self._save_if_due]

    def _save_if_due(self, metrics):
        del metrics
        if self._step % self._config.save_checkpoints_steps == 0 or self._step == self._num_steps:
            self._checkpoints.save()

    def _eval_actions(self):
        """Called after each evaluation; its log line comes last: it says that all is done."""
        actions = [self._note_evaluation]
        if self._task.best_metric:
            new_best = orbit.actions.NewBestMetric(
                self._task.best_metric,
                higher_is_better=self._task.higher_is_better,
                filename=os.path.join(self._config.output_dir, "best", "best_metric.json"),
                write_metric=self._is_chief,
            )
            actions.insert(
                0,
                orbit.actions.ConditionalAction(
                    condition=new_best.test,
                    action=[lambda metrics: self._checkpoints.save_best(), new_best.commit],
                ),
            )
        return actions

    def _note_evaluation(self, metrics):
        self._evaluations[self._step] = dict(metrics)
        if self._is_chief:
            self._eval_log.append(self._step, metrics)


def _build_model(task, config):
    tf_keras.mixed_precision.set_global_policy(config.mixed_precision)
    tf_keras.utils.set_random_seed(config.random_seed)
    model = task.build_model()
    if not model.built:
        raise ValueError(f"`build_model` of {type(task).__name__} must return a built model")
    return model


@contextlib.contextmanager
def _quiet_orbit():
    """Sends Orbit's messages to the debug log; it would print them between our progress lines."""
    log = orbit.controller._log
    orbit.controller._log = logging.debug
    try:
        yield
    finally:
        orbit.controller._log = log
