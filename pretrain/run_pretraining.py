"""Pre-trains ETC on the records of `preprocess` (paper, sections 3.5 and 4.1, appendices B and C).

Modes: `train` makes checkpoints in --output_dir (and evaluates them where held-out records are
given); `evaluate` prints the metrics of the best checkpoint, of a model and text as the run has
them. A checkpoint is what the fine-tuning programs take as --init_checkpoint; `etc_config.json`
beside it is their --etc_config_file.

  python -m etcmodel.pretrain.run_pretraining --preset=etc_base --output_dir=/models/etc_base \
    --train_tf_examples_filepattern='/data/train-*' --vocab_file=vocab.txt
"""

import dataclasses
import json
import math
import os
import sys

import tensorflow as tf
from absl import app, flags, logging

from etcmodel import atomic_files, training
from etcmodel.finetuning import trained_run
from etcmodel.models import modeling, presets
from etcmodel.preprocessing import options as options_lib

from . import task as task_lib

__all__ = ["DEFAULTS", "Program"]

# Paper, section 4.1 and appendix C; 63,000 steps of 512 windows are 33 epochs of its data.
DEFAULTS = {
    "optimizer": "lamb",
    "learning_rate": math.sqrt(8) * 1e-3,
    "train_batch_size": 512,
    "num_train_epochs": 33.0,
}


@dataclasses.dataclass(frozen=True)
class Program:
    """The program.

    Attributes:
        flag_values: `flags.FlagValues` to define and read.
    """

    flag_values: flags.FlagValues = flags.FLAGS

    def define_flags(self):
        """Defines all flags: the training's, pre-training's and this program's own."""
        training.define_training_flags(self.flag_values, **DEFAULTS)
        if self.flag_values is flags.FLAGS:
            flags.adopt_module_key_flags(sys.modules["etcmodel.training.flags"])
        options_lib.define_flags(task_lib.PretrainConfig, self.flag_values)
        flags.DEFINE_enum(
            "preset",
            None,
            sorted(presets.PRESETS),
            "A model of the paper, with the hard g2l mask, in place of --etc_config_file.",
            flag_values=self.flag_values,
        )

    def main(self, unused_argv):
        """Does what the parsed flags say; tells of errors in a line and exits with 1."""
        logging.set_verbosity(logging.INFO)
        modes = {"train": self._train, "evaluate": self._evaluate}
        try:
            mode = self._flag("run_mode")
            if mode not in modes:
                raise ValueError(f"--run_mode must be one of {', '.join(modes)}. Received: {mode}")
            modes[mode]()
        except (ValueError, OSError, ArithmeticError, tf.errors.OpError) as error:
            print(f"error: {training.error_line(error)}", file=sys.stderr)
            sys.exit(1)

    def _train(self):
        training_config = training.training_config_from_flags(self.flag_values)
        task = self._make_task("train_pattern")
        strategy = training.build_strategy(training_config)
        self._check_devices(task.config, training_config, strategy)
        metrics = training.train(task, training_config, strategy)
        self._write_config(task.config.etc_config)
        if metrics:
            print(json.dumps(metrics))

    def _evaluate(self):
        run = trained_run.TrainedRun.find(self._flag("output_dir"))
        task = self._make_task("eval_pattern", run)
        if run:
            run.check_vocabularies({task.config.tokenizer.source_file: task.vocab_sha256})
            training_config = run.training_config(self.flag_values)
        else:
            training_config = training.training_config_from_flags(self.flag_values)
        print(json.dumps(training.evaluate(task, training_config)))

    def _make_task(self, needed, run=None):
        """The task that the flags describe, and after training the run.

        Args:
            needed: str. The field of the records that it needs.
            run: `TrainedRun` or None.
        """
        config_class = task_lib.PretrainConfig
        needed_flag = options_lib.flag_name(config_class, needed)
        for name in ("output_dir", needed_flag):
            if not self._flag(name):
                raise ValueError(f"--run_mode={self._flag('run_mode')} also needs --{name}.")
        if run:
            is_given = self._flag("preset") or self._flag("etc_config_file")
            etc_config = run.etc_config(self._etc_config() if is_given else None)
            values = run.values(config_class, self.flag_values)
            if not (values["vocab_file"] or values["spm_model_file"]):
                values |= run.vocabulary()
        else:
            etc_config = self._etc_config()
            values = options_lib.values_from_flags(config_class, self.flag_values)
        config = config_class(etc_config=etc_config, **values)
        options_lib.check_files(config)
        _ = config.masking  # Refuses shares and vocabularies before anything is read.
        return task_lib.PretrainTask(config)

    def _etc_config(self):
        preset, path = self._flag("preset"), self._flag("etc_config_file")
        if bool(preset) == bool(path):
            raise ValueError("Either --preset or --etc_config_file must be given, and not both.")
        if preset:
            # The paper's default for global tokens (section 4.2).
            config = presets.preset(preset, use_hard_g2l_mask=True)
        else:
            config = modeling.EtcConfig.from_json_file(path)
        if self._flag("grad_checkpointing_period") is not None:
            config.grad_checkpointing_period = self._flag("grad_checkpointing_period")
        return config

    def _check_devices(self, config, training_config, strategy):
        """Devices cannot talk to each other from within a loop or XLA's own function."""
        is_nested = training_config.gradient_accumulation_steps > 1 or training_config.jit_compile
        if config.gather_negatives and is_nested and strategy.num_replicas_in_sync > 1:
            raise ValueError(
                "--gradient_accumulation_steps and --jit_compile need --nogather_negatives on "
                f"several devices; there are {strategy.num_replicas_in_sync}."
            )

    def _write_config(self, etc_config):
        path = os.path.join(self._flag("output_dir"), "etc_config.json")
        atomic_files.write_text(path, [etc_config.to_json_string()])

    def _flag(self, name):
        return self.flag_values[name].value


if __name__ == "__main__":
    program = Program()
    program.define_flags()
    app.run(program.main)
