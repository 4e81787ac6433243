"""The program behind every task's `run_finetuning`.

Its modes are: `train` saves checkpoints in --output_dir, and evaluates them if the evaluation flags
are given; `continuous_eval` evaluates each of them in another process; `evaluate` prints the
official metrics of the best checkpoint; `predict_records` writes its predictions for records
without answers; `save_pretrained` writes it as a folder for `from_pretrained`; `export` writes it
as a SavedModel; `predict` makes predictions for a raw file with an exported model. The modes after
training take their options from the run; where there is none, `evaluate`, `predict_records` and
`export` use the trained model in --init_checkpoint as it is.
"""

import dataclasses
import os
import sys

import tensorflow as tf
from absl import flags

from etcmodel import options as options_lib
from etcmodel import training
from etcmodel.checkpoints import pretrained
from etcmodel.finetuning import command_line, mode_program, model_folder, records, trained_run
from etcmodel.finetuning import predictor as predictor_lib
from etcmodel.finetuning.command_line import AFTER_TRAINING, NEEDED, OPTIONS_FILE
from etcmodel.models import encoders, piece_ids
from etcmodel.training import run_directory


@dataclasses.dataclass(frozen=True)
class Program(mode_program.ModeProgram):
    """The program of a task.

    Attributes:
        task_class: subclass of `FinetuningTask`.
        predictor_class: subclass of `Predictor`.
        flag_values: `flags.FlagValues` to define and read.
        release: `ReleaseFlags`.
    """

    task_class: type
    predictor_class: type
    flag_values: flags.FlagValues = flags.FLAGS
    release: command_line.ReleaseFlags = dataclasses.field(
        default_factory=command_line.ReleaseFlags
    )

    def define_flags(self, defaults):
        """Defines all flags: see `command_line.define_flags`."""
        config_class = self.task_class.config_class
        command_line.define_flags(config_class, self.release, self.flag_values, defaults)

    def option_flags(self):
        config_class = self.task_class.config_class
        return command_line.option_flags(config_class, self.release, self.flag_values)

    def modes(self):
        return {
            "train": self._train,
            "evaluate": self._evaluate,
            "continuous_eval": self._continuous_eval,
            "predict_records": self._predict_records,
            "save_pretrained": self._save_pretrained,
            "export": self._export,
            "predict": self._predict,
        }

    def resolve_flags(self):
        """Sets flags from aliases, the release's flags and YAML files; see the base class."""
        options = self.option_flags()
        options.resolve_aliases()
        for line in self.release.resolve(self.flag_values):
            print(line, file=sys.stderr)
        options.read_config()

    def check_flags(self):
        """Checks that all flags that the mode needs are given.

        Raises:
            ValueError: naming the missing flags.
        """
        mode = self._flag("run_mode")
        is_run_given = mode == "continuous_eval" or self._run() or self._flag("init_checkpoint")
        needed = list(NEEDED[mode])
        if mode in AFTER_TRAINING and not is_run_given:
            needed.insert(
                1, "model_config_file"
            )  # Without a run, nothing else describes the model.
        if mode == "train" and not (self._begun() or self._flag("init_checkpoint")):
            needed.insert(1, "model_config_file")
        if mode == "predict" and not self._flag("output_dir"):
            needed.append("export_dir")
        if mode == "train" and (self._flag("eval_gold") or self._flag("eval_data")):
            needed += ["eval_data", "eval_gold"]
        if not self._needs_raw_examples(mode):
            needed = [flag for flag in needed if flag != "eval_gold"]
        self.require(*needed)

    def _needs_raw_examples(self, mode):
        task_class = self.task_class
        is_prediction = mode == "predict_records"
        return task_class.decoding_needs_examples if is_prediction else task_class.needs_gold

    def make_task(self):
        """The task, from the flags and, after training, from the run.

        Raises:
            ValueError: if an option or a file does not fit, or a flag contradicts the run.
        """
        config_class, path = self.task_class.config_class, self._flag("model_config_file")
        encoder_config = encoders.read_config(path) if path else None
        if run := self._run():
            encoder_config = run.encoder_config(encoder_config)
            values = run.values(config_class, self.flag_values)
            values |= self._vocabulary(run, values)
        else:
            values = options_lib.values_from_flags(config_class, self.flag_values)
        if self._flag("run_mode") == "train" or self._is_of_model():
            values |= self._values_of_records(values)
            encoder_config = encoder_config or self._first_config(values)
        if self._flag("grad_checkpointing_period") is not None:
            period = self._flag("grad_checkpointing_period")
            encoder_config = encoders.replace(encoder_config, grad_checkpointing_period=period)
        values["predictions_file"] = self._predictions_file()
        config = config_class(encoder_config=encoder_config, **values)
        options_lib.check_files(config)
        task = self.task_class(config)
        if (chosen := config.metric_for_best_model) not in (None, task.best_metric):
            raise ValueError(
                f"--metric_for_best_model={chosen}: {self.task_class.__name__} sets `best_metric` "
                "after `super().__init__`. It must do so before."
            )
        if self._is_of_model():
            model_folder.warn_of_other_inputs(self._flag("init_checkpoint"), config)
            task.read_folder(model_folder.folder_of(self._flag("init_checkpoint")))
        return task

    def _values_of_records(self, values):
        """The values that a model without a run takes from its records and its folder: dict.

        A resumed run has its own vocabulary and its own values for what records only propose. A
        model that is not trained here has those of its head.

        Args:
            values: dict of all options, from flags.
        """
        config_class, folder = self.task_class.config_class, self._flag("init_checkpoint")
        settings = records.settings(values["eval_data" if self._is_of_model() else "train_data"])
        of_records = trained_run.options_of_records(config_class, self.flag_values, settings)
        if begun := self._begun():
            proposed = begun.proposed_values(config_class, self.flag_values)
            return {**of_records, **proposed, **self._vocabulary(begun, values)}
        given = options_lib.values_from_flags(config_class, self.flag_values, only_given=True)
        vocabulary = model_folder.vocabulary(folder, given, settings)
        found = {**vocabulary, **of_records}
        if folder and piece_ids.OPTION in values:
            if vocabulary:
                piece_ids.check_records(folder, settings)
            offset = piece_ids.of_folder(model_folder.folder_of(folder), given)
            found.setdefault(piece_ids.OPTION, offset)
        if self._is_of_model():
            found |= model_folder.head_options(folder, config_class, given)
        else:
            labels = found.get("labels", values.get("labels"))
            model_folder.check_order_of_labels(folder, labels)
        return found

    def _first_config(self, values):
        """The `EncoderConfig` of the resumed run, or of the model that a new run starts from."""
        if begun := self._begun():
            return begun.encoder_config()
        lengths = values["long_seq_length"], values["global_seq_length"]
        return model_folder.encoder_config(self._flag("init_checkpoint"), *lengths)

    def _is_of_model(self):
        """Whether the mode is of a trained model in --init_checkpoint, since there is no run."""
        is_whole = self._flag("run_mode") in ("evaluate", "predict_records", "export")
        return is_whole and bool(self._flag("init_checkpoint")) and self._run() is None

    def _checkpoint(self):
        """The path of the weights that flags name; None for the best ones of --output_dir.

        Raises:
            ValueError: if two places have some, and no flag says which.
        """
        named, folder = self._flag("init_checkpoint"), self._flag("output_dir")
        if self._flag("export_ckpts") or not self._is_of_model():
            return self._flag("export_ckpts")
        if run_directory.checkpoint_paths(folder):
            raise ValueError(
                f"--init_checkpoint={named}: --output_dir={folder} has checkpoints, too. Name the "
                "one to use as --export_ckpts, or choose another --output_dir."
            )
        return named

    def _begun(self):
        """The `TrainedRun` that --run_mode=train resumes; None for a new run."""
        return trained_run.TrainedRun.find(self._flag("output_dir"))

    def training_config(self):
        """The `TrainingConfig`, from the flags and, after training, from the run.

        Raises:
            ValueError: if a value is outside its range, or a flag contradicts the run.
        """
        if run := self._run():
            return run.training_config(self.flag_values)
        return training.TrainingConfig(**self.option_flags().values("training"))

    def effective_options(self, config, training_config):
        """All options in use, as the text of a YAML file for --config.

        Args:
            config: the task's `FinetuningConfig`.
            training_config: `TrainingConfig`.
        Returns:
            str.
        """
        task = options_lib.select(config, *options_lib.ROLES)
        # The default depends on --output_dir, which may change.
        task["predictions_file"] = self._flag("predictions_file")
        program = self.program_values()
        return options_lib.dump({"program": program, "training": training_config, "task": task})

    def _run(self):
        """The `TrainedRun` of the weights; None if there is none, or in training."""
        if self._flag("run_mode") not in AFTER_TRAINING:
            return None
        return trained_run.TrainedRun.find(self._flag("output_dir"), self._flag("export_ckpts"))

    def _vocabulary(self, run, values):
        """The run's vocabulary if no flag gives one: dict of field name to file."""
        if values["vocab_file"] or values["spm_model_file"]:
            return {}
        try:
            return run.vocabulary()
        except ValueError:
            mode = self._flag("run_mode")
            is_decoded = mode != "train" or values["eval_data"]
            is_written = mode in ("export", "save_pretrained")
            if (self.task_class.decoding_needs_vocabulary and is_decoded) or is_written:
                raise
            return {}

    def _train(self):
        changes, task = self.changes(), self._measurable_task()
        training_config = self._with_optimizer_of_release(self.training_config(), task.config)
        resumed = training.resumed_config(training_config, changes)
        task.check_run(training_config.output_dir)
        task.kept_files = {OPTIONS_FILE: self.effective_options(task.config, resumed)}
        ending = mode_program.Ending(task, training_config.output_dir)
        if metrics := training.train(task, training_config, changes=changes, callbacks=[ending]):
            training.show_metrics(metrics)
        ending.tell(*self._commands_after_training(training_config.output_dir, task.config))

    def _with_optimizer_of_release(self, training_config, config):
        """The `TrainingConfig`, with the bias correction that a run has if no flag says it."""
        name = "adam_bias_correction"
        if getattr(training_config, name) is not None:
            return training_config
        if begun := self._begun():  # Runs of earlier versions do not know it, and correct.
            chosen = begun.training.get(name)
        else:
            is_adam = training_config.optimizer in ("adamw", "lamb")
            chosen = False if config.release_compatible and is_adam else None
        return dataclasses.replace(training_config, **{name: chosen})

    def _commands_after_training(self, output_dir, config):
        """The next commands: evaluate the best checkpoint or report on it, and serve it."""
        # Some tasks are trained without a vocabulary, which an export always needs.
        vocabulary = {} if config.has_vocabulary() else {"vocab_file": "VOCAB_FILE"}
        if self._flag("eval_data"):
            page = os.path.join(output_dir, "report.html")
            measure = mode_program.command("report", run=output_dir, output=page)
        else:
            missing = {flag: flag.upper() for flag in ("eval_data", "eval_gold")}
            if not self._needs_raw_examples("evaluate"):
                del missing["eval_gold"]
            given = {"output_dir": output_dir, **missing}
            measure = mode_program.command_of_program("evaluate", **given)
        export_dir = {"export_dir": self._flag("export_dir")} if self._flag("export_dir") else {}
        given = {"output_dir": output_dir, **vocabulary, **export_dir}
        export = mode_program.command_of_program("export", **given)
        return measure, export, mode_program.command("serve", model_dir=self._export_dir())

    def _evaluate(self):
        training_config, task = self.training_config(), self._measurable_task()
        checkpoint = self._checkpoint()
        training.show_metrics(task.evaluate_checkpoint(training_config, checkpoint))

    def _continuous_eval(self):
        if self._flag("export_ckpts"):
            raise ValueError("--export_ckpts: --run_mode=continuous_eval evaluates all. Leave it.")
        self.evaluate_continuously(self._evaluation_of_run)

    def _evaluation_of_run(self):
        if not (self._run() or self._flag("model_config_file")):
            raise ValueError("--run_mode=continuous_eval also needs --model_config_file.")
        training_config, task = self.training_config(), self._measurable_task()
        num_steps = self._run().last_step if self._run() else None
        return task, training_config, num_steps

    def _predict_records(self):
        training_config, task = self.training_config(), self._measurable_task()
        path, checkpoint = self._predictions_path(), self._checkpoint()
        print(f"{task.predict_records(training_config, checkpoint, path)} predictions: {path}")

    def _measurable_task(self):
        task = self.make_task()
        if self._flag("run_mode") != "train":
            task.check_run(self._run_directory())
        if task.config.eval_data and task.decoding_needs_vocabulary:
            _ = task.tokenizer  # To fail before training rather than after it.
        return task

    def _run_directory(self):
        run = self._run()
        return run.directory if run else self._flag("output_dir")

    def _save_pretrained(self):
        if not self.task_class.saves_head:
            raise _no_head(self.task_class.title)
        if self._run() is None:
            raise ValueError(f"--output_dir={self._flag('output_dir')} has no run to save.")
        training_config, task = self.training_config(), self.make_task()
        task.check_run(self._run_directory())
        checkpoint = self._checkpoint() or training.best_checkpoint(training_config.output_dir)
        model = training.load_model(task, training_config, checkpoint)
        if (found := task.pretrained_parts(model)) is None:
            raise _no_head(f"{task.config.encoder_config.model_type!r}")
        made, processor = found
        pretrained.save_pretrained(made, self.pretrained_dir(), processor)
        print(self.pretrained_dir())

    def _export(self):
        training_config, task = self.training_config(), self.make_task()
        checkpoint = self._checkpoint() or training.best_checkpoint(training_config.output_dir)
        task.check_run(self._run_directory())
        _ = task.tokenizer  # An export needs the vocabulary.
        model = training.load_model(task, training_config, checkpoint)
        step = checkpoint.rpartition("-")[2]
        version = step if step.isdigit() and not tf.io.gfile.isdir(checkpoint) else "0"
        print(predictor_lib.export(model, task, os.path.join(self._export_dir(), version)))

    def _predict(self):
        path = self._flag("input_file")
        if not tf.io.gfile.exists(path):
            raise ValueError(f"--input_file: no such file: {path!r}")
        chosen = options_lib.values_from_flags(
            self.task_class.config_class,
            self.flag_values,
            only_given=True,
            roles=("inference", "decoding"),
        )
        batch_size = training.TrainingConfig(
            **self.option_flags().values("training")
        ).predict_batch_size
        predictor = self.predictor_class(self._export_dir(), **chosen)
        trained_run.check_export(
            predictor.config, self.flag_values, f"the export in {self._export_dir()}"
        )
        written = self._predictions_path()
        print(f"{predictor.predict_file(path, written, batch_size)} predictions: {written}")

    def _export_dir(self):
        return self._flag("export_dir") or os.path.join(self._flag("output_dir"), "export")

    def _predictions_path(self):
        return self._predictions_file() or "predictions.json"

    def _predictions_file(self):
        path = self._flag("predictions_file")
        if path or not self._flag("output_dir"):
            return path
        return os.path.join(self._flag("output_dir"), "predictions.json")


def _no_head(name):
    return ValueError(
        f"--run_mode=save_pretrained: no class for `from_pretrained` has the model of {name}. "
        "`etcmodel export` writes it as a SavedModel; --init_checkpoint takes the run's encoder."
    )
