"""One way to construct and to call each public layer, for tests that visit all of them.

An input is written as a kind and its axes: "float batch long 8" has two axes whose length only the
call tells, and one of size 8. `make_inputs` gives arrays, `make_specs` what a graph knows of them.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from etcmodel import layers
from etcmodel.models import modeling
from tests.models import etcs

LENGTHS = {"batch": 2, "long": 7, "global": 3}
RELATIVE_VOCAB_SIZE = 6
NUM_IDS = 6  # "ids" are below it: token ids and relative labels alike.
DTYPES = {"float": tf.float32, "mask": tf.int32, "ids": tf.int32}


@dataclasses.dataclass(frozen=True, eq=False)
class LayerCase:
    """A layer class with its constructor arguments and the axes of its call arguments."""

    layer_class: type
    init: dict
    inputs: dict[str, str]

    def construct(self, **changes):
        return self.layer_class(**{**self.init, **changes})

    def make_inputs(self, seed=0):
        """Call arguments: arrays by name."""
        rng = np.random.default_rng(seed)
        return {name: _make_array(written, rng) for name, written in self.inputs.items()}

    def make_specs(self):
        """`tf.TensorSpec` by name; None for the axes with a name."""
        specs = {}
        for name, written in self.inputs.items():
            kind, *axes = written.split()
            shape = [None if axis in LENGTHS else int(axis) for axis in axes]
            specs[name] = tf.TensorSpec(shape, DTYPES[kind], name)
        return specs

    def call(self, layer, inputs, **options):
        """The first input goes by position, as Keras wants it."""
        first, *rest = self.inputs
        return layer(inputs[first], **{name: inputs[name] for name in rest}, **options)


def _make_array(written, rng):
    kind, *axes = written.split()
    shape = [LENGTHS.get(axis) or int(axis) for axis in axes]
    if kind == "float":
        return rng.normal(size=shape).astype(np.float32)
    if kind == "mask":
        mask = rng.integers(0, 2, shape)
        mask[..., shape[-1] // 2] = 1  # Every row keeps a key.
        return mask.astype(np.int32)
    ids = rng.permutation(np.arange(np.prod(shape)) % NUM_IDS)  # Every id occurs.
    return ids.reshape(shape).astype(np.int32)


GLOBAL_LOCAL_SIDE_INPUTS = {
    "l2l_att_mask": "mask batch long 5",
    "g2g_att_mask": "mask batch global global",
    "l2g_att_mask": "mask batch long global",
    "g2l_att_mask": "mask batch global long",
    "l2l_relative_att_ids": "ids batch long 5",
    "g2g_relative_att_ids": "ids batch global global",
    "l2g_relative_att_ids": "ids batch long global",
    "g2l_relative_att_ids": "ids batch global long",
}
GLOBAL_LOCAL_INPUTS = {
    "long_input": "float batch long 8",
    "global_input": "float batch global 8",
    **GLOBAL_LOCAL_SIDE_INPUTS,
}
FULL_PAIRS = {"att_mask": "mask batch long long", "relative_att_ids": "ids batch long long"}
QKV = dict.fromkeys(("queries", "keys", "values"), "float batch long 2 4")
RELATIVE = {"relative_vocab_size": RELATIVE_VOCAB_SIZE}

ETC_CONFIG = etcs.config(
    vocab_size=NUM_IDS,
    segment_vocab_size=NUM_IDS,
    embedding_size=4,
    num_hidden_layers=2,
    relative_pos_max_distance=1,
    relative_vocab_size=RELATIVE_VOCAB_SIZE,
    max_absolute_position_embeddings=8,
)

_ALL = (
    LayerCase(
        layers.DenseLayers,
        {"hidden_sizes": [8, 8, 3], "activation": "relu"},
        {"inputs": "float batch long 8"},
    ),
    LayerCase(
        layers.EmbeddingLookup,
        {"vocab_size": NUM_IDS, "embedding_size": 4, "projection_size": 5},
        {"input_ids": "ids batch long", "input_mask": "mask batch long"},
    ),
    LayerCase(
        layers.FusedGlobalLocalAttention,
        {
            "long_hidden_size": 8,
            "global_hidden_size": 8,
            "num_heads": 2,
            "local_radius": 2,
            "att_dropout_prob": 0.1,
            **RELATIVE,
        },
        GLOBAL_LOCAL_INPUTS,
    ),
    LayerCase(
        layers.GlobalLocalTransformerLayers,
        {
            "long_hidden_size": 8,
            "global_hidden_size": 8,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "local_radius": 2,
            "long_intermediate_size": 12,
            "global_intermediate_size": 12,
            "share_qkv_projections": False,
            "share_feed_forward_params": False,
            **RELATIVE,
        },
        GLOBAL_LOCAL_INPUTS,
    ),
    LayerCase(
        layers.ProjectAttentionHeads,
        {"num_heads": 2, "size_per_head": 3},
        {"inputs": "float batch long 8"},
    ),
    LayerCase(
        layers.QkvRelativeAttention,
        {"att_dropout_prob": 0.1, **RELATIVE},
        {**QKV, **FULL_PAIRS},
    ),
    LayerCase(
        layers.QkvRelativeLocalAttention,
        {"local_radius": 2, "att_dropout_prob": 0.1, **RELATIVE},
        {
            **QKV,
            "att_mask": "mask batch long 5",
            "relative_att_ids": "ids batch long 5",
            "side_keys": "float batch global 2 4",
            "side_values": "float batch global 2 4",
            "side_att_mask": "mask batch long global",
            "side_relative_att_ids": "ids batch long global",
        },
    ),
    LayerCase(layers.RecomputingDropout, {"rate": 0.5}, {"inputs": "float batch long 8"}),
    LayerCase(
        layers.RelativeAttention,
        {"hidden_size": 8, "num_heads": 2, "att_dropout_prob": 0.1, **RELATIVE},
        {
            "from_seq": "float batch long 8",
            "to_seq": "float batch global 6",
            "att_mask": "mask batch long global",
            "relative_att_ids": "ids batch long global",
        },
    ),
    LayerCase(
        layers.RelativeTransformerLayers,
        {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, **RELATIVE},
        {"inputs": "float batch long 8", **FULL_PAIRS},
    ),
    LayerCase(
        layers.ResidualBlock,
        {"dropout_probability": 0.1, "inner_intermediate_size": 12},
        {"inputs": "float batch long 8"},
    ),
    LayerCase(layers.TokenLogits, {"num_outputs": 3}, {"hidden": "float batch long 8"}),
    LayerCase(
        layers.SpanLogits,
        {"ends": ["begin", "end"]},
        {"hidden": "float batch long 8"},
    ),
    LayerCase(
        modeling.EtcModel,
        {"config": ETC_CONFIG},
        {
            "token_ids": "ids batch long",
            "global_token_ids": "ids batch global",
            "segment_ids": "ids batch long",
            "global_segment_ids": "ids batch global",
            **GLOBAL_LOCAL_SIDE_INPUTS,
        },
    ),
)
CASES = {case.layer_class.__name__: case for case in _ALL}
