"""Pre-trains a model on the paragraphs of questions, before it learns to answer them."""

import json

from etcmodel import atomic_files
from etcmodel.tools.benchmarks import programs

__all__ = ["documents", "pretrain"]

_PROGRAMS = "etcmodel.pretrain"
_LONG, _GLOBAL = 512, 32  # Tokens of a window, which holds a paragraph.
_WINDOWS_A_STEP = 8
_MIN_SENTENCES = 2  # What contrasts a sentence with others needs; most paragraphs have a few.


def documents(questions):
    """The paragraphs as documents for pre-training, each once: list of {"text": str}.

    Args:
        questions: list of dicts of HotpotQA's form.
    """
    texts = (
        " ".join([f"{title}.", *(sentence.strip() for sentence in sentences)])
        for question in questions
        for title, sentences in question["context"]
    )
    return [{"text": text} for text in dict.fromkeys(texts)]


def pretrain(questions, start, end, folder, *, num_steps, learning_rate, mixed_precision):
    """Trains a masked language model and contrastive predictive coding (CPC).

    Args:
        questions: list of dicts of HotpotQA's form, whose paragraphs are read.
        start: path of the folder of the model to begin with.
        end: path of the folder that is written.
        folder: path. Gets the records and the run, which is resumed if it exists.
        num_steps: int, of eight paragraphs each.
        learning_rate: float.
        mixed_precision: str.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{json.dumps(x)}\n" for x in documents(questions)]
    atomic_files.write_text(str(folder / "paragraphs.jsonl"), lines)
    programs.run(
        f"{_PROGRAMS}.preprocess",
        input_pattern=folder / "paragraphs.jsonl",
        output_prefix=folder / "windows",
        vocab_file=start / "vocab.txt",
        long_seq_length=_LONG,
        global_seq_length=_GLOBAL,
        min_sentences=_MIN_SENTENCES,
        pack_documents=False,  # A model from BERT has absolute positions.
        num_shards=1,
    )
    written = json.loads((folder / "windows.stats.json").read_text("utf-8"))["examples_written"]
    programs.run(
        f"{_PROGRAMS}.run_pretraining",
        model_config_file=start / "config.json",
        init_checkpoint=start,
        vocab_file=start / "vocab.txt",
        train_data=folder / "windows-*",
        output_dir=folder / "run",
        optimizer="adamw",
        learning_rate=learning_rate,
        train_batch_size=_WINDOWS_A_STEP,
        num_train_epochs=programs.epochs(num_steps, _WINDOWS_A_STEP, written),
        cpc_temperature=3.0,  # Takes less from the language model.
        mixed_precision=mixed_precision,
        random_seed=0,
    )
    programs.run(
        f"{_PROGRAMS}.run_pretraining",
        run_mode="save_pretrained",
        output_dir=folder / "run",
        pretrained_dir=end,
    )
