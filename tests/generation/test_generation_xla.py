"""Generation in code that XLA compiles, and beside it."""

import numpy as np
import pytest
import tensorflow as tf

from tests.models.longt5 import models

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("is_xla_first", [True, False])
def test_what_is_traced_for_xla_serves_nothing_else(is_xla_first):
    """Sequences end with the longest one, but for XLA, which has to know their length."""
    model = models.model(encoder_attention_type="local", num_layers=1)
    ids = tf.constant(models.ids(1, 9))
    third = model.generate(ids, max_length=12)["sequences"].numpy()[0, 2]
    settings = {"max_length": 12, "eos_token_id": int(third)}  # So that it ends soon.
    compiled = tf.function(lambda x: model.generate(x, **settings), jit_compile=True)
    ways = [compiled, lambda x: model.generate(x, **settings)]
    whole, found = (
        run(ids)["sequences"].numpy()[0] for run in (ways if is_xla_first else ways[::-1])
    )
    if not is_xla_first:
        whole, found = found, whole
    assert len(whole) == 12 and len(found) <= 3 and found[-1] == third
    np.testing.assert_array_equal(whole[: len(found)], found)
