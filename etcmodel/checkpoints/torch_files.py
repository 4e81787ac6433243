"""Reads weights of PyTorch (`pytorch_model.bin`), without PyTorch.

Such a file is a zip: a pickle, which describes tensors by name, and their storages. A pickle is a
program; here only those instructions are followed that build dicts, tuples and descriptions of
tensors. Nothing is imported or called by a name in the file.
"""

import math
import os
import pickletools
import struct
import zipfile
from typing import NamedTuple

import ml_dtypes
import numpy as np

from etcmodel import shown_values

_DTYPES = {
    "BFloat16": np.dtype(ml_dtypes.bfloat16),
    "Bool": np.dtype(bool),
    "Byte": np.dtype("uint8"),
    "Char": np.dtype("int8"),
    "Double": np.dtype("<f8"),
    "Float": np.dtype("<f4"),
    "Half": np.dtype("<f2"),
    "Int": np.dtype("<i4"),
    "Long": np.dtype("<i8"),
    "Short": np.dtype("<i2"),
}
_MOST_BYTES = 2**24  # Of the pickle; that of a model with a thousand weights has 10^5.
_ADVICE = (
    "Use the model's `model.safetensors`, or make one where PyTorch is installed: "
    "`safetensors.torch.save_file(torch.load(path, weights_only=True), path)`."
)


class TorchFile:
    """The tensors of such a file.

    Args:
        path: str. The file's path, on a local disk.
        shown_path: str. The path that errors name, if another.
    Attributes:
        shapes: dict of str to tuple of int.
        dtypes: dict of str to str, such as "float32" or "bfloat16".
    Raises:
        ValueError: naming the file, if it is not such a file or not all of one, or it describes
            anything but tensors by name.
    """

    def __init__(self, path, shown_path=None):
        self._path, self._shown = path, shown_path or path
        self._tensors, self._places = self._checked(self._open)
        named = sorted(self._tensors.items())
        self.shapes = {name: tensor.shape for name, tensor in named}
        self.dtypes = {name: tensor.storage.dtype.name for name, tensor in named}

    def read(self, name):
        """Returns the array of that name."""
        return self._checked(self._read, self._tensors[name])

    def _checked(self, function, *args):
        try:
            return function(*args)
        except _RefusedError as error:
            raise ValueError(f"{str(self._shown)!r} {error}") from None
        except Exception as error:  # Damaged files fail in many ways.
            words = " ".join(str(error).split())[:200]
            raise ValueError(
                f"{str(self._shown)!r} is no file of PyTorch's weights, or not all of one "
                f"({type(error).__name__}: {words}). Fetch it again."
            ) from None

    def _open(self):
        """The tensors by name, and the places of their storages: (offset, bytes) by key."""
        with open(self._path, "rb") as file:
            start = file.read(4)
        if start.startswith(b"\x80"):
            raise _RefusedError(f"has PyTorch's form of before 2020, which is not read. {_ADVICE}")
        with zipfile.ZipFile(self._path) as archive:
            entries = {info.filename: info for info in archive.infolist()}
            pickles = [x for x in entries if x.count("/") == 1 and x.endswith("/data.pkl")]
            if len(pickles) != 1:
                raise _RefusedError(f"is a zip, but not of PyTorch's weights. {_ADVICE}")
            folder = pickles[0].removesuffix("data.pkl")
            if _content(archive, entries.get(f"{folder}byteorder"), b"little") != b"little":
                raise _RefusedError(f"is of a machine with another order of bytes. {_ADVICE}")
            tensors = _described(_content(archive, entries[pickles[0]]))
        keys = {tensor.storage.key for tensor in tensors.values()}
        places = {key: self._place(entries.get(f"{folder}data/{key}"), key) for key in keys}
        for name, tensor in tensors.items():
            _check_inside(name, tensor, places[tensor.storage.key][1])
        return tensors, places

    def _place(self, entry, key):
        """Where the bytes of a storage are in the file: (offset, number)."""
        if entry is None or entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise _RefusedError(f"has no plain storage {shown_values.shown(key)}. {_ADVICE}")
        with open(self._path, "rb") as file:
            file.seek(entry.header_offset)
            signature, *_, name_bytes, extra_bytes = struct.unpack("<4s22sHH", file.read(30))
        offset = entry.header_offset + 30 + name_bytes + extra_bytes
        if signature != b"PK\3\4" or offset + entry.file_size > os.path.getsize(self._path):
            raise _RefusedError("is not all of a file. Fetch it again.")
        return offset, entry.file_size

    def _read(self, tensor):
        first, _ = self._places[tensor.storage.key]
        dtype = tensor.storage.dtype
        count = _reach(tensor)
        offset = first + tensor.offset * dtype.itemsize
        flat = np.fromfile(self._path, dtype, count, offset=offset)
        if len(flat) != count:
            raise _RefusedError("is not all of a file. Fetch it again.")
        strides = [stride * dtype.itemsize for stride in tensor.strides]
        view = np.lib.stride_tricks.as_strided(flat, tensor.shape, strides, writeable=False)
        return np.array(view)


class _RefusedError(ValueError):
    """A readable file that is not such a file; the message goes on after its path."""


class _Storage(NamedTuple):
    dtype: np.dtype
    key: str


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Name(NamedTuple):
    """What the file calls, which is never looked up."""

    name: str


def _content(archive, entry, default=None):
    """The bytes of an entry of a zip; the default without one."""
    if entry is None:
        return default
    if entry.file_size > _MOST_BYTES:
        raise _RefusedError(f"has a description of {entry.file_size} bytes. {_ADVICE}")
    return archive.read(entry)


def _reach(tensor):
    """The number of elements from the first to the last."""
    if 0 in tensor.shape:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True))


def _check_inside(name, tensor, num_bytes):
    """Raises `_RefusedError` unless a tensor lies in its storage, and is no larger."""
    numbers = (tensor.offset, *tensor.shape, *tensor.strides)
    is_plain = all(type(x) is int and x >= 0 for x in numbers)
    is_plain = is_plain and len(tensor.shape) == len(tensor.strides)
    limit = num_bytes // tensor.storage.dtype.itemsize
    if not is_plain or max(math.prod(tensor.shape), tensor.offset + _reach(tensor)) > limit:
        raise _RefusedError(f"describes {shown_values.shown(name)} beyond its storage. {_ADVICE}")


# The instructions that PyTorch writes.


def _described(pickle):
    """Follows a pickle to a dict of name to `_Tensor`; raises `_RefusedError` for all else."""
    found = _followed(pickle)
    is_plain = isinstance(found, dict) and all(
        isinstance(name, str) and name and isinstance(tensor, _Tensor)
        for name, tensor in found.items()
    )
    if not is_plain:
        raise _RefusedError(f"holds something else than tensors by name. {_ADVICE}")
    return found


def _followed(pickle):
    stack, memo = [], {}
    for operation, argument, _ in pickletools.genops(pickle):
        code = operation.name
        if code == "STOP":
            break
        if code in _CONSTANTS:
            stack.append(_CONSTANTS[code])
        elif code in _NEW:
            stack.append(_NEW[code]())
        elif code in ("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE"):
            stack.append(argument)
        elif code == "GLOBAL":
            stack.append(_Name(_known_name(argument.replace(" ", "."))))
        elif code in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif code in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif code in _ACTIONS:
            _ACTIONS[code](stack)
        elif code not in ("PROTO", "FRAME"):
            raise _RefusedError(f"has an instruction {code}, unlike weights. {_ADVICE}")
    (found,) = stack
    return found


_MARK = object()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "MARK": _MARK, "EMPTY_TUPLE": ()}
_NEW = {"EMPTY_DICT": dict, "EMPTY_LIST": list}


def _pop_to_mark(stack):
    at = next(x for x in reversed(range(len(stack))) if stack[x] is _MARK)
    found, stack[at:] = stack[at + 1 :], []
    return found


def _pop_tuple(number):
    def act(stack):
        stack[-number:] = [tuple(stack[-number:])]

    return act


def _set_items(stack, items):
    if type(stack[-1]) is not dict:
        raise TypeError("items of no dict")
    if not all(type(name) is str for name in items[::2]):  # Hashing others may take for ever.
        raise TypeError("names that are no text")
    stack[-1].update(zip(items[::2], items[1::2], strict=True))


def _append(stack, items):
    if type(stack[-1]) is not list:
        raise TypeError("elements of no list")
    stack[-1].extend(items)


def _build(stack):
    """Drops the attributes of a dict, such as the versions of a module's parts."""
    stack.pop()
    if type(stack[-1]) is not dict:
        raise TypeError("attributes of no dict")


def _to_storage(stack):
    kind, type_name, key, _, _ = stack.pop()
    dtype = _DTYPES[type_name.name.removeprefix("torch.").removesuffix("Storage")]
    if kind != "storage" or not isinstance(key, str):
        raise TypeError("no storage")
    stack.append(_Storage(dtype, key))


def _reduce(stack):
    """What the result of a call is described by."""
    args = stack.pop()
    stack.append(_CALLS[stack.pop().name](*args))


def _tensor(storage, offset, shape, strides, *_):
    if not isinstance(storage, _Storage) or max(len(shape), len(strides)) > 64:
        raise TypeError("no tensor")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


def _ordered_dict():
    """Filled by later instructions alone; what is given to a call would be hashed."""
    return {}


_CALLS = {
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
}
_ACTIONS = {
    "APPEND": lambda stack: _append(stack, [stack.pop()]),
    "APPENDS": lambda stack: _append(stack, _pop_to_mark(stack)),
    "BINPERSID": _to_storage,
    "BUILD": _build,
    "REDUCE": _reduce,
    "SETITEM": lambda stack: _set_items(stack, [stack.pop(), stack.pop()][::-1]),
    "SETITEMS": lambda stack: _set_items(stack, _pop_to_mark(stack)),
    "TUPLE": lambda stack: stack.append(tuple(_pop_to_mark(stack))),
    **{f"TUPLE{number}": _pop_tuple(number) for number in (1, 2, 3)},
}
_KNOWN_NAMES = {*_CALLS, *(f"torch.{kind}Storage" for kind in _DTYPES)}


def _known_name(name):
    if name not in _KNOWN_NAMES:
        asked = shown_values.shortened(name, 80)
        raise _RefusedError(f"asks for `{asked}`, unlike weights. {_ADVICE}")
    return name
