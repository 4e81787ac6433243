"""The program that every task's `run_finetuning` is: train, evaluate, export or predict.

`train` makes checkpoints in --output_dir (and evaluates them where the evaluation flags are given);
`evaluate` prints the official metrics of the best checkpoint; `export` writes it as a SavedModel;
`predict` makes predictions for a raw file with an exported model.
"""

import dataclasses
import json
import os
import sys

import tensorflow as tf
from absl import app, flags, logging

from etcmodel import training
from etcmodel.finetuning import predictor as predictor_lib
from etcmodel.models import modeling
from etcmodel.preprocessing import options as options_lib

__all__ = ["run_program"]

flags.disclaim_key_flags()  # The flags are those of the program that calls, as --help shows them.

# What a mode cannot do without: shared flags, and fields of the task's configuration.
_NEEDED_FLAGS = {
    "train": ("output_dir", "etc_config_file"),
    "evaluate": ("output_dir", "etc_config_file"),
    "export": ("output_dir", "etc_config_file"),
    "predict": (),
}
_NEEDED_FIELDS = {
    "train": ("train_pattern",),
    "evaluate": ("eval_pattern", "gold_file"),
    "export": (),
    "predict": ("input_file",),
}


def run_program(task_class, predictor_class, *, defaults=None, aliases=None):
    """Runs a task's fine-tuning program, as its flags say.

    Args:
        task_class: subclass of `FinetuningTask`.
        predictor_class: subclass of `Predictor`.
        defaults: dict of `TrainingConfig` field to the task's own default.
        aliases: dict of a further name of a shared training flag to that flag.
    """
    program = Program(task_class, predictor_class)
    program.define_flags(defaults or {}, aliases or {})
    app.run(program.main)


@dataclasses.dataclass(frozen=True)
class Program:
    """A task's program.

    Attributes:
        task_class: subclass of `FinetuningTask`.
        predictor_class: subclass of `Predictor`.
        flag_values: `flags.FlagValues` to define and read.
    """

    task_class: type
    predictor_class: type
    flag_values: flags.FlagValues = flags.FLAGS

    def define_flags(self, defaults, aliases):
        """Defines all flags: the training's, the task's and this program's own."""
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
        for name, original in aliases.items():
            flags.DEFINE_alias(name, original, flag_values=self.flag_values)

    def main(self, unused_argv):
        """Does what the parsed flags say; tells of errors in a line and exits with 1."""
        logging.set_verbosity(logging.INFO)
        modes = {
            "train": self._train,
            "evaluate": self._evaluate,
            "export": self._export,
            "predict": self._predict,
        }
        try:
            self.check_flags()
            modes[self._flag("run_mode")](training.training_config_from_flags(self.flag_values))
        except (ValueError, OSError, ArithmeticError, tf.errors.OpError) as error:
            print(f"error: {getattr(error, 'message', error)}", file=sys.stderr)
            sys.exit(1)

    def check_flags(self):
        """Checks the flags of the mode.

        Raises:
            ValueError: if the mode lacks a flag.
        """
        mode = self._flag("run_mode")
        needed = [*_NEEDED_FLAGS[mode], *map(self._name, _NEEDED_FIELDS[mode])]
        missing = [name for name in needed if not self._flag(name)]
        if mode == "predict" and not (self._flag("export_dir") or self._flag("output_dir")):
            missing.append("export_dir")
        measured = [self._name("eval_pattern"), self._name("gold_file")]
        given = [name for name in measured if self._flag(name)]
        if len(given) == 1:
            missing += [name for name in measured if name not in (*given, *missing)]
        if missing:
            names = ", ".join(f"--{name}" for name in missing)
            raise ValueError(f"--run_mode={mode} also needs {names}.")

    def make_task(self):
        """The task that the flags describe.

        Raises:
            ValueError: if an option or a file does not fit.
        """
        config_class = self.task_class.config_class
        etc_config = modeling.EtcConfig.from_json_file(self._flag("etc_config_file"))
        if self._flag("grad_checkpointing_period") is not None:
            etc_config.grad_checkpointing_period = self._flag("grad_checkpointing_period")
        values = options_lib.values_from_flags(config_class, self.flag_values)
        values["predictions_file"] = self._predictions_file()
        config = config_class(etc_config=etc_config, **values)
        options_lib.check_files(config)
        return self.task_class(config)

    def _train(self, training_config):
        metrics = training.train(self._measurable_task(), training_config)
        if metrics:
            print(json.dumps(metrics))

    def _evaluate(self, training_config):
        checkpoint = self._flag("export_ckpts")
        print(json.dumps(training.evaluate(self._measurable_task(), training_config, checkpoint)))

    def _measurable_task(self):
        task = self.make_task()
        if task.config.eval_pattern:
            _ = task.tokenizer  # Decoding needs it: better to fail now than after training.
        return task

    def _export(self, training_config):
        task = self.make_task()
        task.check_run(training_config.output_dir)
        checkpoint = self._flag("export_ckpts") or training.best_checkpoint(
            training_config.output_dir
        )
        model = training.load_model(task, training_config, checkpoint)
        step = checkpoint.rpartition("-")[2]
        version = step if step.isdigit() else "0"
        print(predictor_lib.export(model, task, os.path.join(self._export_dir(), version)))

    def _predict(self, training_config):
        path = self._flag(self._name("input_file"))
        if not tf.io.gfile.exists(path):
            raise ValueError(f"--{self._name('input_file')}: no such file: {path!r}")
        chosen = options_lib.values_from_flags(
            self.task_class.config_class, self.flag_values, only_given=True, roles=("decoding",)
        )
        predictor = self.predictor_class(self._export_dir(), **chosen)
        predictions = predictor.predict(
            predictor.read_examples(path), training_config.predict_batch_size
        )
        predictions_file = self._predictions_file() or "predictions.json"
        predictor.task.write_predictions(predictions_file, predictions)
        print(f"{predictor.task.num_predictions(predictions)} predictions: {predictions_file}")

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
