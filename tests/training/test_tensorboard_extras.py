"""What TensorBoard is told beside scalars, read back as TensorBoard reads it."""

import io
import json

import matplotlib.image
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2

from etcmodel import training
from etcmodel.training import tensorboard_extras
from tests.models import head_cases

pytestmark = pytest.mark.slow

TEXTS = [("Who?", "Ada", "Ada"), ("Where\nis it?", "x" * 600, "Rome")]


class Task(training.HeadTask):
    def text_samples(self, number):
        return TEXTS[:number]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(folder of a run of two evaluations, its task, its config)."""
    folder = tmp_path_factory.mktemp("run")
    parts = head_cases.data("sequence", 16), head_cases.data("sequence", 8, seed=1)
    task = Task(lambda: head_cases.make("sequence"), *parts)
    config = training.TrainingConfig(
        output_dir=str(folder),
        learning_rate=0.01,
        train_batch_size=8,
        num_train_epochs=1.0,
        save_checkpoints_steps=1,
        steps_per_summary=1,
        ema_decay=0.5,
        tensorboard_extras=True,
    )
    training.train(task, config)
    return folder, task, config


@pytest.fixture(scope="module")
def events(run):
    folder, _, _ = run
    found = event_accumulator.EventAccumulator(
        str(folder / tensorboard_extras.FOLDER), size_guidance={"tensors": 0}
    )
    return found.Reload()


def of_tag(events, tag):
    """{step: array} of a tag."""
    return {x.step: tf.make_ndarray(x.tensor_proto) for x in events.Tensors(tag)}


def test_the_best_metric_is_that_of_the_run(run, events):
    folder, _, _ = run
    lines = [json.loads(x) for x in (folder / "eval_metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2]
    losses = [line["loss"] for line in lines]
    assert of_tag(events, "best/loss") == {
        1: pytest.approx(losses[0]),
        2: pytest.approx(min(losses)),
    }


def test_texts_stand_beside_what_is_right(events):
    found = of_tag(events, "predictions")
    assert sorted(found) == [1, 2]
    assert found[2].tolist() == [
        [b"input", b"prediction", b"right answer"],
        [b"Who?", b"Ada", b"Ada"],
        [b"Where is it?", b"x" * 500, b"Rome"],
    ]


def test_the_options_are_hyperparameters(run, events):
    _, _, config = run
    told = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    shown = plugin_data_pb2.HParamsPluginData.FromString(told).session_start_info.hparams
    assert shown["learning_rate"].number_value == config.learning_rate
    assert shown["optimizer"].string_value == "adamw"
    assert "init_checkpoint" not in shown
    told = events.summary_metadata["_hparams_/experiment"].plugin_data.content
    (metric,) = plugin_data_pb2.HParamsPluginData.FromString(told).experiment.metric_infos
    assert metric.name.tag == "best/loss"


def test_the_graph_is_that_of_a_call(events):
    graph = tf.compat.v1.GraphDef.FromString(events.Graph().SerializeToString())
    names = {node.name: node.op for node in graph.node}
    assert names["features"] == "Placeholder"
    assert any(name.startswith("sequence_classification/etc_document_bert/") for name in names)


def test_the_picture_is_of_the_weights_that_were_evaluated(run, events):
    _, task, config = run
    found = of_tag(events, "attention")
    assert sorted(found) == [1, 2]
    width, height, *pngs = found[2].tolist()
    assert (width, height, len(pngs)) == (b"900", b"600", 1)
    model = training.load_model(task, config, training.best_checkpoint(config.output_dir))
    (features,) = task.eval_dataset(1).take(1)
    inputs = {name: features[name] for name in features if not name.startswith("labels")}
    layer, sides = tensorboard_extras._attention_rows(model, inputs)
    expected = tensorboard_extras._picture(layer, sides)
    np.testing.assert_allclose(
        matplotlib.image.imread(io.BytesIO(pngs[0]))[..., :3] * 255, expected, atol=2
    )
    assert sum(x.sum(-1) for x in sides.values()) == pytest.approx(1.0, abs=1e-5)
