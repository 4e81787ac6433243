"""Global-local attention as a whole against the NumPy twin."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import layers
from tests.layers.layer_cases import CASES
from tests.ops import numpy_attention

CASE = CASES["FusedGlobalLocalAttention"]


@pytest.mark.parametrize("option", [None, "share_kv_projections", "share_qkv_projections"])
@pytest.mark.parametrize("way", ["sparse", "full"])
def test_long_and_global_tokens_attend_as_in_the_twin(option, way):
    layer, inputs = CASE.construct(**({option: True} if option else {})), CASE.make_inputs()
    CASE.call(layer, inputs)
    rng = np.random.default_rng(0)
    layer.set_weights([rng.normal(scale=0.5, size=w.shape) for w in layer.get_weights()])

    def project(name, side):
        return getattr(layer, f"{name}_projection")(inputs[f"{side}_input"]).numpy()

    long_attended = numpy_attention.local_attend(
        project("long_query", "long"),
        project("l2l_key", "long"),
        project("l2l_value", "long"),
        layer.local_radius,
        inputs["l2l_att_mask"],
        inputs["l2l_relative_att_ids"],
        side=numpy_attention.Side(
            project("l2g_key", "global"),
            project("l2g_value", "global"),
            inputs["l2g_att_mask"],
            inputs["l2g_relative_att_ids"],
        ),
        labels=labels_of(layer.long_qkv_attention.qkv_relative_attention),
    )
    global_attended = numpy_attention.attend(
        project("global_query", "global"),
        np.concatenate([project("g2g_key", "global"), project("g2l_key", "long")], axis=1),
        np.concatenate([project("g2g_value", "global"), project("g2l_value", "long")], axis=1),
        np.concatenate([inputs["g2g_att_mask"], inputs["g2l_att_mask"]], axis=2),
        np.concatenate([inputs["g2g_relative_att_ids"], inputs["g2l_relative_att_ids"]], axis=2),
        labels=labels_of(layer.global_qkv_attention),
    )
    long_output, global_output = CASE.call(layer, inputs, att_implementation=way)
    for output, attended, projection in (
        (long_output, long_attended, layer.long_output_projection),
        (global_output, global_attended, layer.global_output_projection),
    ):
        joined_heads = attended.reshape(*attended.shape[:2], -1).astype(np.float32)
        np.testing.assert_allclose(output, projection(joined_heads), atol=1e-5)


def labels_of(attention):
    return numpy_attention.Labels(
        attention.relative_emb_table.numpy(), attention.relative_bias_table.numpy()
    )


@pytest.mark.parametrize("given", ["side_keys", "side_values"])
def test_side_keys_and_values_come_together(given):
    layer = layers.QkvRelativeLocalAttention(local_radius=1)
    tensor = tf.zeros([1, 3, 1, 2])
    with pytest.raises(ValueError, match="Give both `side_keys` and `side_values`, or neither"):
        layer(tensor, tensor, tensor, **{given: tensor})
