"""What is learned from a few real HotpotQA questions: from BERT's weights or from random ones.

Splits a file of HotpotQA's by the hash of the ids, lifts a BERT, trains and evaluates as a user
does, and prints the official scores beside those of answers that need no model. What there is
already in --output_dir is taken as it is, and a training that was stopped goes on, so that the same
command continues a run that ended early.

  python -m etcmodel.tools.benchmarks.real_questions --questions=hotpotqa.json --bert=minilm \
      --output_dir=real
"""

import dataclasses
import hashlib
import json
import pathlib
import random
import statistics

import etcmodel
from etcmodel import atomic_files
from etcmodel.options import Options, option, run_program
from etcmodel.tasks.hotpotqa import evaluate, examples
from etcmodel.tools.benchmarks import programs

__all__ = [
    "BASELINES",
    "RealQuestionsOptions",
    "kinds",
    "split",
    "table",
    "with_fewer_distractors",
]

_PROGRAMS = "etcmodel.tasks.hotpotqa"
# What HotpotQA's inputs have beyond BERT's: relations, token types, sentences' own global tokens.
_STRUCTURE = {
    "relative_pos_max_distance": 12,
    "relative_vocab_size": 32,
    "segment_vocab_size": 16,
    "use_hard_g2l_mask": True,
}
_SHOWN = {"f1": "answer F1", "sp_f1": "facts F1", "joint_f1": "joint F1"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RealQuestionsOptions(Options):
    """Which questions, and how long is trained."""

    questions: str = option("hotpotqa.json", "Questions with answers, HotpotQA's JSON.")
    bert: str = option("minilm", "Folder of a BERT of Hugging Face's, with its vocabulary.")
    output_dir: str = option("real_questions", "Directory for data, runs and scores.")
    num_test: int = option(100, "Questions to measure on.", lower_bound=1)
    num_train: tuple[int, ...] = option((0,), "Training questions of a run; 0 for all others.")
    kinds: tuple = option(
        ("lifted", "random", "lifted_flat", "random_flat"),
        "Weights to begin with; 'flat' is without paragraphs in masks and labels.",
        choices=("lifted", "random", "lifted_flat", "random_flat"),
    )
    seeds: tuple[int, ...] = option((0, 1, 2), "Each is a run of each kind.")
    distractors: int = option(
        0, "Paragraphs beside the right ones in a training question; 0 for all.", lower_bound=0
    )
    copies: int = option(
        1, "Times that a training question is taken, with other distractors each.", lower_bound=1
    )
    long_seq_length: int = option(4096, "Tokens of the long input.", lower_bound=2)
    global_seq_length: int = option(256, "Tokens of the global input.", lower_bound=2)
    local_radius: int = option(84, "Long tokens visible on each side.", lower_bound=1)
    num_train_epochs: float = option(5.0, "Passes over the training questions.", lower_bound=0)
    train_batch_size: int = option(8, "Questions a step.", lower_bound=1)
    learning_rate: float = option(1e-4, "Greatest learning rate.", lower_bound=0)
    mixed_precision: str = option("float32", "Of training.", choices=("float32", "mixed_bfloat16"))


def split(questions, num_test):
    """(training, test): lists of questions, by the order of their ids' hashes.

    Raises:
        ValueError: if there are no more than `num_test`.
    """
    if len(questions) <= num_test:
        raise ValueError(
            f"`num_test` must be below the number of questions, {len(questions)}. "
            f"Received: {num_test}"
        )
    ordered = sorted(questions, key=lambda x: hashlib.sha256(x["_id"].encode()).digest())
    return ordered[num_test:], ordered[:num_test]


def with_fewer_distractors(questions, distractors, copies):
    """Training questions with the paragraphs of their facts and a few others, in their order.

    Args:
        questions: list of dicts of HotpotQA's form.
        distractors: int. Others of a question, drawn by the hash of its id; 0 for all.
        copies: int. Times that each question is taken; their other paragraphs differ.
    Returns:
        List of dicts, with ids of their own where there are copies.
    """
    return [
        _with_fewer(question, distractors, copy) for copy in range(copies) for question in questions
    ]


def _with_fewer(question, distractors, copy):
    name = f"{question['_id']}-{copy}" if copy else question["_id"]
    right = {title for title, _ in question["supporting_facts"]}
    others = [title for title, _ in question["context"] if title not in right]
    if distractors:
        others = random.Random(name).sample(others, min(distractors, len(others)))
    kept = right.union(others)
    context = [paragraph for paragraph in question["context"] if paragraph[0] in kept]
    return {**question, "_id": name, "context": context}


def _facts(choose):
    """Predictions without answers; `choose` yields the facts of an example."""

    def predict(test):
        return {
            "answer": {x.example_id: "" for x in test},
            "sp": {x.example_id: list(choose(x)) for x in test},
        }

    return predict


def _first_sentences(example):
    return ([x.title, 0] for x in example.paragraphs)


def _of_named_paragraphs(example):
    """The first sentences of paragraphs that the question names; of all where it names none."""
    question = example.question.lower()
    named = [x for x in example.paragraphs if x.title.partition(" (")[0].lower() in question]
    return ([x.title, 0] for x in named or example.paragraphs)


def _of_likest_paragraphs(example):
    """The first sentences of the two paragraphs with most of the question's words."""
    words = set(evaluate.normalize_answer(example.question).split())

    def common(paragraph):
        text = " ".join([paragraph.title, *paragraph.sentences])
        return len(words & set(evaluate.normalize_answer(text).split()))

    return ([x.title, 0] for x in sorted(example.paragraphs, key=common, reverse=True)[:2])


# What needs no model: functions from the examples to predictions in the official format.
BASELINES = {
    "every first sentence": _facts(_first_sentences),
    "first sentences of paragraphs that the question names": _facts(_of_named_paragraphs),
    "first sentences of the two paragraphs likest the question": _facts(_of_likest_paragraphs),
}


def kinds(lifted):
    """The flags of `run_finetuning` for each kind of run: dict of name to dict.

    Args:
        lifted: path of the folder with the lifted BERT.
    """
    return {
        f"{weights}{structure}": {**start, "flat_sequence": bool(structure)}
        for weights, start in (("lifted", {"init_checkpoint": lifted}), ("random", {}))
        for structure in ("", "_flat")
    }


def table(baselines, scores):
    """Markdown of the scores.

    Args:
        baselines: dict of name to metrics.
        scores: dict of (kind, number of training questions) to a list of metrics, one a seed.
    """
    rows = [["answers of", "training questions", "seeds", *_SHOWN.values()]]
    rows.append(["---"] * len(rows[0]))
    rows += [[name, "", "", *(f"{x[key]:.3f}" for key in _SHOWN)] for name, x in baselines.items()]
    for (kind, number), found in scores.items():
        cells = [_spread([x[key] for x in found]) for key in _SHOWN]
        rows.append([kind, str(number), str(len(found)), *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _spread(values):
    mean = f"{statistics.mean(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.3f} to {max(values):.3f})"


def _make_data(options, folder):
    """Raw files, records and the lifted model, unless they are there."""
    data, lifted = folder / "data", folder / "lifted"
    if not (lifted / "config.json").exists():
        model = etcmodel.from_pretrained(
            options.bert, local_radius=options.local_radius, **_STRUCTURE
        )
        model.save_pretrained(str(lifted), model.processor)
    data.mkdir(parents=True, exist_ok=True)
    with open(options.questions, encoding="utf-8") as file:
        train, test = split(json.load(file), options.num_test)
    parts = {"test": test}
    drawn = (options.distractors, options.copies)
    drawn = "" if drawn == (0, 1) else "_{}x{}".format(*drawn)
    for number in options.num_train:
        parts[f"train_{number or len(train)}{drawn}"] = with_fewer_distractors(
            train[: number or None], options.distractors, options.copies
        )
    for name, questions in parts.items():
        if not (data / f"{name}.stats.json").exists():
            atomic_files.write_json(str(data / f"{name}.json"), questions)
            programs.run(
                f"{_PROGRAMS}.preprocess",
                input_pattern=data / f"{name}.json",
                output_prefix=data / name,
                vocab_file=lifted / "vocab.txt",
                long_seq_length=options.long_seq_length,
                global_seq_length=options.global_seq_length,
                is_training=name != "test",
                num_shards=1,
            )
    return data, lifted, [name for name in parts if name != "test"]


def _scores(options, data, lifted, run, train, seed, flags):
    """The scores of one run, trained and evaluated unless that is done."""
    path = run / "scores.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    programs.run(
        f"{_PROGRAMS}.run_finetuning",
        run_mode="train",
        model_config_file=lifted / "config.json",
        vocab_file=lifted / "vocab.txt",
        train_data=data / f"{train}-*",
        output_dir=run,
        learning_rate=options.learning_rate,
        train_batch_size=options.train_batch_size,
        num_train_epochs=options.num_train_epochs,
        mixed_precision=options.mixed_precision,
        random_seed=seed,
        skip_padding=True,
        **flags,
    )
    printed = programs.run(
        f"{_PROGRAMS}.run_finetuning",
        run_mode="evaluate",
        eval_data=data / "test-*",
        eval_gold=data / "test.json",
        output_dir=run,
    )
    scores = json.loads(printed.splitlines()[-1])
    atomic_files.write_json(str(path), scores)
    return scores


def main(options):
    """Trains and evaluates what is missing, and prints the table after each run."""
    folder = pathlib.Path(options.output_dir)
    data, lifted, parts = _make_data(options, folder)
    test = list(examples.read_examples(str(data / "test.json")))
    baselines = {name: evaluate.metrics(test, x(test)) for name, x in BASELINES.items()}
    scores, flags = {}, kinds(lifted)
    for seed in options.seeds:
        for part in parts:
            name = part.removeprefix("train_")
            for kind in options.kinds:
                run = folder / f"{kind}_{name}_{seed}"
                found = _scores(options, data, lifted, run, part, seed, flags[kind])
                scores.setdefault((kind, int(name.partition("_")[0])), []).append(found)
                print(table(baselines, scores), flush=True)


if __name__ == "__main__":
    run_program(RealQuestionsOptions, main)
