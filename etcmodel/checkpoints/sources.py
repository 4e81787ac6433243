"""Opens checkpoints of any format as named arrays."""

import collections
import contextlib
import dataclasses
import functools
import os
import re
import tempfile
from collections.abc import Callable, Mapping

import h5py
import numpy as np
import safetensors
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from etcmodel import atomic_files, bounded_json, extras, hub
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints import strict, torch_files
from etcmodel.models import downloads
from etcmodel.path_checks import check_no_pattern

# Reads safetensors files by name, without PyTorch.


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


# Reads `tf_model.h5` of Hugging Face's former TensorFlow classes, under PyTorch's names.
#
# Only plain arrays are read: HDF5 could also refer to other files to be read in their place.


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
    names = group.attrs[attribute]
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


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


# Checkpoints of any format.


def _is_transposed(place, shape):
    return place.endswith("/kernel:0") and len(shape) == 2


# The formats: variables by name (TF1 and its successors' V2 format), by their path in an object
# graph (`tf.train.Checkpoint`), and Hugging Face's.
RELEASED, OBJECTS, SAFETENSORS = "released", "tf2", "safetensors"
# The names under which this library writes them, and finds them in a directory.
FILE_NAMES = {RELEASED: "model.ckpt", OBJECTS: "ckpt", SAFETENSORS: "model.safetensors"}

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# What a training checkpoint contains besides the model: by name, and by path.
_STATE_NAMES = re.compile(r"(.*/)?(global_step|adam_m|adam_v)")
_STATE_PLACES = re.compile(
    r"(optimizer/.*|trained_weights/.*|global_step|save_counter|step|.*/\.OPTIMIZER_SLOT/.*)"
)
_VALUE_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
_PYTORCH = (".bin", ".pt", ".pth")
# Files of a folder in Hugging Face's layout, in order of precedence.
_HUGGING_FACE = (
    "model.safetensors",
    "model.safetensors.index.json",
    "tf_model.h5",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_ADAPTER_CONFIG = "adapter_config.json"  # Of weights that the package PEFT adds to a model's.
_INDEXES = (".safetensors.index.json", ".bin.index.json")


@dataclasses.dataclass(frozen=True)
class Source:
    """A checkpoint's arrays by name.

    Attributes:
        path: path prefix (TensorFlow) or path of the file (safetensors).
        format: `RELEASED`, `OBJECTS` or `SAFETENSORS`, which stands for Hugging Face's names.
        shapes: the arrays' shapes by name. Variables of an object checkpoint have the release's
            names if there are such, and otherwise TensorFlow's.
        dtypes: their dtypes by name, such as "float32", "bfloat16" or "int8".
        training_state: names of the training state; these are not in `shapes`.
        read: function of a name that returns its array unchanged. Weights are read by
            `strict.assign`.
        nodes: for an object checkpoint, the name of the variable at each node of its graph.
    """

    path: str
    format: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    training_state: tuple[str, ...]
    read: Callable[[str], np.ndarray]
    nodes: Mapping[int, str] = dataclasses.field(default_factory=dict)

    def renamed(self, origins):
        """Returns a `Source` of these arrays under other names, and no others.

        Args:
            origins: dict of new name to name here.
        """
        return dataclasses.replace(
            self,
            shapes={name: self.shapes[origin] for name, origin in origins.items()},
            dtypes={name: self.dtypes[origin] for name, origin in origins.items()},
            read=lambda name: self.read(origins[name]),
            nodes={},
        )


def settled_folder(directory, revision=None):
    """The directory, which must exist, after completing an interrupted save there."""
    directory = os.fspath(directory)
    if "/" in directory and hub.may_be_a_name(directory) and not tf.io.gfile.isdir(directory):
        try:
            directory = hub.local_folder(hub.PREFIX + directory, revision)
        except (ValueError, extras.MissingExtraError) as error:
            raise ValueError(
                f"There is no folder {directory!r}. As the name of a model: {error}"
            ) from None
    else:
        directory = hub.local_folder(directory, revision)
    if not tf.io.gfile.isdir(directory):
        hint = downloads.download_hint(directory)
        raise ValueError(f"There is no directory {directory!r}. {hint}")
    settle(directory)
    return directory


def open_source(path):
    """Opens a checkpoint, whatever its format.

    Args:
        path: path prefix of a TensorFlow checkpoint, a safetensors file, Hugging Face's
            `tf_model.h5` or `pytorch_model.bin`, or a directory: of a training run (the latest
            checkpoint is used), with `model.ckpt` or one other TensorFlow checkpoint, or with one
            of these files or `model.safetensors.index.json`, which names the files of a larger
            model; or `hf:NAME`, a model of the Hugging Face Hub (`hub.local_folder`). A `Source` is
            returned unchanged.
    Returns:
        `Source`.
    Raises:
        ValueError: if there is no checkpoint, there are several, or it cannot be read; or if the
            directory is of an adapter, too.
    """
    if isinstance(path, Source):
        return path
    path = hub.local_folder(os.fspath(path))
    settle(path)
    if tf.io.gfile.isdir(path):
        path = _in_directory(path)
    if path.endswith(".safetensors"):
        return _open_safetensors(path)
    if path.endswith(_INDEXES):
        return _open_shards(path)
    if path.endswith(".h5"):
        return _open_keras(path)
    if path.endswith(_PYTORCH):
        return _open_pytorch(path)
    return _open_tensorflow(path)


def settle(path):
    """Completes a save that was interrupted, before anything is read there.

    Args:
        path: str. As in `open_source`.
    Raises:
        ValueError: in a line that says what to do, if its state is unclear or it cannot be
            completed.
    """
    directory, name = (path, None) if tf.io.gfile.isdir(path) else os.path.split(path)
    atomic_files.settle(directory, name and (lambda x: x.startswith(name)))
    names = (name,) if name else tuple(FILE_NAMES.values())
    if remains := atomic_files.remains_of_older_versions(directory, names.__contains__):
        raise ValueError(remains)


def _in_directory(directory):
    """The path of the directory's checkpoint."""
    if tf.io.gfile.exists(adapter := os.path.join(directory, _ADAPTER_CONFIG)):
        raise ValueError(
            f"{adapter!r} says that the folder is of an adapter, which Hugging Face's library adds "
            "to the weights: without it, the model would be another one. Merge it there "
            "(`merge_and_unload` of the package PEFT), and give the folder of what that saves."
        )
    names = [name for name in tf.io.gfile.listdir(directory) if name.endswith(".index")]
    prefixes = sorted(name.removesuffix(".index") for name in names)
    if prefixes:
        check_no_pattern(directory, "The folder of a TensorFlow checkpoint")
    if latest := tf.train.latest_checkpoint(directory):
        return latest
    if "model.ckpt" in prefixes:
        return os.path.join(directory, "model.ckpt")
    if len(prefixes) == 1:
        return os.path.join(directory, prefixes[0])
    if not prefixes:
        for name in _HUGGING_FACE:
            if tf.io.gfile.exists(os.path.join(directory, name)):
                return os.path.join(directory, name)
    advice = "Give its path (`checkpoint_name` in `load_pretrained`)."
    raise ValueError(
        f"{directory!r} must hold one checkpoint; found {prefixes or 'none'}. "
        + (advice if prefixes else downloads.download_hint(directory))
    )


def _open_safetensors(path):
    file = LocalFile(path)
    shapes, dtypes = read_header(file.path)
    state = tuple(sorted(name for name in shapes if _STATE_NAMES.fullmatch(name)))
    return Source(
        path=path,
        format=SAFETENSORS,
        shapes={name: shape for name, shape in shapes.items() if name not in state},
        dtypes=dtypes,
        training_state=state,
        read=file.read,
    )


def _open_shards(path):
    """The files that an index names, as one `Source`."""
    files = bounded_json.read_object(path).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(x, str) for x in files.values()):
        raise ValueError(f"{path!r}: `weight_map` must be an object of tensors and their files.")
    folder = os.path.dirname(path)
    if strange := next((x for x in files.values() if os.path.basename(x) != x), None):
        raise ValueError(f"{path!r}: {strange!r} is no name of a file beside it.")
    open_shard = _open_pytorch if path.endswith(_INDEXES[1]) else _open_safetensors
    shards = {name: open_shard(os.path.join(folder, name)) for name in set(files.values())}
    if lost := next((x for x in files if x not in shards[files[x]].shapes), None):
        raise ValueError(f"{os.path.join(folder, files[lost])!r} lacks {lost!r}, unlike {path!r}.")
    return Source(
        path=path,
        format=SAFETENSORS,
        shapes={name: shards[files[name]].shapes[name] for name in sorted(files)},
        dtypes={name: shards[files[name]].dtypes[name] for name in files},
        training_state=(),
        read=lambda name: shards[files[name]].read(name),
    )


def _open_keras(path):
    if not tf.io.gfile.exists(path):
        raise ValueError(f"No file at {path!r}. {downloads.download_hint(path)}")
    file = KerasFile(path)
    return Source(path, SAFETENSORS, file.shapes, file.dtypes, training_state=(), read=file.read)


def _open_pytorch(path):
    if not tf.io.gfile.exists(path):
        raise ValueError(f"No file at {path!r}. {downloads.download_hint(path)}")
    local = LocalFile(path)
    file = torch_files.TorchFile(local.path, path)
    file.copy = local  # A remote file's copy, for as long as it is read.
    return Source(path, SAFETENSORS, file.shapes, file.dtypes, training_state=(), read=file.read)


def _open_tensorflow(prefix):
    if not any(map(tf.io.gfile.exists, (f"{prefix}.index", prefix))):
        hint = downloads.download_hint(prefix)
        raise ValueError(f"No readable checkpoint at {prefix!r}: there is no such file. {hint}")
    check_no_pattern(prefix, "The path of a TensorFlow checkpoint")
    try:
        reader = tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError, IndexError) as error:  # IndexError: it is too short.
        raise ValueError(f"No readable checkpoint at {prefix!r}: {error}") from None
    shapes = {name: tuple(s) for name, s in reader.get_variable_to_shape_map().items()}
    dtypes = {name: dtype.name for name, dtype in reader.get_variable_to_dtype_map().items()}
    if _OBJECT_GRAPH in shapes:
        return _open_objects(prefix, reader, shapes, dtypes)
    state = tuple(sorted(name for name in shapes if _STATE_NAMES.fullmatch(name)))
    return Source(
        path=prefix,
        format=RELEASED,
        shapes={name: shapes[name] for name in sorted(shapes) if name not in state},
        dtypes=dtypes,
        training_state=state,
        read=functools.partial(_read, prefix, reader),
    )


def _open_objects(prefix, reader, shapes, dtypes):
    keys, nodes, state = _object_names(_read(prefix, reader, _OBJECT_GRAPH).item())
    return Source(
        path=prefix,
        format=OBJECTS,
        shapes={name: shapes[key] for name, key in keys.items()},
        dtypes={name: dtypes[key] for name, key in keys.items()},
        training_state=state,
        read=lambda name: _read(prefix, reader, keys[name]),
        nodes=nodes,
    )


def _object_names(serialized_graph):
    """Names of an object checkpoint's variables.

    Returns:
        dict of name to key in the checkpoint; dict of node to name; keys of training state.
    """
    graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(serialized_graph)
    variables, state = {}, []
    for node, content in enumerate(graph.nodes):
        for attribute in content.attributes:
            key = attribute.checkpoint_key
            place = key.removesuffix(_VALUE_SUFFIX)
            if _STATE_PLACES.fullmatch(place):
                state.append(place)
            elif attribute.full_name and key.endswith(_VALUE_SUFFIX):
                variables[node] = (names_lib.release_name(attribute.full_name), place, key)
    count = collections.Counter(name for name, _, _ in variables.values())
    # Two variables may have the same name; then only their paths distinguish them.
    nodes = {n: name if count[name] == 1 else at for n, (name, at, _) in variables.items()}
    keys = {nodes[node]: key for node, (_, _, key) in variables.items()}
    return keys, nodes, tuple(sorted(state))


def _read(prefix, reader, name):
    try:
        return np.asarray(reader.get_tensor(name))
    except (tf.errors.OpError, IndexError) as error:  # IndexError: the file is too short.
        raise ValueError(f"{name!r} of {prefix!r} cannot be read: {error}") from None
