"""Measures what is learned from a few real HotpotQA questions, from BERT's or random weights.

Splits a HotpotQA file by the hash of the ids, initializes ETC from BERT, trains and evaluates as a
user would, and prints the official scores beside those of answers that need no model. Existing
results in --output_dir are reused and stopped trainings resume, so the same command continues a run
that ended early.

  python -m benchmarks.real_questions --questions=hotpotqa.json --bert=minilm \
      --output_dir=real
"""

import dataclasses
import itertools
import json
import pathlib
import statistics
import time

from benchmarks import hotpotqa_questions, programs
from etcmodel import atomic_files
from etcmodel.options import Options, option, run_program
from etcmodel.tasks.hotpotqa import examples, metrics
from etcmodel.tools import kept_options

__all__ = ["RealQuestionsOptions", "kinds", "table"]

_PROGRAMS = "etcmodel.tasks.hotpotqa"
_LEAST_FACTS = 2  # Each question has as many or more.
_SHOWN = {"f1": "answer F1", "sp_f1": "facts F1", "joint_f1": "joint F1"}
# Options in a run's name; all others determine all results of a folder.
_OF_EACH_RUN = ("output_dir", "num_train", "kinds", "seeds", "distractors", "copies")
_SECONDS = "train_seconds"  # Of the training program by the clock, since it was last started.


_EDGELESS = "_edgeless"  # At the end of a kind's name, and of its records'.
_PRETRAINED = hotpotqa_questions.PRETRAINED
_KINDS = (
    "lifted",
    "random",
    "lifted_edgeless",
    "random_edgeless",
    "lifted_flat",
    "random_flat",
    _PRETRAINED,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RealQuestionsOptions(Options):
    """The questions, and the length of the training."""

    questions: str = option(
        "hotpotqa.json", "JSON file of questions with answers, in HotpotQA's format."
    )
    bert: str = option("minilm", "Folder of a Hugging Face BERT, with its vocabulary.")
    output_dir: str = option("real_questions", "Directory for data, runs and scores.")
    num_test: int = option(100, "Number of evaluation questions.", lower_bound=1)
    num_train: tuple[int, ...] = option(
        (0,),
        "Numbers of training questions, one run for each; 0 for all that are not evaluation "
        "questions.",
        lower_bound=0,
    )
    kinds: tuple = option(
        _KINDS,
        "Kinds of runs, by initial weights and structure. 'flat' has no paragraphs in masks and "
        "labels; 'edgeless' has no edges for words and titles; 'pretrained' is initialized from "
        "BERT and first pre-trained (MLM and CPC) on the paragraphs of all training questions.",
        choices=_KINDS,
    )
    seeds: tuple[int, ...] = option((0, 1, 2), "Seeds; each adds a run of every kind.")
    distractors: int = option(
        0, "Number of distractor paragraphs in a training question; 0 for all.", lower_bound=0
    )
    copies: int = option(
        1,
        "Number of copies of each training question, each with different distractors.",
        lower_bound=1,
    )
    long_seq_length: int = option(2048, "Length of the long input, in tokens.", lower_bound=2)
    global_seq_length: int = option(128, "Length of the global input, in tokens.", lower_bound=2)
    num_word_edges: int = option(
        64,
        "Maximum number of edges for shared words and for titles; see `etcmodel preprocess "
        "hotpotqa`.",
        lower_bound=1,
    )
    local_radius: int = option(
        84, "Number of long tokens on each side that a long token attends to.", lower_bound=1
    )
    num_train_steps: int = option(
        200, "Number of steps of a run, for any number of questions.", lower_bound=1
    )
    train_batch_size: int = option(2, "Number of questions per training step.", lower_bound=1)
    learning_rate: float = option(6e-4, "Peak learning rate.", lower_bound=0)
    num_pretrain_steps: int = option(
        200,
        "Number of pre-training steps of eight paragraphs each, for 'pretrained'.",
        lower_bound=1,
    )
    pretrain_learning_rate: float = option(
        1e-4, "Peak learning rate of the pre-training steps.", lower_bound=0
    )
    supporting_fact_threshold: float = option(
        0.25,
        "Minimum probability of a supporting fact, from 0 to 1; the two most probable are "
        "predicted in any case. For calibrated probabilities, half of the achieved F1 is optimal.",
        lower_bound=0,
        upper_bound=1,
    )
    layer_decay: float = option(
        1.0, "Learning rate of a layer ÷ that of the layer above.", lower_bound=0, upper_bound=1
    )
    num_frozen_layers: int = option(
        0, "Number of lowest layers to freeze, with the embeddings.", lower_bound=0
    )
    mixed_precision: str = option(
        "mixed_bfloat16", "Precision policy of training.", choices=("float32", "mixed_bfloat16")
    )


def kinds(folder):
    """The flags of `run_finetuning` for each kind of run: dict of name to dict.

    Args:
        folder: path of the folder with the initial models "lifted" (from BERT), "random" and
            "pretrained".
    """
    return {
        kind: {
            "init_checkpoint": folder / kind.split("_")[0],
            "flat_sequence": kind.endswith("_flat"),
        }
        for kind in _KINDS
    }


def table(baselines, scores):
    """Markdown of the scores.

    Args:
        baselines: dict of name to metrics.
        scores: dict of (kind, number of training questions) to a list of metrics, one a seed, with
            the seconds of the training, of which the most are shown.
    """
    rows = [["answers of", "training questions", "seeds", *_SHOWN.values(), "training, s"]]
    rows.append(["---"] * len(rows[0]))
    for name, x in baselines.items():
        rows.append([name, "", "", *(f"{x[key]:.3f}" for key in _SHOWN), ""])
    for (kind, number), found in scores.items():
        cells = [_spread([x[key] for x in found]) for key in _SHOWN]
        slowest = str(max(x[_SECONDS] for x in found))
        rows.append([kind, str(number), str(len(found)), *cells, slowest])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _spread(values):
    mean = f"{statistics.mean(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.3f} to {max(values):.3f})"


def _make_data(options, folder, train, test):
    """Raw files and records, unless they are there.

    Returns:
        List of the names of the training records.
    """
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    parts = {"test": test}
    drawn = (options.distractors, options.copies)
    drawn = "" if drawn == (0, 1) else "_{}x{}".format(*drawn)
    for number in options.num_train:
        parts[f"train_{number or len(train)}{drawn}"] = hotpotqa_questions.with_fewer_distractors(
            train[: number or None], options.distractors, options.copies
        )
    edges = {"": options.num_word_edges, _EDGELESS: 0}
    for (name, questions), kind in itertools.product(parts.items(), edges):
        if not (data / f"{name}{kind}.stats.json").exists():
            atomic_files.write_json(str(data / f"{name}.json"), questions)
            programs.run(
                f"{_PROGRAMS}.preprocess",
                input_pattern=data / f"{name}.json",
                output_prefix=data / f"{name}{kind}",
                vocab_file=folder / "lifted" / "vocab.txt",
                long_seq_length=options.long_seq_length,
                global_seq_length=options.global_seq_length,
                num_word_edges=edges[kind],
                is_training=name != "test",
                num_shards=1,
            )
    return [name for name in parts if name != "test"]


def _scores(options, folder, kind, train, seed):
    """The scores of one run, trained and evaluated unless that is done."""
    data, run = folder / "data", folder / f"{kind}_{train.removeprefix('train_')}_{seed}"
    records = _EDGELESS if kind.endswith(_EDGELESS) else ""
    path = run / "scores.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    statistics_file = data / f"{train}{records}.stats.json"
    num_examples = json.loads(statistics_file.read_text("utf-8"))["examples_written"]
    start = time.monotonic()
    programs.run(
        f"{_PROGRAMS}.run_finetuning",
        run_mode="train",
        model_config_file=folder / "lifted" / "config.json",
        vocab_file=folder / "lifted" / "vocab.txt",
        train_data=data / f"{train}{records}-*",
        output_dir=run,
        learning_rate=options.learning_rate,
        train_batch_size=options.train_batch_size,
        num_train_epochs=programs.epochs(
            options.num_train_steps, options.train_batch_size, num_examples
        ),
        mixed_precision=options.mixed_precision,
        random_seed=seed,
        layer_decay=options.layer_decay,
        num_frozen_layers=options.num_frozen_layers,
        skip_padding=True,
        **kinds(folder)[kind],
    )
    seconds = time.monotonic() - start
    printed = programs.run(
        f"{_PROGRAMS}.run_finetuning",
        run_mode="evaluate",
        eval_data=data / f"test{records}-*",
        eval_gold=data / "test.json",
        output_dir=run,
        supporting_fact_threshold=options.supporting_fact_threshold,
        min_supporting_facts=_LEAST_FACTS,
    )
    scores = {**json.loads(printed.splitlines()[-1]), _SECONDS: round(seconds)}
    atomic_files.write_json(str(path), scores)
    return scores


def main(options):
    """Trains and evaluates what is missing, and prints the table after each run."""
    folder = pathlib.Path(options.output_dir)
    with open(options.questions, encoding="utf-8") as file:
        train, test = hotpotqa_questions.split(json.load(file), options.num_test)
    if too_many := [number for number in options.num_train if number > len(train)]:
        raise ValueError(
            f"--num_train={too_many[0]}: {options.questions} has {len(train)} questions beside "
            f"those of --num_test={options.num_test}."
        )
    kept_options.keep(folder, options, apart=_OF_EACH_RUN)
    hotpotqa_questions.make(options, folder, train, has_pretrained=_PRETRAINED in options.kinds)
    parts = _make_data(options, folder, train, test)
    asked = list(examples.read_examples(str(folder / "data" / "test.json")))
    baselines = {
        name: metrics.metrics(asked, x(asked)) for name, x in hotpotqa_questions.BASELINES.items()
    }
    scores = {}
    for seed in options.seeds:
        for part in parts:
            number = int(part.split("_")[1])
            for kind in options.kinds:
                found = _scores(options, folder, kind, part, seed)
                scores.setdefault((kind, number), []).append(found)
                print(table(baselines, scores), flush=True)


if __name__ == "__main__":
    run_program(RealQuestionsOptions, main)
