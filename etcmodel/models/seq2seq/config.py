"""Configs of models with an encoder and a decoder, with Hugging Face's names."""

import dataclasses
import typing

from etcmodel.models import json_config

__all__ = ["Seq2SeqConfig", "activation"]

_ACTIVATIONS = {
    "gelu": "gelu_exact",
    "gelu_fast": "gelu",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "tanh": "tanh",
}


def activation(name):
    """The activation that Hugging Face calls so: a function, or a name of Keras's.

    Raises:
        ValueError: if the name is unknown.
    """
    from etcmodel import tensor_utils  # With TensorFlow, which takes seconds to import.

    if name in ("silu", "swish"):
        return "swish"
    if name not in _ACTIVATIONS:
        known = ", ".join(sorted([*_ACTIVATIONS, "silu", "swish"]))
        raise ValueError(f"Unknown activation {name!r}; choose one of {known}")
    return tensor_utils.get_activation(_ACTIVATIONS[name])


class Seq2SeqConfig(json_config.JsonConfig):
    """A config whose entries have Hugging Face's names; what else a `config.json` has is left out.

    Attributes:
        architecture: str, of the class. What Hugging Face calls the model, for its `config.json`.
    """

    architecture: typing.ClassVar[str]

    @classmethod
    def from_dict(cls, given):
        """As `JsonConfig.from_dict`; entries that the model has no use for are ignored."""
        known = {field.name for field in dataclasses.fields(cls)}
        return super().from_dict({name: x for name, x in given.items() if name in known})

    def to_dict(self):
        """The entries by name, and those by which Hugging Face knows the model."""
        return {
            **super().to_dict(),
            "architectures": [self.architecture],
            "is_encoder_decoder": True,
        }
