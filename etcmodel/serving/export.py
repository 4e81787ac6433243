"""Writes a model as a SavedModel that runs without this package."""

import contextlib
import logging
import os
import tempfile

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.saved_model import fingerprinting_utils

from etcmodel import atomic_files, feature_checks
from etcmodel.autograph import without_autograph
from etcmodel.layers import dense
from etcmodel.ops import compilation
from etcmodel.path_checks import check_no_pattern

WEIGHTS = ("float32", "bfloat16", "int8")  # How an export stores the variables of 32 bits.

# Writes SavedModels atomically into new folders, with extra files beside the graph.


_GRADIENT = "_gradient_op_type"


def write_saved_model(directory, assets, make_module, weights="float32"):
    """Writes a SavedModel that needs neither this package nor XLA.

    Args:
        directory: where to write; must not exist. It appears only when it is complete.
        assets: dict from file name to path: files to store with the model, in `assets/`; or to
            bytes, the content of a file.
        make_module: function without arguments that returns a `tf.Module` whose method `signatures`
            returns the served signatures: dict from name to concrete function; and whose list
            `model_variables` has the variables that they use.
        weights: str. "bfloat16" stores the variables of float32 in half the bytes; loading makes
            float32 of them again, so that all else is as with "float32". "int8" stores the kernels
            of dense layers in 8 bits, a fourth, and computes their products so, by oneDNN.
    Returns:
        `directory`.
    Raises:
        ValueError: if `directory` exists or has a name that TensorFlow would read as a pattern, an
            asset is missing, `weights` is unknown, or nothing is of float32 to be stored so.
    """
    check_no_pattern(directory, "The folder of an export")
    if weights not in WEIGHTS:
        raise ValueError(f"`weights` must be one of {', '.join(WEIGHTS)}. Received: {weights!r}")
    atomic_files.check_free(directory)
    paths = [path for path in assets.values() if not isinstance(path, bytes)]
    missing = [path for path in paths if not tf.io.gfile.exists(path)]
    if missing:
        raise ValueError(f"No such file to keep with the model: {', '.join(missing)}")
    # A served model is not trained further, and tracing the gradients of its attention is slow.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        atomic_files.new_folder(directory) as unfinished,
        compilation.fusion_scope("never"),  # A server may lack XLA.
        _only_warnings_of_tensorflow(),  # Otherwise it logs a temporary name.
    ):
        module = make_module()
        module.assets = [tf.saved_model.Asset(path) for path in _written(assets, folder)]
        with _STORED[weights](module):
            tf.saved_model.save(module, unfinished, module.signatures(), options)
        _forget_gradients(unfinished)
    return directory


@contextlib.contextmanager
def _only_warnings_of_tensorflow():
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _in_8_bits(module):
    """Lets a module's signatures compute with kernels of 8 bits, and store these alone."""
    with dense.int8_scope() as kernels:
        signatures = module.signatures()
    if not kernels.variables:
        raise ValueError(
            f"The model has no dense layers of at least {dense.LEAST_SIZE} inputs and outputs to "
            "store in 8 bits. Leave `weights` (the flag --export_weights) out."
        )
    used = {id(x) for function in signatures.values() for x in function.captured_inputs}
    variables = (*module.model_variables, *kernels.variables)
    module.model_variables = [x for x in variables if id(x.handle) in used]
    module.signatures = lambda: signatures
    yield


@contextlib.contextmanager
def _halved(module):
    """Lets what is saved of a module store its variables of float32 as bfloat16."""
    # A model in mixed precision has wrapped ones.
    variables = [getattr(x, "_variable", x) for x in module.model_variables]
    whole = [x for x in variables if x.dtype == tf.float32]
    if not whole:
        kinds = ", ".join(sorted({x.dtype.name for x in variables})) or "none"
        raise ValueError(
            f"The model has no weights of float32 to store as bfloat16, but {kinds}. Leave "
            "`weights` (the flag --export_weights) out."
        )
    module.model_variables = variables
    module.halves = _Halves(whole)
    for variable in whole:
        _stores_nothing(variable)
    try:
        yield
    finally:
        for variable in whole:
            del variable._serialize_to_tensors, variable._export_to_saved_model_graph


def _stores_nothing(variable):
    """Makes a variable, and what stands for it in the saved graph, store nothing itself."""
    into_graph = variable._export_to_saved_model_graph

    def into_graph_to_store_nothing(object_map, **others):
        handles = into_graph(object_map=object_map, **others)
        object_map[variable]._serialize_to_tensors = dict
        return handles

    variable._serialize_to_tensors = dict
    variable._export_to_saved_model_graph = into_graph_to_store_nothing


class _Halves(tf.__internal__.tracking.Trackable):
    """Stores variables of float32 as bfloat16; both functions are a part of the SavedModel."""

    def __init__(self, variables, handle_of=lambda handle: handle):
        self._variables, self._handle_of = variables, handle_of

    def _export_to_saved_model_graph(self, object_map, tensor_map, **unused_kwargs):
        object_map[self] = _Halves(self._variables, lambda handle: tensor_map[handle])
        return []

    def _handles(self):
        return [self._handle_of(x.handle) for x in self._variables]

    def _serialize_to_tensors(self):
        handles = self._handles()

        def stored():
            values = [tf.raw_ops.ReadVariableOp(resource=x, dtype=tf.float32) for x in handles]
            return [tf.cast(x, tf.bfloat16) for x in values]

        # Restoring asks for the dtypes by a call, before there are values.
        there = tf.raw_ops.VarIsInitializedOp(resource=handles[0])
        values = tf.cond(there, stored, lambda: [tf.zeros([0], tf.bfloat16)] * len(handles))
        return {str(number): value for number, value in enumerate(values)}

    def _restore_from_tensors(self, restored_tensors):
        for number, handle in enumerate(self._handles()):
            value = tf.cast(restored_tensors[str(number)], tf.float32)
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)


_STORED = {
    "float32": contextlib.nullcontext,
    "bfloat16": _halved,
    "int8": _in_8_bits,
}


def _forget_gradients(directory):
    """Removes the names of gradients that are not saved; loading would warn about them."""
    path = os.path.join(directory, tf.saved_model.SAVED_MODEL_FILENAME_PB)
    with tf.io.gfile.GFile(path, "rb") as file:
        saved_model = saved_model_pb2.SavedModel.FromString(file.read())
    for meta_graph in saved_model.meta_graphs:
        graph = meta_graph.graph_def
        for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
            for node in nodes:
                if _GRADIENT in node.attr:
                    del node.attr[_GRADIENT]
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(saved_model.SerializeToString(deterministic=True))
    fingerprinting_utils.write_fingerprint(directory)


def _written(assets, folder):
    """Paths of the files in a folder, under their final names."""
    paths = []
    for name, path in assets.items():
        paths.append(os.path.join(folder, name))
        if isinstance(path, bytes):
            with open(paths[-1], "wb") as file:
                file.write(path)
        else:
            tf.io.gfile.copy(path, paths[-1])
    return paths


# Exports that take features.


def export_saved_model(
    model,
    directory,
    *,
    features,
    assets,
    padding=None,
    axes=None,
    checks=None,
    weights="float32",
):
    """Writes a SavedModel with two signatures, both of which return all of the model's outputs.

    A single output without a name is called `logits`.

    `serving_default` takes `examples`, serialized `tf.train.Example`s, string [batch]; examples
    shorter than the longest of the batch are padded. `dense_features` takes the features
    themselves, [batch, length, ...] each, of any lengths. Both raise
    `tf.errors.InvalidArgumentError`, naming the feature, if an example lacks one, if the lengths of
    one axis or the batches differ (nothing is broadcast), or if a value is outside its range.

    Args:
        model: built tf_keras.Model, called with a dict of features and `training=False`. A single
            output gets the name "logits".
        directory: where to write; must not exist. It appears only when it is complete.
        features: dict from name to `tf.io.FixedLenFeature` for the model's features, int64 (the
            model gets int32) or float32, without the batch axis. The length of the first axis is
            flexible.
        assets: dict from file name to path: files to store with the model, in `assets/`.
        padding: dict from name to padding value; 0 for others.
        axes: dict from name to the name of the feature's first axis; features with the same axis
            must have the same length in an example. None: each has its own axis.
        checks: `FeatureChecks` of the values. None: they must fit into int32.
        weights: str. "float32", "bfloat16" or "int8"; see `write_saved_model`.
    Returns:
        `directory`.
    Raises:
        ValueError: if `directory` exists or has a name that TensorFlow would read as a pattern, an
            asset is missing, or `weights` is unknown or nothing of float32 is to be stored so.

    >>> from etcmodel import serving
    >>> model = etcmodel.from_pretrained("my_model")
    >>> features = {"token_ids": tf.io.FixedLenFeature([8], tf.int64)}
    >>> serving.export_saved_model(model, "export", features=features, assets={})
    'export'
    >>> sorted(tf.saved_model.load("export").signatures)
    ['dense_features', 'serving_default']
    """
    return write_saved_model(
        directory,
        assets,
        lambda: _ServingModule(
            model,
            features,
            padding or {},
            axes or {name: name for name in features},
            checks or feature_checks.FeatureChecks({}),
        ),
        weights,
    )


class _ServingModule(tf.Module):
    """The signatures, and the variables that they use.

    The Keras model itself is not an attribute: saving would then trace each of its layers.
    """

    def __init__(self, model, features, padding, axes, checks):
        super().__init__()
        self._call = lambda dense: _named(model(dense, training=False))
        self._features, self._padding = features, padding
        self._axes, self._checks = axes, checks
        self.model_variables = list(model.variables)

    def signatures(self):
        """dict from signature name to concrete function."""
        serialized = tf.TensorSpec([None], tf.string, name="examples")
        dense = {
            name: tf.TensorSpec([None, None, *feature.shape[1:]], _model_dtype(feature.dtype), name)
            for name, feature in self._features.items()
        }
        # Functions that are attributes of the saved object would be traced again. That of the model
        # takes long to trace and to load, and so it is one for both signatures.
        run = _traced(lambda **features: self._call(features), **dense)
        return {
            "serving_default": _traced(
                lambda examples: self._serve_examples(examples, run), examples=serialized
            ),
            "dense_features": _traced(
                lambda **features: self._serve_features(features, run), **dense
            ),
        }

    def _serve_examples(self, examples, run):
        spec = {name: _ragged(feature) for name, feature in self._features.items()}
        ragged = tf.io.parse_example(examples, spec)
        lengths = {name: value.row_lengths() for name, value in ragged.items()}
        some = tf.debugging.Assert(tf.size(examples) > 0, ["`examples` holds no example."])
        with tf.control_dependencies([some, *feature_checks.check_lengths(lengths, self._axes)]):
            dense = {name: self._padded(name, value) for name, value in ragged.items()}
        return run(**self._checked(dense, lengths))

    def _serve_features(self, dense, run):
        shapes = {name: tf.shape(value, tf.int64) for name, value in dense.items()}
        lengths = {name: tf.fill(shape[:1], shape[1]) for name, shape in shapes.items()}
        with tf.control_dependencies(feature_checks.check_lengths(lengths, self._axes)):
            dense = {name: tf.identity(value) for name, value in dense.items()}
        return run(**self._checked(dense, lengths))

    def _checked(self, dense, lengths):
        """The features for the model, once their values are checked."""
        columns = {name: length[:, tf.newaxis] for name, length in lengths.items()}
        dense = self._checks.checked(dense, columns, {name: name for name in dense})
        return {name: tf.cast(value, _model_dtype(value.dtype)) for name, value in dense.items()}

    def _padded(self, name, value):
        feature = self._features[name]
        padding = tf.cast(self._padding.get(name, 0), feature.dtype)
        return value.to_tensor(padding, shape=[None, None, *feature.shape[1:]])


def _traced(function, /, **specs):
    return tf.function(without_autograph(function)).get_concrete_function(**specs)


def _named(outputs):
    return outputs if isinstance(outputs, dict) else {"logits": outputs}


def _ragged(feature):
    """Reads a feature whose first axis may have any length."""
    rows = [tf.io.RaggedFeature.UniformRowLength(size) for size in feature.shape[1:]]
    return tf.io.RaggedFeature(feature.dtype, partitions=rows, row_splits_dtype=tf.int64)


def _model_dtype(record_dtype):
    return tf.int32 if record_dtype == tf.int64 else record_dtype
