"""PEGASUS-X's blocks and end; what holds for others, too, is in `test_encoder_decoders`."""

import functools

import numpy as np
import pytest

from tests.models.pegasus_x import models
from tests.models.random_texts import changed_rows

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
    found = changed_rows(lambda x: encoder(x)["last_hidden_state"], models.ids(1, 20), 9)
    assert found == [*seen]


def test_global_tokens_carry_what_is_far():
    encoder = MODEL().encoder
    found = changed_rows(lambda x: encoder(x)["last_hidden_state"], models.ids(1, 40), 39)
    assert found == [*range(40)]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"num_beams": 3, "length_penalty": 0.6}])
def test_generation_ends_by_the_end_token_of_the_config(settings):
    ids = models.ids(2, 9)
    forced = MODEL().generate(ids, max_length=5, min_length=5, **settings)["sequences"].numpy()
    assert forced.shape == (2, 5) and (forced[:, -1] == 1).all()
    free = MODEL().generate(ids, max_length=5, min_length=5, forced_eos_token_id=None, **settings)
    assert (free["sequences"].numpy() != 1).all()
