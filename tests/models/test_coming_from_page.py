"""docs/checkpoints.md: its code loads what others have saved."""

import shutil

import numpy as np
import pytest

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import writing
from tests import page
from tests.checkpoints import berts, longformers
from tests.models import etcs
from tests.reference import cases

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "river", "is", "long", "a", "."]
BLOCKS = page.blocks("checkpoints.md#coming-from-another-library")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of the checkpoints that the page names, of small models."""
    folder = tmp_path_factory.mktemp("from")
    config = etcmodel.EtcConfig(
        vocab_size=len(WORDS), **etcs.sizes(intermediate_size=16), initializer_range=0.5
    )
    model = etcmodel.EtcModel(config)
    model.build(None)
    values = {name: v.numpy() for name, v in checkpoints.release_names(model).items()}
    writing.write(values, str(folder / "etc_base_2x_pretrain"), "released", config=config)
    (folder / "etc_base_2x_pretrain" / "vocab.txt").write_text("\n".join(WORDS))
    longformers.write(folder / "longformer-base-4096", longformers.masked_lm())
    for name in ("bert-base-uncased", "all-MiniLM-L6-v2"):
        berts.write_folder(folder / name, WORDS)
    return folder


def run(number, folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    exec(BLOCKS[number], names)
    return names


def test_all_code_is_run():
    assert len(BLOCKS) == 3


def test_a_checkpoint_of_the_release(folder, monkeypatch):
    assert run(0, folder, monkeypatch)["model"].config.vocab_size == len(WORDS)


def test_a_document_is_encoded_as_the_page_of_checkpoints_says(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (code,) = page.blocks("checkpoints.md#encoding-a-document")
    names = {}
    exec(code, names)
    long_output, global_output = names["long_output"], names["global_output"]
    assert long_output.shape[1] == names["tokens"].shape[1] and global_output.shape[1] == 2
    other = names["model"](names["tokens"][:, ::-1], names["global_tokens"])[0][:, ::-1]
    assert np.abs(long_output - other).max() > 1e-3  # Its structure knows places.


def test_vectors_of_texts_are_those_that_the_page_says(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (code,) = page.blocks("checkpoints.md#vectors-of-texts")
    names = {}
    exec(code, names)
    assert names["vectors"].shape == (2, berts.HIDDEN)
    assert names["sentences"] == ("The river is long.",)  # This BERT has six positions.
    assert names["in_context"].shape == (1, berts.HIDDEN)


def test_longer_models_begin_with_what_the_page_names(folder, monkeypatch):
    monkeypatch.chdir(folder)
    shutil.copytree(cases.topic_folder("longformer") / "lift" / "roberta", "xlm-roberta-base")
    (code,) = page.blocks("checkpoints.md#longformer-and-bigbird")
    names = {}
    exec(code, names)
    again = etcmodel.from_pretrained("long-xlm-roberta")
    np.testing.assert_array_equal(again([[0, 7, 5, 2]]), names["longformer"]([[0, 7, 5, 2]]))
    assert names["bigbird"].config.max_length == 4096
    assert names["bigbird"].processor(["The river."])["input_ids"].tolist() == [[2, 5, 6, 10, 3]]


def test_a_folder_of_hugging_face(folder, monkeypatch):
    names = run(1, folder, monkeypatch)
    expected = etcmodel.load_pretrained(folder / "longformer-base-4096")(
        np.array([[0, 7, 5, 2]]), global_attention_mask=np.array([[1, 0, 0, 0]])
    )
    np.testing.assert_array_equal(names["outputs"], expected)


def test_a_lifted_bert_gives_its_own_outputs(folder, monkeypatch):
    vectors = run(2, folder, monkeypatch)["vectors"]
    weights = berts.hugging_face_weights(prefix="")
    for vector, ids in zip(vectors, ([4, 5, 6], [7, 8, 9]), strict=True):
        hidden = berts.numpy_bert(weights, np.array(ids), np.ones(3, bool))
        np.testing.assert_allclose(vector, hidden.mean(axis=0), rtol=1e-4, atol=1e-5)
