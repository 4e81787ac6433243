"""Loading checkpoints with the release's names: what is loaded, what is told, what is refused."""

import functools
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import checkpoints
from etcmodel.layers import heads as layer_heads
from etcmodel.layers import sublayers
from etcmodel.models import heads, modeling
from tests.checkpoints.berts import write_released as write_checkpoint
from tests.checkpoints.berts import write_safetensors
from tests.models import etcs
from tests.models.random_weights import randomize

CONFIG = etcs.config(
    segment_vocab_size=4,
    relative_pos_max_distance=1,
    relative_vocab_size=6,
    max_absolute_position_embeddings=5,
)
KERNEL = (
    "etc_document_bert/global_local_transformer_layers/fused_att_layer_0/"
    "fused_global_local_att/long_query_projection/linear/kernel"
)

PARTS = ("kernel", "bias")


class TaskModel(tf_keras.Model):
    """An encoder and a head."""

    def __init__(self, num_outputs=2):
        super().__init__()
        self.encoder = modeling.EtcModel(CONFIG)
        sublayers.build_sublayer(self.encoder, None)
        self.head = self.add_weight(name="head_weights", shape=(num_outputs, CONFIG.hidden_size))
        self.built = True


class MaskedTokens(TaskModel):
    """An encoder and a head for masked tokens, beside the other one."""

    def __init__(self, place):
        super().__init__()
        table, options = self.encoder.get_token_embedding_table(), {"initializer_range": 0.02}
        head = layer_heads.make_masked_lm(table, CONFIG.hidden_size, activation="gelu", **options)
        setattr(self, place, head)


class TwinModel(tf_keras.Model):
    """Two layers with the same names of variables."""

    def __init__(self):
        super().__init__()
        self.a, self.b = (tf_keras.layers.Dense(2, name="twin") for _ in range(2))
        for layer in (self.a, self.b):
            sublayers.build_sublayer(layer, [None, 3])
        self.built = True


@functools.cache
def built():
    model = modeling.EtcModel(CONFIG)
    sublayers.build_sublayer(model, None)
    return model


def make_model():
    """A model with the same weights each time, whatever was loaded into it before."""
    randomize(built())
    return built()


def random_values(model, seed=0):
    """A value for each of the release's names of the model."""
    rng = np.random.default_rng(seed)
    names = checkpoints.release_names(model)
    return {name: rng.normal(size=v.shape).astype(np.float32) for name, v in names.items()}


def write_config(directory):
    with open(os.path.join(directory, "etc_config.json"), "w", encoding="utf-8") as file:
        file.write(CONFIG.to_json_string())


@pytest.fixture(scope="module")
def values():
    return random_values(make_model())


def assert_has(model, values):
    for name, variable in checkpoints.release_names(model).items():
        np.testing.assert_array_equal(variable, values[name], err_msg=name)


def test_names_are_the_paths_of_the_release(values):
    assert KERNEL in values
    assert "etc_document_bert/token_emb_lookup/embedding_table" in values
    assert "etc_document_bert/long_emb_layer_norm/gamma" in values
    assert "position_emb_lookup_global/embedding_table" in values
    assert len(values) == len(make_model().trainable_weights)


def test_a_pretrained_model_comes_from_its_directory_with_options(tmp_path, values):
    write_config(tmp_path)
    write_checkpoint(tmp_path, values)
    model = checkpoints.load_pretrained(str(tmp_path), is_training=False)
    assert model.config == CONFIG and model.is_training is False
    assert_has(model, values)
    outputs = model(np.array([[1, 2]]), np.array([[3]]))
    assert_has(model, values)
    assert np.isfinite(outputs[0]).all()


def test_a_checkpoint_of_a_tf1_session_is_read(tmp_path):
    values = random_values(make_model(), seed=1)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, value in values.items():
            tf.compat.v1.get_variable(name, initializer=value)
        session.run(tf.compat.v1.global_variables_initializer())
        prefix = tf.compat.v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), 17)
    model = make_model()
    checkpoints.load_released_checkpoint(model, prefix)
    assert_has(model, values)


def test_the_report_tells_loaded_missing_unused_and_training_state(tmp_path, values):
    kept = {name: value for name, value in values.items() if name != KERNEL}
    slots = {f"{KERNEL}/adam_m": np.zeros(3), f"{KERNEL}/adam_v": np.zeros(3)}
    extra = {"global_step": np.int64(7), "cls/predictions/output_bias": np.zeros(2)}
    prefix = write_checkpoint(tmp_path, {**kept, **slots, **extra})
    model = make_model()
    before = checkpoints.release_names(model)[KERNEL].numpy()
    report = checkpoints.load_released_checkpoint(model, prefix)
    assert set(report.loaded) == set(kept)
    assert report.not_in_checkpoint == (KERNEL,)
    assert report.unused == ("cls/predictions/output_bias",)
    assert set(report.training_state) == {*slots, "global_step"}
    assert report.checkpoint == prefix
    assert_has(model, {**kept, KERNEL: before})
    text = str(report)
    assert f"{len(kept)} variables loaded, 1 left at their initial values" in text
    assert f"initial value: {KERNEL}" in text
    assert "not used: cls/predictions/output_bias" in text
    assert "3 entries of training state skipped" in text


def test_other_shapes_are_named_and_nothing_is_loaded(tmp_path, values):
    table = "etc_document_bert/token_emb_lookup/embedding_table"
    wrong = {**values, table: np.zeros([13, 8], np.float32), KERNEL: np.zeros([8], np.float32)}
    prefix = write_checkpoint(tmp_path, wrong)
    model = make_model()
    before = {name: v.numpy() for name, v in checkpoints.release_names(model).items()}
    with pytest.raises(ValueError) as error:
        checkpoints.load_released_checkpoint(model, prefix)
    assert f"{table}: [11, 8] in the model, [13, 8] in the checkpoint" in str(error.value)
    assert f"{KERNEL}: [8, 8] in the model, [8] in the checkpoint" in str(error.value)
    assert prefix in str(error.value)
    assert_has(model, before)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    prefix = write_checkpoint(tmp_path, {"bert/pooler/dense/kernel": np.zeros(2)})
    with pytest.raises(ValueError, match="No variable of 'etc_document_bert' is in .*bert/pooler"):
        checkpoints.load_released_checkpoint(make_model(), prefix)


def test_a_missing_config_is_named(tmp_path, values):
    write_checkpoint(tmp_path, values)
    with pytest.raises(ValueError, match=f"'{tmp_path}' has no etc_config.json"):
        checkpoints.load_pretrained(str(tmp_path))


def test_a_directory_without_checkpoint_is_refused(tmp_path):
    write_config(tmp_path)
    with pytest.raises(ValueError, match="must hold one checkpoint; found none"):
        checkpoints.load_pretrained(str(tmp_path))


def test_of_several_checkpoints_one_must_be_named(tmp_path, values):
    write_config(tmp_path)
    others = random_values(make_model(), seed=2)
    write_checkpoint(tmp_path, values, "model.ckpt-1")
    write_checkpoint(tmp_path, others, "model.ckpt-2")
    with pytest.raises(ValueError, match=r"found \['model.ckpt-1', 'model.ckpt-2'\].*Give"):
        checkpoints.load_pretrained(str(tmp_path))
    assert_has(checkpoints.load_pretrained(str(tmp_path), "model.ckpt-2"), others)
    write_checkpoint(tmp_path, values, "model.ckpt")
    assert_has(checkpoints.load_pretrained(str(tmp_path)), values)


def test_a_directory_with_safetensors_is_read(tmp_path, values):
    write_config(tmp_path)
    write_safetensors(tmp_path, values)
    assert_has(checkpoints.load_pretrained(str(tmp_path)), values)
    assert_has(checkpoints.load_pretrained(str(tmp_path), "model.safetensors"), values)


def test_an_object_checkpoint_of_the_encoder_warm_starts_a_task(tmp_path, values):
    encoder = make_model()
    checkpoints.load_released_checkpoint(encoder, write_checkpoint(tmp_path, values))
    prefix = tf.train.Checkpoint(model=encoder).write(str(tmp_path / "encoder"))
    task_model = TaskModel()
    report = checkpoints.initialize(task_model, prefix)
    assert_has(task_model.encoder, values)
    assert set(report.loaded) == set(values)
    assert report.not_in_checkpoint == ("head_weights",)


def test_an_encoder_warm_starts_a_model_with_a_tied_head(tmp_path, values):
    model = heads.EtcForMaskedLM(CONFIG)
    report = checkpoints.initialize(model, write_safetensors(tmp_path, values))
    assert set(report.loaded) == set(values)
    assert_has(model.encoder, values)


def test_an_object_checkpoint_of_a_task_gives_its_encoder(tmp_path):
    task_model = TaskModel()
    optimizer = tf_keras.optimizers.Adam()
    optimizer.build(task_model.trainable_variables)
    prefix = tf.train.Checkpoint(model=task_model, optimizer=optimizer).save(str(tmp_path / "c"))
    encoder = make_model()
    report = checkpoints.initialize(encoder, prefix)
    for name, variable in checkpoints.release_names(encoder).items():
        expected = checkpoints.release_names(task_model)[name]
        np.testing.assert_array_equal(variable, expected, err_msg=name)
    assert report.unused == ("head_weights",)
    assert "save_counter" in report.training_state
    assert any(name.startswith("optimizer/") for name in report.training_state)


def test_an_object_checkpoint_of_the_same_model_needs_no_names(tmp_path):
    """Layers of a user's own may share a name; their place tells them apart."""
    first, second = (TwinModel() for _ in range(2))
    prefix = tf.train.Checkpoint(model=first).write(str(tmp_path / "twins"))
    report = checkpoints.initialize(second, prefix)
    for got, expected in zip(second.weights, first.weights, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert set(report.loaded) == {f"model/{side}/{part}" for side in "ab" for part in PARTS}
    assert report.not_in_checkpoint == ()


def test_an_object_checkpoint_of_other_shapes_is_refused(tmp_path):
    prefix = tf.train.Checkpoint(model=TaskModel()).write(str(tmp_path / "task"))
    with pytest.raises(ValueError, match=r"head_weights: \[3, 8\] in the model, \[2, 8\] in the"):
        checkpoints.initialize(TaskModel(num_outputs=3), prefix)


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, None], ids=["empty", "noise", "cut off"])
def test_a_corrupt_safetensors_file_is_named(tmp_path, values, content):
    path = pathlib.Path(write_safetensors(tmp_path, values))
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    with pytest.raises(ValueError, match="model.safetensors' is no safetensors file, or not all"):
        checkpoints.initialize(make_model(), str(path))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("absent.safetensors", "No safetensors file at 'absent.safetensors"),
        ("ram://absent.safetensors", "No safetensors file at 'ram://absent.safetensors"),
        ("absent.ckpt", "No readable checkpoint at .*absent.ckpt"),
    ],
)
def test_a_file_that_is_not_there_is_named(path, message):
    with pytest.raises(ValueError, match=message):
        checkpoints.initialize(make_model(), path)


@pytest.mark.parametrize(
    ("part", "length"),
    [("data-00000-of-00001", 100), *(("index", number) for number in (0, 1, 30, 47, 48, 100))],
)
def test_a_cut_off_tensorflow_checkpoint_is_named(tmp_path, values, part, length):
    prefix = write_checkpoint(tmp_path, values)
    path = pathlib.Path(f"{prefix}.{part}")
    path.write_bytes(path.read_bytes()[:length])
    message = ".*model.ckpt'" if part == "index" else ".* of .*model.ckpt' cannot be read"
    with pytest.raises(ValueError, match=message):
        checkpoints.load_released_checkpoint(make_model(), prefix)


def test_the_head_for_masked_tokens_is_found_in_a_checkpoint_of_another_model(tmp_path):
    first, second = MaskedTokens("mlm_head"), MaskedTokens("of_another_class")
    randomize(first)
    prefix = tf.train.Checkpoint(model=first).write(str(tmp_path / "run"))
    report = checkpoints.load_released_checkpoint(second, prefix)
    assert (report.not_in_checkpoint, report.unused) == ((), ())
    np.testing.assert_array_equal(second.of_another_class.bias, first.mlm_head.bias)
