"""The modes of all task programs: train, evaluate, also from beside a training, and predict."""

import contextlib
import dataclasses
import functools
import os
import sys
import time

import tensorflow as tf
from absl import logging

from etcmodel import atomic_files
from etcmodel.durations import format_duration
from etcmodel.training import evaluator as evaluator_lib
from etcmodel.training import model_garden, progress, run_directory, saving
from etcmodel.training import run as run_lib
from etcmodel.training import strategy as strategy_lib
from etcmodel.training.config import CHANGEABLE


def resumed_config(config, changes=None):
    """The options of a resumed or new run.

    An option that was changed earlier may be given with its first or its current value; the result
    has the current one.

    Args:
        config: `TrainingConfig` with an output_dir.
        changes: dict from an option to its new value.
    Returns:
        `TrainingConfig`.
    Raises:
        ValueError: if there are changes and no run; if a changed option is given with another
            value; if an option may not be changed, or its change would have no effect.

    >>> from etcmodel import training
    >>> options = {"num_train_epochs": 1, "train_batch_size": 2}
    >>> config = training.TrainingConfig(output_dir="my_run", **options)
    >>> training.resumed_config(config, {"learning_rate": 3e-5}).learning_rate
    3e-05
    """
    changes = run_directory.checked_changes(changes)
    changed = dataclasses.replace(begun_config(config, changes), **changes)
    if "warmup_proportion" in changes and changed.warmup_steps is not None:
        raise ValueError(
            f"--change=warmup_proportion: the run has --warmup_steps={changed.warmup_steps}, which "
            "comes first. Change warmup_steps."
        )
    return changed


def begun_config(config, changes=None):
    """Like `resumed_config`, without the new changes: the options of the run until now.

    Args:
        config, changes: as in `resumed_config`. Options to change may be given with any value.
    """
    run = run_directory.read_run_config(config.output_dir)
    if run is None:
        if changes:
            raise ValueError(
                f"--change={next(iter(changes))}: there is no run in {config.output_dir} that "
                "could go on. Give the option itself."
            )
        if config.mixed_precision == "auto":
            config = dataclasses.replace(config, mixed_precision=strategy_lib.precision_of(config))
        return config
    kept = {**run.get("notes", {}), **run.get("training", {})}  # Frequencies do not affect results.
    present = {name: kept[name] for name in changes or () if name in kept}
    if config.mixed_precision == "auto":  # What a file does not say has its default, as elsewhere.
        default = type(config)().mixed_precision
        present["mixed_precision"] = kept.get("mixed_precision", default)
    made = run_directory.read_changes(config.output_dir)
    firsts = {change.option: change.old for change in reversed(made)}
    for name, change in run_directory.changes_in_force(made).items():
        given = getattr(config, name)
        # Other differences are reported when all options are compared.
        is_compared = name in config.result_fields()
        if name in (changes or ()) or given in (firsts[name], change.new):
            present[name] = change.new
        elif not is_compared:
            raise ValueError(
                f"--{name}={given}: the run in {config.output_dir} was changed to "
                f"--{name}={change.new}. Give that value, or --change={name}={given}."
            )
    return dataclasses.replace(config, **present)


def made_changes(before, after, *, step, num_train_steps):
    """The differences between two `TrainingConfig`s: list of `run_directory.Change`.

    Args:
        before, after: `TrainingConfig`.
        step: int. Steps done.
        num_train_steps: int. The last planned step, after the change.
    """
    return [
        run_directory.Change(
            step=step,
            option=name,
            old=getattr(before, name),
            new=getattr(after, name),
            num_train_steps=num_train_steps,
        )
        for name in CHANGEABLE
        if getattr(before, name) != getattr(after, name)
    ]


_FIRST_TILING = {"rows": None, "logits": 1 << 22}  # The tiling in versions that did not store it.


def train(task, config, strategy=None, *, changes=None, callbacks=()):
    """Trains a task's model, or continues the run in `config.output_dir`.

    Writes there: `run_config.json` and the task's `run_files`, checkpoints `ckpt-<step>`,
    `train_metrics.jsonl`, summaries for TensorBoard and, if the task has evaluation data,
    `eval_metrics.jsonl` and the checkpoint with the best metric in `best/`; `history.json`, once an
    option is changed.

    Args:
        task: Task.
        config: TrainingConfig with an output_dir. Changed options may have their first values, too.
        strategy: tf.distribute.Strategy. None: the one that `config` names.
        changes: dict of an option to its new value, for the run that is there from now on; one of
            `CHANGEABLE` in `etcmodel.training.config`.
        callbacks: iterable of `Callback`, called in their order.
    Returns:
        Dict of floats: the last evaluation's metrics, empty without evaluation data.
    Raises:
        ValueError: if the directory belongs to a run with other options (OtherRunError), another
            process trains there, the batch size is not a multiple of the number of devices, an
            option may not be changed, or there is no run whose options could change.
        Interrupted: after Ctrl-C or SIGTERM, once the current step is done and a checkpoint is
            saved; at once after a second signal. If one of several workers gets the signal, all of
            them stop.
        NonFiniteLossError: if the loss becomes infinite or not a number.
        CallbackError: naming the callback, if one raises.

    >>> from etcmodel import training
    >>> data = {"token_ids": [[2, 7], [2, 8]]}, [0, 1]
    >>> task = training.HeadTask(lambda: etcmodel.from_pretrained("my_model"), data, data)
    >>> sorted(training.train(task, training.TrainingConfig(output_dir="run", train_batch_size=2)))
    ['accuracy', 'loss']
    """
    if not config.output_dir:
        raise ValueError("`output_dir` must be given for training")
    begun, config = begun_config(config, changes), resumed_config(config, changes)
    strategy = strategy or strategy_lib.build_strategy(config)
    claim = _claim_of(task, begun)
    claim(write=False)
    _check_steps(task, begun)
    is_chief = strategy_lib.is_chief(strategy)
    alone = run_directory.alone_training if is_chief else contextlib.nullcontext
    with alone(config.output_dir):
        run = run_lib.Run(task, config, strategy, callbacks)
        if is_chief:  # It changes the files, so other workers may not compare with them now.

            def claim_and_keep():
                claim(notes=_notes(task, run, begun, strategy))
                # Before the options that are kept beside it, which a run that goes on may be given.
                _keep_changes(run, begun, config)
                for name, text in task.run_files().items():
                    atomic_files.write_text(os.path.join(config.output_dir, name), [text])

            # One that has steps, but no such file, may have none left to do.
            if run.step or run_directory.read_run_config(config.output_dir) is not None:
                claim_and_keep()
            else:  # Options that the data, the model or the first steps refuse claim nothing.
                run.before_first_results = claim_and_keep
        with model_garden.quiet_orbit(), _bad_data_named(task):
            return run.to_the_end()


def _claim_of(task, config):
    """Calls `claim_directory` with everything that determines the result of a run."""
    return functools.partial(
        run_directory.claim_directory,
        config.output_dir,
        {
            "training": config.result_fields(),
            "task": task.run_config(),
            # The tiling decides which probabilities dropout drops.
            "attention_tiling": dataclasses.asdict(config.attention_tiling()),
        },
        defaults={
            "training": type(config)().result_fields(),
            "task": task.run_config_defaults(),
            "attention_tiling": _FIRST_TILING,
        },
    )


def _check_steps(task, begun):
    """Rejects training data that differ from the run's, as far as the number of steps shows.

    The learning rate of each step depends on the last one.
    """
    run = run_directory.read_run_config(begun.output_dir) or {}
    noted = run.get("notes", {}).get("num_train_steps")
    num_examples = task.num_train_examples
    now = begun.num_train_steps(num_examples)
    if noted not in (None, now):
        raise run_directory.OtherRunError(
            f"{begun.output_dir} belongs to a run of {noted} steps; with the {num_examples} "
            f"training examples that are there now it would have {now}. Give the data that it "
            "began with, or choose another output_dir."
        )


def _notes(task, run, begun, strategy):
    """Notes stored beside the options that determine the result: dict."""
    decisive = begun.result_fields()
    return {
        **task.run_notes(),
        "num_train_steps": run.num_train_steps,
        "num_devices": strategy.num_replicas_in_sync,
        "best_metric": task.best_metric,
        "higher_is_better": task.higher_is_better,
        **{name: getattr(begun, name) for name in CHANGEABLE if name not in decisive},
    }


def _keep_changes(run, begun, config):
    """Records the new changes, and reports all changes."""
    made = made_changes(begun, config, step=run.step, num_train_steps=run.num_train_steps)
    run_directory.record_changes(config.output_dir, made)
    run.tell_of_changes(run_directory.read_changes(config.output_dir))


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
        ValueError: if there is no checkpoint, or it is damaged or lacks a weight of the model.

    >>> from etcmodel import training
    >>> data = {"token_ids": [[2, 7], [2, 8]]}, [0, 1]
    >>> task = training.HeadTask(lambda: etcmodel.from_pretrained("my_model"), data)
    >>> training.load_model(task, training.TrainingConfig(output_dir="my_run")).labels
    ('neg', 'pos')
    """
    checkpoint = checkpoint or run_directory.best_checkpoint(config.output_dir)
    with (strategy or tf.distribute.get_strategy()).scope():
        model = run_lib.build_model(task, config)
        run_directory.restore_weights(model, checkpoint)
    return model


def predict(task, config, checkpoint=None, strategy=None, make_dataset=None):
    """Iterates over the predictions for every example.

    Args:
        task, config, checkpoint: as in `load_model`.
        strategy: tf.distribute.Strategy. None: the one that `config` names.
        make_dataset: function from a batch size to a tf.data.Dataset of feature dicts. None: the
            task's evaluation data.
    Yields:
        Dicts of NumPy arrays, one per example: its features and the model's outputs.

    >>> from etcmodel import training
    >>> data = {"token_ids": [[2, 7], [2, 8]]}, [0, 1]
    >>> task = training.HeadTask(lambda: etcmodel.from_pretrained("my_model"), data, data)
    >>> found = training.predict(task, training.TrainingConfig(output_dir="my_run"))
    >>> [prediction["logits"].shape for prediction in found]
    [(2,), (2,)]
    """
    strategy = strategy or strategy_lib.build_strategy(config)
    model = load_model(task, config, checkpoint, strategy)
    predictor = evaluator_lib.Predictor(model, strategy, select=task.model_features)
    with _bad_data_named(task):
        yield from predictor(make_dataset or task.eval_dataset, config.predict_batch_size)


def evaluate(task, config, checkpoint=None, strategy=None):
    """Metrics of a checkpoint on the task's evaluation data: dict of floats.

    Args:
        task, config, checkpoint, strategy: as in `predict`.

    >>> from etcmodel import training
    >>> data = {"token_ids": [[2, 7], [2, 8]]}, [0, 1]
    >>> task = training.HeadTask(lambda: etcmodel.from_pretrained("my_model"), data, data)
    >>> sorted(training.evaluate(task, training.TrainingConfig(output_dir="my_run")))
    ['accuracy', 'loss']
    """
    strategy = strategy or strategy_lib.build_strategy(config)
    model = load_model(task, config, checkpoint, strategy)
    predictor = evaluator_lib.Predictor(model, strategy, "evaluating", task.model_features)
    evaluator = evaluator_lib.Evaluator(
        task=task, predictor=predictor, batch_size=config.eval_batch_size
    )
    with _bad_data_named(task):
        return evaluator.evaluate(num_steps=-1)


@contextlib.contextmanager
def _bad_data_named(task):
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, UnicodeDecodeError):
        task.check_data()  # Bytes of a record in TensorFlow's message need not be UTF-8.
        raise


# Evaluates each new checkpoint of a run, in a separate process from the training.


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
            evaluation.num_steps = run_directory.last_step(config.output_dir, num_steps)
            if _step(latest) >= evaluation.num_steps:
                break
    return evaluation.last_metrics()


class _Evaluation:
    """Evaluates one checkpoint after the other with the same model."""

    def __init__(self, task, config, strategy, num_steps):
        self._output_dir, self.num_steps = config.output_dir, num_steps
        self._strategy = strategy
        with strategy.scope():
            self._model = run_lib.build_model(task, config)
        self._evaluator = evaluator_lib.Evaluator(
            task=task,
            predictor=evaluator_lib.Predictor(
                self._model, strategy, "evaluating", task.model_features
            ),
            batch_size=config.eval_batch_size,
        )
        self._log = progress.MetricsLog(os.path.join(self._output_dir, run_lib.EVAL_LOG))
        self._summaries = tf.summary.create_file_writer(os.path.join(self._output_dir, "eval"))
        self._metric, self._best = task.best_metric, None
        self._step = None
        if task.best_metric:
            self._best = saving.BestCheckpoint(
                self._output_dir,
                task.best_metric,
                higher_is_better=task.higher_is_better,
                save=lambda: saving.save_best(self._output_dir, self._model, self._step),
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
