"""Small encoders of every kind, a batch for them, and a task's model around one."""

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel.models import input_utils, modeling, side_inputs
from etcmodel.ops import relations
from tests.models import etcs

LONG_LEN = 12
IDS = ("token_ids", "global_token_ids")
# What decides how the layers compute.
VARIANTS = {
    "default": {},
    "unshared": {"share_qkv_projections": False, "share_feed_forward_params": False},
    "shared key and value": {"share_qkv_projections": False, "share_kv_projections": True},
    "shared output": {"share_att_output_projection": True},
    "head size": {"att_size_per_head": 3},
    "pre-activation": {"use_pre_activation_order": True},
    "recomputing": {"grad_checkpointing_period": 2},
    "recomputing pre-activation": {
        "grad_checkpointing_period": 1,
        "use_pre_activation_order": True,
    },
    "no labels": {"relative_vocab_size": None, "relative_pos_max_distance": 0},
}


def make_encoder(num_layers=3, dtype=None, **changes):
    """An `EtcModel` with weights that depend on nothing but their names and shapes."""
    config = etcs.entries(num_hidden_layers=num_layers, relative_vocab_size=9)
    model = modeling.EtcModel(modeling.EtcConfig(**{**config, **changes}), dtype=dtype)
    with tf.name_scope(model.name):
        model.build(None)
    for weight in model.weights:
        seed = sum(map(ord, weight.name))
        values = np.random.default_rng(seed).normal(scale=0.4, size=weight.shape)
        weight.assign(values + ("gamma" in weight.name))
    return model


def inputs_of(config, form="structure"):
    """Two rows, of one and of two documents, with padding, links, hard masks and a relation.

    Args:
        config: `EtcConfig`.
        form: 'structure', or 'dense' for masks and labels over all pairs.
    """
    examples = np.ones([2, LONG_LEN], int)
    examples[0, 10:], examples[1, 7:] = 0, 2
    sentences = np.repeat([[0, 0, 1, 1, 2, 2]], 2, 1).repeat(2, 0)
    sentences[examples == 0] = -1
    structure = input_utils.make_structure_from_example_ids(
        examples,
        [[1, 1, 1], [1, 1, 2]],
        sentences,
        config.relative_pos_max_distance,
        use_hard_g2l_mask=True,
    )
    if config.relative_vocab_size:
        edges = relations.GlobalEdges(np.array([[[2, 0]], [[-1, -1]]]), "cites", 8)
        structure = structure.with_relations(edges)
    inputs = {
        "token_ids": np.random.default_rng(0).integers(1, 11, [2, LONG_LEN]),
        "global_token_ids": np.array([[1, 2, 3], [3, 2, 1]]),
        "segment_ids": examples,
    }
    if form == "structure":
        return {**inputs, "structure": structure}
    dense = side_inputs.side_inputs_of(structure, config.local_radius)
    return {**inputs, **dense.to_dict(exclude_none_values=True)}


class Classifier(tf_keras.Model):
    """Two logits from the first global token, of a dict of features."""

    def __init__(self, encoder):
        super().__init__(name="classifier")
        self.encoder = encoder
        self.head = tf_keras.layers.Dense(2, kernel_initializer="ones", name="head")

    def call(self, features, training=None):
        tokens, global_tokens = features["token_ids"], features["global_token_ids"]
        structure = inputs_of(self.encoder.config)["structure"]
        _, global_output = self.encoder(
            tokens, global_tokens, segment_ids=features["segment_ids"], structure=structure
        )
        weights = tf.range(1.0, global_output.shape[-1] + 1)
        return self.head(global_output[:, 0] * weights)
