"""The names that LongT5's weights have in Hugging Face's files."""

import dataclasses

import numpy as np

from etcmodel.models.seq2seq.names import Naming, Weight, kernel

__all__ = ["ENCODER_NAMING", "NAMING", "weights"]

_TABLE, _LOGITS = "shared.weight", "lm_head.weight"
# Names of the token embeddings in older files, and in those of T5's family that have no other name
# for them.
_TABLE_ALIASES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


def _config_for(config, source):
    """Unties the logits in the config if the file has a matrix of their own.

    That is one that differs from the token embeddings, whatever the config in the folder says.
    """
    table = next((x for x in (_TABLE, *_TABLE_ALIASES) if x in source.shapes), None)
    is_tied = table is None or _LOGITS not in source.shapes
    is_tied = is_tied or np.array_equal(source.read(_LOGITS), source.read(table))
    is_scaled = config.output_scale != 1
    return dataclasses.replace(config, tie_word_embeddings=is_tied, scale_decoder_outputs=is_scaled)


# The encoder alone has no logits.
ENCODER_NAMING = Naming(
    copies=dict.fromkeys(_TABLE_ALIASES, _TABLE),
    aliases={_TABLE: _TABLE_ALIASES},
    obsolete=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
)
NAMING = ENCODER_NAMING._replace(
    copies={**ENCODER_NAMING.copies, _LOGITS: _TABLE}, config_for=_config_for
)
_PROJECTIONS = {"q": "query", "k": "key", "v": "value", "o": "output_projection"}


def weights(model):
    """The variables of a `LongT5Model` or `LongT5EncoderModel` by name: dict of `Weight`."""
    found = {_TABLE: Weight(model.shared.embedding_table)}
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
        found[_LOGITS] = kernel(model.lm_head)
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
