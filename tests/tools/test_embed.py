"""`etcmodel embed`: vectors of the texts of a file, in its order, also after it was stopped."""

import json
import subprocess
import sys

import numpy as np
import pytest

import etcmodel
from etcmodel.checkpoints import text_encoder
from etcmodel.tools import embed
from tests import page
from tests.checkpoints import test_text_encoder

TEXTS = ["a b. c", "d", "", "e f g h", "i. j k"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return test_text_encoder.write_bert(tmp_path_factory.mktemp("made") / "bert")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


def run(data, model, output, **options):
    """Computes vectors; returns them and the ids."""
    embed.embed(embed.EmbedOptions(data=str(data), model=str(model), output=str(output), **options))
    ids = output.with_suffix(".ids.jsonl").read_text().splitlines()
    return np.load(output), list(map(json.loads, ids))


def test_vectors_are_in_the_order_of_the_texts(bert, data, tmp_path):
    vectors, ids = run(data, bert, tmp_path / "vectors.npy")
    np.testing.assert_allclose(vectors, etcmodel.TextEncoder(bert).encode(TEXTS), atol=1e-5)
    assert vectors.dtype == np.float32 and ids == [f"docs.jsonl:{i}" for i in range(1, 6)]
    assert sorted(x.name for x in tmp_path.iterdir()) == [
        *("docs.jsonl", "vectors.ids.jsonl", "vectors.npy")
    ]
    with pytest.raises(ValueError, match="vectors.npy is there already. Remove it, or give anoth"):
        run(data, bert, tmp_path / "vectors.npy")


def test_texts_may_be_a_column_of_a_table_or_a_folder(bert, tmp_path):
    table = tmp_path / "docs.csv"
    table.write_text("number,body\n7,a b\nx y,c\n")
    options = {"text_field": "body", "id_field": "number", "normalize": True, "max_length": 3}
    vectors, ids = run(table, bert, tmp_path / "v.npy", pooling="last", **options)
    encoder = etcmodel.TextEncoder(bert, pooling="last", max_length=3)
    np.testing.assert_allclose(vectors, encoder.encode(["a b", "c"], normalize=True), atol=1e-5)
    assert ids == ["7", "x y"]
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "one.txt").write_text("d e")
    vectors, ids = run(folder, bert, tmp_path / "w.npy")
    np.testing.assert_allclose(vectors[0], etcmodel.TextEncoder(bert).encode("d e"), atol=1e-5)
    assert ids == ["one.txt"]


def test_a_stopped_run_goes_on_where_it_was(bert, data, tmp_path, monkeypatch):
    monkeypatch.setattr(embed, "_PART", 2)
    encode, encoded, output = text_encoder.TextEncoder.encode, [], tmp_path / "vectors.npy"

    def stopped(self, texts, *args, **kwargs):
        if encoded:
            raise KeyboardInterrupt
        encoded.append(texts)
        return encode(self, texts, *args, **kwargs)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(text_encoder.TextEncoder, "encode", stopped)
        run(data, bert, output)
    assert not output.exists() and encoded == [TEXTS[:2]]

    def counted(self, texts, *args, **kwargs):
        encoded.append(texts)
        return encode(self, texts, *args, **kwargs)

    monkeypatch.setattr(text_encoder.TextEncoder, "encode", counted)
    with pytest.raises(
        ValueError, match="results without --pooling. Leave the flag out, or give another --output"
    ):
        run(data, bert, output, pooling="max")
    vectors, _ = run(data, bert, output, batch_size=3)
    assert encoded == [TEXTS[:2], TEXTS[2:4], TEXTS[4:]]
    np.testing.assert_allclose(vectors, etcmodel.TextEncoder(bert).encode(TEXTS), atol=1e-5)
    assert not list(tmp_path.glob("*.parts"))


def test_parts_of_other_texts_are_not_taken(bert, data, tmp_path, monkeypatch):
    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(text_encoder.TextEncoder, "encode", stopped)
        run(data, bert, tmp_path / "v.npy")
    config = bert / "config.json"
    config.write_text(config.read_text() + "\n")  # Another model of this name, for all we know.
    with pytest.raises(ValueError, match="results of other data than those of --model="):
        run(data, bert, tmp_path / "v.npy")
    config.write_text(config.read_text()[:-1])
    data.write_text('{"text": "other"}\n')
    with pytest.raises(ValueError, match="results of other data than those of --data=.* --output."):
        run(data, bert, tmp_path / "v.npy")


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"text": "a"}\n{"text": 3}\n', "docs.jsonl: line 2: .*`text` must be a string. Received"),
        ('{"text": "a"}\n{"body": "b"}\n', r"docs.jsonl: line 2: .*`text` is missing. Its fields"),
        ('{"text": "a"}\n{"text": \n', "docs.jsonl: line 2: malformed JSON"),
        ("", "holds no texts"),
    ],
)
def test_a_text_that_cannot_be_read_is_told_before_the_work(tmp_path, content, message):
    path = tmp_path / "docs.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):  # Not the model's, which is missing.
        run(path, tmp_path / "nothing", tmp_path / "v.npy")
    assert [x.name for x in tmp_path.iterdir()] == ["docs.jsonl"]


def test_the_output_is_local():
    with pytest.raises(ValueError, match="--output=gs://b/v.npy must be a file on a local disk"):
        embed.EmbedOptions(data="docs.jsonl", model="m", output="gs://b/v.npy")


@pytest.mark.slow
def test_the_command_of_the_page(tmp_path, data):
    test_text_encoder.write_bert(tmp_path / "all-MiniLM-L6-v2")
    page.run_commands("checkpoints.md", tmp_path, having="etcmodel embed")
    assert np.load(tmp_path / "vectors.npy").shape == (5, 8)


@pytest.mark.slow
def test_the_command_takes_the_data_as_a_word(bert, data, tmp_path):
    command = [sys.executable, "-m", "etcmodel", "embed"]
    flags = [f"--model={bert}", f"--output={tmp_path / 'v.npy'}"]
    done = subprocess.run([*command, str(data), *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 vectors of 8 numbers are in ")
    assert np.load(tmp_path / "v.npy").shape == (5, 8)
    done = subprocess.run([*command, *flags], capture_output=True, text=True)
    assert done.stderr == "error: The data are one file, folder or pattern. Received: none\n"
