"""One folder a model: written, read, and lifted from a BERT's."""

import json
import os

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel.models import encoders, heads
from tests.checkpoints.pretrained import IDS, assert_same_values, bert_folder
from tests.models import head_cases


@pytest.fixture(autouse=True)
def seed():
    tf_keras.utils.set_random_seed(0)


class TestRoundTrips:
    @pytest.mark.quick_cases(3)
    @pytest.mark.parametrize("name", head_cases.CASES)
    def test_a_head_comes_back_bit_by_bit(self, tmp_path, name):
        model = head_cases.make(name)
        for variable in model.weights:
            variable.assign(tf.random.stateless_normal(variable.shape, [0, variable.shape.rank]))
        model.save_pretrained(tmp_path)
        assert sorted(os.listdir(tmp_path)) == [
            "config.json",
            "head_config.json",
            "model.safetensors",
        ]
        loaded = etcmodel.from_pretrained(tmp_path)
        assert type(loaded) is type(model) and loaded.settings() == model.settings()
        assert loaded.encoder.config == model.encoder.config
        assert_same_values(loaded, model)

    def test_an_encoder_comes_back_from_its_folder_and_from_a_heads(self, tmp_path):
        model = head_cases.make("sequence")
        model.encoder.save_pretrained(tmp_path / "encoder")
        model.save_pretrained(tmp_path / "head")
        expected = model.encoder.embed(IDS)
        for loaded in (
            etcmodel.load_pretrained(str(tmp_path / "encoder")),
            etcmodel.EtcModel.from_pretrained(tmp_path / "encoder"),
            etcmodel.EtcModel.from_pretrained(tmp_path / "head"),
        ):
            assert type(loaded) is etcmodel.EtcModel
            np.testing.assert_array_equal(loaded.embed(IDS), expected)

    def test_a_file_without_one_of_the_weights_is_refused(self, tmp_path):
        head_cases.make("sequence").save_pretrained(tmp_path)
        path = str(tmp_path / "model.safetensors")
        arrays = safetensors.numpy.load_file(path)
        name = next(x for x in arrays if x.endswith("fused_att_layer_0/layer_norm_1/gamma"))
        safetensors.numpy.save_file({x: v for x, v in arrays.items() if x != name}, path)
        for load in (etcmodel.from_pretrained, etcmodel.EtcModel.from_pretrained):
            with pytest.raises(ValueError, match=f"model.safetensors' lacks weights of .*: {name}"):
                load(tmp_path)

    def test_another_head_begins_fresh_on_the_same_encoder(self, tmp_path):
        model = head_cases.make("sequence")
        model.save_pretrained(tmp_path)
        other = heads.EtcForTokenClassification.from_pretrained(tmp_path, num_labels=5)
        np.testing.assert_array_equal(other.embed(IDS), model.embed(IDS))
        assert other(IDS).shape == [2, 6, 5]

    def test_what_is_overridden_is_the_heads_the_configs_or_the_encoders(self, tmp_path):
        head_cases.make("sequence").save_pretrained(tmp_path)
        model = etcmodel.from_pretrained(
            tmp_path, pooling="first", local_radius=2, is_training=False, dropout=0.5
        )
        assert model.pooling == "first" and model.dropout_rate == 0.5
        assert model.encoder.config.local_radius == 2 and model.encoder.is_training is False
        with pytest.raises(ValueError, match="`radius` is no entry of a config of type 'etc', nor"):
            etcmodel.from_pretrained(tmp_path, radius=2)
        with pytest.raises(ValueError, match=r"`dtype` is no entry .*call before: .*global_policy"):
            etcmodel.from_pretrained(tmp_path, dtype="bfloat16")
        with pytest.raises(ValueError, match=r"logits/weights: \[7, 16\] in the model, \[2, 16\]"):
            etcmodel.from_pretrained(tmp_path, num_labels=7)

    def test_a_folder_is_written_again_and_keeps_nothing_of_the_older_model(self, tmp_path):
        head_cases.make("sequence").save_pretrained(tmp_path)
        encoder = encoders.build_encoder(head_cases.config(local_radius=3))
        etcmodel.save_pretrained(encoder, tmp_path)
        assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors"]
        assert_same_values(etcmodel.from_pretrained(tmp_path), encoder)

    def test_a_failure_leaves_the_older_model(self, tmp_path):
        class Failing:
            def save_pretrained(self, directory):
                raise OSError("no space")

        model = head_cases.make("sequence")
        model.save_pretrained(tmp_path)
        with pytest.raises(OSError, match="no space"):
            etcmodel.save_pretrained(head_cases.make("token"), tmp_path, Failing())
        assert_same_values(etcmodel.from_pretrained(tmp_path), model)
        assert len(os.listdir(tmp_path)) == 3

    @pytest.mark.slow
    def test_an_etc_processor_is_ready_when_the_model_is(self, tmp_path):
        vocab = tmp_path / "words.txt"
        vocab.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains"]))
        model = heads.EtcForTokenClassification(head_cases.config(), relation_names=("part_of",))
        model.processor = etcmodel.EtcProcessor(str(vocab), relation_names=["part_of"])
        model.save_pretrained(tmp_path / "model")
        loaded = etcmodel.from_pretrained(tmp_path / "model")
        assert loaded.processor.config == model.processor.config
        batch = loaded.processor("It rains")
        assert batch["token_ids"].tolist() == [[2, 4, 5, 3]]
        np.testing.assert_array_equal(loaded(batch), model(dict(batch)))
        predicted = loaded.predict(batch, verbose=0)
        np.testing.assert_allclose(predicted, loaded(batch), rtol=1e-4, atol=1e-6)
        other = head_cases.make("token")  # Without relations, and without a processor.
        other.save_pretrained(tmp_path / "other")
        model.save_pretrained(tmp_path / "other")
        other.save_pretrained(tmp_path / "other")
        assert_same_values(etcmodel.from_pretrained(tmp_path / "other"), other)
        both = tmp_path / "both"  # In any order.
        model.processor.save_pretrained(both)
        model.processor = None
        model.save_pretrained(both)
        assert etcmodel.from_pretrained(both).processor.relation_names == ("part_of",)
        (tmp_path / "model" / "processor_config.json").write_text('{"pack": 1}')
        with pytest.raises(ValueError, match="processor_config.json: `pack` must be True or False"):
            etcmodel.from_pretrained(tmp_path / "model")

    def test_a_folder_of_another_model_is_refused(self, tmp_path):
        folder, _ = bert_folder(tmp_path / "bert")
        with pytest.raises(ValueError, match="holds another model: 'config.json'. Choose another"):
            head_cases.make("sequence").save_pretrained(folder)
        (tmp_path / "model.ckpt.index").write_text("")
        with pytest.raises(ValueError, match="holds another model: 'model.ckpt.index'"):
            head_cases.make("sequence").save_pretrained(tmp_path)

    def test_a_model_without_weights_is_refused(self, tmp_path):
        with pytest.raises(ValueError, match="'etc_document_bert' has no weights yet: call it"):
            etcmodel.EtcModel(head_cases.config()).save_pretrained(tmp_path)

    @pytest.mark.parametrize(
        "text, message",
        [
            ('{"head_type": "spans"}', "head_config.json: There is no head of `head_type` 'spans'"),
            ("[]", "head_config.json.* must hold a JSON object"),
        ],
    )
    def test_a_head_config_that_is_none_is_refused(self, tmp_path, text, message):
        head_cases.make("sequence").save_pretrained(tmp_path)
        (tmp_path / "head_config.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            etcmodel.from_pretrained(tmp_path)

    def test_its_labels_in_another_order_are_refused(self, tmp_path):
        model = heads.EtcForSequenceClassification(head_cases.config(), labels=["neg", "pos"])
        model.save_pretrained(tmp_path)
        told = r"outputs are of the labels \['neg', 'pos'\], .* Received: \['pos', 'neg'\]"
        with pytest.raises(ValueError, match=told):
            etcmodel.from_pretrained(tmp_path, labels=["pos", "neg"])
        assert etcmodel.from_pretrained(tmp_path, labels=["bad", "good"]).labels == ("bad", "good")
        token = heads.EtcForTokenClassification  # Of which the folder has no head.
        assert etcmodel.from_pretrained(tmp_path, as_class=token, labels=["pos", "neg"]).labels == (
            "pos",
            "neg",
        )

    def test_weights_without_the_head_are_refused(self, tmp_path):
        model = head_cases.make("sequence")
        model.encoder.save_pretrained(tmp_path)
        config = {"head_type": model.head_type, **model.settings()}
        (tmp_path / "head_config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match="lacks weights of the head: logits/weights, logits/b"):
            etcmodel.from_pretrained(tmp_path)


def test_a_missing_folder_tells_the_authors_downloads(tmp_path):
    message = f"There is no directory '{tmp_path}/etc_large'. .*`etcmodel download etc_large`"
    with pytest.raises(ValueError, match=message):
        etcmodel.from_pretrained(tmp_path / "etc_large")
