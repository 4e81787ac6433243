"""The names that PEGASUS-X's weights have in Hugging Face's files."""

import re

import numpy as np

from etcmodel.models.seq2seq.names import Naming, Weight, kernel

__all__ = ["NAMING", "PREFIX", "check_is_tied", "weights"]

PREFIX = "model."  # In files of models for conditional generation.
# What the token embeddings are called in older files, which have them up to four times.
_TABLE = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
NAMING = Naming(
    aliases={"shared.weight": _TABLE, f"{PREFIX}shared.weight": _TABLE},
    ignored=re.compile(r"(model\.(encoder|decoder)\.embed_tokens|(model\.)?lm_head)\.weight"),
    prefix=PREFIX,
)
_PROJECTIONS = {
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output_projection",
}


def weights(model):
    """The variables of a `PegasusXModel` by name, without a prefix: dict of `Weight`."""
    found = {
        "shared.weight": Weight(model.shared.embedding_table),
        "encoder.embed_global.weight": Weight(model.encoder.global_embedding.embedding_table),
    }
    for side, layer in (("encoder", model.encoder), ("decoder", model.decoder)):
        for index in range(layer.layers.num_hidden_layers):
            found |= _layer(f"{side}.layers.{index}", layer.layers, index)
        found |= _norm(f"{side}.layer_norm", layer.layer_norm)
    return found


def _layer(prefix, stack, index):
    attention = stack.attention_layers[index]
    found = _attention(f"{prefix}.self_attn", attention)
    names = ("self_attn_layer_norm", "global_self_attn_layer_norm")
    for name, norm in zip(names, attention.normalization_layers, strict=False):
        found |= _norm(f"{prefix}.{name}", norm)
    if hasattr(stack, "cross_attention_layers"):
        cross = stack.cross_attention_layers[index]
        found |= _attention(f"{prefix}.encoder_attn", cross)
        found |= _norm(f"{prefix}.encoder_attn_layer_norm", cross.normalization_layers[0])
    block = stack.feed_forward_layers[index]
    for name, dense in (("fc1", block.inner_layer.inner), ("fc2", block.inner_layer.output_layer)):
        found[f"{prefix}.{name}.weight"] = kernel(dense)
        found[f"{prefix}.{name}.bias"] = Weight(dense.bias)
    return found | _norm(f"{prefix}.final_layer_norm", block.normalization_layers[0])


def _attention(prefix, block):
    return {
        f"{prefix}.{name}.weight": kernel(getattr(block.inner_layer, part))
        for name, part in _PROJECTIONS.items()
    }


def _norm(name, layer):
    return {f"{name}.weight": Weight(layer.gamma), f"{name}.bias": Weight(layer.beta)}


def check_is_tied(source):
    """Raises ValueError if a file has an output matrix that is not the token embeddings.

    Args:
        source: `checkpoints.sources.Source`.
    """
    tables = [*(f"{PREFIX}{name}" for name in ("shared.weight", *_TABLE)), "shared.weight", *_TABLE]
    table = next((name for name in tables if name in source.shapes), None)
    if table is None or "lm_head.weight" not in source.shapes:
        return
    if not np.array_equal(source.read("lm_head.weight"), source.read(table)):
        raise ValueError(
            f"{source.path!r} has an output matrix, lm_head.weight, that is not {table}. The "
            "logits of a PEGASUS-X are products with its token embeddings: leave lm_head.weight "
            "out of the file if that is meant."
        )
