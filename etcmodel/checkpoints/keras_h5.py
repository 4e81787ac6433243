"""Reads `tf_model.h5` of Hugging Face's former TensorFlow classes, under PyTorch's names.

Only plain arrays are read: HDF5 could also refer to other files to be read in their place.
"""

import contextlib
import os

import h5py
import numpy as np

from etcmodel.checkpoints import strict
from etcmodel.checkpoints.safetensors_io import LocalFile

__all__ = ["KerasFile"]

# The names of weights in a layer, in Keras and in PyTorch.
_WEIGHTS = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}


class _RefusedError(ValueError):
    """A problem with a readable file."""


class KerasFile:
    """The arrays of such a file.

    Args:
        path: str. The file's path, for `tf.io.gfile`.
    Attributes:
        shapes: dict of str to tuple of int: PyTorch's names and shapes; matrices are transposed.
        dtypes: dict of str to str: their dtypes, such as "float32".
    Raises:
        ValueError: naming the file, if it is not Hugging Face's, damaged, or not plain, if weights
            are not floats, or duplicates differ.
    """

    def __init__(self, path):
        self._path, self._file = path, LocalFile(path)
        self._places = {}
        self.shapes, self.dtypes = {}, {}
        with self._open() as file:
            most_bytes = os.path.getsize(self._file.path)
            for layer, place in _places(file, path, most_bytes):
                name = _name(place)
                dataset = _dataset(file, layer, place, path, most_bytes)
                shape, self.dtypes[name] = dataset.shape, dataset.dtype.name
                if name in self._places:  # Keras writes shared weights once for each layer.
                    first = self._places[name]
                    _check_copy(file, path, (layer, place), first)
                self._places[name] = (layer, place)
                self.shapes[name] = shape[::-1] if _is_transposed(place, shape) else shape
        self.shapes = dict(sorted(self.shapes.items()))

    def read(self, name):
        """Returns the array of that name."""
        layer, place = self._places[name]
        with self._open() as file:
            array = np.asarray(file[layer][place])
        return array.T if _is_transposed(place, array.shape) else array

    @contextlib.contextmanager
    def _open(self):
        try:
            with h5py.File(self._file.path, "r") as file:
                yield file
        except _RefusedError:
            raise
        except Exception as error:  # Damaged files make the package fail in many ways.
            raise ValueError(
                f"{str(self._path)!r} is no HDF5 file, or not all of one "
                f"({' '.join(str(error).split())[:200]}). Fetch it again."
            ) from None


def _places(file, path, most_bytes):
    """(layer, path in it) of all weights, as listed by Keras."""
    return [
        (layer, place)
        for layer in _names(file, "layer_names", path, most_bytes)
        for place in _names(_linked(file, layer, path), "weight_names", path, most_bytes)
    ]


def _names(group, attribute, path, most_bytes):
    """The strings in an attribute, whose size is checked before it is read."""
    if attribute not in group.attrs:
        raise _RefusedError(f"{str(path)!r} has no weights of a Keras model (`{attribute}`).")
    stored = group.attrs.get_id(attribute)
    is_list = len(stored.shape) == 1 and stored.dtype.itemsize * stored.shape[0] <= most_bytes
    if not is_list:
        raise _RefusedError(f"{str(path)!r}: `{attribute}` is no list of names.")
    return [_as_str(name) for name in group.attrs[attribute]]


def _as_str(name):
    return name.decode() if isinstance(name, bytes) else str(name)


def _linked(group, place, path):
    """The object at a path, if it is in the file itself."""
    for part in place.split("/"):
        is_group = isinstance(group, h5py.Group)
        if not is_group or not isinstance(group.get(part, getlink=True), h5py.HardLink):
            raise _RefusedError(
                f"{str(path)!r}: {place!r} is not there, or a link to somewhere else."
            )
        group = group[part]
    return group


def _dataset(file, layer, place, path, most_bytes):
    dataset = _linked(_linked(file, layer, path), place, path)
    is_plain = (
        isinstance(dataset, h5py.Dataset)
        and not dataset.is_virtual
        and not dataset.external
        and dataset.nbytes <= most_bytes  # Neither compressed nor left out.
    )
    if not is_plain:
        raise _RefusedError(f"{str(path)!r}: {place!r} is no plain array of floats.")
    if dataset.dtype.name not in strict.FLOATS:
        raise _RefusedError(
            f"{str(path)!r}: {place!r} is an array of {dataset.dtype.name}, and weights are floats."
        )
    return dataset


def _check_copy(file, path, *places):
    """Raises `_RefusedError` unless arrays of one name are equal: see `strict.check_copy`."""
    (one, value), (other, wanted) = (("/".join(x), file[x[0]][x[1]][()]) for x in places)
    try:
        strict.check_copy(path, one, value, other, wanted)
    except ValueError as error:
        raise _RefusedError(str(error)) from None


def _name(place):
    """PyTorch's name: for `model/layer_._0/dense/kernel:0` it is `layer.0.dense.weight`."""
    parts = place.removesuffix(":0").split("/")
    parts = [part.split("___")[-1].replace("_._", ".") for part in parts[len(parts) > 1 :]]
    return ".".join([*parts[:-1], _WEIGHTS.get(parts[-1], parts[-1])])


def _is_transposed(place, shape):
    return place.endswith("/kernel:0") and len(shape) == 2
