"""Writes a small synthetic dataset, with vocabulary and model config, to try the programs offline.

    python -m etcmodel.tools.make_demo_data --dataset=hotpotqa --output_dir=demo_data

The same flags give the same bytes on every machine.
"""

import dataclasses
import json
import os

from etcmodel import atomic_files, options
from etcmodel.options import option
from etcmodel.text.word_vocabulary import build_vocabulary

from .demos import (
    classification,
    coreference,
    hotpotqa,
    majority_tagging,
    nq,
    openkp,
    squad,
    summarization,
    token_classification,
    triviaqa,
    wikihop,
    wikihop_long,
)
from .demos import numerical_reasoning as numerical

__all__ = ["make_demo_data", "task_of"]

# Modules with `make_examples(split=, num_examples=, seed=)` and `texts(example)`, by the task in
# whose format they are, and what else tells them apart. One may have a `MODEL`, a dict of what
# differs from `ETC_CONFIG`; `ADDED_TOKENS`, which its vocabulary has last; `to_text` for the file
# of examples; `files` for those beside it; `vocabulary` and `model_config`. These and
# `make_examples` take the settings that the data set has in `SETTINGS`.
# `vocabulary_file` makes the file of a vocabulary that is no list of pieces.
GENERATORS = {
    "classification": classification,
    "coreference": coreference,
    "hotpotqa": hotpotqa,
    "majority_tagging": majority_tagging,
    "nq": nq,
    "numerical_reasoning": numerical,
    "openkp": openkp,
    "squad": squad,
    "summarization": summarization,
    "token_classification": token_classification,
    "triviaqa": triviaqa,
    "wikihop": wikihop,
    "wikihop_long": wikihop_long,
}
SETTINGS = {
    "majority_tagging": ("length", "pairs"),
    "numerical_reasoning": ("sentences", "largest"),
    "squad": ("unanswerable",),
    "summarization": ("distance",),
}
# Datasets whose files have one example per line.
JSON_LINES = (
    "classification",
    "coreference",
    "majority_tagging",
    "nq",
    "numerical_reasoning",
    "openkp",
    "summarization",
    "token_classification",
)
_TASKS = {"wikihop_long": "wikihop"}  # Datasets whose names differ from their task.

MAX_VOCAB_SIZE = 1000

# A model that learns something of each dataset on a CPU in a minute or two.
ETC_CONFIG = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "local_radius": 16,
    "relative_pos_max_distance": 8,
    "relative_vocab_size": 24,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def task_of(dataset):
    """The task of a key of `GENERATORS`, such as "wikihop" of "wikihop_long"."""
    return _TASKS.get(dataset, dataset)


def _to_json(examples):
    """JSON with one example per line, to be readable by people and `head`."""
    return "[\n" + ",\n".join(json.dumps(example) for example in examples) + "\n]\n"


def _to_json_lines(examples):
    return "".join(f"{json.dumps(example)}\n" for example in examples)


def _to_vocab_txt(pieces):
    return "vocab.txt", "\n".join(pieces) + "\n"


def make_demo_data(*, dataset, output_dir, num_train, num_dev, seed, **settings):
    """Writes `<dataset>_train.json`, `<dataset>_dev.json` (or `.jsonl`), vocabulary and config.

    Args:
        dataset: str. A key of `GENERATORS`.
        output_dir: str. Output directory; created if missing.
        num_train: int. Number of training examples.
        num_dev: int. Number of dev examples.
        seed: int. Determines all examples.
        **settings: the dataset's settings in `SETTINGS`; None for the default.
    Returns:
        dict with the paths of "train", "dev", "vocab" (`vocab.txt`, or `tokenizer.json`) and
        "config" (`etc_config.json`, or that of another model, which is small enough for a CPU).
    Raises:
        ValueError: if `dataset` is unknown, or has no such setting.
    """
    if dataset not in GENERATORS:
        raise ValueError(f"`dataset` must be one of {sorted(GENERATORS)}. Received: {dataset=}")
    generator, settings = GENERATORS[dataset], _given(dataset, settings)
    train, dev = (
        generator.make_examples(split=split, num_examples=num_examples, seed=seed, **settings)
        for split, num_examples in (("train", num_train), ("dev", num_dev))
    )
    config_name, vocab, config = _model_of(dataset, train, settings)
    to_file = getattr(generator, "vocabulary_file", _to_vocab_txt)
    to_text, ending = (_to_json_lines, "jsonl") if dataset in JSON_LINES else (_to_json, "json")
    to_text = getattr(generator, "to_text", to_text)
    contents = {
        "train": (f"{dataset}_train.{ending}", to_text(train)),
        "dev": (f"{dataset}_dev.{ending}", to_text(dev)),
        "vocab": to_file(vocab),
        "config": (config_name, json.dumps({**config, "vocab_size": len(vocab)})),
    }
    paths = {key: os.path.join(output_dir, name) for key, (name, _) in contents.items()}
    for key, (_, text) in contents.items():
        atomic_files.write_text(paths[key], [text])
    files = generator.files([*train, *dev]) if hasattr(generator, "files") else {}
    atomic_files.write_texts({os.path.join(output_dir, name): text for name, text in files.items()})
    return paths


def _given(dataset, settings):
    """The settings that are not None; the dataset must have all of them."""
    given = {name: value for name, value in settings.items() if value is not None}
    if unknown := sorted(set(given) - set(SETTINGS.get(dataset, ()))):
        raise ValueError(f"--{unknown[0]}: --dataset={dataset} has no such setting. Leave it out.")
    return given


def _model_of(dataset, train, settings):
    """(name of the config's file, pieces of the vocabulary, entries of the config)."""
    generator = GENERATORS[dataset]
    if hasattr(generator, "model_config"):
        config = generator.model_config(**settings)
        return f"{config['model_type']}_config.json", generator.vocabulary(**settings), config
    texts = (text for example in train for text in generator.texts(example))
    vocab = build_vocabulary(texts, max_size=MAX_VOCAB_SIZE)
    vocab += getattr(generator, "ADDED_TOKENS", ())
    return "etc_config.json", vocab, {**ETC_CONFIG, **getattr(generator, "MODEL", {})}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoDataOptions(options.Options):
    """The data to generate."""

    dataset: str = option(
        "hotpotqa", "Data set whose format to write.", choices=tuple(sorted(GENERATORS))
    )
    output_dir: str = option("", "Directory for the files.", is_needed=True)
    num_train: int = option(20_000, "Number of training examples.", lower_bound=1)
    num_dev: int = option(1_000, "Number of development examples.", lower_bound=1)
    seed: int = option(0, "Seed of the generated examples.")
    length: int | None = option(
        None, "Length of a sequence in tokens; only for majority_tagging. None: 64.", lower_bound=1
    )
    pairs: int | None = option(
        None, "Number of pairs of numbers; only for majority_tagging. None: 1.", lower_bound=1
    )
    sentences: int | None = option(
        None,
        "Number of sentences in a passage; only for numerical_reasoning. None: 5.",
        lower_bound=1,
    )
    largest: int | None = option(
        None,
        "Upper bound of the numbers, exclusive; only for numerical_reasoning. None: 10000.",
        lower_bound=4,
    )
    distance: int | None = option(
        None,
        "Number of tokens before the sentences to summarize; only for summarization. None: 1024.",
        lower_bound=1,
    )
    unanswerable: float | None = option(
        None,
        "Share of the questions without an answer; only for squad. None: 0.3. With 0 the files are "
        "as those of SQuAD 1.1.",
        lower_bound=0,
        upper_bound=1,
    )


def main(chosen):
    """Writes the data that `DemoDataOptions` describe, and prints the files."""
    print("\n".join(make_demo_data(**dataclasses.asdict(chosen)).values()))


if __name__ == "__main__":
    options.run_program(DemoDataOptions, main)
