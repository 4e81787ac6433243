"""Compares numerical reasoning with no memory, a tied or untied memory, and full attention.

Like table 3 of Gupta and Berant 2020 (arXiv:2006.03274), but far smaller, on generated passages.
Runs the task's programs as a user would; existing results in --output_dir are reused and stopped
trainings resume, so the same command continues a run that ended early. Prints a table; a training
that was interrupted has no `seconds` there.

  python -m etcmodel.tools.benchmarks.numerical_reasoning --output_dir=numbers
"""

import dataclasses
import json
import pathlib
import time

from etcmodel import atomic_files
from etcmodel.options import Options, option, run_program
from etcmodel.tools import kept_options
from etcmodel.tools.benchmarks import programs

__all__ = ["NumericalBenchmarkOptions", "memories", "table"]

_PROGRAMS = "etcmodel.tasks.numerical_reasoning"
_OF_EACH_RUN = ("output_dir", "seeds", "memories")  # All others determine all results of a folder.


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumericalBenchmarkOptions(Options):
    """The data to generate and the models to train."""

    output_dir: str = option("numbers", "Directory for data, runs and scores.")
    sentences: int = option(2, "Number of sentences in a passage.", lower_bound=1)
    largest: int = option(10, "Upper bound of the numbers, exclusive.", lower_bound=4)
    num_train: int = option(60_000, "Number of generated training questions.", lower_bound=1)
    num_dev: int = option(1_000, "Number of generated evaluation questions.", lower_bound=1)
    num_train_epochs: float = option(
        1.0, "Number of passes over the training questions.", lower_bound=0
    )
    train_batch_size: int = option(32, "Number of questions per training step.", lower_bound=1)
    learning_rate: float = option(1e-3, "Peak learning rate.", lower_bound=0)
    long_seq_length: int = option(
        48, "Length of question and passage in tokens: two chunks.", lower_bound=2
    )
    num_memory_tokens: int = option(
        8, "Number of memory tokens, in the runs with a memory.", lower_bound=1
    )
    seeds: tuple[int, ...] = option((0,), "Seeds; each adds a run of every kind.")
    memories: tuple = option(
        ("none", "tied", "untied", "full"),
        "Kinds of runs. 'none': two chunks, no memory. 'tied', 'untied': with a memory. 'full': "
        "one chunk.",
        choices=("none", "tied", "untied", "full"),
    )


def memories(options):
    """The flags of `run_finetuning` for each kind of run: dict of name to dict."""
    half, memory = -(-options.long_seq_length // 2), options.num_memory_tokens
    return {
        "none": {"chunk_size": half, "num_memory_tokens": 0},
        "tied": {"chunk_size": half, "num_memory_tokens": memory, "untied_memory": False},
        "untied": {"chunk_size": half, "num_memory_tokens": memory, "untied_memory": True},
        "full": {"chunk_size": options.long_seq_length, "num_memory_tokens": 0},
    }


def table(scores):
    """Markdown of the scores.

    Args:
        scores: dict of (memory, seed) to those of `evaluate` and, where it is known, "seconds".
    """
    names = sorted({name for found in scores.values() for name in found} - {"seconds"})
    names.append("seconds")
    rows = [["memory", "seed", *names]]
    rows.append(["---"] * len(rows[0]))
    for (memory, seed), found in scores.items():
        values = [_shown(name, found[name]) if name in found else "" for name in names]
        rows.append([memory, str(seed), *values])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _shown(name, value):
    return f"{value:.0f}" if name == "seconds" else f"{value:.3f}"


def _make_records(options, folder):
    data = folder / "data"
    if not (data / "gmat_config.json").exists():  # It is written last.
        programs.run(
            "etcmodel.tools.make_demo_data",
            dataset="numerical_reasoning",
            output_dir=data,
            **{
                name: getattr(options, name)
                for name in ("sentences", "largest", "num_train", "num_dev")
            },
        )
    for split in ("train", "dev"):
        if not (data / f"{split}.stats.json").exists():
            programs.run(
                f"{_PROGRAMS}.preprocess",
                input_pattern=data / f"numerical_reasoning_{split}.jsonl",
                output_prefix=data / split,
                vocab_file=data / "vocab.txt",
                long_seq_length=options.long_seq_length,
                max_answer_length=8,
                num_shards=4 if split == "train" else 1,
            )
    return data


def _scores(options, data, run, seed, flags):
    """The scores of one run, trained and evaluated unless that is done."""
    path = run / "scores.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    is_new, start = not run.exists(), time.monotonic()
    programs.run(
        f"{_PROGRAMS}.run_finetuning",
        run_mode="train",
        model_config_file=data / "gmat_config.json",
        vocab_file=data / "vocab.txt",
        train_data=data / "train-*.tfrecord",
        output_dir=run,
        learning_rate=options.learning_rate,
        train_batch_size=options.train_batch_size,
        num_train_epochs=options.num_train_epochs,
        random_seed=seed,
        **flags,
    )
    seconds = {"seconds": time.monotonic() - start} if is_new else {}
    printed = programs.run(
        f"{_PROGRAMS}.run_finetuning",
        run_mode="evaluate",
        eval_data=data / "dev-*.tfrecord",
        eval_gold=data / "numerical_reasoning_dev.jsonl",
        output_dir=run,
    )
    scores = {**json.loads(printed.splitlines()[-1]), **seconds}
    atomic_files.write_json(str(path), scores)
    return scores


def main(options):
    """Trains and evaluates what is missing, and prints the table after each run."""
    folder = pathlib.Path(options.output_dir)
    kept_options.keep(folder, options, apart=_OF_EACH_RUN)
    data, kinds, scores = _make_records(options, folder), memories(options), {}
    for seed in options.seeds:
        for memory in options.memories:
            run = folder / f"{memory}_{seed}"
            scores[memory, seed] = _scores(options, data, run, seed, kinds[memory])
            print(table(scores), flush=True)


if __name__ == "__main__":
    run_program(NumericalBenchmarkOptions, main)
