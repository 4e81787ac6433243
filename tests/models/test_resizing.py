"""Token tables of another size: `resize_token_embeddings`, for every system and head."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel.layers import sublayers

OLD = 24
TINY = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
SIDES = {
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 8,
    "decoder_ffn_dim": 8,
}
T5 = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
MODERN = {"pad_token_id": 0, "global_attn_every_n_layers": 1}
LONGFORMER = {"attention_window": (4,)}


def seq2seq(model_class, config_class, sizes, **entries):
    tokens = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    return lambda: model_class(config_class(vocab_size=OLD, **sizes, **tokens, **entries))


def of_text(head, config, **entries):
    return lambda: head(config(vocab_size=OLD, **TINY, **entries))


CASES = {
    "etc masked_lm": of_text(etcmodel.EtcForMaskedLM, etcmodel.EtcConfig),
    "led": seq2seq(
        etcmodel.LedForConditionalGeneration, etcmodel.LedConfig, SIDES, attention_window=(4,)
    ),
    "etc": of_text(etcmodel.EtcModel, etcmodel.EtcConfig),
    "longformer masked_lm": of_text(
        etcmodel.LongformerForMaskedLM, etcmodel.LongformerConfig, **LONGFORMER
    ),
    "longformer answers": of_text(
        etcmodel.LongformerForQuestionAnswering, etcmodel.LongformerConfig, **LONGFORMER
    ),
    "big_bird masked_lm": of_text(etcmodel.BigBirdForMaskedLM, etcmodel.BigBirdConfig),
    "big_bird pretraining": of_text(etcmodel.BigBirdForPreTraining, etcmodel.BigBirdConfig),
    "modernbert tied": of_text(etcmodel.ModernBertForMaskedLM, etcmodel.ModernBertConfig, **MODERN),
    "modernbert untied": of_text(
        etcmodel.ModernBertForMaskedLM,
        etcmodel.ModernBertConfig,
        tie_word_embeddings=False,
        **MODERN,
    ),
    "etc_modernbert": of_text(
        etcmodel.EtcForMaskedLM, etcmodel.EtcModernBertConfig, cls_token_id=2, **MODERN
    ),
    "gmat masked_lm": of_text(etcmodel.GmatForMaskedLM, etcmodel.GmatConfig),
    "gmat generation": of_text(etcmodel.GmatForConditionalGeneration, etcmodel.GmatSeq2SeqConfig),
    "char lm": of_text(
        etcmodel.CharLmModel, etcmodel.CharLmConfig, attention_window=(4,), attention_dilation=1
    ),
    "longt5 tied": seq2seq(etcmodel.LongT5Model, etcmodel.LongT5Config, T5),
    "longt5 untied": seq2seq(
        etcmodel.LongT5Model, etcmodel.LongT5Config, T5, tie_word_embeddings=False
    ),
    "pegasus_x": seq2seq(etcmodel.PegasusXForConditionalGeneration, etcmodel.PegasusXConfig, SIDES),
    "bigbird_pegasus": seq2seq(
        etcmodel.BigBirdPegasusForConditionalGeneration, etcmodel.BigBirdPegasusConfig, SIDES
    ),
}


def made(name):
    """A model with random weights everywhere, also where they begin as 0."""
    tf_keras.utils.set_random_seed(0)
    model = CASES[name]()
    sublayers.build_sublayer(model, None)
    draws = np.random.default_rng(0)
    for variable in model.weights:
        variable.assign(draws.normal(size=variable.shape, scale=0.3))
    return model


def outputs(model, ids):
    """All outputs for these ids, as a list of arrays."""
    ids = np.array([ids], np.int32)
    given = {"decoder_input_ids": ids} if hasattr(model, "decoder") or "led" in model.name else {}
    if isinstance(model, etcmodel.EtcModel):
        return [x.numpy() for x in model(**model.structure(ids))]
    found = model(ids, **given)
    return [x.numpy() for x in tf.nest.flatten(found)]


def without_new(arrays, size=OLD):
    """The logits of the first tokens alone."""
    return [x[..., :size] if x.shape[-1] > size else x for x in arrays]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", CASES)
def test_old_tokens_stay_and_nothing_keeps_the_old_table(name, tmp_path):
    model, ids = made(name), [5, 7, 23, 9, 2, 11, 3]
    before = outputs(model, ids)
    table = model.resize_token_embeddings(OLD + 3)
    assert (table.shape[0], model.config.vocab_size) == (OLD + 3, OLD + 3)
    for old, new in zip(before, without_new(outputs(model, ids)), strict=True):
        np.testing.assert_array_equal(new, old)
    # A model made from the folder has no past.
    model.save_pretrained(tmp_path / "grown")
    loaded = type(model).from_pretrained(tmp_path / "grown")
    with_new = [5, OLD, OLD + 2, 9, 2, 11, 3]
    for own, theirs in zip(outputs(model, with_new), outputs(loaded, with_new), strict=True):
        np.testing.assert_array_equal(theirs, own)
    assert [x.name for x in model.weights] == [x.name for x in made(name).weights]
    model.resize_token_embeddings(OLD)
    for old, new in zip(before, outputs(model, ids), strict=True):
        np.testing.assert_array_equal(new, old)


def test_new_rows_are_drawn_around_the_mean_and_biases_that_are_not_trained_get_0():
    led, mlm = made("led"), made("modernbert untied")
    rows = led.get_token_embedding_table().numpy()
    table = led.resize_token_embeddings(OLD + 4000, seed=3).numpy()[OLD:]
    covariance = 1e-9 * np.cov(rows.T.astype(np.float64), bias=True)
    errors = 5 * np.sqrt(np.diag(covariance) / 4000)
    drawn = table.astype(np.float64) - rows.mean(0, dtype=np.float64)
    assert (np.abs(drawn.mean(0)) < errors + 1e-7).all()
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1 * covariance.max())
    assert not led.logits_bias.numpy()[:, OLD:].any()
    bias = mlm.language_model.bias.numpy()
    mlm.resize_token_embeddings(OLD + 2)
    np.testing.assert_allclose(mlm.language_model.bias.numpy()[OLD:], bias.mean(), rtol=1e-5)
    again = made("led").resize_token_embeddings(OLD + 4000, seed=3)
    np.testing.assert_array_equal(again.numpy()[OLD:], table)


@pytest.mark.slow
def test_generation_uses_the_new_table():
    model = made("led")
    ids = [[5, 6, 7, 1]]
    model.generate(ids, max_length=4)
    model.resize_token_embeddings(OLD + 8)
    model.logits_bias.assign(tf.one_hot([OLD + 5], OLD + 8) * 1e4)
    assert (model.generate(ids, max_length=4)["sequences"][0, 1:] == OLD + 5).numpy().all()


@pytest.mark.parametrize("is_eager", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_training_uses_the_new_table(is_eager):
    model = made("longformer answers")
    model.compile(run_eagerly=is_eager)
    data = (
        {"input_ids": np.array([[5, 2, 2, 7, 3, 2]])},
        {"start": np.array([3]), "end": np.array([4])},
    )
    model.predict(data[0], verbose=0)
    model.resize_token_embeddings(OLD + 8)
    data[0]["input_ids"][0, 3] = OLD + 7
    before = model.encoder.get_token_embedding_table().numpy()
    model.fit(*data, verbose=0)
    moved = np.abs(model.encoder.get_token_embedding_table().numpy() - before).max(1) > 0
    assert moved[OLD + 7] and not moved[OLD : OLD + 7].any()
    with pytest.raises(ValueError, match="The model's optimizer, 'Adam', has averages of the"):
        model.resize_token_embeddings(OLD + 9)
    model.compile()
    model.resize_token_embeddings(OLD + 9)


@pytest.mark.slow
@pytest.mark.parametrize("file_name", ["model.keras", "model.weights.h5", "checkpoint"])
def test_a_resized_model_is_saved_in_all_forms_of_keras(tmp_path, file_name):
    model, path = made("etc masked_lm"), str(tmp_path / file_name)
    model.resize_token_embeddings(OLD + 3)
    expected = outputs(model, [5, OLD + 2, 7])
    loaded = type(model)(etcmodel.EtcConfig(vocab_size=OLD + 3, **TINY))
    if file_name == "model.keras":
        model.save(path)
        loaded = tf_keras.models.load_model(path)
    elif file_name == "model.weights.h5":
        model.save_weights(path)
        loaded.load_weights(path)
    else:
        path = tf.train.Checkpoint(model=model).write(path)
        tf.train.Checkpoint(model=loaded).read(path).assert_consumed()
    for own, theirs in zip(expected, outputs(loaded, [5, OLD + 2, 7]), strict=True):
        np.testing.assert_array_equal(theirs, own)


@pytest.mark.slow
def test_half_precision_and_frozen_layers_stay_what_they_are():
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = made("etc masked_lm")
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    model.encoder.trainable = False
    kinds = [(x.name, x.dtype, x.trainable) for x in model.weights]
    before = outputs(model, [5, 6, 7])
    model.resize_token_embeddings(OLD + 3)
    assert [(x.name, x.dtype, x.trainable) for x in model.weights] == kinds
    assert not model.encoder.trainable_weights
    for old, new in zip(before, without_new(outputs(model, [5, 6, 7])), strict=True):
        np.testing.assert_array_equal(new, old)


@pytest.mark.parametrize(
    ("size", "error"),
    [
        (0, "`vocab_size` must be at least 1. Received: 0"),
        ("9", "`vocab_size` must be of type int. Received: '9'"),
        (5, "`pad_token_id` must be below"),
    ],
)
def test_a_size_that_cannot_be_is_refused_and_the_model_unchanged(size, error):
    model = etcmodel.EtcForMaskedLM(etcmodel.EtcConfig(OLD, pad_token_id=9, **TINY))
    with pytest.raises(ValueError, match=error):
        model.resize_token_embeddings(size)
    assert model.config.vocab_size == model.encoder.get_token_embedding_table().shape[0] == OLD
    with pytest.raises(ValueError, match="is a part of 'masked_lm', whose outputs may depend"):
        model.encoder.resize_token_embeddings(OLD + 1)


def test_the_number_may_be_rounded_up_and_a_model_that_is_not_built_gets_its_weights():
    model = etcmodel.LongT5Model(etcmodel.LongT5Config(vocab_size=OLD, **T5))
    assert model.resize_token_embeddings(OLD + 1, pad_to_multiple_of=16).shape == [32, 8]
    assert model.resize_token_embeddings().shape == [32, 8]
