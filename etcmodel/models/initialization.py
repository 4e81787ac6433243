"""Initial weights for models that are trained without a checkpoint, or with a partial one.

A small transformer with random weights spends most of its training learning to compare tokens. In
pre-trained attention the products of query and key weights, and of value and output weights, are
close to multiples of the identity. Initial weights can have that structure from the beginning
("mimetic initialization": Trockman and Kolter 2023, arXiv:2305.09828).
"""

import numpy as np

from etcmodel.models.config import EtcConfig


def mimetic_initialization(etc_model, seed=0):
    """Initializes an `EtcModel` so that tokens first attend to similar tokens.

    In each layer, all query and key projections become equal, so that a token's logits are highest
    for tokens with the same embedding. Value and output projections become inverse to each other,
    so that the embeddings attended to are added unchanged. Relative labels keep their random
    values.

    Args:
        etc_model: a built `EtcModel`, not yet trained.
        seed: int. Seed of the value projections; query projections keep their random values.
    Raises:
        ValueError: if `etc_model` is an encoder of another type.
    """
    if (kind := etc_model.config.model_type) != EtcConfig.model_type:
        raise ValueError(
            f"Mimetic initialization is for ETC's attention. Received: a model of type {kind!r}; "
            "begin with random weights."
        )
    rng = np.random.default_rng(seed)
    for block in etc_model.global_local_transformer_layers.fused_att_layers:
        attention = block.inner_layer
        _equal_queries_and_keys(attention)
        _inverse_values_and_outputs(attention, rng)


def prefer_labels(etc_model, logits, *, global_logits=None, embedding_scale=1.0):
    """Initializes the relative-label tables so that attention first prefers pairs with some labels.

    A model initialized from BERT has no trained labels: random ones disturb its attention, and from
    few examples it does not learn to attend along the structure.

    Args:
        etc_model: a built `EtcModel` with label tables.
        logits: dict of int to float. What is added to the attention logits of pairs with that label
            (`ops.relation_labels.RelationLabels`) in all heads of all layers; 0 for other labels.
        global_logits: dict likewise. Replaces entries of `logits` where the queries are global
            tokens.
        embedding_scale: float. Label embeddings are multiplied by it; with 0, `logits` are the
            labels' only effect.
    Raises:
        ValueError: if there are no label tables, or none for one of the labels.

    >>> from etcmodel.models import initialization
    >>> model = etcmodel.from_pretrained("my_model", as_class=etcmodel.EtcModel)
    >>> initialization.prefer_labels(model, {0: 3.0})  # That of the token itself.
    >>> attention = model.global_local_transformer_layers.fused_att_layers[0].inner_layer
    >>> attention.global_qkv_attention.weights[-1].numpy()[:3, 0]
    array([3., 0., 0.], dtype=float32)
    """
    size = getattr(etc_model.config, "relative_vocab_size", None)
    of_global = {**logits, **(global_logits or {})}
    if not size or not all(0 <= label < size for label in of_global):
        raise ValueError(
            f"Labels must be below the model's `relative_vocab_size`, {size}. Received: "
            f"{sorted(of_global)}"
        )
    for block in etc_model.global_local_transformer_layers.fused_att_layers:
        attention = block.inner_layer
        for labeled, preferred in (
            (attention.long_qkv_attention.qkv_relative_attention, logits),
            (attention.global_qkv_attention, of_global),
        ):
            embeddings, biases = labeled.relative_emb_table, labeled.relative_bias_table
            embeddings.assign(embeddings * embedding_scale)
            values = np.zeros(biases.shape, np.float32)
            for label, logit in preferred.items():
                # Logits are divided by this root after the bias is added.
                values[label] = logit * np.sqrt(embeddings.shape[-1])
            biases.assign(values)


def _equal_queries_and_keys(attention):
    query = attention.long_query_projection.linear.kernel
    for name in ("global_query", "l2l_key", "l2g_key", "g2g_key", "g2l_key"):
        kernel = getattr(attention, f"{name}_projection").linear.kernel
        if kernel.shape == query.shape:
            kernel.assign(query)


def _inverse_values_and_outputs(attention, rng):
    """Sets values to one matrix of orthonormal columns (or rows), outputs to its transpose."""
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
