"""Folders of small Longformers, as Hugging Face writes them."""

import json

import numpy as np
from safetensors.numpy import save_file

from etcmodel.checkpoints import hugging_face
from etcmodel.models.longformer import LongformerForMaskedLM
from tests.models.longformer import small
from tests.models.random_weights import randomize


def masked_lm(**changes):
    """A model with weights that are not its initial ones."""
    model = LongformerForMaskedLM(small.config(**changes))
    randomize(model)
    return model


def tensors(model):
    values = hugging_face.values(model)
    return {name: np.ascontiguousarray(value) for name, value in values.items()}


def write(folder, model, weights=None, **entries):
    """Writes `config.json` and `model.safetensors`; returns the folder."""
    folder.mkdir(exist_ok=True)
    config = {**model.encoder.config.to_dict(), "architectures": [type(model).__name__], **entries}
    (folder / "config.json").write_text(json.dumps(config))
    weights = tensors(model) if weights is None else weights
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
