"""Signatures: names, dtypes and shapes of a model's inputs and outputs."""

import dataclasses

import numpy as np

__all__ = ["DEFAULT_SIGNATURE", "Signature", "TensorInfo"]

DEFAULT_SIGNATURE = "serving_default"


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A tensor of a signature.

    Attributes:
        dtype: `np.dtype`; object (bytes) for strings.
        shape: tuple of int, with None for flexible sizes; None for any shape.
    """

    dtype: np.dtype
    shape: tuple | None

    @property
    def is_string(self):
        return self.dtype == np.dtype(object)

    def takes(self, shape):
        """Whether an array of this shape is accepted."""
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
    """A signature of a model: dicts from name to `TensorInfo` for inputs and outputs."""

    name: str
    inputs: dict
    outputs: dict

    @property
    def has_batches(self):
        """Whether the first axis of all inputs and outputs is a batch axis of flexible size."""
        infos = [*self.inputs.values(), *self.outputs.values()]
        return all(info.shape and info.shape[0] is None for info in infos)
