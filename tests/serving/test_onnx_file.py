"""ONNX files: onnxruntime's outputs are TensorFlow's, and what does not fit is refused."""

import os

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel import serving
from etcmodel.models.longformer import LongformerConfig
from etcmodel.tools import export_onnx, fixed_shapes

onnxruntime = pytest.importorskip("onnxruntime")

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "initializer_range": 0.3,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "good", "bad", "story", "."]


def etc():
    config = etcmodel.EtcConfig(**SIZES, local_radius=4, relative_pos_max_distance=3)
    return etcmodel.EtcForSequenceClassification(config, num_labels=3)


def longformer():
    config = LongformerConfig(
        **SIZES, attention_window=8, max_position_embeddings=64, max_global_tokens=1
    )
    return etcmodel.LongformerForSequenceClassification(config, num_labels=3)


MODELS = {
    "ETC": (etc, etcmodel.EtcProcessor, {"max_global_len": 8}),
    "Longformer": (longformer, etcmodel.LongformerProcessor, {}),
}


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(WORDS))
    return str(path)


@pytest.mark.slow_cases(1)
@pytest.mark.slow
@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("system", ["ETC", "Longformer"])
def test_texts_get_the_same_outputs_from_the_file_of_a_folder(tmp_path, vocabulary, capsys, system):
    make, processor_class, settings = MODELS[system]
    model, processor = make(), processor_class(vocabulary, **settings)
    model(processor(["a"]))
    folder, path = str(tmp_path / "model"), str(tmp_path / "model.onnx")
    model.save_pretrained(folder, processor)
    export_onnx.run(export_onnx.OnnxOptions(model=folder, output=path, max_length=24, batch_size=2))
    assert "model.onnx: onnxruntime's outputs are TensorFlow's to " in capsys.readouterr().out
    assert os.listdir(tmp_path).count("model.onnx") == 1
    options = export_onnx.OnnxOptions(model=folder, output=path, max_length=24, batch_size=2)
    model, _ = fixed_shapes.model_and_batch(options)
    batch = model.processor(["a good story . a bad story .", "bad ."])
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {x.name: batch[x.name] for x in session.get_inputs()}
    (found,) = session.run(None, given)
    np.testing.assert_allclose(found, model(batch), atol=1e-4)
    assert np.abs(found[0] - found[1]).max() > 1e-3  # Masks and ids matter.
    with pytest.raises(ValueError, match="already something at .*model.onnx"):
        serving.export_onnx(model, path, batch)


class Random(tf_keras.Model):
    def call(self, features, training=None):
        return features["x"] + tf.random.uniform([1, 3])


def test_a_file_with_other_outputs_gets_no_name(tmp_path):
    model, path = Random(), tmp_path / "random.onnx"
    with pytest.raises(ValueError, match="'logits' differs from TensorFlow's by .* No file was"):
        serving.export_onnx(model, str(path), {"x": np.zeros([2, 3], np.float32)})
    assert not os.listdir(tmp_path)


class Unknown(tf_keras.Model):
    def call(self, features, training=None):
        return tf.math.lgamma(features["x"])


def test_an_operation_that_onnx_lacks_is_named(tmp_path):
    with pytest.raises(ValueError, match="(?s)cannot compute this model: .*Lgamma"):
        serving.export_onnx(Unknown(), str(tmp_path / "a.onnx"), {"x": np.ones([2], np.float32)})
    assert not os.listdir(tmp_path)
