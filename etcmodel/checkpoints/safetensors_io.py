"""Reading safetensors files by name, without PyTorch."""

import safetensors
import tensorflow as tf

from etcmodel.models import downloads

__all__ = ["read_shapes", "read_tensor"]


def read_shapes(path):
    """Names and shapes of the file's tensors.

    Args:
        path: str. A local file: it is mapped into memory, not read as a whole.
    Returns:
        dict of str to tuple of int, in alphabetical order.
    Raises:
        ValueError: if there is no such file, or it is not a whole safetensors file.
    """
    with _open(path) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in sorted(file.keys())}


def read_tensor(path, name):
    """The array of that name; bfloat16 and 8-bit floats have the types of `ml_dtypes`."""
    with _open(path) as file:
        return file.get_tensor(name)


def _open(path):
    if "://" in str(path):
        raise ValueError(f"safetensors files are read from local disks: copy {str(path)!r} there.")
    if not tf.io.gfile.exists(path) or tf.io.gfile.isdir(path):
        hint = downloads.download_hint(path)
        raise ValueError(f"No safetensors file at {str(path)!r}. {hint}")
    try:
        return safetensors.safe_open(path, framework="numpy")
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{str(path)!r} is no safetensors file, or not all of one ({error}). Fetch it again."
        ) from None
