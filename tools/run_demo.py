"""Runs the whole pipeline on generated data: preprocess, train, evaluate, export, predict, report.

Questions in WikiHop's format, many times longer than the model's local window, are answered by a
model whose structure links words to the candidates that they mention, and by the same model without
these links, trained on the same data from the same initial weights. Each program runs as a separate
command, as a user would run it; the commands are printed. The output goes to --output_dir;
`report.html` there shows the results.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys
import time

from etcmodel.options import Options, option, run_program
from etcmodel.pictures import charts, metric_names
from etcmodel.reports import page, results
from etcmodel.tasks.wikihop import examples, metrics
from etcmodel.tasks.wikihop import report as wikihop_report
from etcmodel.tools.demos import baselines, folders

_DATASET = "wikihop_long"
LENGTHS = {"long_seq_length": 304, "global_seq_length": 68}
_BATCH_SIZE = 32
ETC_CONFIG = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "local_radius": 10,  # A token attends to 21 of the 304: its sentence, and a part of others.
    "relative_pos_max_distance": 8,
    "relative_vocab_size": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    # The released models are 12 times wider: a narrow layer needs larger weights to begin with.
    "initializer_range": 0.1,
    "use_pre_activation_order": True,
}
STRUCTURE, NO_STRUCTURE = "model", "without_structure"
SYSTEMS = {STRUCTURE: "with structure", NO_STRUCTURE: "without structure"}
LEAD = (
    f"A token attends to {2 * ETC_CONFIG['local_radius'] + 1} of up to "
    f"{LENGTHS['long_seq_length']}, so what different documents say of a place must come together "
    "elsewhere: the structure links the words that mention a candidate to that candidate's global "
    "token. The model without it lacks these links, and nothing else."
)
_NUM_SHOWN = 20  # Number of questions on the page.


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
    """The size of the demo."""

    output_dir: str = option("demo_output", "Directory to create; an existing one is replaced.")
    num_train: int = option(8000, "Number of generated training questions.", lower_bound=1)
    num_dev: int = option(500, "Number of generated evaluation questions.", lower_bound=1)
    num_train_epochs: float = option(
        1.0, "Number of passes over the training questions.", lower_bound=0
    )
    num_hidden_layers: int = option(
        ETC_CONFIG["num_hidden_layers"], "Number of layers of the model.", lower_bound=1
    )
    seed: int = option(0, "Seed of data and training.")


def run(module, **arguments):
    """Runs a program of the package and prints its command line; stops the demo if it fails."""
    shown = [f"--{name}={value}" for name, value in arguments.items()]
    print(f"\n$ python -m etcmodel.{module} \\\n    " + " \\\n    ".join(shown), flush=True)
    done = subprocess.run([sys.executable, "-m", f"etcmodel.{module}", *shown])
    if done.returncode:
        sys.exit(f"demo: etcmodel.{module} failed with exit code {done.returncode}")


def finetune(folder, name, run_mode, **arguments):
    """Runs a mode of the fine-tuning program, in `folder / name`."""
    run("tasks.wikihop.run_finetuning", run_mode=run_mode, output_dir=folder / name, **arguments)


def read_json(path):
    """The content of a JSON file."""
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def read_jsonl(path):
    """One dict per line."""
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def write_config(folder, num_hidden_layers):
    """The model's sizes, for the generated vocabulary."""
    vocab_size = len((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    config = {**ETC_CONFIG, "vocab_size": vocab_size, "num_hidden_layers": num_hidden_layers}
    (folder / "etc_config.json").write_text(json.dumps(config, indent=2))


def make_data(folder, options):
    """Raw files, vocabulary, config and records."""
    run(
        "tools.make_demo_data",
        dataset=_DATASET,
        output_dir=folder,
        num_train=options.num_train,
        num_dev=options.num_dev,
        seed=options.seed,
    )
    write_config(folder, options.num_hidden_layers)
    write_questions(folder)
    run(
        "tasks.wikihop.preprocess",
        input_pattern=_raw_file(folder, "train"),
        dev_input_pattern=_raw_file(folder, "dev"),
        output_dir=folder / "records",
        vocab_file=folder / "vocab.txt",
        num_shards=4,
        **LENGTHS,
    )


def _raw_file(folder, split):
    return folder / f"{_DATASET}_{split}.json"


def write_questions(folder):
    """The dev questions without answers: neither prediction nor the server needs them."""
    dev = read_json(_raw_file(folder, "dev"))
    questions = [{k: v for k, v in example.items() if k != "answer"} for example in dev]
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")


def train(folder, name, options):
    """Trains and evaluates a model; returns the seconds of training.

    The two models differ in one flag: whether mentions are linked to the global tokens of their
    candidates, which the paper's "flat structure" (section 4.2) removes.
    """
    model = {
        "model_config_file": folder / "etc_config.json",
        "vocab_file": folder / "vocab.txt",
        "enable_l2g_linking": name == STRUCTURE,
        **LENGTHS,
    }
    measured = {
        "eval_data": folder / "records" / "dev" / "tf_examples*.tfrecord",
        "eval_gold": _raw_file(folder, "dev"),
        "eval_batch_size": 100,
    }
    start = time.monotonic()
    finetune(
        folder,
        name,
        "train",
        **model,
        **measured,
        train_data=folder / "records" / "train" / "tf_examples*.tfrecord",
        num_train_epochs=options.num_train_epochs,
        train_batch_size=_BATCH_SIZE,
        learning_rate=3e-3,
        save_checkpoints_steps=50,
        steps_per_summary=10,
        random_seed=options.seed,
    )
    seconds = time.monotonic() - start
    finetune(folder, name, "evaluate", **model, **measured)
    if name == STRUCTURE:
        finetune(folder, name, "export", **model)
    return seconds


def answer(folder):
    """Predictions of the exported model for the questions: dict from id to answer."""
    finetune(
        folder,
        STRUCTURE,
        "predict",
        input_file=folder / "questions.json",
        predictions_file=folder / "predictions.json",
        predict_batch_size=100,
    )
    return read_json(folder / "predictions.json")


def measure(folder, predictions):
    """Accuracy on the dev questions of the models and of the best trivial baseline, by name."""
    train_examples = read_json(_raw_file(folder, "train"))
    dev = read_json(_raw_file(folder, "dev"))
    gold = list(examples.read_examples(_raw_file(folder, "dev")))
    trivial = {
        name: metrics.metrics(gold, predict(train_examples, dev))["accuracy"]
        for name, predict in baselines.BASELINES.items()
    }
    best = max(trivial, key=trivial.get)
    without = read_json(folder / NO_STRUCTURE / "predictions.json")
    return {
        SYSTEMS[STRUCTURE]: metrics.metrics(gold, predictions)["accuracy"],
        SYSTEMS[NO_STRUCTURE]: metrics.metrics(gold, without)["accuracy"],
        f"best trivial answer ({best})": trivial[best],
    }


def compared(folder, accuracies):
    """The `reports.results.Results` of both models."""
    system, *others = accuracies
    given = results.Given(folder / "predictions.json", _raw_file(folder, "dev"))
    found = wikihop_report.read_results(given)
    without = read_json(folder / NO_STRUCTURE / "predictions.json")
    return dataclasses.replace(
        found,
        noun="generated questions",
        system=system,
        places=None,  # No single mention is the evidence.
        baselines={name: {found.best_metric: accuracies[name]} for name in others},
        items=tuple(_beside(item, without.get(item.key, "")) for item in found.items),
    )


def _beside(item, without):
    others = ((SYSTEMS[NO_STRUCTURE], without, without == item.gold),)
    return dataclasses.replace(item, others=others)


def headline(accuracies):
    """The results in one line: str."""
    structure, without, _ = accuracies.values()
    return f"{_percent(structure)} right with structure, {_percent(without)} without"


def _percent(share):
    """In whole percent; 100 only if all are right."""
    return f"{min(round(100 * share), 100 if share == 1 else 99)} %"


def curve_charts(folder):
    """Accuracy and loss of both models by step: list of `charts.Chart`."""
    files = {"accuracy": "eval_metrics.jsonl", "loss": "train_metrics.jsonl"}
    return [_chart(folder, file, name) for name, file in files.items()]


def _chart(folder, file, name):
    metric = metric_names.describe(name)
    scale = 100 if metric.is_share else 1
    lines = (
        charts.Line(label, tuple((x["step"], scale * x[name]) for x in read_jsonl(path / file)))
        for path, label in ((folder / run_name, label) for run_name, label in SYSTEMS.items())
    )
    return charts.Chart(metric.title, "training step", tuple(lines), floor=0)


def report(folder, accuracies):
    """Writes the page, and prints one question and the accuracies."""
    found = compared(folder, accuracies)
    text = page.render(
        title="ETC demo: questions about long texts",
        headline=headline(accuracies),
        lead=LEAD,
        results=found,
        curve_charts=curve_charts(folder),
        num_examples=_NUM_SHOWN,
    )
    (folder / "report.html").write_text(text, encoding="utf-8")
    first = found.items[0]
    print(f"\n{first.question} ({len(first.passages)} documents)")
    for name, told, is_right in ((found.system, first.prediction, first.is_right), *first.others):
        print(f"  {'right' if is_right else 'wrong'}, {name}: {told}")
    print(f"  candidates: {', '.join(first.candidates)}")
    print("\naccuracy")
    for name, value in accuracies.items():
        print(f"{value:8.3f}  {name}")
    print(f"\n{headline(accuracies)}\nReport: {folder / 'report.html'}")


def serving_command(folder):
    """The command line that serves the exported model with the dev questions as examples: str."""
    export, questions = folder / STRUCTURE / "export", folder / "questions.json"
    return f"etcmodel serve --model_dir={export} --examples_file={questions}"


def main(options):
    """Runs the demo that `DemoOptions` describe."""
    folder = folders.new_folder(options.output_dir)
    (folder / "records").mkdir()
    make_data(folder, options)
    seconds = sum(train(folder, name, options) for name in (STRUCTURE, NO_STRUCTURE))
    accuracies = measure(folder, answer(folder))
    report(folder, accuracies)
    print(f"\nAsk it in a browser:\n\n$ {serving_command(folder)}\n")
    score, without, baseline = accuracies.values()
    print(
        f"demo: score={score:.3f} without_structure={without:.3f} baseline={baseline:.3f} "
        f"seconds={seconds:.0f}"
    )


if __name__ == "__main__":
    run_program(DemoOptions, main)
