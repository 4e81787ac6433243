"""The whole way on generated data: preprocess, train, evaluate, export, predict, report.

Runs the programs as a user runs them, each as a command of its own, and prints the commands. What
they make lies in --output_dir; `report.html` there shows the results.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from absl import app, flags

from etcmodel.tasks.hotpotqa import evaluate, examples
from etcmodel.tools import baselines, report_html

_FIGURES = ("em", "f1", "sp_em", "sp_f1", "joint_em", "joint_f1")
_LONG_LENGTH, _GLOBAL_LENGTH = 208, 64
_BATCH_SIZE = 16
ETC_CONFIG = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "local_radius": _LONG_LENGTH,  # Every token sees the question and all paragraphs.
    "relative_pos_max_distance": 8,
    "relative_vocab_size": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    # The released models are 12 times wider: a narrow layer needs larger weights to begin with.
    "initializer_range": 0.1,
    "share_qkv_projections": True,
    "use_hard_g2l_mask": True,
    "use_pre_activation_order": True,
}


def define_flags():
    """Defines this program's flags."""
    flags.DEFINE_string("output_dir", "demo_output", "Directory to make; an old one is replaced.")
    flags.DEFINE_integer("num_train", 27000, "Generated training questions.", lower_bound=1)
    flags.DEFINE_integer("num_dev", 500, "Generated questions to measure on.", lower_bound=1)
    flags.DEFINE_float("num_train_epochs", 1.1, "Passes over the training questions.")
    flags.DEFINE_integer("seed", 0, "Seed of data and training.")


def run(module, **arguments):
    """Runs a program of the package, showing its command line; stops the demo if it fails."""
    shown = [f"--{name}={value}" for name, value in arguments.items()]
    print(f"\n$ python -m etcmodel.{module} \\\n    " + " \\\n    ".join(shown), flush=True)
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
    done = subprocess.run([sys.executable, "-m", f"etcmodel.{module}", *shown], env=environment)
    if done.returncode:
        sys.exit(f"demo: etcmodel.{module} failed with exit code {done.returncode}")


def preprocess(folder, split, *, is_training):
    """TFRecords from raw JSON."""
    run(
        "tasks.hotpotqa.preprocess",
        input_json_filename=folder / f"hotpotqa_{split}.json",
        output_tf_examples_file_path_prefix=folder / "records" / split,
        vocab_file=folder / "vocab.txt",
        long_seq_length=_LONG_LENGTH,
        global_seq_length=_GLOBAL_LENGTH,
        num_shards=4,
        is_training=is_training,
        debug=False,
    )


def finetune(folder, run_mode, **arguments):
    """A mode of the fine-tuning program."""
    run(
        "tasks.hotpotqa.run_finetuning", run_mode=run_mode, output_dir=folder / "model", **arguments
    )


def read_json(path):
    """The content of a JSON file."""
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def read_jsonl(path):
    """One dict a line."""
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def write_config(folder):
    """The model's sizes, for the vocabulary that was made."""
    vocab_size = len((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    config = {**ETC_CONFIG, "vocab_size": vocab_size}
    (folder / "etc_config.json").write_text(json.dumps(config, indent=2))


def write_questions(folder):
    """The dev questions without their answers, to show that none is needed to predict."""
    kept = ("_id", "question", "context")
    dev = read_json(folder / "hotpotqa_dev.json")
    questions = [{name: example[name] for name in kept} for example in dev]
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")


def train_and_predict(folder):
    """Runs the fine-tuning program's four modes."""
    model = {
        "etc_config_file": folder / "etc_config.json",
        "vocab_file": folder / "vocab.txt",
        "max_long_seq_length": _LONG_LENGTH,
        "max_global_seq_length": _GLOBAL_LENGTH,
        "flat_sequence": True,
    }
    measured = {
        "predict_tf_examples_filepattern": folder / "records" / "dev-*.tfrecord",
        "predict_gold_json_file": folder / "hotpotqa_dev.json",
    }
    finetune(
        folder,
        "train",
        **model,
        **measured,
        train_tf_examples_filepattern=folder / "records" / "train-*.tfrecord",
        num_train_epochs=flags.FLAGS.num_train_epochs,
        train_batch_size=_BATCH_SIZE,
        learning_rate=4e-3,
        poly_power=0.5,
        warmup_proportion=0.05,
        initialization="mimetic",
        save_checkpoints_steps=600,
        steps_per_summary=25,
        eval_batch_size=100,
        random_seed=flags.FLAGS.seed,
    )
    finetune(folder, "evaluate", **model, **measured, eval_batch_size=100)
    finetune(folder, "export", **model)
    finetune(
        folder,
        "predict",
        predict_input_json_file=folder / "questions.json",
        predictions_file=folder / "predictions.json",
        predict_batch_size=100,
    )


def measure(folder, predictions):
    """The official metrics of the model and of the best trivial baseline: two dicts."""
    train = read_json(folder / "hotpotqa_train.json")
    dev = read_json(folder / "hotpotqa_dev.json")
    gold = list(examples.read_examples(folder / "hotpotqa_dev.json"))
    trivial = [
        evaluate.metrics(gold, predict(train, dev)) for predict in baselines.BASELINES.values()
    ]
    return evaluate.metrics(gold, predictions), max(trivial, key=lambda figures: figures["f1"])


def report(folder, model, baseline, predictions):
    """Writes the page and shows metrics and one question in the terminal."""
    dev = read_json(folder / "hotpotqa_dev.json")
    page = report_html.render_report(
        title="ETC on generated two-hop questions",
        train_curve=read_jsonl(folder / "model" / "train_metrics.jsonl"),
        dev_curve=[
            {name: point[name] for name in ("step", *_FIGURES)}  # Not the counts of answers.
            for point in read_jsonl(folder / "model" / "eval_metrics.jsonl")
        ],
        metrics={"model": model, "baseline": baseline},
        examples=dev,
        predictions=predictions,
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    print(f"\n{'official metric':16} {'model':>8} {'baseline':>9}")
    for name in _FIGURES:
        print(f"{name:16} {model[name]:8.3f} {baseline[name]:9.3f}")
    bridge = next((example for example in dev if example["type"] == "bridge"), dev[0])
    one = {kind: predictions[kind][bridge["_id"]] for kind in ("answer", "sp")}
    print("\n" + report_html.render_terminal(bridge, one, ansi=sys.stdout.isatty()))
    print(f"\nReport: {folder / 'report.html'}")


def main(unused_argv):
    start = time.monotonic()
    folder = pathlib.Path(flags.FLAGS.output_dir)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "records").mkdir(parents=True)
    run(
        "tools.make_demo_data",
        dataset="hotpotqa",
        output_dir=folder,
        num_train=flags.FLAGS.num_train,
        num_dev=flags.FLAGS.num_dev,
        seed=flags.FLAGS.seed,
    )
    write_config(folder)
    write_questions(folder)
    preprocess(folder, "train", is_training=True)
    preprocess(folder, "dev", is_training=False)
    train_and_predict(folder)
    predictions = read_json(folder / "predictions.json")
    model, baseline = measure(folder, predictions)
    report(folder, model, baseline, predictions)
    print(
        f"demo: answer_f1={model['f1']:.3f} sp_f1={model['sp_f1']:.3f} "
        f"baseline_answer_f1={baseline['f1']:.3f} seconds={time.monotonic() - start:.0f}"
    )


if __name__ == "__main__":
    define_flags()
    app.run(main)
