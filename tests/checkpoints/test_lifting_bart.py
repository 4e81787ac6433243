"""BART lifted into LED: BART's own outputs, Hugging Face's weights, any length."""

import json
import shutil

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from safetensors.numpy import load_file

import etcmodel
from etcmodel import checkpoints
from tests.checkpoints import numpy_bart
from tests.reference import cases, seq2seq_cases

TOPIC = "longformer"
FOLDER = cases.topic_folder(TOPIC) / "lift"
CASES = [case for case in cases.load_cases(TOPIC) if case["kind"] == "lift/led"]


@pytest.fixture(scope="module")
def lifted():
    return checkpoints.lift_bart(FOLDER / "bart", max_length=100, attention_window=16)


def test_the_weights_are_those_of_the_recipe(lifted, tmp_path):
    etcmodel.save_pretrained(lifted, tmp_path)
    wanted = load_file(FOLDER / "led" / "model.safetensors")
    found = load_file(tmp_path / "model.safetensors")
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name].tobytes() == value.tobytes(), name
    again = etcmodel.from_pretrained(tmp_path)
    assert isinstance(again, etcmodel.LedForConditionalGeneration)
    assert again.config == lifted.config
    ids = np.arange(3, 20)[np.newaxis]
    np.testing.assert_array_equal(
        again(ids, labels=ids)["logits"], lifted(ids, labels=ids)["logits"]
    )


@pytest.mark.reference(TOPIC)
@pytest.mark.parametrize("case", CASES, ids=cases.case_id)
def test_outputs(lifted, case):
    arrays = cases.arrays_of(TOPIC, case)
    found = lifted(seq2seq_cases.inputs_of(arrays))
    for name in ("logits", "loss"):
        seq2seq_cases.assert_close(f"out/{name}", found[name].numpy(), arrays[f"out/{name}"])


@hypothesis.settings(max_examples=10)
@hypothesis.given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 99))
def test_it_is_bart_while_the_window_covers_the_text(lifted, length, target_length, seed):
    rng = np.random.default_rng(seed)
    ids, decoder_ids = (rng.integers(3, 77, [1, number]) for number in (9, target_length))
    mask = (np.arange(9) < length).astype(int)[np.newaxis]
    found = lifted(ids, mask, global_attention_mask=[0], decoder_input_ids=decoder_ids)["logits"]
    weights = load_file(FOLDER / "bart" / "model.safetensors")
    wanted = numpy_bart.logits(weights, 3, ids[0], mask[0], decoder_ids[0])
    np.testing.assert_allclose(found[0], wanted, atol=1e-4)


def test_any_length_is_possible():
    model = checkpoints.lift_bart(FOLDER / "bart", max_length=31)
    source = load_file(FOLDER / "bart" / "model.safetensors")
    table = source["model.encoder.embed_positions.weight"][2:]
    found = model.encoder.position_embedding.embedding_table.numpy()
    np.testing.assert_array_equal(found, np.concatenate([table, table[:11]]))
    ids = np.full([1, 31], 5)
    assert model(ids, labels=np.full([1, 3], 6))["logits"].shape == [1, 3, 77]
    with pytest.raises(ValueError, match="below 31, which is `max_encoder_position_embeddings`"):
        model(np.full([1, 32], 5), labels=np.full([1, 3], 6))


def test_the_global_projections_are_copied_again():
    model = checkpoints.lift_bart(FOLDER / "bart", max_length=31)
    attention = model.encoder.layers.attention_layers[0].inner_layer
    attention.key.linear.kernel.assign(attention.key.linear.kernel + 1)
    checkpoints.copy_local_to_global(model)
    np.testing.assert_array_equal(attention.key.linear.kernel, attention.key_global.linear.kernel)


SETTINGS = {
    "num_beams": 3,
    "max_length": 9,
    "forced_bos_token_id": 0,
    "encoder_repetition_penalty": 1.5,
}


def bart_with(folder, file_name, entries):
    """A copy of the BART, of which a file has these entries, too."""
    shutil.copytree(FOLDER / "bart", folder)
    folder.chmod(0o755)
    path = folder / file_name
    made = json.loads(path.read_text()) if path.exists() else {}
    path.unlink(missing_ok=True)
    path.write_text(json.dumps({**made, **entries}))
    return folder


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("file_name", ["generation_config.json", "config.json"])
def test_it_generates_as_the_folder_says(tmp_path, caplog, file_name):
    folder = bart_with(tmp_path / "bart", file_name, SETTINGS)
    if file_name == "config.json":  # As older folders have it.
        (folder / "generation_config.json").unlink(missing_ok=True)
    model = checkpoints.lift_bart(folder, max_length=31, pad_token_id=4)
    assert "`generate` does not know {'encoder_repetition_penalty': 1.5}" in caplog.text
    settings = model.generation_settings(encoder_repetition_penalty=None)
    assert (settings.num_beams, settings.max_length, settings.forced_bos_token_id) == (3, 9, 0)
    assert (settings.pad_token_id, settings.eos_token_id) == (4, 2)
    etcmodel.save_pretrained(model, tmp_path / "led")
    written = json.loads((tmp_path / "led" / "generation_config.json").read_text())
    assert written == dict(model.generation_config.entries) and SETTINGS.items() <= written.items()


@pytest.mark.parametrize(
    "entries, message",
    [
        ({"model_type": "mbart"}, "only a BART is lifted .* of type 'mbart'"),
        ({"scale_embedding": True}, "config.json: `scale_embedding` must be False"),
        ({"d_model": None}, "`d_model` must be of type int"),
        ({"encoder_layers": 3}, "lacks what becomes led.encoder.layers.2.self_attn"),
    ],
)
def test_what_no_led_can_be_is_refused(tmp_path, entries, message):
    folder = bart_with(tmp_path / "bart", "config.json", entries)
    with pytest.raises(ValueError, match=message):
        checkpoints.lift_bart(folder)
