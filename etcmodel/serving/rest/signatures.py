"""Signatures as values: names, types and shapes of what a model takes and gives."""

import dataclasses

import numpy as np

__all__ = ["DEFAULT_SIGNATURE", "Signature", "TensorInfo"]

DEFAULT_SIGNATURE = "serving_default"


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A tensor of a signature.

    Attributes:
        dtype: `np.dtype`; of objects (bytes) for strings.
        shape: tuple of int, None where any size will do; None for any shape.
    """

    dtype: np.dtype
    shape: tuple | None

    @property
    def is_string(self):
        return self.dtype == np.dtype(object)

    def takes(self, shape):
        """Whether an array of this shape will do."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            size is None or size == found for size, found in zip(self.shape, shape, strict=True)
        )

    def __str__(self):
        name = "string" if self.is_string else self.dtype.name
        if self.shape is None:
            return f"{name} of any shape"
        return f"{name} [{', '.join('?' if size is None else str(size) for size in self.shape)}]"


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a model: dicts of name to `TensorInfo` of its inputs and outputs."""

    name: str
    inputs: dict
    outputs: dict

    @property
    def has_batches(self):
        """Whether the first axis of all inputs and outputs counts examples, of any number."""
        infos = [*self.inputs.values(), *self.outputs.values()]
        return all(info.shape and info.shape[0] is None for info in infos)
