"""The names that LED's weights have in Hugging Face's files."""

from etcmodel.models.seq2seq.names import Naming, Weight, kernel

__all__ = ["NAMING", "weights"]

_TABLE = "led.shared.weight"
# Other names of the token embeddings in older files.
_COPIES = (
    "led.encoder.embed_tokens.weight",
    "led.decoder.embed_tokens.weight",
    "lm_head.weight",
)
NAMING = Naming(
    copies=dict.fromkeys(_COPIES, _TABLE),
    aliases={_TABLE: _COPIES},
    prefix="led.",
    optional=("final_logits_bias",),
)
_ENCODER = ("query", "key", "value", "query_global", "key_global", "value_global")
_DECODER = {
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output_projection",
}


def weights(model):
    """The variables of an `LedModel` by name in files of models with a head: dict of `Weight`."""
    found = {_TABLE: Weight(model.shared.embedding_table)}
    for side, layer in (("encoder", model.encoder), ("decoder", model.decoder)):
        prefix = f"led.{side}"
        table = layer.position_embedding.embedding_table
        found[f"{prefix}.embed_positions.weight"] = Weight(table)
        found |= _norm(f"{prefix}.layernorm_embedding", layer.embedding_norm)
        for index in range(layer.layers.num_hidden_layers):
            steps = [step.block for step in layer.layers.steps(index)]
            found |= _LAYERS[side](f"{prefix}.layers.{index}", *steps)
    return found


def _encoder_layer(prefix, attention, feed_forward):
    inner, name = attention.inner_layer, f"{prefix}.self_attn"
    found = {}
    for part in _ENCODER:
        found |= _dense(f"{name}.longformer_self_attn.{part}", getattr(inner, part).linear)
    found |= _dense(f"{name}.output", inner.output_projection)
    return {**found, **_block_norm(f"{name}_layer_norm", attention), **_rest(prefix, feed_forward)}


def _decoder_layer(prefix, attention, cross_attention, feed_forward):
    found = {}
    for name, block in (("self_attn", attention), ("encoder_attn", cross_attention)):
        for theirs, ours in _DECODER.items():
            found |= _dense(f"{prefix}.{name}.{theirs}", getattr(block.inner_layer, ours))
        found |= _block_norm(f"{prefix}.{name}_layer_norm", block)
    return {**found, **_rest(prefix, feed_forward)}


_LAYERS = {"encoder": _encoder_layer, "decoder": _decoder_layer}


def _rest(prefix, feed_forward):
    inner = feed_forward.inner_layer
    return {
        **_dense(f"{prefix}.fc1", inner.inner),
        **_dense(f"{prefix}.fc2", inner.output_layer),
        **_block_norm(f"{prefix}.final_layer_norm", feed_forward),
    }


def _dense(name, layer):
    return {f"{name}.weight": kernel(layer), f"{name}.bias": Weight(layer.bias)}


def _block_norm(name, block):
    return _norm(name, block.normalization_layers[0])


def _norm(name, layer):
    return {f"{name}.weight": Weight(layer.gamma), f"{name}.bias": Weight(layer.beta)}
