"""The model: what it sees, what it shares, what it predicts."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.pretrain import masking, model
from tests.pretrain import windows

DOCUMENTS = [windows.document("a", 0, 1), windows.document("b", 2, 5, 6), windows.document("c", 3)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return windows.make_tokenizer(tmp_path_factory.mktemp("vocab"))


@functools.cache
def build_model(**changes):
    tf_keras.utils.set_random_seed(0)
    pretrain_model = model.PretrainModel(windows.etc_config(**changes))
    pretrain_model.build()
    return pretrain_model


@pytest.fixture(scope="module")
def pretrain_model():
    return build_model()


def ask_everything(window):
    """Features of a window that is not masked: predict every token and every sentence."""
    ids = window["long_token_ids"]
    features = {
        **window,
        "mlm_positions": list(range(len(ids))),
        "mlm_labels": ids,
        "cpc_sentences": list(range(windows.GLOBAL)),
        "cpc_token_ids": [[6]] * windows.GLOBAL,
        "cpc_lengths": [1] * windows.GLOBAL,
    }
    return windows.tensors([features])


def real_outputs(pretrain_model, window):
    """Losses of the window's tokens, predictions of its sentences."""
    outputs = pretrain_model(ask_everything(window))
    num_tokens = sum(sentence >= 0 for sentence in window["sentence_ids"])
    num_sentences = sum(window["global_token_ids"])
    return (
        outputs["mlm_loss"][0, :num_tokens].numpy(),
        outputs["cpc_predictions"][0, :num_sentences].numpy(),
    )


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("use_hard_g2l_mask", [True, False])
def test_packed_documents_have_the_outputs_of_the_documents_alone(tokenizer, use_hard_g2l_mask):
    pretrain_model = build_model(use_hard_g2l_mask=use_hard_g2l_mask)
    (packed,) = windows.make_windows(DOCUMENTS, tokenizer).features
    alone = windows.make_windows(DOCUMENTS, tokenizer, pack_documents=False).features
    assert len(alone) == 3
    token_losses, sentences = real_outputs(pretrain_model, packed)
    parts = [real_outputs(pretrain_model, window) for window in alone]
    np.testing.assert_allclose(token_losses, np.concatenate([p[0] for p in parts]), atol=2e-5)
    np.testing.assert_allclose(sentences, np.concatenate([p[1] for p in parts]), atol=2e-5)


def test_the_sentences_of_one_document_see_each_other(tokenizer, pretrain_model):
    (packed,) = windows.make_windows(DOCUMENTS, tokenizer).features
    together = [{"id": "all", "text": " ".join(d["text"] for d in DOCUMENTS)}]
    (joined,) = windows.make_windows(together, tokenizer).features
    assert packed["long_token_ids"] == joined["long_token_ids"]
    differences = np.abs(
        real_outputs(pretrain_model, packed)[1] - real_outputs(pretrain_model, joined)[1]
    )
    assert differences.max() > 1e-3


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("pre_activation", [False, True])
def test_the_target_of_a_sentence_is_its_encoding_alone(tokenizer, pre_activation):
    pretrain_model = build_model(use_pre_activation_order=pre_activation)
    features = windows.make_windows(DOCUMENTS[:1], tokenizer).features
    config = windows.masking_config(tokenizer, cpc_share=1.0, max_cpc_sentence_length=12)
    batch = masking.mask_batch(windows.tensors(features), tf.constant([0], tf.int64), 0, config)
    targets = pretrain_model(batch)["cpc_targets"][0]
    assert batch["cpc_mask"].numpy().sum() == 2
    for i in range(2):
        sentence = int(batch["cpc_sentences"][0, i])
        text = windows.SENTENCES[sentence]  # Document "a" has the first two.
        ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        _, alone = pretrain_model.etc_model(
            tf.constant([ids]),
            tf.constant([[1]]),
            structure=pretrain_model._structure(
                tf.constant([[0] * (len(ids) - 1) + [1]]),
                tf.constant([[1]]),
                tf.zeros([1, len(ids)], tf.int32),
            ),
        )
        np.testing.assert_allclose(targets[i], normalized(alone[0, 0].numpy()), atol=2e-5)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("pre_activation", [False, True])
def test_a_masked_sentence_is_predicted_from_its_global_token(tokenizer, pre_activation):
    pretrain_model = build_model(use_pre_activation_order=pre_activation)
    features = windows.make_windows(DOCUMENTS[:1], tokenizer).features
    config = windows.masking_config(tokenizer, cpc_share=1.0)
    batch = masking.mask_batch(windows.tensors(features), tf.constant([0], tf.int64), 0, config)
    _, hidden = pretrain_model.etc_model(
        batch["long_token_ids"],
        batch["global_token_ids"],
        structure=pretrain_model._structure(
            batch["long_breakpoints"], batch["global_breakpoints"], batch["sentence_ids"]
        ),
    )
    weights = pretrain_model.cpc_weights.numpy()
    expected = normalized(hidden.numpy()[0]) @ weights / np.sqrt(weights.shape[0])
    expected = expected[batch["cpc_sentences"].numpy()[0]]
    predictions = pretrain_model(batch)["cpc_predictions"][0]
    np.testing.assert_allclose(predictions, expected, atol=2e-5)


def test_the_language_model_is_tied_to_the_embeddings_and_every_weight_learns(tokenizer):
    pretrain_model = build_model()
    table = pretrain_model.etc_model.get_token_embedding_table()
    with_table = [v for v in pretrain_model.trainable_variables if v.shape == table.shape]
    assert len(with_table) == 1 and with_table[0] is table
    features = windows.make_windows(DOCUMENTS, tokenizer).features
    config = windows.masking_config(tokenizer, cpc_share=0.5)
    batch = masking.mask_batch(windows.tensors(features), tf.constant([0], tf.int64), 0, config)
    with tf.GradientTape() as tape:
        losses = model.pretraining_loss(
            pretrain_model(batch, training=True), batch, mlm_weight=0.8, cpc_weight=0.2
        )
    assert float(losses["loss"]) == pytest.approx(
        0.8 * float(losses["mlm_loss"]) + 0.2 * float(losses["cpc_loss"]), rel=1e-6
    )
    variables = pretrain_model.trainable_variables
    for variable, gradient in zip(variables, tape.gradient(losses["loss"], variables), strict=True):
        assert gradient is not None, variable.name


def test_heads_are_float32_under_mixed_precision(tokenizer):
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        pretrain_model = build_model.__wrapped__()
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    (window,) = windows.make_windows(DOCUMENTS, tokenizer).features
    outputs = pretrain_model(ask_everything(window))
    for name in ("mlm_loss", "cpc_predictions", "cpc_targets"):
        assert outputs[name].dtype == tf.float32
        assert np.isfinite(outputs[name]).all()


def test_without_cpc_there_is_neither_a_second_pass_nor_its_weights(tokenizer):
    pretrain_model = model.PretrainModel(windows.etc_config(), use_cpc=False)
    pretrain_model.build()
    (window,) = windows.make_windows(DOCUMENTS, tokenizer).features
    outputs = pretrain_model(ask_everything(window))
    assert set(outputs) == {"mlm_loss", "mlm_token_ids"}
    assert not [v.name for v in pretrain_model.variables if "cpc" in v.name]


def test_absolute_positions_begin_with_the_window(tokenizer):
    with_positions = build_model(max_absolute_position_embeddings=windows.LONG)
    (window,) = windows.make_windows(DOCUMENTS[:1], tokenizer).features
    losses, _ = real_outputs(with_positions, window)
    table = with_positions.etc_model.position_emb_lookup_long.embedding_table
    table.assign(tf.roll(table, 1, axis=0))
    assert np.abs(real_outputs(with_positions, window)[0] - losses).max() > 1e-3
