"""The names that PEGASUS-X's weights have in Hugging Face's files."""

from etcmodel.models.seq2seq.names import Naming, Weight, kernel

__all__ = ["NAMING", "weights"]

_TABLE = "model.shared.weight"
# Other names of the token embeddings in older files.
_COPIES = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
NAMING = Naming(
    copies=dict.fromkeys(_COPIES, _TABLE),
    aliases={_TABLE: _COPIES[:2]},
    prefix="model.",  # In files of models for conditional generation.
)
_PROJECTIONS = {
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output_projection",
}


def weights(model):
    """The variables of a `PegasusXModel` by name in files of models with logits: dict."""
    found = {
        _TABLE: Weight(model.shared.embedding_table),
        "model.encoder.embed_global.weight": Weight(model.encoder.global_embedding.embedding_table),
    }
    for side, layer in (("encoder", model.encoder), ("decoder", model.decoder)):
        for index in range(layer.layers.num_hidden_layers):
            found |= _layer(f"model.{side}.layers.{index}", layer.layers, index)
        found |= _norm(f"model.{side}.layer_norm", layer.layer_norm)
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
