"""The toy task's vocabulary, raw data and records."""

import json
import types

import pytest

from etcmodel.text import tokenization
from tests.eager import eagerly, in_graphs  # noqa: F401
from tests.finetuning import toy


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory):
    """A folder with the paths of everything that the toy's program reads."""
    folder = tmp_path_factory.mktemp("toy")
    vocab = folder / "vocab.txt"
    vocab.write_text("\n".join(toy.VOCAB))
    tokenizer = tokenization.FullTokenizer(str(vocab))
    for split, seed in (("train", 0), ("dev", 1)):
        documents = toy.make_documents(30 if split == "train" else 7, seed)
        (folder / f"{split}.json").write_text(json.dumps(documents))
        toy.write_records(folder / f"{split}.tfrecord", documents, tokenizer)
    (folder / "etc_config.json").write_text(json.dumps(toy.ETC_CONFIG))
    return types.SimpleNamespace(
        folder=folder,
        vocab=vocab,
        tokenizer=tokenizer,
        train=folder / "train.tfrecord",
        dev=folder / "dev.tfrecord",
        dev_json=folder / "dev.json",
        etc_config=folder / "etc_config.json",
    )
