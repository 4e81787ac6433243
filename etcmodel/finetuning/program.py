"""The program that every task's `run_finetuning` is: train, evaluate, export or predict.

`train` makes checkpoints in --output_dir (and evaluates them where the evaluation flags are given);
`continuous_eval` evaluates each of them in a process beside it; `evaluate` prints the official
metrics of the best checkpoint, and `predict_records` writes its predictions for records without
answers; `export` writes it as a SavedModel; `predict` makes predictions for a raw file with an
exported model. What follows training takes from the run what it was trained with.
"""

import dataclasses
import json
import os
import sys

import tensorflow as tf
from absl import app, flags, logging

from etcmodel import training
from etcmodel.finetuning import predictor as predictor_lib
from etcmodel.finetuning import records, release_flags, trained_run
from etcmodel.models import modeling
from etcmodel.preprocessing import options as options_lib

__all__ = ["Program", "run_program"]

flags.disclaim_key_flags()  # The flags are those of the program that calls, as --help shows them.

# What a mode cannot do without: shared flags, and fields of the task's configuration.
_NEEDED_FLAGS = {
    "train": ("output_dir", "etc_config_file"),
    "evaluate": ("output_dir",),
    "continuous_eval": ("output_dir",),
    "predict_records": ("output_dir",),
    "export": ("output_dir",),
    "predict": (),
}
_NEEDED_FIELDS = {
    "train": ("train_pattern",),
    "evaluate": ("eval_pattern", "gold_file"),
    "continuous_eval": ("eval_pattern", "gold_file"),
    "predict_records": ("eval_pattern", "gold_file"),
    "export": (),
    "predict": ("input_file",),
}
_AFTER_TRAINING = ("evaluate", "continuous_eval", "predict_records", "export")


def run_program(task_class, predictor_class, *, defaults=None, release=None):
    """Runs a task's fine-tuning program, as its flags say.

    Args:
        task_class: subclass of `FinetuningTask`.
        predictor_class: subclass of `Predictor`.
        defaults: dict of `TrainingConfig` field to the task's own default.
        release: `ReleaseFlags`. Other names of flags.
    """
    program = Program(task_class, predictor_class, release=release or release_flags.ReleaseFlags())
    program.define_flags(defaults or {})
    app.run(program.main)


@dataclasses.dataclass(frozen=True)
class Program:
    """A task's program.

    Attributes:
        task_class: subclass of `FinetuningTask`.
        predictor_class: subclass of `Predictor`.
        flag_values: `flags.FlagValues` to define and read.
        release: `ReleaseFlags`.
    """

    task_class: type
    predictor_class: type
    flag_values: flags.FlagValues = flags.FLAGS
    release: release_flags.ReleaseFlags = dataclasses.field(
        default_factory=release_flags.ReleaseFlags
    )

    def define_flags(self, defaults):
        """Defines all flags: the training's, the task's, the release's and this program's own.

        Args:
            defaults: dict of `TrainingConfig` field to the task's own default.
        """
        training.define_training_flags(self.flag_values, **defaults)
        if self.flag_values is flags.FLAGS:
            flags.adopt_module_key_flags(sys.modules["etcmodel.training.flags"])
        options_lib.define_flags(self.task_class.config_class, self.flag_values)
        flags.DEFINE_string(
            "export_dir",
            None,
            "Directory of exported models, each in a folder named by its step. None: export in "
            "--output_dir.",
            flag_values=self.flag_values,
        )
        flags.DEFINE_string(
            "export_ckpts",
            None,
            "Checkpoint to evaluate or export (path prefix). None: the best one, else the latest.",
            flag_values=self.flag_values,
        )
        flags.DEFINE_float(
            "eval_timeout",
            None,
            "Seconds without a new checkpoint after which continuous_eval ends, even if the run is "
            "not at its last step. None: it waits on.",
            lower_bound=0.0,
            flag_values=self.flag_values,
        )
        self.release.define(self.flag_values)

    def main(self, unused_argv):
        """Does what the parsed flags say; prints errors as one line and exits with 1."""
        logging.set_verbosity(logging.INFO)
        modes = {
            "train": self._train,
            "evaluate": self._evaluate,
            "continuous_eval": self._continuous_eval,
            "predict_records": self._predict_records,
            "export": self._export,
            "predict": self._predict,
        }
        try:
            self.resolve_flags()
            self.check_flags()
            modes[self._flag("run_mode")]()
        except (ValueError, OSError, ArithmeticError, tf.errors.OpError) as error:
            print(f"error: {training.error_line(error)}", file=sys.stderr)
            sys.exit(1)

    def resolve_flags(self):
        """Sets the flags that those of the release stand for, and tells what they are.

        Raises:
            ValueError: if two flags contradict each other.
        """
        for line in self.release.resolve(self.flag_values):
            print(line, file=sys.stderr)

    def check_flags(self):
        """Checks the flags of the mode.

        Raises:
            ValueError: if the mode lacks a flag.
        """
        mode, name = self._flag("run_mode"), self._name
        is_run_given = mode in ("train", "continuous_eval") or self._run() is not None
        needed = [*_NEEDED_FLAGS[mode], *map(name, _NEEDED_FIELDS[mode])]
        if mode in _AFTER_TRAINING and not is_run_given:
            needed.insert(1, "etc_config_file")  # Nothing else tells of the model.
        if mode == "predict" and not self._flag("output_dir"):
            needed.append("export_dir")
        if self._flag(name("gold_file")):
            needed += [name("eval_pattern")] if mode == "train" else []
        elif self._flag(name("eval_pattern")) and mode == "train":
            needed.append(name("gold_file"))
        if not self._needs_raw_examples(mode):
            needed = [flag for flag in needed if flag != name("gold_file")]
        missing = [flag for flag in needed if not self._flag(flag)]
        if missing:
            names = ", ".join(f"--{name}" for name in missing)
            raise ValueError(f"--run_mode={mode} also needs {names}.")

    def _needs_raw_examples(self, mode):
        task_class = self.task_class
        is_prediction = mode == "predict_records"
        return task_class.decoding_needs_examples if is_prediction else task_class.needs_gold

    def make_task(self):
        """The task that the flags describe, and after training the run.

        Raises:
            ValueError: if an option or a file does not fit, or a flag contradicts the run.
        """
        config_class, path = self.task_class.config_class, self._flag("etc_config_file")
        etc_config = modeling.EtcConfig.from_json_file(path) if path else None
        if run := self._run():
            etc_config = run.etc_config(etc_config)
            values = run.values(config_class, self.flag_values)
            values |= self._vocabulary(run, values)
        else:
            values = options_lib.values_from_flags(config_class, self.flag_values)
        if self._flag("run_mode") == "train":
            settings = records.settings(values["train_pattern"])
            values |= trained_run.features_of_records(config_class, self.flag_values, settings)
        if self._flag("grad_checkpointing_period") is not None:
            etc_config.grad_checkpointing_period = self._flag("grad_checkpointing_period")
        values["predictions_file"] = self._predictions_file()
        config = config_class(etc_config=etc_config, **values)
        options_lib.check_files(config)
        return self.task_class(config)

    def training_config(self):
        """The `TrainingConfig` of the flags, and after training of the run.

        Raises:
            ValueError: if a value is outside its range, or a flag contradicts the run.
        """
        if run := self._run():
            return run.training_config(self.flag_values)
        return training.training_config_from_flags(self.flag_values)

    def _run(self):
        """The run that weights are from; None if there is none, or it is yet to be trained."""
        if self._flag("run_mode") not in _AFTER_TRAINING:
            return None
        return trained_run.TrainedRun.find(self._flag("output_dir"), self._flag("export_ckpts"))

    def _vocabulary(self, run, values):
        """The run's vocabulary where no flag gives one: dict of a field to its file."""
        if values["vocab_file"] or values["spm_model_file"]:
            return {}
        try:
            return run.vocabulary()
        except ValueError:
            if self.task_class.decoding_needs_vocabulary or self._flag("run_mode") == "export":
                raise
            return {}

    def _train(self):
        training_config = self.training_config()
        task = self._measurable_task()
        task.check_run(training_config.output_dir)
        if metrics := training.train(task, training_config):
            print(json.dumps(metrics))

    def _evaluate(self):
        training_config, task = self.training_config(), self._measurable_task()
        checkpoint = self._flag("export_ckpts")
        print(json.dumps(training.evaluate(task, training_config, checkpoint)))

    def _continuous_eval(self):
        if self._flag("export_ckpts"):
            raise ValueError("--export_ckpts: --run_mode=continuous_eval evaluates all. Leave it.")
        timeout = self._flag("eval_timeout")
        training.wait_for_run(self._flag("output_dir"), timeout)
        if not (self._run() or self._flag("etc_config_file")):
            raise ValueError("--run_mode=continuous_eval also needs --etc_config_file.")
        training_config, task = self.training_config(), self._measurable_task()
        num_steps = self._run().num_train_steps if self._run() else None
        metrics = training.continuous_eval(
            task, training_config, num_steps=num_steps, timeout=timeout
        )
        print(json.dumps(metrics))

    def _predict_records(self):
        training_config, task = self.training_config(), self._measurable_task()
        outputs = training.predict(task, training_config, self._flag("export_ckpts"))
        self._write(task, task.predict(outputs))

    def _write(self, task, predictions):
        path = self._predictions_file() or "predictions.json"
        task.write_predictions(path, predictions)
        print(f"{task.num_predictions(predictions)} predictions: {path}")

    def _measurable_task(self):
        task = self.make_task()
        if self._flag("run_mode") != "train":
            task.check_run(self._run_directory())
        if task.config.eval_pattern and task.decoding_needs_vocabulary:
            _ = task.tokenizer  # Better to fail now than after training.
        return task

    def _run_directory(self):
        run = self._run()
        return run.directory if run else self._flag("output_dir")

    def _export(self):
        training_config, task = self.training_config(), self.make_task()
        checkpoint = self._flag("export_ckpts") or training.best_checkpoint(
            training_config.output_dir
        )
        task.check_run(self._run_directory())
        _ = task.tokenizer  # An export has the vocabulary with it.
        model = training.load_model(task, training_config, checkpoint)
        step = checkpoint.rpartition("-")[2]
        version = step if step.isdigit() else "0"
        print(predictor_lib.export(model, task, os.path.join(self._export_dir(), version)))

    def _predict(self):
        path = self._flag(self._name("input_file"))
        if not tf.io.gfile.exists(path):
            raise ValueError(f"--{self._name('input_file')}: no such file: {path!r}")
        chosen = options_lib.values_from_flags(
            self.task_class.config_class, self.flag_values, only_given=True, roles=("decoding",)
        )
        batch_size = training.training_config_from_flags(self.flag_values).predict_batch_size
        predictor = self.predictor_class(self._export_dir(), **chosen)
        trained_run.check_export(
            predictor.config, self.flag_values, f"the export in {self._export_dir()}"
        )
        predictions = predictor.predict(predictor.read_examples(path), batch_size)
        self._write(predictor.task, predictions)

    def _export_dir(self):
        return self._flag("export_dir") or os.path.join(self._flag("output_dir"), "export")

    def _predictions_file(self):
        path = self._flag(self._name("predictions_file"))
        if path or not self._flag("output_dir"):
            return path
        return os.path.join(self._flag("output_dir"), "predictions.json")

    def _name(self, field_name):
        return self.task_class.config_class.flag_name(field_name)

    def _flag(self, name):
        return self.flag_values[name].value
