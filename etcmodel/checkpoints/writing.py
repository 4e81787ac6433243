"""Writing checkpoints: under a temporary name first, so that no reader ever sees half of one."""

import os

import numpy as np
import safetensors.numpy
import tensorflow as tf

from etcmodel import atomic_files
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints import sources
from etcmodel.models import modeling

__all__ = ["FILE_NAMES", "check_absent", "write"]

# What `open_source` finds in a directory.
FILE_NAMES = {
    sources.RELEASED: "model.ckpt",
    sources.OBJECTS: "ckpt",
    sources.SAFETENSORS: "model.safetensors",
}
_BUNDLE = (".data-00000-of-00001", ".index")
_SUFFIXES = {sources.RELEASED: _BUNDLE, sources.OBJECTS: _BUNDLE, sources.SAFETENSORS: ("",)}
_CONFIG_FILE = "etc_config.json"


def write(values, output_dir, output_format, *, config=None, overwrite=False):
    """Writes named arrays as a checkpoint, and the config beside it.

    An object checkpoint is one of `tf.train.Checkpoint(model=EtcModel(config), others=…)`: what the
    encoder has no place for, such as a task's heads, is in `others`, by its name.

    Args:
        values: dict of the release's names to arrays, of a checkpoint that fits the config
            (`coverage.check_config`).
        output_dir: str. Made if missing.
        output_format: `RELEASED`, `OBJECTS` or `SAFETENSORS` of `etcmodel.checkpoints.sources`.
        config: `EtcConfig`, or None; an object checkpoint needs one.
        overwrite: bool. Whether an older checkpoint of that format there may be replaced.
    Returns:
        Path of the checkpoint: a prefix, or a safetensors file.
    Raises:
        ValueError: if there is one already, or an object checkpoint has no config.
    """
    if not overwrite:
        check_absent(output_dir, output_format, config)
    path = os.path.join(output_dir, FILE_NAMES[output_format])
    suffixes = _SUFFIXES[output_format]
    config_path = os.path.join(output_dir, _CONFIG_FILE)
    with atomic_files.scratch_folder(path) as folder:
        unfinished = os.path.join(folder, FILE_NAMES[output_format])
        _WRITERS[output_format](values, unfinished, config)
        if config is not None:
            unfinished_config = os.path.join(folder, _CONFIG_FILE)
            atomic_files.write_text(unfinished_config, [config.to_json_string()])
        # The index goes first and comes last: without it, data are no checkpoint.
        if overwrite and tf.io.gfile.exists(path + suffixes[-1]):
            tf.io.gfile.remove(path + suffixes[-1])
        if config is not None:
            tf.io.gfile.rename(unfinished_config, config_path, overwrite=True)
        for suffix in suffixes:
            tf.io.gfile.rename(unfinished + suffix, path + suffix, overwrite=True)
    return path


def check_absent(output_dir, output_format, config=None):
    """Checks that nothing would be overwritten.

    Args:
        output_dir: str.
        output_format: as in `write`.
        config: `EtcConfig`, or None. The same config may be there already.
    Raises:
        ValueError: naming a file that is there.
    """
    path = os.path.join(output_dir, FILE_NAMES[output_format])
    existing = [path + s for s in _SUFFIXES[output_format] if tf.io.gfile.exists(path + s)]
    config_path = os.path.join(output_dir, _CONFIG_FILE)
    if config is not None and tf.io.gfile.exists(config_path):
        with tf.io.gfile.GFile(config_path) as file:
            if file.read() != config.to_json_string():
                existing.append(config_path)
    if existing:
        raise ValueError(
            f"{existing[0]!r} exists already. Allow to overwrite it (--overwrite), or choose "
            "another directory."
        )


def _write_released(values, prefix, config):
    del config
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=[tf.convert_to_tensor(value) for value in values.values()],
    )


def _write_objects(values, prefix, config):
    if config is None:
        raise ValueError("An object checkpoint needs the model's config (--etc_config_file).")
    model = modeling.EtcModel(config)
    with tf.name_scope(model.name):
        model.build(None)
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


def _write_safetensors(values, path, config):
    del config
    if "://" in path:
        raise ValueError(f"safetensors files are written to local disks only. Received: {path!r}")
    arrays = {name: np.asarray(value, order="C") for name, value in values.items()}
    safetensors.numpy.save_file(arrays, path, metadata={"format": "tf"})


_WRITERS = {
    sources.RELEASED: _write_released,
    sources.OBJECTS: _write_objects,
    sources.SAFETENSORS: _write_safetensors,
}
