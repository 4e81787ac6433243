"""An exported model answers in a process that imports nothing but TensorFlow."""

import gc
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.core.protobuf import fingerprint_pb2, saved_model_pb2

import etcmodel
from etcmodel import serving
from etcmodel.layers import dense
from etcmodel.ops import compilation, normalization
from etcmodel.tasks.hotpotqa import model, task
from tests import records
from tests.models import etcs

CONFIG = etcs.config(
    vocab_size=50,
    local_radius=3,
    intermediate_size=16,
    relative_pos_max_distance=4,
    relative_vocab_size=12,
)

RECORDS = task.RecordConfig(long_seq_length=8, global_seq_length=4, vocab_size=50)
# Lengths of an export are left open.
FEATURES = {
    "features": RECORDS.model_features(),
    "padding": RECORDS.padding,
    "axes": RECORDS.model_axes(),
    "checks": RECORDS.checks(),
}

ONLY_TENSORFLOW = """
import json, sys
import tensorflow as tf
exported = tf.saved_model.load(sys.argv[1])
records = list(tf.data.TFRecordDataset(sys.argv[2]).as_numpy_iterator())
outputs = exported.signatures["serving_default"](examples=tf.constant(records))
assert not any(name.split(".")[0] in ("etcmodel", "official") for name in sys.modules)
print(json.dumps({name: value.numpy().tolist() for name, value in outputs.items()}))
"""


def random_features(rng, num_examples, long_len, global_len):
    """Features of examples with one paragraph of two sentences."""
    half = long_len // 2
    sentences = np.array([1] * half + [2] * (long_len - half))
    ends = np.eye(1, long_len, long_len - 1)[0]
    features = {
        "long_token_ids": rng.integers(1, 50, [num_examples, long_len]),
        "long_token_type_ids": np.ones([num_examples, long_len]),
        "long_sentence_ids": np.tile(sentences, [num_examples, 1]),
        "long_paragraph_ids": np.zeros([num_examples, long_len]),
        "long_paragraph_breakpoints": np.tile(ends, [num_examples, 1]),
        "global_token_ids": rng.integers(1, 50, [num_examples, global_len]),
        "global_token_type_ids": np.zeros([num_examples, global_len]),
        "global_paragraph_breakpoints": np.tile(
            np.eye(1, global_len, global_len - 1)[0], [num_examples, 1]
        ),
    }
    return {name: values.astype(np.int32) for name, values in features.items()}


@pytest.fixture(scope="module", params=["span", pytest.param("bio", marks=pytest.mark.exhaustive)])
def task_model(request):
    tf.random.set_seed(1)
    task_model = model.HotpotQaModel(CONFIG, answer_encoding_method=request.param)
    task_model.build()
    return task_model


@pytest.fixture(scope="module")
def exported(task_model, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("export") / "7")
    return serving.export_saved_model(task_model, path, assets={}, **FEATURES)


@pytest.fixture(scope="module")
def runner(averages):
    """Reads an export, beside an older one."""
    parent = pathlib.Path(averages[2]).parent
    (parent / "6").mkdir()
    return serving.SavedModelRunner(str(parent))


@pytest.mark.slow
@pytest.mark.slow_cases(1)
def test_dense_features_of_any_length_give_the_models_own_outputs(task_model, exported):
    runner = serving.SavedModelRunner(exported)
    for long_len, global_len in ((9, 4), (21, 5)):
        features = random_features(np.random.default_rng(0), 3, long_len, global_len)
        rows = [{name: values[i] for name, values in features.items()} for i in range(3)]
        expected = task_model(features)
        for i, output in enumerate(runner(rows, batch_size=2)):
            assert set(expected) <= set(output)
            for name, value in expected.items():
                np.testing.assert_allclose(output[name], value[i], atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.slow_cases(1)
def test_answers_serialized_examples_without_this_package(task_model, exported, tmp_path):
    features = random_features(np.random.default_rng(1), 2, 12, 4)
    rows = ({name: x[i].tolist() for name, x in features.items()} for i in range(2))
    arguments = [sys.executable, "-c", ONLY_TENSORFLOW, exported]
    arguments.append(records.write(tmp_path / "examples", *rows))
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "custom gradients" not in done.stderr  # It has none, and so none is missed.
    outputs = json.loads(done.stdout)
    for name, value in task_model(features).items():
        np.testing.assert_allclose(outputs[name], value, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_shorter_examples_of_a_batch_are_padded_and_their_real_tokens_keep_their_outputs(
    task_model, exported
):
    features = random_features(np.random.default_rng(2), 1, 12, 4)
    longer = random_features(np.random.default_rng(3), 1, 20, 6)
    serialized = []
    for one in (features, longer):
        example = tf.train.Example()
        for name, values in one.items():
            example.features.feature[name].int64_list.value.extend(values[0].tolist())
        serialized.append(example.SerializeToString())
    signature = tf.saved_model.load(exported).signatures["serving_default"]
    alone = signature(examples=tf.constant(serialized[:1]))
    together = signature(examples=tf.constant(serialized))
    name = "answer_begin_logits" if "answer_begin_logits" in alone else "answer_bio_logits"
    np.testing.assert_allclose(together[name][0, :12], alone[name][0], atol=1e-5)


class Averages(tf_keras.Model):
    """A small model with variables of two dtypes, one of them gathered, read in a loop."""

    def __init__(self):
        super().__init__()
        normal = tf_keras.initializers.RandomNormal(stddev=1.0, seed=1)
        self.table = tf_keras.layers.Embedding(50, 8, embeddings_initializer=normal)
        self.dense = tf_keras.layers.Dense(8, kernel_initializer="orthogonal")
        self.shift = self.add_weight(name="shift", shape=[], dtype=tf.int32, initializer="ones")

    def call(self, features, training=None):
        hidden = self.table(features["ids"] + self.shift)
        for _ in tf.range(2):
            hidden = self.dense(hidden)
        return tf.reduce_mean(normalization.rms_norm(hidden, tf.ones(8), 1e-6), axis=1)


IDS = {"ids": np.array([[3, 9, 20], [48, 0, 1]], np.int32)}
ROUNDING = {"features": {"ids": tf.io.FixedLenFeature([3], tf.int64)}, "assets": {}}


@pytest.fixture(scope="module")
def averages(tmp_path_factory):
    """(the model, its export of bfloat16, that of float32)."""
    tf.random.set_seed(1)
    model, folder = Averages(), tmp_path_factory.mktemp("weights")
    model(IDS)
    vocabulary = folder / "some_name.txt"
    vocabulary.write_text("[PAD]\n")
    options = {**ROUNDING, "assets": {"vocab.txt": str(vocabulary)}}
    with compilation.fusion_scope("always"):  # In vain: see the test of XLA.
        paths = [
            serving.export_saved_model(
                model, str(folder / weights / "7"), weights=weights, **options
            )
            for weights in ("bfloat16", "float32")
        ]
    return model, *paths


def functions_for_xla(functions):
    return [f.signature.name for f in functions if f.attr["_XlaMustCompile"].b]


def test_needs_no_xla_of_the_server(averages):
    model, _, exported = averages
    serialized = pathlib.Path(exported, "saved_model.pb").read_bytes()
    (meta_graph,) = saved_model_pb2.SavedModel.FromString(serialized).meta_graphs
    functions = meta_graph.graph_def.library.function
    assert functions and not functions_for_xla(functions)
    with compilation.fusion_scope("always"):
        traced = tf.function(lambda ids: model({"ids": ids})).get_concrete_function(IDS["ids"])
    assert functions_for_xla(traced.graph.as_graph_def().library.function)


def stored_arrays(directory):
    reader = tf.train.load_checkpoint(str(pathlib.Path(directory, "variables", "variables")))
    names = reader.get_variable_to_shape_map()
    return [reader.get_tensor(name) for name in names if "OBJECT_GRAPH" not in name]


def test_bfloat16_weights_are_the_rounded_ones_in_half_the_bytes(averages):
    model, halved, whole = averages
    given = {name: tf.constant(value) for name, value in IDS.items()}
    (exact,) = tf.saved_model.load(whole).signatures["dense_features"](**given).values()
    np.testing.assert_allclose(exact, model(IDS), atol=1e-6)  # Saving left them as they were.
    rounded = Averages()
    rounded(IDS)
    for variable, value in zip(rounded.weights, model.weights, strict=True):
        variable.assign(tf.cast(tf.cast(value, tf.bfloat16), value.dtype))
    first, second = (tf.saved_model.load(halved) for _ in range(2))
    del first  # Takes only its own variables with it.
    gc.collect()
    (found,) = second.signatures["dense_features"](**given).values()
    np.testing.assert_allclose(found, rounded(IDS), atol=1e-6)
    assert np.abs(found - exact).max() > 1e-4
    kinds = [
        {name: sum(x.nbytes for x in stored_arrays(path) if x.dtype.name == name) for name in KINDS}
        for path in (halved, whole)
    ]
    size = 4 * sum(x.shape.num_elements() for x in model.weights if x.dtype == tf.float32)
    assert kinds == [
        {"float32": 0, "bfloat16": size / 2, "int32": 4, "int8": 0},
        {"float32": size, "bfloat16": 0, "int32": 4, "int8": 0},
    ]


KINDS = ("float32", "bfloat16", "int32", "int8")


def test_bfloat16_weights_are_restored_by_a_session_as_a_server_does(averages):
    _, halved, _ = averages
    given = {name: tf.constant(value) for name, value in IDS.items()}
    (wanted,) = tf.saved_model.load(halved).signatures["dense_features"](**given).values()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], halved)
        signature = graph.signature_def["dense_features"]
        found = session.run(
            signature.outputs["logits"].name, {signature.inputs["ids"].name: IDS["ids"]}
        )
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.fixture(scope="module")
def in_8_bits(tmp_path_factory):
    """(a classifier, its export of int8)."""
    sizes = {"num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 2}
    config = etcmodel.EtcConfig(vocab_size=50, hidden_size=32, local_radius=4, **sizes)
    model = etcmodel.EtcForSequenceClassification(config, num_labels=3)
    model.build(None)
    path = str(tmp_path_factory.mktemp("int8") / "1")
    features = {"token_ids": tf.io.FixedLenFeature([12], tf.int64)}
    given = {"features": features, "assets": {}, "weights": "int8"}
    return model, serving.export_saved_model(model, path, **given)


TOKENS = np.random.default_rng(0).integers(1, 50, [3, 12]).astype(np.int32)


@pytest.mark.slow
def test_int8_weights_are_a_fourth_and_computed_so(in_8_bits):
    model, path = in_8_bits
    signature = tf.saved_model.load(path).signatures["dense_features"]
    (found,) = signature(token_ids=tf.constant(TOKENS)).values()
    with dense.int8_scope():
        wanted = model(TOKENS)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    exact = model(TOKENS)
    error = np.abs(found - exact).max()
    assert 1e-6 < error < 0.05 * np.abs(exact).max()
    (alone,) = signature(token_ids=tf.constant(TOKENS[1:2])).values()
    np.testing.assert_allclose(alone, found[1:2], atol=1e-6)  # Texts of a batch are nothing to it.

    replaced = [x for x in model.weights if "kernel" in x.name and min(x.shape) >= 32]
    stored = stored_arrays(path)
    sizes = {kind: sum(x.size for x in stored if x.dtype.name == kind) for kind in KINDS}
    numbers = sum(x.shape.num_elements() for x in replaced)
    assert sizes["int8"] == numbers > 0
    # Of each unit there are a scale and a shift. What no signature reads is left out.
    units = sum(2 * x.shape[1] for x in replaced)
    others = sum(x.shape.num_elements() for x in model.weights) - numbers
    assert units < sizes["float32"] <= others + units


@pytest.mark.slow
def test_int8_weights_ask_for_onednn_where_it_is_off(in_8_bits):
    code = (
        "import sys, tensorflow as tf\n"
        "signature = tf.saved_model.load(sys.argv[1]).signatures['dense_features']\n"
        "signature(token_ids=tf.ones([1, 12], tf.int32))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, in_8_bits[1]],
        env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "/needs_oneDNN__TF_ENABLE_ONEDNN_OPTS_1" in done.stderr.splitlines()[-1]


def test_what_has_no_dense_layers_in_float32_has_no_int8_weights(averages, tmp_path):
    path = str(tmp_path / "8")
    message = "no dense layers of at least 32 inputs and outputs to store in 8 bits. Leave `weights"
    with pytest.raises(ValueError, match=message):
        serving.export_saved_model(averages[0], path, weights="int8", **ROUNDING)
    x = tf_keras.Input([32], name="x")
    half = tf_keras.Model({"x": x}, dense.Dense(32, dtype="mixed_bfloat16")(x))
    given = {"features": {"x": tf.io.FixedLenFeature([32], tf.float32)}, "assets": {}}
    with pytest.raises(ValueError, match=r"^Weights of 8 bits .* not in bfloat16. Load .*\)\.$"):
        serving.export_saved_model(half, path, weights="int8", **given)
    assert not list(tmp_path.iterdir())


def test_other_weights_and_models_without_float32_are_refused(averages, tmp_path):
    path = str(tmp_path / "8")
    with pytest.raises(ValueError, match="must be one of float32, bfloat16, int8.*'int4'"):
        serving.export_saved_model(averages[0], path, weights="int4", **ROUNDING)
    half = tf_keras.Sequential([tf_keras.layers.Dense(2, dtype="bfloat16")])
    half.build([None, 3])
    with pytest.raises(ValueError, match="no weights of float32 .*, but bfloat16. Leave"):
        serving.export_saved_model(half, path, features={}, assets={}, weights="bfloat16")
    assert not list(tmp_path.iterdir())


def test_keeps_assets_under_their_names(runner):
    assert runner.asset("vocab.txt")
    assert runner.asset("other.txt") is None


def test_takes_the_highest_version_of_a_directory(runner, averages):
    assert runner.directory == averages[2]


def test_refuses_to_overwrite_and_names_missing_files(averages, tmp_path):
    model, _, exported = averages
    with pytest.raises(ValueError, match="already something at"):
        serving.export_saved_model(model, exported, **ROUNDING)
    options = {**ROUNDING, "assets": {"vocab.txt": str(tmp_path / "gone.txt")}}
    with pytest.raises(ValueError, match="gone.txt"):
        serving.export_saved_model(model, str(tmp_path / "8"), **options)
    assert not (tmp_path / "8").exists()


def test_names_a_directory_without_an_export(tmp_path):
    with pytest.raises(ValueError, match="No exported model in"):
        serving.SavedModelRunner(str(tmp_path))


@pytest.mark.slow_cases(5)
@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize(
    "name",
    ["saved_model.pb", "fingerprint.pb", "variables/variables.index", "variables/variables.data"],
)
def test_a_damaged_export_is_told_in_one_line(averages, tmp_path, name, share):
    directory = pathlib.Path(shutil.copytree(averages[2], tmp_path / "7"))
    (file,) = directory.glob(f"{name}*")
    content = file.read_bytes()
    place = int(share * len(content))
    damage = (content[:place], content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    # The second half of fingerprint.pb ends in a version and an identifier, which do not matter.
    for damaged in damage[: 1 if name == "fingerprint.pb" else 2]:
        file.write_bytes(damaged)
        message = f"^The export in '{directory}' cannot be read: .*Export again"
        with pytest.raises(ValueError, match=message) as error:
            serving.SavedModelRunner(str(directory))
        assert "\n" not in str(error.value)


def test_a_fingerprint_that_ends_between_two_of_its_fields_is_told(averages, tmp_path):
    directory = pathlib.Path(shutil.copytree(averages[2], tmp_path / "7"))
    file = directory / "fingerprint.pb"
    fingerprint = fingerprint_pb2.FingerprintDef.FromString(file.read_bytes())
    fingerprint.ClearField("checkpoint_hash")
    file.write_bytes(fingerprint.SerializeToString())
    with pytest.raises(ValueError, match="variables.index is not the one that was written with"):
        serving.SavedModelRunner(str(directory))
