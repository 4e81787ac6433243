"""RoBERTa lifted into Longformer: RoBERTa's own outputs, Hugging Face's weights, any length."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import hugging_face
from etcmodel.models.longformer import LongformerForMaskedLM
from tests.models.longformer import small
from tests.reference import cases, longformer_cases

FOLDER = cases.topic_folder("longformer") / "lift"
CASES = [case for case in cases.load_cases("longformer") if case["kind"] == "lift/longformer"]


@pytest.fixture(scope="module")
def lifted():
    return checkpoints.lift_roberta(FOLDER / "roberta", max_length=96, attention_window=12)


def test_the_weights_are_those_of_the_recipe(lifted):
    wanted = load_file(FOLDER / "longformer" / "model.safetensors")
    found = hugging_face.values(lifted)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.reference("longformer")
@pytest.mark.parametrize("case", CASES, ids=cases.case_id)
def test_outputs(lifted, case):
    arrays = longformer_cases.arrays_of(case)
    logits = lifted(longformer_cases.inputs_of(arrays))
    longformer_cases.assert_same({"out/logits": logits.numpy()}, arrays)


def test_any_length_is_possible():
    model = checkpoints.lift_roberta(FOLDER / "roberta", max_length=31)
    source = load_file(FOLDER / "roberta" / "model.safetensors")
    table = source["roberta.embeddings.position_embeddings.weight"]
    found = model.encoder.position_embeddings.embedding_table.numpy()
    np.testing.assert_array_equal(found, np.concatenate([table, table[2:9]]))
    assert model(np.full([1, 31], 5)).shape == [1, 31, 77]


def test_it_is_written_and_read_as_a_longformer(lifted, tmp_path):
    etcmodel.save_pretrained(lifted, tmp_path)
    again = etcmodel.from_pretrained(tmp_path)
    assert isinstance(again, LongformerForMaskedLM)
    ids = np.arange(3, 20)[np.newaxis]
    np.testing.assert_array_equal(again(ids), lifted(ids))


def test_after_pre_training_the_global_projections_are_copied_again():
    model = small.model()
    checkpoints.copy_local_to_global(model)
    for block in model.layers.attention_layers:
        attention = block.inner_layer
        for name in ("query", "key", "value"):
            ours, copies = (getattr(attention, x).linear for x in (name, f"{name}_global"))
            np.testing.assert_array_equal(ours.kernel, copies.kernel)
            np.testing.assert_array_equal(ours.bias, copies.bias)
    with pytest.raises(ValueError, match="has no projections of global tokens"):
        checkpoints.copy_local_to_global(small.model(autoregressive=True))


def test_only_a_roberta_is_lifted(tmp_path):
    shutil.copytree(FOLDER / "roberta", tmp_path / "bert")
    path = tmp_path / "bert" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_type": "bert"}))
    with pytest.raises(ValueError, match="only a RoBERTa is lifted .* of type 'bert'"):
        checkpoints.lift_roberta(tmp_path / "bert")
