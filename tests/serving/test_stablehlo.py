"""StableHLO: the files alone give TensorFlow's values, and what does not fit is refused."""

import json
import os
import subprocess

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from safetensors.numpy import load_file
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

import etcmodel
from etcmodel import serving
from etcmodel.models.longformer import LongformerConfig
from etcmodel.models.seq2seq.generation_config import GenerationConfig
from etcmodel.tools import export_stablehlo, fixed_shapes
from tests import page
from tests.models import etcs
from tests.models.gmat import genbert
from tests.models.led import models as leds
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs

JAX_PYTHON = os.environ.get("ETCMODEL_JAX_PYTHON")  # `make test-jax` sets it.
SIZES = {
    "vocab_size": 40,
    **etcs.sizes(hidden_size=16, intermediate_size=24),
    "initializer_range": 0.3,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "good", "bad", "story", "."]
PIECES = page.DOCS.parent / "tests" / "fixtures" / "sentence_pieces" / "spiece.model"
TEXTS = ["a good story . a bad story .", "bad ."]


def etc():
    config = etcmodel.EtcConfig(**SIZES, local_radius=4, relative_pos_max_distance=3)
    return etcmodel.EtcForSequenceClassification(config, num_labels=3)


def longformer(max_global_tokens=1):
    config = LongformerConfig(
        **SIZES,
        attention_window=8,
        max_position_embeddings=64,
        max_global_tokens=max_global_tokens,
    )
    return etcmodel.LongformerForSequenceClassification(config, num_labels=3)


MODELS = {
    "Longformer": (
        longformer,
        etcmodel.LongformerProcessor,
        {"max_length": 24, "pad_to_multiple_of": 24},
    ),
    "ETC": (
        etc,
        etcmodel.EtcProcessor,
        {"max_long_len": 24, "max_global_len": 8, "pad_to": "max"},
    ),
}


@pytest.fixture(params=MODELS)
def model(request, tmp_path):
    make, processor_class, settings = MODELS[request.param]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(WORDS))
    made = make()
    made.processor = processor_class(str(path), **settings)
    return made


def computed(folder, given=None):
    """What XLA makes of a folder's files, and of other inputs in place of its own, by name."""
    manifest = json.loads((folder / "manifest.json").read_text())
    files = {x["file"]: load_file(folder / x["file"]) for x in manifest["arguments"]}
    files["inputs.safetensors"] |= given or {}
    arguments = [files[x["file"]][x["name"]] for x in manifest["arguments"]]
    for value, told in zip(arguments, manifest["arguments"], strict=True):
        assert (value.dtype.name, list(value.shape)) == (told["dtype"], told["shape"])

    @tf.function(jit_compile=True)
    def run(*values):
        return gen_xla_ops.xla_call_module(
            values,
            version=9,
            module=(folder / "module.mlirbc").read_bytes(),
            Sout=[x["shape"] for x in manifest["outputs"]],
            Tout=[x["dtype"] for x in manifest["outputs"]],
            platforms=["CPU"],
        )

    names = [x["name"] for x in manifest["outputs"]]
    return dict(zip(names, [x.numpy() for x in run(*arguments)], strict=True))


@pytest.mark.slow
def test_other_texts_get_the_models_outputs_from_the_files(model, tmp_path, capsys):
    folder = tmp_path / "model"
    model.save_pretrained(str(folder), model.processor)
    output = tmp_path / "hlo"
    told = {"model": str(folder), "output": str(output), "max_length": 24, "batch_size": 2}
    export_stablehlo.run(export_stablehlo.StablehloOptions(**told))
    assert "hlo: XLA's outputs are TensorFlow's to " in capsys.readouterr().out
    given = model.processor(TEXTS)
    found = computed(output, given)["logits"]
    np.testing.assert_allclose(found, model(given), atol=1e-4)
    assert np.abs(found[0] - found[1]).max() > 1e-3  # Masks and ids matter.
    weights = load_file(output / "weights.safetensors")
    assert {*weights} == {x.name.partition(":")[0] for x in model.weights}
    with pytest.raises(ValueError, match="already something at .*hlo"):
        serving.export_stablehlo(model, str(output), given)


@pytest.mark.slow
def test_a_step_has_the_heads_loss_and_the_gradient_of_each_weight(model, tmp_path):
    labels = np.array([2, 0], np.int32)
    batch = model.processor(TEXTS)
    folder = tmp_path / "step"
    serving.export_stablehlo(model, str(folder), {**batch, "labels": 0 * labels}, "step")
    found = computed(folder, {"labels": labels})
    with tf.GradientTape() as tape:
        logits = tf.nn.log_softmax(model(batch))
        loss = -(logits[0, 2] + logits[1, 0]) / 2
    gradients = tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero")
    np.testing.assert_allclose(found.pop("loss"), loss, atol=1e-4)
    assert len(found) == len(gradients)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        name = variable.name.partition(":")[0]
        np.testing.assert_allclose(
            found[f"gradients/{name}"], tf.convert_to_tensor(gradient), atol=1e-4, err_msg=name
        )


@pytest.mark.slow
@pytest.mark.parametrize("what", ["forward", "step", "generate"])
def test_an_encoder_decoder_computes_its_loss_or_generates(what, tmp_path):
    processor = etcmodel.Seq2SeqProcessor(str(PIECES), max_target_length=6)
    model = longt5s.model(
        num_layers=1, vocab_size=processor.vocab_size, encoder_attention_type="local"
    )
    folder, output = tmp_path / "model", tmp_path / "hlo"
    model.save_pretrained(str(folder), processor)
    told = {"model": str(folder), "output": str(output), "max_length": 8, "batch_size": 2}
    export_stablehlo.run(export_stablehlo.StablehloOptions(**told, what=what))
    given = {"input_ids": longt5s.ids(2, 8), "attention_mask": np.ones([2, 8], np.int32)}
    given["attention_mask"][1, 5:] = 0
    if what == "generate":
        wanted = model.generate(given)["sequences"].numpy()
        found = computed(output, given)["sequences"]
        assert found.shape == (2, model.generation_settings().max_length)
        np.testing.assert_array_equal(found[:, : wanted.shape[1]], wanted)
        return
    given["labels"] = np.where(np.arange(6) < [[6], [4]], longt5s.ids(2, 6, seed=1), -100)
    given["labels"] = given["labels"].astype(np.int32)
    with tf.GradientTape() as tape:
        wanted = dict(model(given))
    if what == "step":
        names = [f"gradients/{x.name.partition(':')[0]}" for x in model.trainable_variables]
        gradients = tape.gradient(wanted["loss"], model.trainable_variables)
        wanted = {"loss": wanted["loss"], **dict(zip(names, gradients, strict=True))}
    found = computed(output, given)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(
            found[name], tf.convert_to_tensor(value), atol=1e-4, err_msg=name
        )


@pytest.mark.slow
def test_a_prompt_is_not_of_the_generated_length(tmp_path):
    model = longt5s.model(num_layers=1, encoder_attention_type="local")
    model.generation_config = GenerationConfig({"max_new_tokens": 4})
    given = {"input_ids": longt5s.ids(1, 8), "attention_mask": np.ones([1, 8], np.int32)}
    given["decoder_input_ids"] = np.array([[0, 5, 6, 7]], np.int32)  # The first token starts.
    serving.export_stablehlo(model, str(tmp_path / "hlo"), given, "generate")
    wanted = model.generate(given)["sequences"].numpy()
    found = computed(tmp_path / "hlo", given)["sequences"]
    assert found.shape == (1, 8)
    np.testing.assert_array_equal(found[:, : wanted.shape[1]], wanted)


def test_targets_need_no_processor_that_makes_them(tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS), encoding="utf-8")
    processor = etcmodel.LongformerProcessor(str(vocabulary))
    leds.model(encoder_layers=1, decoder_layers=1, attention_window=4).save_pretrained(
        str(tmp_path / "led"), processor
    )
    told = {"model": str(tmp_path / "led"), "output": "", "max_length": 8, "target_length": 5}
    model, batch = fixed_shapes.model_and_batch(
        export_stablehlo.StablehloOptions(**{**told, "output": str(tmp_path / "hlo")})
    )
    assert batch["labels"].tolist() == [[0, 1, 2, -100, -100]]
    assert np.isfinite(model(batch)["loss"])


class Applied(tf_keras.Model):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, features, training=None):
        return self.function(features["x"])


def test_without_labels_the_loss_is_the_mean_square_of_the_outputs(tmp_path):
    model = Applied(tf_keras.layers.Dense(2, use_bias=False))
    x = np.array([[1.0, 2.0, 0.5], [-1.0, 0.5, 2.0]], np.float32)
    serving.export_stablehlo(model, str(tmp_path / "step"), {"x": x}, "step")
    found = computed(tmp_path / "step")
    (kernel,) = model.get_weights()
    np.testing.assert_allclose(found.pop("loss"), ((x @ kernel) ** 2).mean(), rtol=1e-5)
    (gradient,) = found.values()
    np.testing.assert_allclose(gradient, 2 * x.T @ (x @ kernel) / 4, rtol=1e-5)


REFUSED = {
    "random": (
        lambda x: x + tf.random.uniform([1, 3]),
        "XLA's 'logits' differs from TensorFlow's by .* No file was written",
    ),
    "erf": (tf.math.erf, "This model has what StableHLO lacks: .*mhlo.erf$"),
    "Python": (
        lambda x: tf.ensure_shape(tf.py_function(lambda y: y, [x], tf.float32), [2, 3]),
        "XLA cannot compile this model: .*EagerPyFunc",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_fit_is_named_and_leaves_nothing(kind, tmp_path):
    function, message = REFUSED[kind]
    x = np.ones([2, 3], np.float32)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        serving.export_stablehlo(Applied(function), str(tmp_path / "hlo"), {"x": x})
    assert not os.listdir(tmp_path)


@pytest.mark.slow
def test_a_number_of_global_tokens_that_xla_needs_is_asked_for(tmp_path):
    is_first = np.eye(1, 8, dtype=np.int32)
    batch = {"input_ids": is_first + 4, "global_attention_mask": is_first}
    model = longformer(max_global_tokens=None).encoder
    with pytest.raises(ValueError, match=r"^XLA cannot .*Set `max_global_tokens` in .*\Z"):
        serving.export_stablehlo(model, str(tmp_path / "hlo"), batch)


def test_an_unknown_computation_is_refused(tmp_path):
    model, folder = Applied(tf.abs), str(tmp_path / "hlo")
    with pytest.raises(ValueError, match="one of forward, step, generate. Received: 'loss'"):
        serving.export_stablehlo(model, folder, {}, "loss")
    with pytest.raises(ValueError, match="needs an encoder-decoder. Received: Applied"):
        serving.export_stablehlo(model, folder, {"x": np.ones([1])}, "generate")


def check_in_jax(folder):
    """Runs the lines of the page, which print the largest difference, beside a folder."""
    (code,) = page.blocks("serving.md#stablehlo")
    done = subprocess.run(
        [os.path.abspath(JAX_PYTHON), "-c", code.replace("films_hlo", folder.name)],
        cwd=folder.parent,
        env={"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    print(f"{folder.name}: {done.stdout.strip()}")
    assert float(done.stdout) < 1e-4


needs_jax = pytest.mark.skipif(not JAX_PYTHON, reason="`make test-jax` has JAX")


@needs_jax
@pytest.mark.parametrize("what", ["forward", "step"])
def test_the_lines_of_the_page_compute_the_same_in_jax(model, what, tmp_path):
    folder = tmp_path / f"{type(model).__name__}_{what}"
    serving.export_stablehlo(model, str(folder), model.processor(TEXTS), what)
    check_in_jax(folder)


ENCODER_DECODERS = {
    "GMAT": lambda: genbert.model(num_hidden_layers=1),
    "LED": lambda: leds.model(
        encoder_layers=1, decoder_layers=1, attention_window=4, max_global_tokens=1
    ),
    "LongT5": lambda: longt5s.model(num_layers=1),
    "PEGASUS-X": lambda: pegasus_xs.model(encoder_layers=1, decoder_layers=1),
}


@needs_jax
@pytest.mark.parametrize("what", ["forward", "step", "generate"])
@pytest.mark.parametrize("system", ENCODER_DECODERS)
def test_encoder_decoders_compute_the_same_in_jax(system, what, tmp_path):
    folder = tmp_path / f"{system}_{what}"
    batch = {"input_ids": leds.ids(2, 16), "attention_mask": np.ones([2, 16], np.int32)}
    batch["attention_mask"][1, 9:] = 0
    if what != "generate":
        labels = np.where(np.arange(6) < [[6], [4]], leds.ids(2, 6, seed=1), -100)
        batch["labels"] = labels.astype(np.int32)
    serving.export_stablehlo(ENCODER_DECODERS[system](), str(folder), batch, what)
    check_in_jax(folder)
