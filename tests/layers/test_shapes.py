"""Attention layers name the argument whose shape does not fit, in one line."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import layers
from etcmodel.models import input_utils
from tests.layers.layer_cases import CASES

# Layer, argument, a wrong shape, and the shape wanted. Sizes are those of `layer_cases`.
WRONG = [
    ("QkvRelativeAttention", "keys", [3, 7, 2, 4], "[batch, key_len, num_heads, size_per_head]"),
    ("QkvRelativeAttention", "keys", [2, 7, 2, 3], "[batch, key_len, num_heads, size_per_head]"),
    ("QkvRelativeAttention", "att_mask", [2, 7, 6], "[batch or 1, query_len, key_len]"),
    ("QkvRelativeAttention", "att_mask", [7, 7], "[batch or 1, query_len, key_len]"),
    ("QkvRelativeAttention", "relative_att_ids", [3, 7, 7], "[batch, query_len, key_len]"),
    (
        "QkvRelativeLocalAttention",
        "keys",
        [2, 6, 2, 4],
        "[batch, long_len, num_heads, size_per_head]",
    ),
    (
        "QkvRelativeLocalAttention",
        "att_mask",
        [2, 7, 4],
        "[batch or 1, long_len, 2*local_radius+1]",
    ),
    ("QkvRelativeLocalAttention", "side_att_mask", [2, 3, 7], "[batch or 1, long_len, side_len]"),
    (
        "QkvRelativeLocalAttention",
        "side_keys",
        [1, 3, 2, 4],
        "[batch, side_len, num_heads, size_per_head]",
    ),
    ("RelativeAttention", "to_seq", [1, 3, 6], "[batch, to_len, to_size]"),
    ("RelativeAttention", "to_seq", [3, 6], "[batch, to_len, to_size]"),
    ("RelativeAttention", "att_mask", [2, 7, 7], "[batch or 1, from_len, to_len]"),
    (
        "FusedGlobalLocalAttention",
        "global_input",
        [1, 3, 8],
        "[batch, global_len, global_hidden_size]",
    ),
    (
        "FusedGlobalLocalAttention",
        "global_input",
        [2, 3, 9],
        "[batch, global_len, global_hidden_size]",
    ),
    ("FusedGlobalLocalAttention", "l2l_att_mask", [2, 7, 6], "[batch, long_len, 2*local_radius+1]"),
    ("FusedGlobalLocalAttention", "g2l_att_mask", [2, 7, 3], "[batch, global_len, long_len]"),
    (
        "FusedGlobalLocalAttention",
        "g2g_relative_att_ids",
        [1, 3, 3],
        "[batch, global_len, global_len]",
    ),
    (
        "GlobalLocalTransformerLayers",
        "global_input",
        [1, 3, 8],
        "[batch, global_len, global_hidden_size]",
    ),
    ("GlobalLocalTransformerLayers", "l2g_att_mask", [2, 7, 2], "[batch, long_len, global_len]"),
    ("RelativeTransformerLayers", "att_mask", [2, 7, 6], "[batch or 1, from_len, to_len]"),
]


@pytest.mark.parametrize("name, argument, shape, wanted", WRONG)
def test_a_shape_that_does_not_fit_is_named_with_the_one_wanted(name, argument, shape, wanted):
    case = CASES[name]
    inputs = case.make_inputs()
    inputs[argument] = np.zeros(shape, inputs[argument].dtype)
    with pytest.raises(ValueError) as raised:
        case.call(case.construct(), inputs)
    line = str(raised.value)
    assert line.startswith(f"`{argument}` must have shape {wanted}, here [")
    assert line.endswith(f". Received shape: {shape}") and "\n" not in line


@pytest.mark.parametrize("name", ["QkvRelativeAttention", "QkvRelativeLocalAttention"])
def test_one_mask_serves_the_whole_batch(name):
    case = CASES[name]
    layer, inputs = case.construct(), case.make_inputs()
    masks = [argument for argument in inputs if argument.endswith("att_mask")]
    one = {**inputs, **{argument: inputs[argument][:1] for argument in masks}}
    tiled = {**inputs, **{argument: np.tile(one[argument], [2, 1, 1]) for argument in masks}}
    np.testing.assert_allclose(case.call(layer, one), case.call(layer, tiled), atol=1e-6)


def make_structure(long_len, global_len, max_distance=1):
    long_ids, global_ids = (tf.ones([2, length], tf.int32) for length in (long_len, global_len))
    return input_utils.make_structure_from_example_ids(
        long_ids, global_ids, tf.zeros_like(long_ids), max_distance
    )


@pytest.mark.parametrize(
    "layer_class", ["FusedGlobalLocalAttention", "GlobalLocalTransformerLayers"]
)
@pytest.mark.parametrize(
    "structure, line",
    [
        (
            make_structure(6, 3),
            "`structure.long_segment_ids` must have shape [batch, long_len], here [2, 7]. Received "
            "shape: [2, 6]",
        ),
        (
            make_structure(7, 4),
            "`structure.global_example_ids` must have shape [batch, global_len], here [2, 3]. "
            "Received shape: [2, 4]",
        ),
        (
            make_structure(7, 3, max_distance=2),
            "`structure.max_distance` 2 needs a `relative_vocab_size` of at least 8. Received: 6",
        ),
    ],
)
def test_a_structure_that_does_not_fit_is_refused(layer_class, structure, line):
    case = CASES[layer_class]
    assert case.layer_class is getattr(layers, layer_class)
    inputs = case.make_inputs()
    with pytest.raises(ValueError) as raised:
        case.construct()(inputs["long_input"], inputs["global_input"], structure=structure)
    assert str(raised.value) == line
