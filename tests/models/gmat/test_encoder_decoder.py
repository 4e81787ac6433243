"""GenBERT over a GMAT: values, gradients, folders; the rest is in `test_encoder_decoders`."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.models import gmat
from tests.models.gmat import genbert, small

IDS = small.ids(2, 11)
MASK = np.ones([2, 11], np.int32)
MASK[1, 6:] = 0
LABELS = small.ids(2, 7, seed=3)
MEMORIES = {
    "none": {"num_memory_tokens": 0},
    "tied": {},
    "untied": {"has_own_memory_projections": True},
    "untied_output": small.OWN,
}
every_memory = pytest.mark.parametrize("changes", MEMORIES.values(), ids=MEMORIES.keys())


@functools.cache
def tied():
    return genbert.model(num_hidden_layers=2)


@pytest.mark.quick_cases(2)
@every_memory
def test_logits_are_those_of_a_slow_twin(changes):
    model = genbert.model(num_hidden_layers=2, **changes)
    found = model(IDS, MASK, labels=LABELS)
    twin = genbert.Twin(model)
    entropies = []
    for row, length in enumerate((11, 6)):
        decoder_ids = np.concatenate([[genbert.START], LABELS[row, :-1]])
        wanted = twin.logits(IDS[row, :length], decoder_ids)
        np.testing.assert_allclose(found["logits"][row], wanted, rtol=1e-4, atol=1e-4)
        log_sums = np.log(np.exp(wanted).sum(-1))
        entropies += list(log_sums - np.take_along_axis(wanted, LABELS[row][:, None], 1)[:, 0])
    np.testing.assert_allclose(found["loss"], np.mean(entropies), rtol=1e-4)


def test_without_a_memory_the_decoder_alone_sees_all_chunks():
    model = genbert.model(num_hidden_layers=2, num_memory_tokens=0)
    other = IDS.copy()
    other[:, 0] = (other[:, 0] + 1) % small.VOCAB_SIZE
    plain, changed = (model.encoder(x)["last_hidden_state"].numpy() for x in (IDS, other))
    np.testing.assert_array_equal(plain[:, 4:], changed[:, 4:])
    assert np.abs(plain[:, :4] - changed[:, :4]).max() > 1e-3


def test_weights_are_there_once_and_get_gradients_from_both_sides():
    model = tied()
    assert len({id(x) for x in model.weights}) == len(model.weights)
    assert len(model.trainable_variables) == len(model.weights)
    sides = {"encoder": [], "decoder": []}
    for side in sides:
        with tf.GradientTape() as tape:
            encoded = model.encoder(IDS, MASK)["last_hidden_state"]
            # What goes through the other side is held fixed.
            encoded = tf.stop_gradient(encoded) if side == "decoder" else encoded
            loss = model(attention_mask=MASK, encoder_output=encoded, labels=LABELS)["loss"]
        sides[side] = tape.gradient(loss, model.trainable_variables)
    names = [x.name.partition("/")[2] for x in model.trainable_variables]
    shared = "encoder/gmat/layers/attention_layer_0/attention/query/kernel:0"
    whole, of_decoder = (dict(zip(names, sides[x], strict=True)) for x in sides)
    assert not [name for name, gradient in whole.items() if gradient is None]
    assert of_decoder["encoder/gmat/embeddings/memory_embeddings/embedding_table:0"] is None
    assert np.abs(of_decoder[shared]).max() > 1e-6
    assert np.abs(whole[shared] - of_decoder[shared]).max() > 1e-6


def test_a_shared_weights_gradient_is_the_slope():
    model = tied()
    variable = model.encoder.gmat.layers.attention_layers[0].inner_layer.value.kernel
    with tf.GradientTape() as tape:
        loss = model(IDS, MASK, labels=LABELS)["loss"]
    gradient, initial = tape.gradient(loss, variable).numpy(), variable.numpy()
    twin = genbert.Twin(model)
    name = "encoder/gmat/layers/attention_layer_0/attention/value/kernel"
    direction = gradient / np.linalg.norm(gradient)

    def slow_loss(step):
        twin.weights[name] = initial + step * direction
        found = []
        for row, length in enumerate((11, 6)):
            ids = np.concatenate([[genbert.START], LABELS[row, :-1]])
            logits = twin.logits(IDS[row, :length], ids)
            log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            found += list(-np.take_along_axis(log_probs, LABELS[row][:, None], 1)[:, 0])
        return np.mean(found)

    slope = (slow_loss(1e-4) - slow_loss(-1e-4)) / 2e-4
    np.testing.assert_allclose(np.linalg.norm(gradient), slope, rtol=1e-3)


def test_it_comes_back_from_a_folder(tmp_path):
    model = tied()
    model.save_pretrained(tmp_path / "model")
    for again in (
        etcmodel.load_pretrained(tmp_path / "model"),
        gmat.GmatForConditionalGeneration.from_pretrained(tmp_path / "model"),
    ):
        assert again.config == model.config
        for x, y in zip(again.weights, model.weights, strict=True):
            np.testing.assert_array_equal(x, y)
    model.encoder.gmat.save_pretrained(tmp_path / "encoder")
    encoder = gmat.GmatModel.from_pretrained(tmp_path / "encoder")
    np.testing.assert_array_equal(encoder(IDS)[0], model.encoder.gmat(IDS)[0])


def test_the_length_of_a_folders_answers_is_not_that_of_texts(tmp_path):
    tied().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_length": 12}))
    again = etcmodel.load_pretrained(tmp_path)
    assert again.config.max_length == 128
    assert again.generation_config.entries["max_length"] == 12


def test_what_no_decoder_can_be_made_of_is_refused():
    with pytest.raises(ValueError, match="`num_compression_layers` must be 0"):
        genbert.model(**small.COMPRESSED)
    with pytest.raises(ValueError, match="`type_vocab_size` must be at least 2"):
        genbert.model(type_vocab_size=1)
    with pytest.raises(ValueError, match="Give decoder ids, or embeddings in their place"):
        tied().decoder.embed(None, None)
    for name, entries in (("eos_token_id", {}), ("decoder_start_token_id", {"eos_token_id": 2})):
        starts = {"decoder_start_token_id": 1} if name == "eos_token_id" else {}
        config = gmat.GmatSeq2SeqConfig.of_encoder(small.config(), **entries, **starts)
        with pytest.raises(ValueError, match=f"The config has no `{name}`"):
            gmat.GmatForConditionalGeneration(config).generate(IDS)
