"""Fine-tunes, evaluates, exports and runs ETC on HotpotQA (paper, section 4.1, appendix C).

Modes: `train` makes checkpoints in --output_dir (and evaluates them where the evaluation flags are
given); `evaluate` prints the official metrics of the best checkpoint; `export` writes it as a
SavedModel; `predict` answers the questions of a raw JSON file with an exported model.
"""

import json
import os
import sys

import tensorflow as tf
from absl import app, flags, logging

from etcmodel import training
from etcmodel.models import modeling

from . import examples, predict, task

_TRAIN_PATTERN = flags.DEFINE_string(
    "train_tf_examples_filepattern", None, "Training TFRecords of preprocess, wildcards allowed."
)
_NUM_TRAIN = flags.DEFINE_integer(
    "num_train_tf_examples", None, "Number of training records. None: they are counted."
)
_EVAL_PATTERN = flags.DEFINE_string(
    "predict_tf_examples_filepattern",
    None,
    "TFRecords to evaluate on (preprocess with --is_training=false), wildcards allowed.",
)
_GOLD = flags.DEFINE_string(
    "predict_gold_json_file", None, "HotpotQA JSON with the answers of those examples."
)
_INPUT_JSON = flags.DEFINE_string(
    "predict_input_json_file",
    None,
    "Raw HotpotQA JSON of the questions to answer, in mode predict.",
)
_PREDICTIONS = flags.DEFINE_string(
    "predictions_file",
    None,
    "Where predictions go, in the official format. None: predictions.json in --output_dir.",
)
_EXPORT_DIR = flags.DEFINE_string(
    "export_dir",
    None,
    "Directory of exported models, each in a folder named by its step. None: export in "
    "--output_dir.",
)
_CHECKPOINT = flags.DEFINE_string(
    "export_ckpts",
    None,
    "Checkpoint to evaluate or export (path prefix). None: the best one, else the latest.",
)
_SPM_MODEL = flags.DEFINE_string(
    "spm_model_file", "", "SentencePiece model. If given, --vocab_file is ignored."
)
_VOCAB = flags.DEFINE_string("vocab_file", "", "WordPiece vocabulary, one piece a line.")
_DO_LOWER_CASE = flags.DEFINE_bool("do_lower_case", True, "Lower-case text, for word pieces.")
_MAX_LONG = flags.DEFINE_integer(
    "max_long_seq_length", 4096, "Length of the long input in tokens; that of the records."
)
_MAX_GLOBAL = flags.DEFINE_integer(
    "max_global_seq_length", 230, "Length of the global input in tokens; that of the records."
)
_ANSWER_ENCODING = flags.DEFINE_enum(
    "answer_encoding_method",
    "span",
    ["span", "bio"],
    "Whether an answer is found by its first and last token or by a BIO id for each token.",
)
_FLAT_SEQUENCE = flags.DEFINE_bool(
    "flat_sequence", False, "Ignore paragraphs in masks and labels (paper, table 3)."
)
_INITIALIZATION = flags.DEFINE_enum(
    "initialization",
    "random",
    ["random", "mimetic"],
    "Weights of a new run without --init_checkpoint; mimetic (see etcmodel.models.initialization) "
    "lets small models learn from little data.",
)
_THRESHOLD = flags.DEFINE_float(
    "supporting_fact_threshold", 0.5, "Least probability of a supporting fact, from 0 to 1."
)
_MAX_ANSWER = flags.DEFINE_integer("max_answer_length", 30, "Longest answer, in tokens.")
_RELEASE_COMPATIBLE = flags.DEFINE_bool(
    "release_compatible", False, "Repeat the faults of the authors' release (see the README)."
)

_NEEDED = {
    "train": ("output_dir", "etc_config_file", "train_tf_examples_filepattern"),
    "evaluate": (
        "output_dir",
        "etc_config_file",
        "predict_tf_examples_filepattern",
        "predict_gold_json_file",
    ),
    "export": ("output_dir", "etc_config_file"),
    "predict": ("predict_input_json_file",),
}


def _check_flags():
    """Raises ValueError if the mode lacks a flag or a file."""
    mode = flags.FLAGS.run_mode
    missing = [name for name in _NEEDED[mode] if not flags.FLAGS[name].value]
    if mode == "predict" and not (_EXPORT_DIR.value or flags.FLAGS.output_dir):
        missing.append("export_dir")
    if bool(_EVAL_PATTERN.value) != bool(_GOLD.value):
        missing.append(_GOLD.name if _EVAL_PATTERN.value else _EVAL_PATTERN.name)
    if missing:
        names = ", ".join(f"--{name}" for name in missing)
        raise ValueError(f"--run_mode={mode} also needs {names}.")
    for flag in (_GOLD, _INPUT_JSON, _VOCAB, _SPM_MODEL):
        if flag.value and not tf.io.gfile.exists(flag.value):
            raise ValueError(f"--{flag.name}: no such file: {flag.value!r}")


def _etc_config():
    config = modeling.EtcConfig.from_json_file(flags.FLAGS.etc_config_file)
    if flags.FLAGS.grad_checkpointing_period is not None:
        config.grad_checkpointing_period = flags.FLAGS.grad_checkpointing_period
    return config


def _predictions_file():
    if _PREDICTIONS.value or not flags.FLAGS.output_dir:
        return _PREDICTIONS.value
    return os.path.join(flags.FLAGS.output_dir, "predictions.json")


def _task_config():
    return task.HotpotQaConfig(
        etc_config=_etc_config(),
        max_long_seq_length=_MAX_LONG.value,
        max_global_seq_length=_MAX_GLOBAL.value,
        answer_encoding_method=_ANSWER_ENCODING.value,
        flat_sequence=_FLAT_SEQUENCE.value,
        supporting_fact_threshold=_THRESHOLD.value,
        max_answer_length=_MAX_ANSWER.value,
        release_compatible=_RELEASE_COMPATIBLE.value,
        vocab_file=_VOCAB.value or None,
        spm_model_file=_SPM_MODEL.value or None,
        do_lower_case=_DO_LOWER_CASE.value,
        train_pattern=_TRAIN_PATTERN.value,
        eval_pattern=_EVAL_PATTERN.value,
        num_train_examples=_NUM_TRAIN.value,
        initialization=_INITIALIZATION.value,
        gold_json_file=_GOLD.value,
        predictions_file=_predictions_file(),
    )


def _hotpotqa_task():
    config = _task_config()
    if config.eval_pattern:
        config.tokenizer()  # Decoding needs it: better to fail now than after training.
    return task.HotpotQaTask(config)


def _train(training_config):
    metrics = training.train(_hotpotqa_task(), training_config)
    if metrics:
        print(json.dumps(metrics))


def _evaluate(training_config):
    print(json.dumps(training.evaluate(_hotpotqa_task(), training_config, _CHECKPOINT.value)))


def _export(training_config):
    hotpotqa_task = task.HotpotQaTask(_task_config())
    checkpoint = _CHECKPOINT.value or training.best_checkpoint(training_config.output_dir)
    model = training.load_model(hotpotqa_task, training_config, checkpoint)
    directory = _EXPORT_DIR.value or os.path.join(training_config.output_dir, "export")
    step = checkpoint.rpartition("-")[2]
    version = step if step.isdigit() else "0"
    print(predict.export(model, hotpotqa_task.config, os.path.join(directory, version)))


def _predict(training_config):
    directory = _EXPORT_DIR.value or os.path.join(training_config.output_dir, "export")
    chosen = [_THRESHOLD, _MAX_ANSWER, _RELEASE_COMPATIBLE]
    options = {flag.name: flag.value for flag in chosen if flag.present}
    predictor = predict.HotpotQaPredictor(directory, **options)
    questions = examples.read_examples(_INPUT_JSON.value)
    predicted = predictor.predict(questions, training_config.predict_batch_size)
    path = _predictions_file() or "predictions.json"
    task.write_json(path, predicted)
    print(f"{len(predicted['answer'])} predictions: {path}")


_MODES = {"train": _train, "evaluate": _evaluate, "export": _export, "predict": _predict}


def main(unused_argv):
    logging.set_verbosity(logging.INFO)
    try:
        _check_flags()
        training_config = training.training_config_from_flags()
        _MODES[flags.FLAGS.run_mode](training_config)
    except (ValueError, OSError, ArithmeticError, tf.errors.OpError) as error:
        print(f"error: {getattr(error, 'message', error)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    training.define_training_flags()
    flags.adopt_module_key_flags(sys.modules["etcmodel.training.flags"])
    app.run(main)
