"""The tensors of a model's folder, read and changed."""

import safetensors.numpy


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def rewrite(folder, change):
    """Changes the tensors of a folder."""
    tensors = tensors_of(folder)
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
