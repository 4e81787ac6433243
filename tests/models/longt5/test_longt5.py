"""LongT5's attention; what holds for others, too, is in `test_encoder_decoders`."""

import numpy as np
import pytest

from tests.models.longt5 import models
from tests.models.random_texts import changed_rows


@pytest.mark.parametrize("kind", ["local", "transient-global"])
def test_what_is_out_of_the_window_is_seen_through_blocks_alone(kind):
    encoder = models.model(num_layers=1, encoder_attention_type=kind).encoder
    found = changed_rows(lambda x: encoder(x)["last_hidden_state"], models.ids(1, 30), 20)
    assert found == [*(range(17, 24) if kind == "local" else range(30))]


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
