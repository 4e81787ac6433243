"""What a checkpoint may lack, and what it must have: loading, lifting, restoring, converting."""

import dataclasses
import functools
import json
import re

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import checkpoints, training
from etcmodel.checkpoints import coverage, sources
from etcmodel.layers import sublayers
from etcmodel.models import modeling
from tests.checkpoints import berts
from tests.models import etcs
from tests.models.random_weights import randomize

CONFIG = etcs.config(
    segment_vocab_size=4,
    num_hidden_layers=2,
    relative_pos_max_distance=1,
    relative_vocab_size=6,
    share_qkv_projections=False,
)
WITHOUT_POSITIONS = dataclasses.replace(CONFIG, relative_pos_max_distance=0)
# Once, models without relative positions had no tables whatever their vocabulary.
WITHOUT_TABLES = dataclasses.replace(WITHOUT_POSITIONS, relative_vocab_size=None)
ENCODER = "etc_document_bert"
STACK = f"{ENCODER}/global_local_transformer_layers"
FORMATS = ("released", "tf2", "safetensors")


@functools.cache
def _built(config):
    model = modeling.EtcModel(modeling.EtcConfig.from_dict(json.loads(config)))
    sublayers.build_sublayer(model, None)
    return model


def make_model(config=CONFIG):
    """A model with new random weights, whatever was loaded into it before."""
    model = _built(config.to_json_string())
    randomize(model)
    return model


class TaskModel(tf_keras.Model):
    """An encoder and a head."""

    def __init__(self, config=CONFIG):
        super().__init__()
        self.encoder = modeling.EtcModel(config)
        sublayers.build_sublayer(self.encoder, None)
        self.head = self.add_weight(name="head_weights", shape=(2, 8))
        self.built = True


def values_of(model):
    return {name: v.numpy() for name, v in checkpoints.release_names(model).items()}


def write(directory, values, pattern=None):
    """A checkpoint of the values whose names do not match."""
    kept = {n: v for n, v in values.items() if pattern is None or not re.search(pattern, n)}
    return berts.write_released(str(directory), kept), kept


@pytest.fixture(scope="module")
def values():
    return values_of(make_model())


@pytest.mark.parametrize(
    "names, found, lost",
    [
        (["a/kernel", "a/bias"], ["a/bias"], []),
        (["a/kernel", "a/bias", "b/kernel"], ["b/kernel"], ["a"]),
        (
            ["s/fused_att_layer_1/att/key/linear/kernel", "s/fused_att_layer_1/layer_norm_0/beta"],
            [],
            ["s/fused_att_layer_1"],
        ),
        (
            ["s/fused_att_layer_1/att/key/linear/kernel", "s/fused_att_layer_1/layer_norm_0/beta"],
            ["s/fused_att_layer_1/layer_norm_0/beta"],
            ["s/fused_att_layer_1/att/key/linear"],
        ),
        (
            ["long_feed_forward_layer_0/dense_layers/layer_1/bias"],
            [],
            ["long_feed_forward_layer_0"],
        ),
        (["s/fused_att_layer_0/layer_norm_1/beta", "global_emb_layer_norm/gamma"], [], []),
        (["s/global_qkv_attention/relative_bias_table"], [], []),
    ],
)
def test_a_layer_is_missing_if_nothing_of_it_is_there(names, found, lost):
    assert coverage.missing_layers(names, found) == lost


class TestLoading:
    def test_a_config_of_more_layers_is_refused_and_nothing_is_loaded(self, tmp_path, values):
        prefix, _ = write(tmp_path, values)
        model = make_model(dataclasses.replace(CONFIG, num_hidden_layers=4))
        before = values_of(model)
        with pytest.raises(ValueError) as error:
            checkpoints.load_released_checkpoint(model, prefix)
        assert str(error.value) == (
            f"'{prefix}' has no weights for {STACK}/fused_att_layer_2, "
            f"{STACK}/fused_att_layer_3, {STACK}/feed_forward_layer_2, "
            f"{STACK}/feed_forward_layer_3. It has 2 transformer layers, the model 4. Give the "
            "config that belongs to the checkpoint."
        )
        for name, value in values_of(model).items():
            np.testing.assert_array_equal(value, before[name])

    @pytest.mark.quick_cases(1)
    @pytest.mark.parametrize(
        "changes, layer",
        [
            ({"share_att_output_projection": True}, "global_output_projection"),
            ({"share_qkv_projections": True}, "global_query_projection/linear"),
            ({"share_kv_projections": True}, "l2g_key_projection/linear"),
        ],
    )
    def test_projections_that_the_checkpoint_shares_are_missing(self, tmp_path, changes, layer):
        prefix, _ = write(tmp_path, values_of(make_model(dataclasses.replace(CONFIG, **changes))))
        message = f"no weights for .*/fused_att_layer_0/fused_global_local_att/{layer}, .* more lay"
        message = message if "output" not in layer else message.replace(", .* more lay", "")
        with pytest.raises(ValueError, match=message):
            checkpoints.load_released_checkpoint(make_model(), prefix)

    @pytest.mark.quick_cases(1)
    @pytest.mark.parametrize(
        "pattern, config",
        [
            ("relative_", CONFIG),
            ("global_emb_layer_norm|layer_norm_1", CONFIG),
            (
                "global_feed_forward_layer_._?/layer_norm",
                dataclasses.replace(CONFIG, share_feed_forward_params=False),
            ),
        ],
    )
    def test_what_lifting_leaves_fresh_may_be_missing(self, tmp_path, pattern, config):
        model = TaskModel(config)
        prefix, kept = write(tmp_path, values_of(make_model(config)), pattern)
        report = checkpoints.load_released_checkpoint(model, prefix)
        assert set(report.loaded) == set(kept)
        assert set(report.not_in_checkpoint) == set(values_of(model)) - set(kept)
        assert "head_weights" in report.not_in_checkpoint

    def test_without_positions_no_tables_are_needed_and_the_report_says_so(self, tmp_path):
        prefix, kept = write(tmp_path, values_of(make_model(WITHOUT_TABLES)))
        model = make_model(WITHOUT_POSITIONS)
        report = checkpoints.initialize(model, prefix)
        assert set(report.loaded) == set(kept)
        assert all("relative_" in name for name in report.not_in_checkpoint)
        assert "note: the checkpoint has no relative labels: without relative pos" in str(report)

    def test_weights_that_the_model_has_no_place_for_are_a_warning(
        self, tmp_path, values, monkeypatch
    ):
        prefix, _ = write(tmp_path, values)
        logged = []
        monkeypatch.setattr("absl.logging.warning", lambda text, *args: logged.append(text % args))
        checkpoints.initialize(make_model(dataclasses.replace(CONFIG, num_hidden_layers=1)), prefix)
        assert f"not used: {STACK}/fused_att_layer_1/layer_norm_0/beta" in logged[0]
        checkpoints.initialize(make_model(), prefix)
        assert len(logged) == 1


def test_shapes_leave_the_models_that_are_there_as_they_were(values):
    model = make_model()
    assert coverage.encoder_shapes(CONFIG) == {n: x.shape for n, x in values.items()}
    assert np.isfinite(model(np.array([[1, 2]]), np.array([[3]]))[0]).all()


def test_bert_without_a_whole_layer_is_not_lifted(tmp_path):
    weights = berts.hugging_face_weights()
    kept = {n: v for n, v in weights.items() if "layer.1.intermediate" not in n}
    config = dataclasses.replace(
        CONFIG, segment_vocab_size=berts.TYPES, intermediate_size=berts.INTERMEDIATE
    )
    model = make_model(config)
    message = f"no weights for {STACK}/feed_forward_layer_1/dense_layers/layer_0/kernel, "
    with pytest.raises(ValueError, match=message):
        checkpoints.lift_bert(model, berts.write_safetensors(tmp_path, kept))


@pytest.fixture(scope="module")
def without_tables(tmp_path_factory):
    """(a model, its checkpoint)."""
    model, path = TaskModel(WITHOUT_TABLES), tmp_path_factory.mktemp("restored") / "c"
    return model, tf.train.Checkpoint(model=model).write(str(path))


class TestRestoring:
    def restored(self, config, prefix):
        model = TaskModel(config)
        status = tf.train.Checkpoint(model=model).restore(prefix)
        checkpoints.check_restored(status, model, prefix)
        return model

    def test_tables_without_use_may_be_missing(self, without_tables):
        model, prefix = without_tables
        values, restored = map(values_of, (model, self.restored(WITHOUT_POSITIONS, prefix)))
        assert set(values) < set(restored)
        for name, value in values.items():
            np.testing.assert_array_equal(restored[name], value, err_msg=name)

    @pytest.mark.quick_cases(1)
    @pytest.mark.parametrize(
        "config, message",
        [
            (CONFIG, "lacks weights of the model: .*relative_.* more layers. It is of another"),
            (dataclasses.replace(WITHOUT_TABLES, num_hidden_layers=3), "fused_att_layer_2"),
        ],
    )
    def test_other_weights_may_not(self, without_tables, config, message):
        with pytest.raises(ValueError, match=message):
            self.restored(config, without_tables[1])

    def test_a_run_without_tables_goes_on(self, tmp_path):
        from etcmodel.training import saving  # Needs Model Garden; the other tests do not.

        def writer(config):
            model = TaskModel(config)
            return model, saving.CheckpointWriter(
                output_dir=str(tmp_path),
                strategy=tf.distribute.get_strategy(),
                model=model,
                optimizer=tf_keras.optimizers.legacy.Adam(),
                global_step=tf.Variable(7, dtype=tf.int64),
                keep=1,
            )

        old, old_writer = writer(WITHOUT_TABLES)
        old_writer.save()
        new, new_writer = writer(WITHOUT_POSITIONS)
        assert new_writer.restore()
        assert set(values_of(old)) < set(values_of(new))
        for name, value in values_of(old).items():
            np.testing.assert_array_equal(values_of(new)[name], value, err_msg=name)
        assert training.best_checkpoint(str(tmp_path)).endswith("ckpt-7")


class TestConverting:
    @pytest.fixture
    def prefix(self, tmp_path, values):
        return write(tmp_path, values)[0]

    @pytest.mark.parametrize(
        "output_format, changes, messages",
        [
            (
                "released",
                {"hidden_size": 16},
                [
                    f"{ENCODER}/token_emb_lookup/embedding_table: [11, 16] by the config, [11, 8]",
                    f"{STACK}/feed_forward_layer_1/layer_norm/beta: [16] by the config, [8] in the",
                ],
            ),
            (
                "tf2",
                {
                    "vocab_size": 12,
                    "num_hidden_layers": 3,
                    "intermediate_size": 16,
                    "segment_vocab_size": 2,
                    "relative_vocab_size": 7,
                    "max_absolute_position_embeddings": 5,
                },
                [
                    f"{ENCODER}/token_emb_lookup/embedding_table: [12, 8] by the config, [11, 8]",
                    f"{STACK}/feed_forward_layer_2/layer_norm/beta: [8] by the config, not there",
                    "dense_layers/layer_0/kernel: [8, 16] by the config, [8",
                    "segment_emb_lookup/embedding_table: [2, 8] by the con",
                    "relative_emb_table: [7, 2, 4] by the config, [6, 2, 4",
                    "position_emb_lookup_long/embedding_table: [5, 8] by the config, not there in",
                ],
            ),
            (
                "safetensors",
                {"num_hidden_layers": 1, "num_attention_heads": 4, "share_qkv_projections": True},
                [
                    f"{STACK}/feed_forward_layer_1/layer_norm/beta: not there by the config, [8]",
                    "relative_bias_table: [6, 4] by the config, [6, 2] in",
                    "g2l_key_projection/linear/bias: not there by the",
                ],
            ),
        ],
    )
    def test_a_config_that_does_not_fit_is_refused(
        self, tmp_path, prefix, output_format, changes, messages
    ):
        config = dataclasses.replace(CONFIG, **changes)
        with pytest.raises(ValueError, match="model.ckpt' does not fit the config") as error:
            checkpoints.convert(prefix, str(tmp_path / "new"), output_format, config=config)
        for message in messages:
            assert message in str(error.value)
        assert not (tmp_path / "new").exists()

    def test_slots_of_an_optimizer_are_no_weights_of_the_encoder(self, tmp_path, values):
        name = f"{STACK}/fused_att_layer_0/layer_norm_0/beta"
        slots = {f"{name}/lamb_m": np.zeros(8, np.float32)}
        prefix, _ = write(tmp_path, {**values, **slots})
        _, report = checkpoints.convert(prefix, str(tmp_path / "new"), "released", config=CONFIG)
        assert set(report.loaded) == {*values, *slots}

    @pytest.mark.parametrize("output_format", FORMATS)
    def test_unused_tables_need_not_be_there(self, tmp_path, output_format):
        prefix, kept = write(tmp_path, values_of(make_model(WITHOUT_TABLES)))
        new = str(tmp_path / "new")
        path, report = checkpoints.convert(prefix, new, output_format, config=WITHOUT_POSITIONS)
        tables = {name for name in values_of(make_model(WITHOUT_POSITIONS)) if "relative_" in name}
        written = set(sources.open_source(path).shapes)
        assert set(report.not_in_checkpoint) == written - set(kept)
        assert written - set(kept) == (tables if output_format == "tf2" else set())
        loaded = values_of(checkpoints.load_pretrained(new))
        for name, value in kept.items():
            np.testing.assert_array_equal(loaded[name], value, err_msg=name)
