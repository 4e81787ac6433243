"""Exported generation: beams and lengths are inputs; what it gives is the model's own.

Here of a LongT5, in `test_generation_all.py` of all systems.
"""

import json
import subprocess
import sys

import pytest
import tensorflow as tf

import etcmodel
from etcmodel import serving
from etcmodel.layers import dense
from etcmodel.models.seq2seq import generating
from etcmodel.serving import generation
from tests.serving.generation_cases import CALLS, IDS, MAKERS, assert_same, constants

ONE, _, MANY = CALLS
ONLY_TENSORFLOW = """
import json, sys
import tensorflow as tf
exported = tf.saved_model.load(sys.argv[1])
found = []
for name, inputs in json.loads(sys.argv[2]):
    outputs = exported.signatures[name](**{key: tf.constant(x) for key, x in inputs.items()})
    found.append({key: value.numpy().tolist() for key, value in outputs.items()})
assert not any(name.split(".")[0] in ("etcmodel", "official", "tf_keras") for name in sys.modules)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def model():
    return MAKERS["longt5"]()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("export") / "1")
    return serving.export_generation(model, path, no_repeat_ngram_size=2, **ONE)


@pytest.fixture(scope="module")
def signature(folder):
    return tf.saved_model.load(folder).signatures["generate"]


@pytest.mark.slow
def test_beams_and_lengths_are_inputs_without_this_package(model, folder):
    ids = {name: x.tolist() for name, x in IDS.items()}
    inputs = [["serving_default", ids], *(["generate", {**ids, **call}] for call in (ONE, MANY))]
    arguments = [sys.executable, "-c", ONLY_TENSORFLOW, folder, json.dumps(inputs)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    default, one, many = json.loads(done.stdout)
    assert default == one
    assert_same(one, model.generate(IDS, no_repeat_ngram_size=2, **ONE))
    assert_same(many, model.generate(IDS, no_repeat_ngram_size=2, **MANY))


@pytest.mark.slow
def test_bfloat16_weights_generate_as_the_rounded_model(model, tmp_path):
    path = serving.export_generation(model, str(tmp_path / "1"), weights="bfloat16", **ONE)
    found = tf.saved_model.load(path).signatures["generate"](**constants({**IDS, **MANY}))
    weights = model.get_weights()
    model.set_weights([tf.cast(tf.cast(x, tf.bfloat16), x.dtype) for x in weights])
    wanted = model.generate(IDS, **MANY)
    model.set_weights(weights)
    assert_same({name: x.numpy().tolist() for name, x in found.items()}, wanted)


@pytest.mark.slow
def test_int8_weights_generate_as_the_model_within_their_scope(tmp_path):
    sizes = {"d_model": 32, "d_kv": 8, "num_heads": 4, "d_ff": 64, "num_layers": 1}
    config = etcmodel.LongT5Config(vocab_size=60, decoder_start_token_id=0, **sizes)
    model = etcmodel.LongT5Model(config)
    model.build(None)
    path = serving.export_generation(model, str(tmp_path / "1"), weights="int8", **ONE)
    found = tf.saved_model.load(path).signatures["serving_default"](**constants(IDS))
    settings = model.generation_settings(**ONE)
    search = tf.function(generating.search, autograph=False)  # `generate` keeps its traces.
    with dense.int8_scope() as kernels:
        wanted = search(model, **constants(IDS), of_encoder={}, settings=settings)
    assert_same({name: x.numpy().tolist() for name, x in found.items()}, wanted)
    stored = tf.train.load_checkpoint(f"{path}/variables/variables").get_variable_to_dtype_map()
    number = sum(x.dtype == tf.int8 for x in kernels.variables)
    assert sum(dtype == tf.int8 for dtype in stored.values()) == number > 10


REFUSED = pytest.mark.parametrize(
    "changes, message",
    [
        ({"num_beams": 0}, "`num_beams` must be at least 1"),
        ({"max_length": 1}, "`max_length` must be at least 2"),
        ({"length_penalty": float("nan")}, "`length_penalty` must be a finite number"),
        ({"min_length": -1}, "`min_length` must be at least 0"),
        ({"min_length": 7}, "`min_length` must be at most `max_length`"),
    ],
)


@REFUSED
def test_numbers_that_cannot_be_are_refused(changes, message, model):
    """By what an export traces, run operation by operation."""
    module = generation.GenerationModule(model, model.generation_settings(**ONE))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        module.run(constants(IDS), constants({**ONE, **changes}))


@pytest.mark.slow
@REFUSED
def test_an_export_refuses_them_too(changes, message, signature):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        signature(**constants({**IDS, **ONE, **changes}))


def test_settings_that_cannot_be_are_refused_before_anything_is_written(model, tmp_path):
    with pytest.raises(ValueError, match="`num_beams` must be at least 1"):
        serving.export_generation(model, str(tmp_path / "1"), num_beams=0)
    assert not list(tmp_path.iterdir())
