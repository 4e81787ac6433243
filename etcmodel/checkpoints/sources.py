"""Opens checkpoints of any format as named arrays."""

import collections
import dataclasses
import functools
import os
import re
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from etcmodel import atomic_files, bounded_json
from etcmodel.checkpoints import keras_h5, safetensors_io
from etcmodel.checkpoints import names as names_lib
from etcmodel.models import downloads
from etcmodel.path_checks import check_no_pattern

__all__ = ["FILE_NAMES", "OBJECTS", "RELEASED", "SAFETENSORS", "Source", "open_source", "settle"]

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
_PYTORCH = (".bin", ".pt", ".pth", ".bin.index.json")
# Files of a folder in Hugging Face's layout, in order of precedence.
_HUGGING_FACE = (
    "model.safetensors",
    "model.safetensors.index.json",
    "tf_model.h5",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_INDEX = ".safetensors.index.json"


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


def open_source(path):
    """Opens a checkpoint, whatever its format.

    Args:
        path: path prefix of a TensorFlow checkpoint, a safetensors file, Hugging Face's
            `tf_model.h5`, or a directory: of a training run (the latest checkpoint is used), with
            `model.ckpt` or one other TensorFlow checkpoint, or with one of these files or
            `model.safetensors.index.json`, which names the files of a larger model. A `Source` is
            returned unchanged.
    Returns:
        `Source`.
    Raises:
        ValueError: if there is no checkpoint, there are several, or it cannot be read.
    """
    if isinstance(path, Source):
        return path
    path = os.fspath(path)
    settle(path)
    if tf.io.gfile.isdir(path):
        path = _in_directory(path)
    if path.endswith(".safetensors"):
        return _open_safetensors(path)
    if path.endswith(_INDEX):
        return _open_shards(path)
    if path.endswith(".h5"):
        return _open_keras(path)
    if path.endswith(_PYTORCH):
        raise ValueError(
            f"{path!r} is a pickle of PyTorch, which could run any program when it is read. Use "
            "the model's `model.safetensors`, or make one where PyTorch is installed: "
            "`safetensors.torch.save_file(torch.load(path, weights_only=True), path)`."
        )
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
    file = safetensors_io.LocalFile(path)
    shapes, dtypes = safetensors_io.read_header(file.path)
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
    shards = {name: _open_safetensors(os.path.join(folder, name)) for name in set(files.values())}
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
    file = keras_h5.KerasFile(path)
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
