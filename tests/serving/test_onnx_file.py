"""ONNX files: onnxruntime's outputs are TensorFlow's, and what does not fit is refused."""

import os

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel import serving
from etcmodel.models.longformer import LongformerConfig
from etcmodel.serving import onnx_file
from etcmodel.tools import export_onnx, fixed_shapes
from tests.checkpoints import berts

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


def write_folder(system, folder):
    if system == "BERT":
        berts.write_folder(folder, WORDS)
        return
    make, processor_class, settings = MODELS[system]
    vocabulary = folder.with_suffix(".txt")
    vocabulary.write_text("\n".join(WORDS))
    model, processor = make(), processor_class(str(vocabulary), **settings)
    model(processor(["a"]))
    model.save_pretrained(str(folder), processor)


@pytest.mark.slow
@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("system", ["ETC", "BERT", "Longformer"])
def test_texts_get_the_same_outputs_from_the_file_of_a_folder(tmp_path, capsys, system):
    folder, path = str(tmp_path / "model"), str(tmp_path / "model.onnx")
    write_folder(system, tmp_path / "model")
    options = export_onnx.OnnxOptions(model=folder, output=path, max_length=24, batch_size=2)
    export_onnx.run(options)
    assert "model.onnx: onnxruntime's outputs are TensorFlow's to " in capsys.readouterr().out
    assert os.listdir(tmp_path).count("model.onnx") == 1
    model, _ = fixed_shapes.model_and_batch(options)
    batch = model.processor(["a good story . a bad story .", "bad ."])
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(None, {x.name: batch[x.name] for x in session.get_inputs()})
    wanted = onnx_file.forward(model, batch)
    for output, value in zip(session.get_outputs(), found, strict=True):
        np.testing.assert_allclose(value, wanted.pop(output.name), atol=1e-4)
        assert np.abs(value[0] - value[1]).max() > 1e-3  # Masks and ids matter.
    assert not wanted
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


class OfHeads(tf_keras.Model):
    def __init__(self):
        super().__init__()
        random = np.random.default_rng(0)
        self.kernel = tf.Variable(random.normal(size=[64, 256]), dtype=tf.float32)
        self.tables = tf.Variable(random.normal(size=[4, 64, 3]), dtype=tf.float32)

    def call(self, features, training=None):
        return tf.reshape(features["x"] @ self.kernel, [-1, 4, 1, 64]) @ self.tables


def test_int8_stores_kernels_in_a_quarter_and_leaves_tables_of_heads(tmp_path):
    model, random = OfHeads(), np.random.default_rng(1)
    given, other = random.normal(size=[2, 5, 64]).astype(np.float32)
    paths = {weights: str(tmp_path / weights) for weights in ("float32", "int8")}
    differences = [serving.export_onnx(model, path, {"x": given}, w) for w, path in paths.items()]
    wanted = model({"x": other}).numpy()
    most = 0.05 * np.abs(wanted).max()
    assert differences[0] < 1e-4 < differences[1] < most
    kernel = 64 * 256
    assert os.path.getsize(paths["float32"]) - os.path.getsize(paths["int8"]) > 2.5 * kernel
    session = onnxruntime.InferenceSession(paths["int8"], providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": other})[0], wanted, atol=most)
    assert sorted(os.listdir(tmp_path)) == ["float32", "int8"]


def test_unknown_weights_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`weights` must be one of float32, int8. Received: 'fp8'"):
        serving.export_onnx(OfHeads(), str(tmp_path / "a.onnx"), {}, "fp8")
