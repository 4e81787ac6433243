"""The names that LongT5's weights have in Hugging Face's files."""

import re

from etcmodel.models.seq2seq.names import Naming, Weight, kernel

__all__ = ["NAMING", "TABLE_ALIASES", "weights"]

# What the token embeddings are called in older files, and in those of T5's family that have no
# other name for them.
TABLE_ALIASES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
NAMING = Naming(
    aliases={"shared.weight": TABLE_ALIASES},
    ignored=re.compile(
        r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"
        r"|(encoder|decoder)\.embed_tokens\.weight"
        r"|lm_head\.weight"  # Where the embeddings are tied.
    ),
)
_PROJECTIONS = {"q": "query", "k": "key", "v": "value", "o": "output_projection"}


def weights(model):
    """The variables of a `LongT5Model` or `LongT5EncoderModel` by name: dict of `Weight`."""
    found = {"shared.weight": Weight(model.shared.embedding_table)}
    kind = "TransientGlobalSelfAttention" if model.config.blocks_of else "LocalSelfAttention"
    for side, attention in (("encoder", kind), ("decoder", "SelfAttention")):
        if not hasattr(model, side):
            continue
        layer = getattr(model, side)
        prefix = f"{side}.block.0.layer.0.{attention}"
        found[f"{prefix}.relative_attention_bias.weight"] = Weight(layer.layers.bias_table)
        if getattr(layer.layers, "block_bias_table", None) is not None:
            name = f"{prefix}.global_relative_attention_bias.weight"
            found[name] = Weight(layer.layers.block_bias_table)
        for index in range(layer.layers.num_hidden_layers):
            blocks = [step.block for step in layer.layers.steps(index)]
            names = [attention, *["EncDecAttention"] * (len(blocks) - 2)]
            for number, (name, block) in enumerate(zip(names, blocks, strict=False)):
                found |= _attention(f"{side}.block.{index}.layer.{number}", name, block)
            prefix = f"{side}.block.{index}.layer.{len(blocks) - 1}"
            found |= _feed_forward(prefix, blocks[-1], model.config.is_gated)
        found[f"{side}.final_layer_norm.weight"] = Weight(layer.final_layer_norm.gamma)
    if getattr(model, "lm_head", None) is not None:
        found["lm_head.weight"] = kernel(model.lm_head)
    return found


def _attention(prefix, name, block):
    layer = block.inner_layer
    found = {
        f"{prefix}.{name}.{letter}.weight": kernel(getattr(layer, part))
        for letter, part in _PROJECTIONS.items()
    }
    if getattr(layer, "block_norm", None) is not None:
        norm = Weight(layer.block_norm.gamma)
        found[f"{prefix}.{name}.global_input_layer_norm.weight"] = norm
    return {**found, **_norm(prefix, block)}


def _feed_forward(prefix, block, is_gated):
    layer = block.inner_layer
    inner = {"wi_0": layer.inner, "wi_1": layer.gate} if is_gated else {"wi": layer.inner}
    return {
        **{
            f"{prefix}.DenseReluDense.{name}.weight": kernel(part)
            for name, part in {**inner, "wo": layer.output_layer}.items()
        },
        **_norm(prefix, block),
    }


def _norm(prefix, block):
    return {f"{prefix}.layer_norm.weight": Weight(block.normalization_layers[0].gamma)}
