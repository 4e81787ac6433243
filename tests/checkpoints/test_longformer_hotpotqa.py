"""Longformer on HotpotQA and WikiHop, whose inputs have marks: added tokens, to the export."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import serving
from tests.reference import cases

VOCABULARY = cases.reference_root() / "longformer" / "tokenizer"
MARKS = ["[question]", "[/question]", "[ent]", "[/ent]"]
EXAMPLE = {
    "question": "[question] Who wrote Emma? [/question]",
    "documents": ["[ent] Jane Austen [/ent] [ent] Emma [/ent]", "Emma is by Jane Austen."],
}


@pytest.fixture
def folder(tmp_path):
    """A folder as Hugging Face's library writes one."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = etcmodel.LongformerConfig(vocab_size=2000, attention_window=(8,), **sizes)
    etcmodel.LongformerForQuestionAnswering(config).save_pretrained(tmp_path / "released")
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(VOCABULARY / name, tmp_path / "released")
    return tmp_path / "released"


@pytest.mark.slow
def test_marks_are_added_learned_saved_exported_and_served(folder, tmp_path):
    model = etcmodel.from_pretrained(folder)
    assert model.processor.add_tokens(MARKS) == 4
    with pytest.raises(
        ValueError, match="has 2004 tokens, more than the model's `vocab_size`, 2000"
    ):
        model.save_pretrained(tmp_path / "trained")
    model.resize_token_embeddings()
    batch = model.processor(**EXAMPLE)
    tokens = batch.encodings[0].tokens
    assert [x for x in tokens if x in MARKS] == [*MARKS, *MARKS[2:]]
    before = model.encoder.get_token_embedding_table().numpy()
    model.compile(run_eagerly=True)
    model.fit(dict(batch), {"start": np.array([3]), "end": np.array([4])}, verbose=0)
    moved = np.abs(model.encoder.get_token_embedding_table().numpy() - before).max(axis=1)
    assert (moved[2000:] > 0).all()

    model.save_pretrained(tmp_path / "trained")
    loaded = etcmodel.from_pretrained(tmp_path / "trained")
    again = loaded.processor(**EXAMPLE)
    np.testing.assert_array_equal(again["input_ids"], batch["input_ids"])
    wanted = model(dict(batch))
    for name, logits in loaded(dict(again)).items():
        np.testing.assert_array_equal(logits, wanted[name])

    features = {name: tf.io.FixedLenFeature([8], tf.int64) for name in again}
    path = str(tmp_path / "export")
    axes = dict.fromkeys(features, "length")
    serving.export_saved_model(loaded, path, features=features, assets={}, axes=axes)
    served = tf.saved_model.load(path).signatures["dense_features"]
    found = served(**{name: tf.constant(x) for name, x in again.items()})
    for name, logits in found.items():
        np.testing.assert_allclose(logits, wanted[name], rtol=1e-5, atol=1e-6)
    # There is no byte-level BPE in a graph.
    with pytest.raises(ValueError, match="Export features instead: `serving.export_saved_model`"):
        serving.export_text_model(loaded, str(tmp_path / "of_texts"))
