"""Writes checkpoints, under a temporary name first, so that readers never find half of one."""

import os
import shutil

import numpy as np
import safetensors
import safetensors.numpy
import tensorflow as tf

from etcmodel import atomic_files
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints import processors, sources
from etcmodel.models import encoders
from etcmodel.path_checks import check_no_pattern
from etcmodel.text import vocabulary as vocabulary_lib

FILE_NAMES = sources.FILE_NAMES
_BUNDLE = (".data-00000-of-00001", ".index")
_SUFFIXES = {sources.RELEASED: _BUNDLE, sources.OBJECTS: _BUNDLE, sources.SAFETENSORS: ("",)}


def write(values, output_dir, output_format, *, config=None, vocabulary=None, overwrite=False):
    """Writes named arrays as a checkpoint, and the config and the vocabulary beside it.

    An object checkpoint is one of `tf.train.Checkpoint(model=encoder, others=…)`: arrays outside
    the encoder, such as a task's heads, are in `others`, by name.

    Args:
        values: dict of the release's names to arrays, which match the config
            (`coverage.check_config`).
        output_dir: str. Created if missing.
        output_format: `RELEASED`, `OBJECTS` or `SAFETENSORS` of `etcmodel.checkpoints.sources`.
        config: `EncoderConfig`, or None; an object checkpoint needs one.
        vocabulary: dict of file name to bytes, or None.
        overwrite: bool. Whether an existing checkpoint of that format may be replaced, and what is
            beside it.
    Returns:
        Path of the checkpoint: a prefix, or a safetensors file.
    Raises:
        ValueError: if one exists already, an object checkpoint has no config, or TensorFlow would
            take the name of `output_dir` for a pattern.
    """
    check_place(output_dir, output_format)
    if not overwrite:
        check_absent(output_dir, output_format, config, vocabulary)
    path = os.path.join(output_dir, FILE_NAMES[output_format])
    suffixes = _SUFFIXES[output_format]
    with atomic_files.scratch_folder(path) as folder:
        unfinished = os.path.join(folder, FILE_NAMES[output_format])
        _WRITERS[output_format](values, unfinished, config)
        beside = _beside(config, vocabulary)
        for name, content in beside.items():
            vocabulary_lib.write_bytes(os.path.join(folder, name), content)
        moves = [(os.path.join(folder, x), os.path.join(output_dir, x)) for x in beside]
        # The index comes last: without it, data are not a checkpoint.
        moves += [(unfinished + suffix, path + suffix) for suffix in suffixes]
        older = processors.older_names(output_dir, vocabulary or (), None)
        others = [os.path.join(output_dir, name) for name in older]
        atomic_files.replace_files(moves, folder, lambda: others)
    return path


def _beside(config, vocabulary):
    """The files beside a checkpoint: dict of name to bytes."""
    own = {}
    if config is not None:
        own[encoders.encoder_type(config.model_type).config_file] = config.to_json_string().encode()
    return {**own, **(vocabulary or {})}


def check_place(output_dir, output_format):
    """Raises ValueError if TensorFlow could not find a checkpoint again in such a folder."""
    if output_format != sources.SAFETENSORS:
        check_no_pattern(output_dir, "`output_dir`")


def check_absent(output_dir, output_format, config=None, vocabulary=None):
    """Checks that no file would be overwritten.

    Args:
        output_dir: str.
        output_format: as in `write`.
        config, vocabulary: as in `write`. The same files may already exist.
    Raises:
        ValueError: naming an existing file.
    """
    name = FILE_NAMES[output_format]
    atomic_files.settle(output_dir, lambda x: x == name)
    path = os.path.join(output_dir, name)
    # A killed conversion may have left data without an index, which are not a checkpoint.
    index = path + _SUFFIXES[output_format][-1]
    existing = [index] if tf.io.gfile.exists(index) else []
    beside = _beside(config, vocabulary)
    for name in (*beside, *processors.older_names(output_dir, vocabulary or (), None)):
        found = processors.content(path := os.path.join(output_dir, name))
        if found not in (None, beside.get(name)):
            existing.append(path)
    if existing:
        raise ValueError(
            f"{existing[0]!r} exists already. Allow to overwrite it (--overwrite), or choose "
            "another directory."
        )


def _write_released(values, prefix, config):
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=[tf.convert_to_tensor(value) for value in values.values()],
    )


def _write_objects(values, prefix, config):
    if config is None:
        raise ValueError("An object checkpoint needs the model's config (--model_config_file).")
    model = encoders.build_encoder(config)
    variables = names_lib.release_names(model)
    for name, variable in variables.items():
        if name in values:  # Those that may be missing keep their initial values.
            variable.assign(values[name])
    others = {
        name: tf.Variable(value, name=name)
        for name, value in values.items()
        if name not in variables
    }
    tf.train.Checkpoint(model=model, others=others).write(prefix)


def write_safetensors(values, path, config=None, made_by="tf"):
    """Writes named arrays as a safetensors file.

    Args:
        values: dict of str to array.
        path: str. On a local disk.
        config: not used.
        made_by: str. The format that the file's metadata names.
    Raises:
        ValueError: if the path is remote.
        OSError: if the file cannot be written.
    """
    if "://" in path:
        raise ValueError(
            "safetensors files are written to local disks only: write there, and copy the folder. "
            f"Received: {path!r}"
        )
    arrays = {name: np.asarray(value, order="C") for name, value in values.items()}
    with open(f"{path}.mode", "wb"):
        pass
    try:
        safetensors.numpy.save_file(arrays, path, metadata={"format": made_by})
    except safetensors.SafetensorError as error:
        raise OSError(f"{path!r} cannot be written: {error}") from error
    # It creates files that nobody else may read; this one gets the usual permissions.
    shutil.copymode(f"{path}.mode", path)
    os.remove(f"{path}.mode")


_WRITERS = {
    sources.RELEASED: _write_released,
    sources.OBJECTS: _write_objects,
    sources.SAFETENSORS: write_safetensors,
}
