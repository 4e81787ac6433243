"""The tensors of a model's folder, read and changed."""

import json

import safetensors.numpy


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def exact(path):
    """The tensors of a file to the bit: dict of name to (dtype, shape, bytes)."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    return {
        name: (x["dtype"], x["shape"], content[end:][slice(*x["data_offsets"])])
        for name, x in header.items()
        if name != "__metadata__"
    }


def rewrite(folder, change):
    """Changes the tensors of a folder."""
    tensors = tensors_of(folder)
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def split(folder, number=3):
    """Makes several files of a folder's weights, and an index, as Hugging Face has large ones."""
    tensors = tensors_of(folder)
    files = [f"model-{i + 1:05d}-of-{number:05d}.safetensors" for i in range(number)]
    of_file = {name: files[i % number] for i, name in enumerate(sorted(tensors))}
    for file in files:
        own = {name: tensors[name] for name, other in of_file.items() if other == file}
        safetensors.numpy.save_file(own, folder / file, metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 1}, "weight_map": of_file}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return of_file
