"""LongT5's attention and config; what holds for others, too, is in `test_encoder_decoders`."""

import numpy as np
import pytest
import tensorflow as tf

from tests.models.longt5 import models


@pytest.mark.parametrize("kind", ["local", "transient-global"])
def test_what_is_out_of_the_window_is_seen_through_blocks_alone(kind):
    encoder = models.model(num_layers=1, encoder_attention_type=kind).encoder
    ids = models.ids(1, 30)
    changed = np.array(ids)
    changed[0, 20] = (ids[0, 20] + 1) % models.VOCAB_SIZE
    states = [encoder(tf.constant(x))["last_hidden_state"][0].numpy() for x in (ids, changed)]
    differs = np.flatnonzero(np.abs(states[0] - states[1]).max(-1) > 1e-7)
    window = list(range(17, 24))
    assert differs.tolist() == (window if kind == "local" else list(range(30)))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_stays_finite_where_feed_forward_outputs_pass_float16(policy):
    ids, mask = models.ids(3, 14), np.ones((3, 14), np.int32)
    mask[1, 5:] = mask[2] = 0
    model = models.model(policy=policy, num_layers=1)
    kernel = model.encoder.layers.feed_forward_layers[0].inner_layer.output_layer.kernel
    kernel.assign(kernel * 1e5)
    outputs = model(ids, mask, models.ids(3, 4, seed=1))
    assert np.isfinite(outputs["logits"]).all()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"num_decoder_layers": 0}, "`num_decoder_layers` must be at least 1"),
        ({"encoder_attention_type": "global"}, "must be 'local' or 'transient-global'"),
        ({"relative_attention_num_buckets": 7}, "must be even"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        models.config(**changes)
