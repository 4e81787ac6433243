"""PEGASUS-X's blocks and end; what holds for others, too, is in `test_encoder_decoders`."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.models.pegasus_x import models

MODEL = functools.cache(models.model)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("stagger, seen", [(True, range(6, 14)), (False, range(8, 12))])
def test_blocks_are_staggered_in_every_second_layer(stagger, seen):
    """Without what goes through the global tokens, a token reaches its block's neighbors."""
    encoder = models.model(stagger_local_blocks=stagger).encoder
    attention = encoder.layers.attention_layers
    for block in attention:  # The global tokens' values are 0: what they saw is lost.
        block.normalization_layers[1].gamma.assign(np.zeros(16))
        block.normalization_layers[1].beta.assign(np.zeros(16))
    ids = models.ids(1, 20)
    changed = np.array(ids)
    changed[0, 9] = (ids[0, 9] + 1) % models.VOCAB_SIZE
    states = [encoder(tf.constant(x))["last_hidden_state"][0].numpy() for x in (ids, changed)]
    assert np.flatnonzero(np.abs(states[0] - states[1]).max(-1) > 1e-7).tolist() == list(seen)


def test_global_tokens_carry_what_is_far():
    encoder = MODEL().encoder
    ids = models.ids(1, 40)
    changed = np.array(ids)
    changed[0, 39] = (ids[0, 39] + 1) % models.VOCAB_SIZE
    states = [encoder(tf.constant(x))["last_hidden_state"][0].numpy() for x in (ids, changed)]
    assert (np.abs(states[0] - states[1]).max(-1) > 1e-7).all()


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"num_beams": 3, "length_penalty": 0.6}])
def test_generation_ends_by_the_end_token_of_the_config(settings):
    ids = models.ids(2, 9)
    forced = MODEL().generate(ids, max_length=5, min_length=5, **settings)["sequences"].numpy()
    assert forced.shape == (2, 5) and (forced[:, -1] == 1).all()
    free = MODEL().generate(ids, max_length=5, min_length=5, forced_eos_token_id=None, **settings)
    assert (free["sequences"].numpy() != 1).all()


def test_a_config_that_cannot_be_is_refused():
    heads = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    with pytest.raises(ValueError, match="`d_model` must be even"):
        models.config(d_model=3, **heads)
    with pytest.raises(ValueError, match="`grad_checkpointing_period` must be at least 0"):
        models.config(grad_checkpointing_period=-1)
