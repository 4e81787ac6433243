"""The head of a BERT's or RoBERTa's masked language model, for a model that was lifted of it."""

import numpy as np

from etcmodel.checkpoints import names as names_lib

__all__ = ["lift_masked_lm"]

_OURS = (
    "mlm/transform/dense/kernel",
    "mlm/transform/dense/bias",
    "mlm/transform/LayerNorm/gamma",
    "mlm/transform/LayerNorm/beta",
    "mlm/bias",
)


def _names(prefix, dense, norm, bias):
    return (*(f"{prefix}{part}" for part in (*dense, *norm)), bias)


_TORCH = ("weight", "bias")
# What these are called by the original BERT, Hugging Face's BERT, and its RoBERTa.
_THEIRS = (
    _names(
        "cls/predictions/transform/",
        ("dense/kernel", "dense/bias"),
        ("LayerNorm/gamma", "LayerNorm/beta"),
        "cls/predictions/output_bias",
    ),
    _names(
        "cls.predictions.transform.",
        [f"dense.{x}" for x in _TORCH],
        [f"LayerNorm.{x}" for x in _TORCH],
        "cls.predictions.bias",
    ),
    _names(
        "lm_head.",
        [f"dense.{x}" for x in _TORCH],
        [f"layer_norm.{x}" for x in _TORCH],
        "lm_head.bias",
    ),
)


def lift_masked_lm(model, source):
    """Sets the weights of a model's head for masked tokens; the table of tokens is the encoder's.

    Args:
        model: `of_text.MaskedLM`.
        source: `Source` of a BERT or RoBERTa.
    Raises:
        ValueError: naming the weights, if the checkpoint has no such head, or one of other sizes.
    """
    theirs = next((x for x in _THEIRS if all(name in source.shapes for name in x)), None)
    if theirs is None:
        raise ValueError(
            f"{source.path!r} lacks a head for masked tokens: {_THEIRS[1][-1]!r} or "
            f"{_THEIRS[2][-1]!r} and what belongs to it. Lift it without the head."
        )
    variables = names_lib.release_names(model)
    values = {}
    for ours, name in zip(_OURS, theirs, strict=True):
        value = np.asarray(source.read(name))
        value = value.T if name.endswith("dense.weight") else value
        if list(value.shape) != variables[ours].shape.as_list():
            raise ValueError(
                f"{source.path!r}: {name} is {list(value.shape)}, by the config it is "
                f"{variables[ours].shape.as_list()}"
            )
        values[ours] = value
    for ours, value in values.items():
        variables[ours].assign(value.astype(variables[ours].dtype.as_numpy_dtype))
