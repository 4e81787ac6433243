"""LED's global tokens and config; what holds for others, too, is in `test_encoder_decoders`."""

import functools

import numpy as np
import pytest

from etcmodel.models.led import LedConfig, LedForQuestionAnswering
from tests.models.led import models

MODEL = functools.cache(models.model)
ONE_LAYER = {"encoder_layers": 1, "decoder_layers": 1, "attention_window": 4}
SAME = {"atol": 2e-5, "rtol": 1e-5}


def test_global_tokens_are_said_in_several_ways():
    ids, labels = models.ids(2, 9), models.ids(2, 4, seed=1)
    wanted = MODEL()(ids, labels=labels, global_attention_mask=np.eye(9, dtype=int)[[0, 0]])
    same = models.model(global_positions=[0])
    for found in (
        MODEL()(ids, labels=labels, global_attention_mask=[0]),
        MODEL()(ids, 1 + np.eye(9, dtype=int)[[0, 0]], labels=labels),
        MODEL()({"input_ids": ids, "labels": labels, "global_attention_mask": [0]}),
        same(ids, labels=labels),
    ):
        np.testing.assert_allclose(found["logits"], wanted["logits"], **SAME)
    plain = MODEL()(ids, labels=labels)["logits"]
    assert np.abs(plain - wanted["logits"]).max() > 1e-3
    none = same(ids, labels=labels, global_attention_mask=np.zeros([2, 9], int))
    np.testing.assert_allclose(none["logits"], plain, **SAME)


@pytest.mark.slow
def test_generation_has_the_global_tokens_of_training():
    """Of the batch, or of the config: the sequence's logits are those of teacher forcing."""
    ids = models.ids(2, 15)
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    with_mask = {**batch, "global_attention_mask": [0, 3], "labels": models.ids(2, 3)}
    found = {}
    for name, model, given in (
        ("none", models.model(**ONE_LAYER), batch),
        ("batch", models.model(**ONE_LAYER), with_mask),
        ("config", models.model(global_positions=(0, 3), **ONE_LAYER), batch),
    ):
        result = model.generate(given, max_length=6, min_length=6, with_scores=True)
        given = {key: x for key, x in given.items() if key != "labels"}
        forced = model(given, decoder_input_ids=result["sequences"][:, :-1])["logits"]
        scores = result["step_scores"].numpy()
        is_known = np.isfinite(scores)
        np.testing.assert_allclose(scores[is_known], forced.numpy()[is_known], atol=1e-4)
        found[name] = scores[:, 0]
    np.testing.assert_allclose(found["batch"], found["config"], atol=1e-5)
    assert np.abs(found["batch"][:, 3:] - found["none"][:, 3:]).max() > 1e-3


def test_a_config_says_what_files_must_say():
    entries = models.config(global_positions=[0]).to_dict()
    assert LedConfig.from_dict({**entries, "num_hidden_layers": 2}).global_positions == (0,)
    assert "global_positions" not in models.config().to_dict()  # It is not Hugging Face's.
    del entries["decoder_ffn_dim"]
    with pytest.raises(ValueError, match="has no `decoder_ffn_dim`"):
        LedConfig.from_dict(entries)


def test_calls_that_cannot_be_are_refused():
    ids = models.ids(1, 9)
    with pytest.raises(ValueError, match="below 60, which is `max_encoder_position_embeddings`"):
        MODEL()(models.ids(1, 61), labels=ids)
    with pytest.raises(ValueError, match="below 20, which is `max_decoder_position_embeddings`"):
        MODEL()(ids, labels=models.ids(1, 21))
    with pytest.raises(ValueError, match="`global_attention_mask` must be at least 0 and below 2"):
        MODEL()(ids, labels=ids, global_attention_mask=np.full([1, 9], 2))
    with pytest.raises(ValueError, match="at most `max_global_tokens`, 1, global"):
        models.model(max_global_tokens=1)(ids, labels=ids, global_attention_mask=[0, 1])
    with pytest.raises(ValueError, match="`start_positions` and `end_positions`, or neither"):
        models.model(LedForQuestionAnswering)(ids, start_positions=[1])
