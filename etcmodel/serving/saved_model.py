"""Runs an exported model."""

import itertools
import os

import numpy as np
import tensorflow as tf
from google.protobuf import message
from tensorflow.core.protobuf import fingerprint_pb2, saved_model_pb2
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting

from etcmodel import atomic_files
from etcmodel.path_checks import check_no_pattern

TEXT_FILE = "text_model.json"  # The description of a text export.
FEATURES_SIGNATURE = "dense_features"


class SavedModelRunner:
    """Loads an export and yields its outputs for each record.

    Args:
        directory: an export (`export_saved_model`), or a directory of exports named by numbers; the
            highest is used.
        loaded: the export, if it is loaded already (`load`); None: it is loaded here.
    Raises:
        ValueError: if there is no export, it is damaged or takes texts, or TensorFlow would read
            its name as a pattern.

    >>> from etcmodel import serving
    >>> runner = serving.SavedModelRunner("my_export")
    >>> (output,) = runner([{"token_ids": [2, 7, 3]}])
    >>> output["logits"].shape
    (2,)
    """

    signature_name = FEATURES_SIGNATURE

    def __init__(self, directory, loaded=None):
        check_no_pattern(directory, "The folder of an export")
        self.directory = newest_version(directory)
        if self.asset(TEXT_FILE):
            raise ValueError(
                f"The export in {self.directory!r} takes texts (docs/serving.md), not features: "
                "export the model without --export_texts."
            )
        self._model = loaded or load(self.directory)
        if self.signature_name not in self._model.signatures:
            raise ValueError(
                f"The export in {self.directory!r} has no signature {self.signature_name!r}. It "
                f"has: {sorted(self._model.signatures)}"
            )
        self._signature = self._model.signatures[self.signature_name]
        _, self._specs = self._signature.structured_input_signature

    def asset(self, name):
        """Path of the file stored with the model under that name, or None."""
        path = os.path.join(self.directory, "assets", name)
        return path if tf.io.gfile.exists(path) else None

    def __call__(self, examples, batch_size=8):
        """Iterates over the outputs, reading at most a batch of records ahead.

        Args:
            examples: iterable of dicts with the model's features, each a list or array with the
                feature's values in row-major order; the examples of a batch must have the same
                lengths. Other entries are passed on as they are.
            batch_size: int.
        Yields:
            Dicts, one per record: its entries and the model's outputs, as NumPy arrays.
        """
        examples = iter(examples)
        while batch := list(itertools.islice(examples, batch_size)):
            features = stacked(batch, self._specs)
            outputs = self._signature(
                **{name: tf.constant(value) for name, value in features.items()}
            )
            arrays = {**features, **{name: value.numpy() for name, value in outputs.items()}}
            yield from unstacked(batch, arrays)


def stacked(records, specs):
    """The features of records as a batch: dict of array [num_records, length, ...].

    Args:
        records: as the examples of a `SavedModelRunner`.
        specs: dict from a feature's name to anything with the `shape` and `dtype` of its batch.
    """
    return {
        name: np.stack(
            [np.reshape(record[name], [-1, *spec.shape[2:]]) for record in records]
        ).astype(tf.as_dtype(spec.dtype).as_numpy_dtype)
        for name, spec in specs.items()
    }


def unstacked(records, arrays):
    """Yields for each record a dict of its entries, and of its rows of the `arrays`."""
    for row, record in enumerate(records):
        yield {**record, **{name: array[row] for name, array in arrays.items()}}


def newest_version(directory):
    """The directory of an export, or of the highest-numbered one in a directory of exports.

    Raises:
        ValueError: if there is no export.
    """
    if tf.io.gfile.exists(os.path.join(directory, "saved_model.pb")):
        return directory
    names = tf.io.gfile.listdir(directory) if tf.io.gfile.isdir(directory) else []
    versions = [name.rstrip("/") for name in names if name.rstrip("/").isdigit()]
    if not versions:
        begun = [*names, *atomic_files.temporary_names(directory)]
        begun = [name.rstrip("/") for name in begun if name.rstrip("/").endswith(".tmp")]
        advice = "`etcmodel export` writes one."
        if begun:
            advice = f"{begun[0]!r} was begun, and is not complete: export again."
        raise ValueError(f"No exported model in {directory!r}. {advice}")
    return os.path.join(directory, max(versions, key=int))


def load(directory):
    """Loads the export in a directory with TensorFlow.

    Raises:
        ValueError: in one line, if it is damaged.
    """
    try:
        _check_fingerprint(directory)
        return tf.saved_model.load(directory)
    # TensorFlow raises an IndexError for a truncated file.
    except (tf.errors.OpError, OSError, IndexError, KeyError, ValueError) as error:
        problem = str(getattr(error, "message", error)).strip().split("\n")[0]
        raise ValueError(
            f"The export in {directory!r} cannot be read: {problem}. Export again."
        ) from error


def _check_fingerprint(directory):
    """Compares the graph with its fingerprint file, since a damaged graph may still load."""
    path, graph = (os.path.join(directory, name) for name in ("fingerprint.pb", "saved_model.pb"))
    if not tf.io.gfile.exists(path):
        return  # Other writers may not store one.
    try:
        known = fingerprint_pb2.FingerprintDef.FromString(_read(path))
        saved_model = saved_model_pb2.SavedModel.FromString(_read(graph))
    except message.DecodeError as error:
        raise ValueError("a file of it is damaged") from error
    if not saved_model.meta_graphs:  # Without any, TensorFlow's function aborts the process.
        raise ValueError("saved_model.pb is empty")
    try:
        found = fingerprinting.CreateFingerprintDef(directory)
    except fingerprinting.FingerprintException as error:
        raise ValueError("saved_model.pb is damaged") from error
    found = fingerprint_pb2.FingerprintDef.FromString(found)
    for field, file in (
        ("saved_model_checksum", "saved_model.pb"),
        ("checkpoint_hash", "variables/variables.index"),
    ):
        if getattr(found, field) != getattr(known, field):
            raise ValueError(f"{file} is not the one that was written with fingerprint.pb")


def read_graphs(directory):
    """The `SavedModel` message of the export in a directory."""
    path = os.path.join(directory, tf.saved_model.SAVED_MODEL_FILENAME_PB)
    return saved_model_pb2.SavedModel.FromString(_read(path))


def _read(path):
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()
