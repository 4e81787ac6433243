"""A training run: steps, checkpoints and evaluations, until the last step or a signal."""

import contextlib
import os
import signal
import socket
import threading

import tensorflow as tf
import tf_keras
from absl import logging

from etcmodel import program_end
from etcmodel.ops import tiles
from etcmodel.training import callbacks as callbacks_lib
from etcmodel.training import evaluator as evaluator_lib
from etcmodel.training import model_garden, run_directory, saving
from etcmodel.training import optimizer as optimizer_lib
from etcmodel.training import progress as progress_lib
from etcmodel.training import strategy as strategy_lib
from etcmodel.training import trainer as trainer_lib


class StopRequest:
    """A request, made by a signal, to stop a run.

    Args:
        workers: `tf.distribute.MultiWorkerMirroredStrategy` of workers that step together; None for
            a single process.
    Attributes:
        is_due: bool variable. Whether the loop of steps should end.
        act: function called after the loop if a stop is due, with the loop's metrics, or None
            outside a loop. It saves and raises `Interrupted`.
    """

    def __init__(self, workers=None):
        self._workers = workers
        with tf.init_scope(), tf.device("CPU"):
            self._is_asked = tf.Variable(False, trainable=False, name="is_stop_asked")
            self.is_due = self._is_asked
            if workers is not None:
                self.is_due = tf.Variable(False, trainable=False, name="is_stop_agreed")
        self.act = None
        self.signum = None
        self._is_at_once = False
        self._interrupted = None

    @contextlib.contextmanager
    def listening(self):
        """A context in which a first signal requests a stop, and a second one stops at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        reading, writing = socket.socketpair()  # Windows takes no pipe for signals.
        writing.setblocking(False)
        watcher = threading.Thread(target=self._watch, args=(reading,), daemon=True)
        watcher.start()
        with program_end.on_signals(self._note):
            previous = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
            try:
                yield
            except Exception:
                if self._interrupted is None:
                    raise
                # It came within compiled code, which told it as an error of its own.
                raise self._interrupted from None
            finally:
                signal.set_wakeup_fd(previous)
                writing.close()
                watcher.join()
                reading.close()

    def agree(self):
        """Called by all workers in each step: a stop is due once any of them has a request."""
        if self._workers is None:
            return
        asked = self._workers.run(lambda: tf.cast(self._is_asked.read_value(), tf.float32))
        asked = self._workers.reduce(tf.distribute.ReduceOp.SUM, asked, axis=None)
        self.is_due.assign(asked > 0)

    @contextlib.contextmanager
    def at_once(self):
        """A context in which the first signal stops at once, since nothing would be lost.

        One of several workers still waits for the next step, since the others wait for it.
        """
        self.act_if_due()
        self._is_at_once = self._workers is None
        try:
            yield
        finally:
            self._is_at_once = False

    def act_if_due(self, metrics=None):
        """Calls `act` if a stop is due; for several workers, once all of them know."""
        is_asked_alone = self._workers is None and self.signum is not None
        if is_asked_alone or self.is_due.numpy():
            self.act(metrics)

    def _watch(self, reading):
        while signals := reading.recv(1):
            if signals[0] in (signal.SIGINT, signal.SIGTERM):
                self._is_asked.assign(True)

    def _note(self, signum, frame):
        is_first, self.signum = self.signum is None, signum
        try:
            if is_first and self._is_at_once:
                with tf.init_scope():  # The signal may have come while a graph was traced.
                    self.act(None)
            if not is_first:
                raise program_end.Interrupted("at once, nothing was saved", signum)
        except program_end.Interrupted as interrupted:
            self._interrupted = interrupted
            raise


class WeightAverage:
    """Averages of variables: each step moves an average by (1 - d) of its distance to the weight.

    d is `decay`, or (1 + t) / (10 + t) at step t if that is smaller, so that the first weights are
    soon forgotten, as in `tf.train.ExponentialMovingAverage` with `num_updates`.

    Model Garden's `ExponentialMovingAverage` averages in the same way, but it swaps averages and
    weights by sums and differences, which round: a resumed run would differ from an uninterrupted
    one. The built-in averages of tf_keras optimizers (`use_ema`) do not exist in the legacy
    optimizers, such as LAMB.

    Args:
        variables: list of variables, with their initial values.
        decay: float in (0, 1).
        strategy: tf.distribute.Strategy of the variables.
    Attributes:
        averages: list of float variables of the same shapes.
    """

    def __init__(self, variables, decay, strategy):
        self._variables, self._decay, self._strategy = list(variables), decay, strategy
        with strategy.scope():
            self.averages = [
                tf.Variable(
                    variable.read_value(),
                    trainable=False,
                    name=f"{variable.name.partition(':')[0]}/average",
                )
                for variable in self._variables
            ]

    def reset(self):
        """Restarts the averages from the current weights."""
        self._on_all_devices(lambda average, weight: average.assign(weight))

    def update(self, step):
        """Updates the averages by one step; to be called on each device, after the weights' update.

        Args:
            step: int scalar. Steps done before this one.
        """

        def follow(strategy):
            done = tf.cast(step, tf.float32)
            share = 1.0 - tf.minimum(self._decay, (1.0 + done) / (10.0 + done))

            def move(average, weight):
                distance = average - tf.cast(weight, average.dtype)
                return average.assign_sub(tf.cast(share, average.dtype) * distance)

            self._on_all(strategy, move)

        model_garden.maybe_merge_call(follow, tf.distribute.get_strategy())

    @contextlib.contextmanager
    def in_place(self):
        """A context in which weights and averages are exactly swapped."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def take_back(self):
        """Swaps weights and averages, after reading a checkpoint that was saved `in_place`."""
        self._exchange()

    def _exchange(self):
        def exchange(average, weight):
            kept = average.read_value()
            average.assign(weight.read_value())
            return weight.assign(kept)

        self._on_all_devices(exchange)

    def _on_all_devices(self, change):
        with self._strategy.scope():
            self._on_all(self._strategy, change)

    def _on_all(self, strategy, change):
        for average, weight in zip(self.averages, self._variables, strict=True):
            strategy.extended.update(average, change, args=(weight,), group=False)


EVAL_LOG = "eval_metrics.jsonl"


def build_model(task, config):
    """The task's model with initial weights, using the run's precision, tiling and seed."""
    tf_keras.mixed_precision.set_global_policy(strategy_lib.precision_of(config))
    tiles.set_tiling(config.attention_tiling())
    tf_keras.utils.set_random_seed(config.random_seed)
    model = task.build_model()
    if not model.built:
        raise ValueError(f"`build_model` of {type(task).__name__} must return a built model")
    return model


class Run:
    """A training run with all of its parts; `to_the_end` runs it.

    Attributes:
        before_first_results: function without arguments, or None. Called once, after the first
            steps and before any of their results are written.
    """

    before_first_results = None

    def __init__(self, task, config, strategy, callbacks=()):
        self._task, self._config, self._strategy = task, config, strategy
        self.num_train_steps = config.num_train_steps(task.num_train_examples)
        self.num_steps = config.last_step(self.num_train_steps)
        self._is_chief = strategy_lib.is_chief(strategy)
        # Workers that step together must stop together.
        self._stop = StopRequest(strategy if strategy_lib.is_of_many_workers(strategy) else None)
        self._progress = None  # Only the chief has one.
        self._train_log = self._metrics_log("train_metrics.jsonl")
        self._eval_log = self._metrics_log(EVAL_LOG)
        # Read before the workers do anything together, so that all of them read the same lines.
        self._evaluations = {line.pop("step"): line for line in self._eval_log.read()}
        self._build()
        if config.tensorboard_extras:
            from etcmodel.training import tensorboard_extras as extras_lib  # With its dependencies.

            averaged = self._checkpoints.averaged
            shown = extras_lib.TensorBoardExtras(task, config, self._model, averaged)
            callbacks = (*callbacks, shown)
        self._callbacks = callbacks_lib.Callbacks(callbacks if self._is_chief else ())
        self._restore_or_initialize()
        self._saved_step = self.step
        if self.step > self.num_steps:
            raise ValueError(
                f"{config.output_dir}: step {self.step} of the run is done, and its last one would "
                f"be {self.num_steps}. Give more num_train_epochs, or a later stop_at_step."
            )
        if self._is_chief:
            self._train_log.forget_after(self.step)
            self._eval_log.forget_after(self.step)
        self._controller = self._build_controller()

    @property
    def step(self):
        """Steps done: int."""
        return int(self._global_step.numpy())

    def to_the_end(self):
        """Trains and evaluates until the last step; returns the last evaluation's metrics."""
        try:
            with self._stop.listening():
                metrics = self._to_the_end()
            self._callbacks.call("on_end", self.step, dict(metrics))
            return metrics
        finally:
            if self._progress:
                self._progress.close()

    def _to_the_end(self):
        controller = self._controller
        if controller.evaluator is None:
            self._tell_of_tracing()
            controller.train(self.num_steps, checkpoint_at_completion=False)
            return {}
        # A resumed run evaluates at the same steps as an uninterrupted one.
        interval = self._config.save_checkpoints_steps
        is_due = self.step % interval == 0 or self.step == self.num_steps
        if self.step and is_due and self.step not in self._evaluations:
            controller.evaluate()  # The run stopped between a checkpoint and its evaluation.
        self._tell_of_tracing()
        while self.step < self.num_steps and not self._is_stale():
            next_step = min((self.step // interval + 1) * interval, self.num_steps)
            controller.train_and_evaluate(train_steps=next_step, eval_interval=interval)
        # For a run that ends early, this may be the step at which it was only interrupted.
        return self._evaluations[max(step for step in self._evaluations if step <= self.step)]

    def _is_stale(self):
        """Whether the latest evaluations did not improve the metric, so that the run ends early."""
        patience = self._config.early_stopping_patience
        if patience is None:
            return False
        values = [
            saving.worth(metrics[self._task.best_metric], self._task.higher_is_better)
            for step, metrics in sorted(self._evaluations.items())
            if step <= self.step
        ]
        if not values or len(values) - 1 - values.index(max(values)) < patience:
            return False
        self._tell(f"no better {self._task.best_metric} in {patience} evaluations: the run ends")
        return True

    def _metrics_log(self, name):
        return progress_lib.MetricsLog(os.path.join(self._config.output_dir, name))

    def _build(self):
        learning_rate = optimizer_lib.build_learning_rate(self._config, self.num_train_steps)
        with self._strategy.scope():
            self._model = build_model(self._task, self._config)
            shares = self._task.learning_rate_shares(self._model)
            self._optimizer = optimizer_lib.build_optimizer(self._config, learning_rate, shares)
            self._global_step = model_garden.create_global_step()
        if self._is_chief:
            self._progress = progress_lib.ProgressLine(
                global_step=self._global_step,
                num_steps=self.num_steps,
                batch_size=self._config.train_batch_size,
            )
        self._average = None
        if self._config.ema_decay:
            trained = self._task.trained_variables(self._model)
            self._average = WeightAverage(trained, self._config.ema_decay, self._strategy)
        self._checkpoints = saving.CheckpointWriter(
            output_dir=self._config.output_dir,
            strategy=self._strategy,
            model=self._model,
            optimizer=self._optimizer,
            global_step=self._global_step,
            keep=self._config.keep_checkpoint_max,
            average=self._average,
        )

    def _restore_or_initialize(self):
        if self._checkpoints.restore():
            note = self._note_of_devices()
            logging.info("Continuing %s at step %d.%s", self._config.output_dir, self.step, note)
        elif self._config.init_checkpoint:
            with self._strategy.scope():
                self._task.initialize(self._model, self._config.init_checkpoint)
            if self._average is not None:
                self._average.reset()

    def _note_of_devices(self):
        """What a run on another number of devices than it began on is told; '' for the same."""
        begun = run_directory.read_run_config(self._config.output_dir) or {}
        then = begun.get("notes", {}).get("num_devices")  # Earlier versions did not note it.
        now = self._strategy.num_replicas_in_sync
        if then in (None, now):
            return ""
        return (
            f" It began on {then} device{'s' * (then != 1)}, and now has {now}: each device draws "
            f"dropout masks of its own, so the result will not be that of {then}."
        )

    def _build_controller(self):
        trainer = trainer_lib.Trainer(
            task=self._task,
            model=self._model,
            optimizer=self._optimizer,
            config=self._config,
            strategy=self._strategy,
            global_step=self._global_step,
            stop=self._stop,
            average=self._average,
            during_steps=(
                self._progress.during_steps if self._progress else contextlib.nullcontext
            ),
        )
        self._stop.act = self._save_and_stop
        output_dir = self._config.output_dir
        return model_garden.Controller(
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
        has_data = self._task.eval_dataset(self._config.eval_batch_size) is not None
        if self._config.early_stopping_patience and not (has_data and self._task.best_metric):
            raise ValueError(
                "`early_stopping_patience` needs evaluation data, and a metric that chooses the "
                "best checkpoint."
            )
        if not has_data:
            return None
        evaluator = evaluator_lib.Evaluator(
            task=self._task,
            predictor=evaluator_lib.Predictor(
                self._model, self._strategy, "evaluating", self._task.model_features
            ),
            batch_size=self._config.eval_batch_size,
        )
        return evaluator_lib.RunEvaluator(evaluator, self._stop, self._checkpoints.averaged)

    def _steps_to_next_stop(self, step):
        """Steps until the loop ends, because a report or a checkpoint is due."""
        intervals = (self._config.steps_per_summary, self._config.save_checkpoints_steps)
        return min(interval - int(step) % interval for interval in intervals)

    def _train_actions(self):
        """Actions after each inner loop; metrics first, so that a checkpoint's are complete."""
        if not self._is_chief:
            return [self._save_if_due]
        return [
            lambda metrics: self._begin_results(),
            lambda metrics: self._train_log.append(self.step, metrics),
            self._progress,
            lambda metrics: self._callbacks.call("on_summary", self.step, dict(metrics)),
            self._save_if_due,
        ]

    def _begin_results(self):
        if self.before_first_results:
            self.before_first_results()
            self.before_first_results = None

    def _save_if_due(self, metrics):
        if self.step % self._config.save_checkpoints_steps == 0 or self.step == self.num_steps:
            self._save()

    def _save(self):
        self._checkpoints.save()
        self._saved_step = self.step
        self._tell(f"checkpoint saved: ckpt-{self.step}")
        path = os.path.join(self._config.output_dir, f"ckpt-{self.step}")
        self._callbacks.call("on_checkpoint", self.step, path)

    def _save_and_stop(self, metrics):
        if self.step > self._saved_step:
            self._begin_results()
            if metrics and self._is_chief:
                # There are none if the signal came after this step's line.
                self._train_log.append_new(self.step, metrics)
            self._save()
        told = "no step was done. The same command begins anew."
        if self.step:
            told = (
                f"step {self.step} is saved. "
                f"The same command continues the run in {self._config.output_dir!r}."
            )
        raise program_end.Interrupted(told, self._stop.signum or signal.SIGINT)

    def _tell_of_tracing(self):
        if self._progress and self.step < self.num_steps:
            self._progress.begin()

    def tell_of_changes(self, changes):
        """Reports which options differ from the beginning of the run.

        Args:
            changes: list of `run_directory.Change`.
        """
        for name, change in run_directory.changes_in_force(changes).items():
            self._tell(f"{name} is {change.new} since step {change.step}, and was {change.old}")

    def _tell(self, text):
        if self._progress:
            self._progress.tell(text)

    def _eval_actions(self):
        """Actions after each evaluation; the log line, which marks it as complete, comes last."""
        if not self._task.best_metric:
            return [lambda metrics: self._tell("evaluated"), self._note_evaluation]
        best = saving.BestCheckpoint(
            self._config.output_dir,
            self._task.best_metric,
            higher_is_better=self._task.higher_is_better,
            save=self._checkpoints.save_best,
            is_chief=self._is_chief,
            is_shared=not strategy_lib.is_of_many_workers(self._strategy),
        )

        def update_best(metrics):
            is_best = best.update(metrics)
            value = f"{self._task.best_metric} {metrics[self._task.best_metric]:.4g}"
            self._tell(f"evaluated  {value}" + (", the best so far: saved in best/" * is_best))

        return [update_best, self._note_evaluation]

    def _note_evaluation(self, metrics):
        self._evaluations[self.step] = dict(metrics)
        if self._is_chief:
            self._eval_log.append_new(self.step, metrics)
        self._callbacks.call("on_evaluation", self.step, dict(metrics))
