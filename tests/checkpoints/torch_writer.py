"""Writes weights as `torch.save` does: a zip of a pickle and of storages."""

import pickle
import struct
import zipfile

import numpy as np

KINDS = {
    "bfloat16": "BFloat16",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "int64": "Long",
}


def write(path, tensors, compression=zipfile.ZIP_STORED):
    """Writes a dict of arrays; each has a storage of its own."""
    body = b"".join(_item(name, key, x) for key, (name, x) in enumerate(tensors.items()))
    pickled = b"\x80\x02}" + b"(" + body + b"u."
    write_raw(path, pickled, dict(enumerate(tensors.values())), compression)


def write_raw(path, pickled, storages, compression=zipfile.ZIP_STORED):
    """Writes a pickle, and arrays by the keys of their storages."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", b"little")
        for key, array in storages.items():
            archive.writestr(f"archive/data/{key}", np.ascontiguousarray(array).tobytes())


def _item(name, key, array):
    strides = [x // array.itemsize for x in np.array(array, order="C").strides]
    storage = _text("storage") + _global("torch", f"{KINDS[array.dtype.name]}Storage")
    storage = b"(" + storage + _text(str(key)) + _text("cpu") + _int(array.size) + b"tQ"
    hooks = _global("collections", "OrderedDict") + b")R"
    args = b"(" + storage + _int(0) + _ints(array.shape) + _ints(strides) + b"\x89" + hooks + b"t"
    return _text(name) + _global("torch._utils", "_rebuild_tensor_v2") + args + b"R"


def _ints(numbers):
    return b"(" + b"".join(map(_int, numbers)) + b"t"


def _int(number):
    return pickle.BININT + struct.pack("<i", number)


def _text(text):
    return pickle.BINUNICODE + struct.pack("<I", len(text.encode())) + text.encode()


def _global(module, name):
    return b"c" + f"{module}\n{name}\n".encode()
