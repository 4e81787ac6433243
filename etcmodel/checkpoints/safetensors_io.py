"""Reads safetensors files by name, without PyTorch."""

import os
import tempfile

import safetensors
import tensorflow as tf

from etcmodel.models import downloads

__all__ = ["LocalFile", "read_header", "read_tensor"]

_DTYPES = {"BOOL": "bool", "BF": "bfloat", "F": "float", "I": "int", "U": "uint", "C": "complex"}


class LocalFile:
    """A local safetensors file: itself, or a copy of a remote one for this object's lifetime.

    Args:
        path: str. The file's path, for `tf.io.gfile` ("gs://…").
    Attributes:
        path: str. Path of the local file.
    """

    def __init__(self, path):
        self.path = path
        if "://" in str(path) and tf.io.gfile.exists(path):
            self._folder = tempfile.TemporaryDirectory(prefix="etcmodel-")
            self.path = os.path.join(self._folder.name, os.path.basename(path))
            tf.io.gfile.copy(path, self.path)

    def read(self, name):
        """Returns the array of that name: see `read_tensor`."""
        return read_tensor(self.path, name)


def read_header(path):
    """Reads names, shapes and dtypes of the file's tensors.

    Args:
        path: str. On a local disk: it is memory-mapped, not read as a whole.
    Returns:
        Two dicts by name, in alphabetical order: shapes, tuples of int; dtypes, str named as in
        NumPy ("float32", "bfloat16", "int8"), others as in the file ("F8_E4M3").
    Raises:
        ValueError: if there is no such file, or it is not a whole safetensors file.
    """
    with _open(path) as file:
        if "" in file.keys():  # noqa: SIM118
            # TensorFlow ends the process if a checkpoint has such a name.
            raise ValueError(f"{str(path)!r} has a tensor without a name: leave it out.")
        slices = {name: file.get_slice(name) for name in sorted(file.keys())}
        shapes = {name: tuple(tensor.get_shape()) for name, tensor in slices.items()}
        return shapes, {name: _dtype(tensor.get_dtype()) for name, tensor in slices.items()}


def _dtype(code):
    """NumPy's name of a dtype that files call "F32", for example."""
    letters = code.rstrip("0123456789")
    return _DTYPES[letters] + code.removeprefix(letters) if letters in _DTYPES else code


def read_tensor(path, name):
    """Returns the array of that name; bfloat16 and 8-bit floats have types of `ml_dtypes`."""
    with _open(path) as file:
        return file.get_tensor(name)


def _open(path):
    if not tf.io.gfile.exists(path) or tf.io.gfile.isdir(path):
        hint = downloads.download_hint(path)
        raise ValueError(f"No safetensors file at {str(path)!r}. {hint}")
    try:
        return safetensors.safe_open(path, framework="numpy")
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{str(path)!r} is no safetensors file, or not all of one ({error}). Fetch it again."
        ) from None
