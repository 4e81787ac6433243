"""BERT and RoBERTa lifted into GMAT: their own outputs while a chunk covers the text."""

import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import names as names_lib
from etcmodel.models.gmat import GmatForMaskedLM
from tests.checkpoints import berts

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef")
IDS = np.array([[2, 5, 6, 7, 3, 0], [2, 8, 9, 10, 5, 3]])
MASK = np.array([[1, 1, 1, 1, 1, 0], [1] * 6])


@pytest.fixture
def bert(tmp_path):
    return berts.write_folder(tmp_path / "bert", WORDS)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("kind", "chunk_size"), [("bert", 6), ("roberta", 512), ("bert", 512)])
def test_without_a_memory_it_is_the_source_while_a_chunk_covers_the_text(
    kind, chunk_size, tmp_path
):
    """The encoder, and the head for masked tokens."""
    is_roberta = kind == "roberta"
    settings = {"epsilon": 1e-5} if is_roberta else {}
    folder = tmp_path / kind
    berts.write_folder(folder, WORDS, kind, layer_norm_eps=settings.get("epsilon", 1e-12))
    weights = berts.roberta_weights() if is_roberta else berts.hugging_face_weights()
    head = berts.masked_lm_weights(of_roberta=is_roberta)
    berts.write_safetensors(folder, {**weights, **head})
    changes = {"num_memory_tokens": 0, "chunk_size": chunk_size}
    model = checkpoints.lift_to_gmat(folder, as_class=GmatForMaskedLM, **changes)
    assert model.encoder.config.position_period == berts.POSITIONS
    hidden = berts.numpy_berts(weights, IDS, MASK > 0, **settings)
    found, _ = model.encoder(IDS, MASK)
    np.testing.assert_allclose(found.numpy()[MASK > 0], hidden[MASK > 0], atol=2e-5)
    table = weights[f"{kind}.embeddings.word_embeddings.weight"]
    expected = berts.numpy_masked_lm(hidden, head, table, **settings)
    found = model({"input_ids": IDS, "attention_mask": MASK}).numpy()
    np.testing.assert_allclose(found[MASK > 0], expected[MASK > 0], atol=1e-4)


def test_without_such_a_head_in_the_folder_it_begins_fresh(bert):
    lifted = checkpoints.lift_to_gmat(bert, as_class=GmatForMaskedLM, num_memory_tokens=0)
    np.testing.assert_array_equal(lifted.language_model.bias, np.zeros(berts.VOCAB))
    encoder = checkpoints.lift_to_gmat(bert, num_memory_tokens=0)
    np.testing.assert_array_equal(lifted.encoder(IDS)[0], encoder(IDS)[0])


def test_texts_longer_than_bert_can_read(bert):
    model = checkpoints.lift_to_gmat(bert, chunk_size=4, num_memory_tokens=2)
    ids = np.arange(40)[np.newaxis] % berts.VOCAB
    hidden, memory = model(ids)
    assert hidden.shape == [1, 40, berts.HIDDEN] and memory.shape == [1, 2, berts.HIDDEN]
    vectors = model.embeddings.positions(np.arange(12)).numpy()
    np.testing.assert_array_equal(vectors[:6], vectors[6:])
    assert model.config.max_length == 64 * berts.POSITIONS


def test_the_memory_alone_begins_afresh(bert):
    model = checkpoints.lift_to_gmat(
        bert, has_own_memory_projections=True, has_own_memory_output=True, num_memory_tokens=2
    )
    source = berts.original_weights(berts.hugging_face_weights(prefix=""))
    known = {value.tobytes() for value in map(np.ascontiguousarray, source.values())}
    fresh = {
        name
        for name, variable in names_lib.release_names(model).items()
        if variable.numpy().tobytes() not in known
    }
    attention = [f"gmat/layers/attention_layer_{i}/attention/memory_" for i in range(2)]
    parts = ("query", "key", "value", "output_projection")
    assert fresh == {
        "gmat/embeddings/memory_embeddings/embedding_table",
        "gmat/embeddings/quotient_embeddings/embedding_table",
        *(f"{x}{part}/{kind}" for x in attention for part in parts for kind in ("kernel", "bias")),
    }


def test_layers_of_a_compression_are_berts_in_their_order(bert):
    plain = checkpoints.lift_to_gmat(bert, num_memory_tokens=2)
    compressed = checkpoints.lift_to_gmat(bert, num_memory_tokens=2, num_compression_layers=1)
    one, two = compressed.stacks
    for number, stack in enumerate((one, two)):
        ours = stack.feed_forward_layers[0].get_weights()
        for x, y in zip(ours, plain.layers.feed_forward_layers[number].get_weights(), strict=True):
            np.testing.assert_array_equal(x, y)


def test_it_is_written_and_read_with_its_vocabulary(bert, tmp_path):
    model = checkpoints.lift_to_gmat(bert, num_memory_tokens=2)
    model.save_pretrained(tmp_path / "gmat")
    assert (tmp_path / "gmat" / "vocab.txt").read_bytes() == (bert / "vocab.txt").read_bytes()
    again = etcmodel.load_pretrained(tmp_path / "gmat")
    np.testing.assert_array_equal(again(IDS)[0], model(IDS)[0])
    ids = [x.processor("a b")["input_ids"] for x in (again, model)]
    np.testing.assert_array_equal(*ids)


def test_what_cannot_be_lifted_is_refused(bert, tmp_path):
    with pytest.raises(ValueError, match="config.json: .* has no `chunk_sise`"):
        checkpoints.lift_to_gmat(bert, chunk_sise=3)
    with pytest.raises(ValueError, match=r"\[6, 8\] in the file, \[7, 8\] by the config"):
        checkpoints.lift_to_gmat(bert, position_period=7)
    with pytest.raises(ValueError, match="lacks what becomes gmat/layers/attention_layer_2"):
        checkpoints.lift_to_gmat(bert, num_hidden_layers=3)
    model = checkpoints.lift_to_gmat(bert, num_memory_tokens=0)
    model.save_pretrained(tmp_path / "gmat")
    with pytest.raises(ValueError, match="holds no BERT or RoBERTa"):
        checkpoints.lift_to_gmat(tmp_path / "gmat")


def test_the_original_bert_has_the_approximate_gelu(tmp_path):
    values = berts.original_weights(berts.hugging_face_weights(prefix=""))
    berts.write_released(tmp_path, {f"bert/{name}": value for name, value in values.items()})
    entries = {**berts.ENTRIES, "hidden_act": "gelu"}
    (tmp_path / "bert_config.json").write_text(json.dumps(entries))
    model = checkpoints.lift_to_gmat(tmp_path, num_memory_tokens=0)
    assert model.config.activation == "gelu"
    assert tf.is_tensor(model(IDS, MASK)[0])


def test_layers_become_those_of_compression_in_turn(bert, tmp_path):
    plain = checkpoints.lift_to_gmat(bert, num_memory_tokens=2)
    etcmodel.save_pretrained(plain, tmp_path / "plain")
    model = etcmodel.from_pretrained(tmp_path / "plain", num_compression_layers=1)
    stacks = (model.compressor, model.decompressor)
    for expected, stack in zip(plain.layers.attention_layers, stacks, strict=True):
        (found,) = stack.attention_layers
        for ours, theirs in zip(found.weights, expected.weights, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(model.embeddings.weights, plain.embeddings.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
