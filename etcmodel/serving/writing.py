"""Writes SavedModels atomically into new folders, with extra files beside the graph."""

import contextlib
import logging
import os
import tempfile

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.saved_model import fingerprinting_utils

from etcmodel import atomic_files
from etcmodel.ops import compilation
from etcmodel.path_checks import check_no_pattern

__all__ = ["write_saved_model"]

_GRADIENT = "_gradient_op_type"


def write_saved_model(directory, assets, make_module):
    """Writes a SavedModel that needs neither this package nor XLA.

    Args:
        directory: where to write; must not exist. It appears only when it is complete.
        assets: dict from file name to path: files to store with the model, in `assets/`; or to
            bytes, the content of a file.
        make_module: function without arguments that returns a `tf.Module` whose method `signatures`
            returns the served signatures: dict from name to concrete function.
    Returns:
        `directory`.
    Raises:
        ValueError: if `directory` exists or has a name that TensorFlow would read as a pattern, or
            an asset is missing.
    """
    check_no_pattern(directory, "The folder of an export")
    if tf.io.gfile.exists(directory):
        raise ValueError(f"There is already something at {directory!r}; export elsewhere.")
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
