"""A start for models that are trained on a task without pre-training.

A small transformer from random weights spends most of its training finding out how to compare
tokens at all. Pre-trained attention has a structure that can be given to the initial weights
instead ("mimetic initialization": Trockman and Kolter 2023, arXiv:2305.09828): products of query
and key weights, and of value and output weights, that look like the identity.
"""

import math

import numpy as np

__all__ = ["mimetic_initialization"]

# Found on the demo's data: token identity must outweigh types and distances at the beginning.
_LINK_LOGIT = 2.0
_LABEL_EMBEDDING_SCALE = 0.2
_SEGMENT_EMBEDDING_SCALE = 0.3


def mimetic_initialization(etc_model, seed=0):
    """Changes the weights of a new `EtcModel` so that tokens first look for their equals.

    In every layer all query and key projections are made equal (a token's logits are highest for
    tokens of the same embedding), value and output projections become inverse to each other (what
    is attended to is added as it is), and tokens prefer the global tokens that they are linked to,
    and these them.

    Args:
        etc_model: a built `EtcModel`, not yet trained.
        seed: int. Seed of the value projections; query projections keep their random values.
    """
    rng = np.random.default_rng(seed)
    scale_weights(etc_model.segment_emb_lookup.embedding_table, _SEGMENT_EMBEDDING_SCALE)
    link_label = 2 * etc_model.config.relative_pos_max_distance + 2
    for block in etc_model.global_local_transformer_layers.fused_att_layers:
        attention = block.inner_layer
        _equal_queries_and_keys(attention)
        _inverse_values_and_outputs(attention, rng)
        for labelled in (
            attention.long_qkv_attention.qkv_relative_attention,
            attention.global_qkv_attention,
        ):
            if labelled.relative_vocab_size is not None:
                _prefer_links(labelled, link_label)


def scale_weights(variable, factor):
    """Multiplies a variable in place."""
    variable.assign(variable * factor)


def _equal_queries_and_keys(attention):
    query = attention.long_query_projection.linear.kernel
    for name in ("global_query", "l2l_key", "l2g_key", "g2g_key", "g2l_key"):
        kernel = getattr(attention, f"{name}_projection").linear.kernel
        if kernel.shape == query.shape:
            kernel.assign(query)


def _inverse_values_and_outputs(attention, rng):
    """Values: orthonormal columns (or rows), one matrix for all pieces; output: its transpose."""
    hidden, att = attention.l2l_value_projection.linear.kernel.shape
    random = rng.standard_normal([max(hidden, att), min(hidden, att)])
    orthonormal, _ = np.linalg.qr(random)
    values = orthonormal if hidden >= att else orthonormal.T
    for name in ("l2l", "l2g", "g2g", "g2l"):
        kernel = getattr(attention, f"{name}_value_projection").linear.kernel
        if kernel.shape == values.shape:
            kernel.assign(values)
    for output in (attention.long_output_projection, attention.global_output_projection):
        if output.kernel.shape == values.T.shape:
            output.kernel.assign(values.T)


def _prefer_links(labelled, link_label):
    scale_weights(labelled.relative_emb_table, _LABEL_EMBEDDING_SCALE)
    size_per_head = labelled.relative_emb_table.shape[-1]
    bias = np.zeros(labelled.relative_bias_table.shape, np.float32)
    # Logits are divided by this root after the bias is added.
    bias[link_label] = _LINK_LOGIT * math.sqrt(size_per_head)
    labelled.relative_bias_table.assign(bias)
