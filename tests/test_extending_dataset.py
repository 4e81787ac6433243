"""The data sets of docs/extending.md, built from the page itself, train, evaluate and predict."""

import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

import etcmodel
from etcmodel.text import tokenization, vocabulary_files
from tests import page
from tests.models import etcs
from tests.reference import cases
from tests.warm import python as warm

pytestmark = pytest.mark.slow

FILE = re.compile(r"^### \w+/(\S+)\n.*?^(`{3,})\w+\n(.*?)^\2$", re.M | re.S)
LABELS = ("no", "yes", "maybe")
SENTENCE_PIECES = pathlib.Path(__file__).parent / "fixtures" / "sentence_pieces" / "spiece.model"


def write_package(folder, section):
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, _, text in FILE.findall(page.section(section)):
        (folder / name).write_text(text, encoding="utf-8")
    return sorted(path.stem for path in folder.iterdir() if path.stem != "__init__")


def write_lines(path, values):
    path.write_text("\n".join(map(json.dumps, values)))


@pytest.fixture
def folder(tmp_path):
    """A folder with the claims, raw files, a vocabulary and a config."""
    files = write_package(tmp_path / "claims", "Add a data set")
    assert files == ["README", "examples", "features", "model", "program", "task"]
    for split, count in (("train", 8), ("dev", 3)):
        claims = [
            {
                "id": f"{split} {number}",
                "question": "is it so",
                "text": f"it is {LABELS[number % 3]}. so it is.",
                "label": LABELS[number % 3],
            }
            for number in range(count)
        ]
        write_lines(tmp_path / f"{split}.jsonl", claims)
    vocab = ["[PAD]", "[UNK]", "is", "it", "so", ".", *LABELS]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab))
    config = etcs.entries(vocab_size=len(vocab), intermediate_size=8, local_radius=4)
    (tmp_path / "etc_config.json").write_text(json.dumps(config))
    return tmp_path


def run(folder, command):
    done = subprocess.run(
        command.replace("python ", f"{warm.python()} ", 1),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        shell=True,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.exhaustive
def test_the_commands_of_the_page_train_for_two_steps_and_evaluate(folder):
    readme = (folder / "claims" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(.*?)^```$", readme, re.M | re.S)
    *commands, evaluation = block.replace("\\\n", " ").splitlines()
    for command in commands:
        run(folder, command)
    kept = json.loads((folder / "run" / "run_config.json").read_text())
    assert kept["notes"]["num_train_steps"] == 2
    assert kept["task"]["max_long_seq_length"] == 64  # As the records have it.
    assert (folder / "run" / "ckpt-2.index").exists()
    (metrics,) = run(folder, evaluation).splitlines()
    predictions = json.loads((folder / "run" / "predictions.json").read_text())
    assert set(predictions) == {"dev 0", "dev 1", "dev 2"}
    right = sum(predictions[f"dev {number}"] == LABELS[number] for number in range(3))
    assert json.loads(metrics)["accuracy"] == pytest.approx(right / 3)


WORDS = {"O": ("met", "in", "and", "saw"), "PER": ("Ada", "Bo", "Cy"), "LOC": ("Ulm", "Rome")}


def sentence(name, seed):
    """A sentence in which the words alone say what is a name, some of two words."""
    random = np.random.default_rng(seed)
    words, tags = [], []
    for kind in random.choice(["O", "PER", "LOC"], 6):
        number = 1 if kind == "O" else random.integers(1, 3)
        words += [str(x) for x in random.choice(WORDS[kind], number)]
        tags += ["O"] if kind == "O" else [f"B-{kind}", *[f"I-{kind}"] * (number - 1)]
        words, tags = [*words, "then"], [*tags, "O"]
    return {"id": name, "words": words, "tags": tags}


def test_words_have_their_tokens_with_every_kind_of_vocabulary(tmp_path, monkeypatch):
    write_package(tmp_path / "ner", "Add a data set for an existing head")
    monkeypatch.syspath_prepend(str(tmp_path))
    ner = importlib.import_module("ner.features")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\ncy\nun\n##safe\n")
    word_pieces = tokenization.FullTokenizer(str(tmp_path / "vocab.txt"))
    folder = str(cases.topic_folder("longformer") / "tokenizer")
    bytes_ = etcmodel.LongformerProcessor.from_pretrained(folder).tokenizer
    shutil.copyfile(SENTENCE_PIECES, tmp_path / "sentencepiece.bpe.model")
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    pieces_ = vocabulary_files.open_tokenizer(str(tmp_path / "sentencepiece.bpe.model"))
    words = ("Cy", "\u200b", "unsafe", "")
    of_bytes = [bytes_.tokenize(f" {word}") for word in words]
    of_pieces = [pieces_.tokenize(word) for word in words[:3]]
    for tokenizer, first, of_words, last in (
        (word_pieces, "[CLS]", [["cy"], ["[UNK]"], ["un", "##safe"], ["[UNK]"]], "[SEP]"),
        (bytes_, "<s>", of_bytes, "</s>"),
        (pieces_, "<s>", [*of_pieces, ["<unk>"]], "</s>"),
    ):
        tokens, word_ids = [first], [-1]
        for number, pieces in enumerate(of_words):
            tokens += pieces
            word_ids += [number] + [-1] * (len(pieces) - 1)
        config = ner.InputConfig(long_seq_length=len(tokens) + 1)
        found = ner.make_features(ner.examples.Sentence("a", words), config, tokenizer)
        assert tokenizer.convert_ids_to_tokens(found["input_ids"]) == [*tokens, last]
        assert found["word_ids"] == [*word_ids, -1] and all(found["attention_mask"])


@pytest.mark.exhaustive
def test_a_head_of_longformer_learns_to_find_names(tmp_path):
    files = write_package(tmp_path / "ner", "Add a data set for an existing head")
    assert files == ["examples", "features", "program", "task"]
    lines = [(tmp_path / "ner" / f"{name}.py").read_text().splitlines() for name in files]
    assert sum(bool(line.strip()) for of_file in lines for line in of_file) < 150
    dev = [sentence(f"dev {number}", 1000 + number) for number in range(20)]
    write_lines(tmp_path / "train.jsonl", [sentence(str(x), x) for x in range(160)])
    write_lines(tmp_path / "dev.jsonl", dev)
    untagged = [{"id": x["id"], "words": x["words"]} for x in dev]
    write_lines(tmp_path / "raw.jsonl", untagged)
    vocabulary = cases.topic_folder("longformer") / "tokenizer"
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(vocabulary / name, tmp_path / name)
    config = etcmodel.LongformerConfig(
        vocab_size=len(json.loads((vocabulary / "vocab.json").read_text(encoding="utf-8"))),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        attention_window=(8, 8),
        initializer_range=0.1,
        max_position_embeddings=70,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    (tmp_path / "config.json").write_text(config.to_json_string())
    made = "--vocab_file=vocab.json --long_seq_length=48 --num_shards=1"
    for split in ("train", "dev"):
        raw = f"--input_pattern={split}.jsonl --output_prefix=records/{split}"
        run(tmp_path, f"python -m ner.program preprocess {raw} {made}")
    measured = "--eval_data='records/dev-*' --eval_gold=dev.jsonl"
    run(
        tmp_path,
        "python -m ner.program --run_mode=train --model_config_file=config.json --output_dir=run "
        f"--vocab_file=vocab.json --train_data='records/train-*' {measured} --num_train_epochs=30 "
        "--train_batch_size=16 --learning_rate=3e-3",
    )
    (metrics,) = run(
        tmp_path, f"python -m ner.program --run_mode=evaluate --output_dir=run {measured}"
    ).splitlines()
    assert json.loads(metrics)["f1"] > 0.9
    predictions = json.loads((tmp_path / "run" / "predictions.json").read_text())
    for mode in ("export", "predict --input_file=raw.jsonl --predictions_file=raw.json"):
        run(tmp_path, f"python -m ner.program --output_dir=run --run_mode={mode}")
    assert json.loads((tmp_path / "raw.json").read_text()) == predictions
