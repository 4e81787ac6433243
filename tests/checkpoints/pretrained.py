"""Folders of models and what their variables hold."""

import json

import numpy as np

from etcmodel import checkpoints
from tests.checkpoints import berts


def values(model):
    return {name: v.numpy() for name, v in checkpoints.release_names(model).items()}


def assert_same_values(one, other):
    one, other = values(one), values(other)
    assert list(one) == list(other)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


IDS = np.array([[5, 3, 10, 1, 7, 2], [4, 4, 9, 0, 0, 0]])


BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    **berts.ENTRIES,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.8.2",
}


def bert_folder(folder, **changes):
    """A folder as Hugging Face writes it; returns its weights, too."""
    folder.mkdir(exist_ok=True)
    weights = berts.hugging_face_weights(prefix="bert.")
    berts.write_safetensors(folder, weights)
    entries = {name: x for name, x in {**BERT, **changes}.items() if x is not ...}
    (folder / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n", encoding="utf-8")
    return str(folder), {name.removeprefix("bert."): x for name, x in weights.items()}
