"""The program that shows what tokens look at, as a user runs it."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import etcmodel
from etcmodel.checkpoints import names, writing
from etcmodel.inspection import MEAN, SIDES, attention
from etcmodel.models import heads
from etcmodel.tools import inspect_attention
from tests.inspection import small_models
from tests.models.gmat import small as gmats
from tests.reference import cases

VOCABULARY = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]"]
VOCABULARY += ["the", "river", "ri", "##ses", "on", "moor", "##s", ".", "<b>", "<", "/"]
TEXT = "The river rises on moors. The river.\n\nOn </script>!\n"


@pytest.fixture(scope="module")
def model():
    return small_models.make_encoder(num_layers=2, vocab_size=len(VOCABULARY))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    """A model's folder with a vocabulary, and a text."""
    folder = tmp_path_factory.mktemp("inspect")
    values = {name: v.numpy() for name, v in names.release_names(model).items()}
    writing.write(values, str(folder / "model"), "safetensors", config=model.config)
    (folder / "model" / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    return folder


@pytest.fixture
def arguments(folder):
    return {
        "checkpoint": str(folder / "model"),
        "input": str(folder / "text.txt"),
        "output": str(folder / "new" / "page.html"),
    }


def data_of(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(r'id="data">(.*?)</script>', file.read())[1])


@pytest.fixture(scope="module")
def expected(folder):
    """What is shown of the text."""
    output = str(folder / "expected.html")
    checkpoint, text = str(folder / "model"), str(folder / "text.txt")
    return run_here({"checkpoint": checkpoint, "input": text, "output": output})


def run_here(arguments):
    inspect_attention.run(inspect_attention.InspectOptions(**arguments))
    return data_of(arguments["output"])


@pytest.mark.slow  # Starts a process.
def test_the_program_shows_the_attention_of_a_text(arguments, model):
    flags = [f"--{name}={value}" for name, value in arguments.items()]
    done = subprocess.run(
        [sys.executable, "-m", "etcmodel.tools.inspect_attention", *flags, "--heads=-1,1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"19 long and 4 global tokens -> {arguments['output']}\n"
    data = data_of(arguments["output"])
    assert data["long"][:6] == ["[CLS]", "the", "river", "ri", "ses", "on"]
    assert data["global"] == [
        "g0 whole",
        "g1 sentence: The river rises on moors.",
        "g2 sentence: The river.",
        "g3 sentence: On </script>!",
    ]
    shown = {(x["layer"], x["side"], x["head"]): x for x in data["attention"]}
    assert set(shown) == {(i, side, head) for i in (0, 1) for side in SIDES for head in (MEAN, 1)}
    batch = etcmodel.from_pretrained(arguments["checkpoint"]).processor(TEXT)
    assert batch["global_token_ids"].tolist() == [[3, 1, 1, 1]]
    for part in attention(model, model.structure(batch), heads=[1], top=8):
        rows = shown[part.layer, part.query_side, 1]
        np.testing.assert_allclose(rows["probabilities"], part.probability, rtol=1e-4)


LINES = [{"text": "The river."}, {"question": "The river?", "documents": ["On moors.", "Rises."]}]


def test_other_forms_are_read_by_the_ending(arguments, folder):
    for name, content in {
        "page.html": "<h1>The river</h1><p>On moors.",
        "lines.jsonl": "\n".join(map(json.dumps, LINES)),
        "one.json": json.dumps(LINES[1], indent=1),
    }.items():
        (folder / name).write_text(content, encoding="utf-8")
    data = run_here({**arguments, "input": str(folder / "page.html"), "layers": (1,)})
    assert data["global"] == ["g0 whole", "g1 heading: The river", "g2 paragraph: On moors."]
    assert {(x["layer"], x["head"]) for x in data["attention"]} == {(1, MEAN)}
    data = run_here({**arguments, "input": str(folder / "lines.jsonl"), "example": 1})
    kinds = ["whole", "question", "document", "sentence", "document", "sentence"]
    assert [name.split()[1].rstrip(":") for name in data["global"]] == kinds
    assert run_here({**arguments, "input": str(folder / "one.json")}) == data
    with pytest.raises(ValueError, match="lines.jsonl: has no example 2, counted from 0"):
        run_here({**arguments, "input": str(folder / "lines.jsonl"), "example": 2})


def test_the_vocabulary_may_be_elsewhere(arguments, folder, expected, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "model")
    (tmp_path / "model" / "vocab.txt").rename(tmp_path / "vocab.txt")
    arguments = {**arguments, "checkpoint": str(tmp_path / "model")}
    with pytest.raises(ValueError, match="model: gives no processor: It has no vocabulary. Give -"):
        run_here(arguments)
    assert run_here({**arguments, "vocab_file": str(tmp_path / "vocab.txt")}) == expected


def test_the_vocabulary_may_be_of_byte_level_bpe(arguments, tmp_path):
    vocabulary = cases.topic_folder("longformer") / "tokenizer"
    vocab_file, folder = str(vocabulary / "vocab.json"), tmp_path / "model"
    size = len(etcmodel.EtcProcessor(vocab_file).tokenizer.vocab)
    model = small_models.make_encoder(num_layers=1, vocab_size=size)
    values = {name: v.numpy() for name, v in names.release_names(model).items()}
    writing.write(values, str(folder), "safetensors", config=model.config)
    arguments = {**arguments, "checkpoint": str(folder)}
    found = run_here({**arguments, "vocab_file": vocab_file})
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(vocabulary / name, folder / name)
    assert found == run_here(arguments)
    assert found["long"][:2] == ["<s>", "The"] and "<unk>" not in found["long"]


def test_of_a_model_with_a_head_the_encoder_is_shown(arguments, model, expected, tmp_path):
    processor = etcmodel.from_pretrained(arguments["checkpoint"]).processor
    heads.EtcForTokenClassification(model).save_pretrained(tmp_path / "head", processor)
    assert run_here({**arguments, "checkpoint": str(tmp_path / "head")}) == expected


def test_a_long_text_is_cut(arguments):
    data = run_here({**arguments, "max_tokens": 11})
    words = ["[CLS]", "the", "river", "ri", "ses", "on", "moor", "s", ".", "the", "[SEP]"]
    assert data["long"] == words
    assert len(data["global"]) == 3


def test_an_encoder_of_another_kind_is_refused(arguments, tmp_path):
    gmats.model(num_hidden_layers=1).save_pretrained(tmp_path / "other")
    with pytest.raises(ValueError, match="other: holds a 'gmat'. This program shows an `EtcM"):
        run_here({**arguments, "checkpoint": str(tmp_path / "other")})


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"input": ""}, "--input must be given"),
        ({"input": "absent.txt"}, "--input: no such file: 'absent.txt'"),
        ({"vocab_file": "absent.txt"}, "--vocab_file: no such file: 'absent.txt'"),
        ({"checkpoint": "absent"}, "There is no directory 'absent'"),
        ({"layers": (2,)}, "`layers` must be from 0 to 1. Received: 2"),
        ({"heads": (7,)}, "`heads` must be from 0 to 1, or -1. Received: 7"),
    ],
)
def test_what_is_not_there_is_refused_and_leaves_no_file(arguments, tmp_path, changes, message):
    output = tmp_path / "page.html"
    with pytest.raises(ValueError, match=message):
        run_here({**arguments, "output": str(output), **changes})
    assert not output.exists() and not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "content, message",
    [
        ("[1]", "bad.json must hold a JSON object, not an array"),
        ('{"token_ids": [1]}', r"bad.json: .* has unknown fields"),
        ('{"text": 3}', r"bad.json: .*text. must be a string. Received: int 3"),
    ],
)
def test_an_example_that_cannot_be_read_is_refused(arguments, tmp_path, content, message):
    (tmp_path / "bad.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        run_here({**arguments, "input": str(tmp_path / "bad.json")})


def test_a_text_without_words_is_refused(arguments, tmp_path):
    (tmp_path / "text.txt").write_text(" \n", encoding="utf-8")
    with pytest.raises(ValueError, match="text.txt: has no text"):
        run_here({**arguments, "input": str(tmp_path / "text.txt")})
    (tmp_path / "text.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="text.txt: the text is in UTF-16"):
        run_here({**arguments, "input": str(tmp_path / "text.txt")})
