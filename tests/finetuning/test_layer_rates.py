"""Layers that are trained more slowly than those above them, or not at all."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import training
from etcmodel.checkpoints.names import is_in_encoder, release_names
from etcmodel.finetuning import task as layer_rates
from etcmodel.models import encoders, heads, modeling
from etcmodel.tasks.classification.task import ClassificationTask
from etcmodel.training import run as training_run
from tests.models import etcs
from tests.models.gmat import small as small_gmat
from tests.models.led import models as small_led
from tests.models.longformer import small as small_longformer
from tests.models.modernbert import small as small_modernbert
from tests.tasks import lowering_cases

pytestmark = pytest.mark.usefixtures("eagerly")

NUM_LAYERS = 3
ETC = modeling.EtcConfig(
    vocab_size=9, **etcs.sizes(num_hidden_layers=NUM_LAYERS), max_absolute_position_embeddings=8
)
CONFIGS = {
    "etc": ETC,
    "longformer": small_longformer.config(num_hidden_layers=NUM_LAYERS, attention_window=4),
    "modernbert": small_modernbert.config(num_hidden_layers=NUM_LAYERS),
    "gmat": small_gmat.config(num_hidden_layers=NUM_LAYERS),
    "gmat with compression": small_gmat.config(num_hidden_layers=3, **small_gmat.COMPRESSED),
}


def slow_depth(name):
    """By the words in the name of a variable; None above the layers."""
    places = [part.rpartition("_") for part in name.split("/")]
    for kind, _, number in places:
        if kind.endswith("_layer") and number.isdigit():
            # Stacks of one layer each, of which each begins to count anew.
            later = {"compressor": 0, "memory_layers": 1, "decompressor": 2}
            stacks = [part for part in name.split("/") if part in later]
            return int(number) + 1 + (later[stacks[0]] if stacks else 0)
    return 0 if "emb" in name else None


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("kind", CONFIGS)
def test_embeddings_are_below_the_layers(kind):
    tf_keras.utils.set_random_seed(0)
    model = encoders.build_encoder(CONFIGS[kind])
    depth_of = layer_rates.depths(model)
    found = {x.name.split(":")[0]: depth_of.get(id(x)) for x in model.variables}
    assert found == {name: slow_depth(name) for name in found}
    assert set(depth_of.values()) == set(range(NUM_LAYERS + 1))
    above = [name for name, depth in found.items() if depth is None]
    assert all(name.split("/")[1] in ("pooler", "final_norm") for name in above)


def test_what_is_below_moves_less_and_the_lowest_not_at_all():
    model = heads.EtcForSequenceClassification(ETC, num_labels=2)
    model.build()
    variables = model.trainable_variables
    shares = {id(x): share for x, share in layer_rates.learning_rate_shares(model, 0.5)}
    in_encoder = {id(x) for x in model.encoder.variables}
    assert shares.keys() == in_encoder
    for variable in model.encoder.variables:
        name = variable.name.split(":")[0]
        assert shares[id(variable)] == 0.5 ** (4 - slow_depth(name)), name
    assert {id(x) for x in variables} - in_encoder
    left = layer_rates.unfrozen(model, variables, 2)
    assert {slow_depth(x.name.split(":")[0]) for x in left if id(x) in in_encoder} == {3}
    assert [x for x in variables if id(x) not in in_encoder] == [
        x for x in left if id(x) not in in_encoder
    ]
    assert layer_rates.unfrozen(model, variables, 0) is variables
    with pytest.raises(ValueError, match="--num_frozen_layers=4: the model has 3 layers"):
        layer_rates.unfrozen(model, variables, 4)


def test_a_decoder_has_no_place_among_them():
    model = small_led.model()
    assert layer_rates.learning_rate_shares(model, 1.0) == []
    for use in (
        lambda: layer_rates.learning_rate_shares(model, 0.5),
        lambda: layer_rates.unfrozen(model, [], 1),
    ):
        with pytest.raises(ValueError, match="are for encoders of .* The model is of type 'led'"):
            use()


TASKS = [x for x in lowering_cases.TASKS if not x.startswith(("summ", "numerical", "pre"))]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", TASKS)
def test_every_task_of_an_encoder_takes_the_options(tmp_path, name):
    task = lowering_cases.TASKS[name](tmp_path)
    task.config = dataclasses.replace(task.config, num_frozen_layers=1, layer_decay=0.5)
    model = task.build_model()  # Of one layer.
    names = [x.name for x in model.trainable_variables]
    assert len(set(names)) == len(names)  # They tell whose rate is whose.
    frozen = layer_rates.depths(model)
    left = task.trained_variables(model)
    assert {id(x) for x in model.trainable_variables} == {*frozen, *map(id, left)}
    assert left and not any(id(x) in frozen for x in left)
    assert {share for _, share in task.learning_rate_shares(model)} == {0.5, 0.25}


def rewrite_with_ones(path):
    """Puts 1 into all integers of a record, as zeros are padding, without a gradient."""
    (record,) = tf.data.TFRecordDataset(path)
    example = tf.train.Example.FromString(record.numpy())
    for feature in example.features.feature.values():
        if numbers := feature.int64_list.value:
            numbers[:] = [1] * len(numbers)
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(example.SerializeToString())


@pytest.mark.slow
def test_a_run_moves_weights_so(tmp_path):
    make = lowering_cases.of_etc(ClassificationTask, labels=("a", "b"))
    task = make(tmp_path)
    rewrite_with_ones(task.config.train_data)
    given = {"eval_data": None, "num_frozen_layers": 1, "layer_decay": 0.5}
    task.config = dataclasses.replace(
        task.config,
        encoder_config=dataclasses.replace(
            ETC, vocab_size=30, max_absolute_position_embeddings=lowering_cases.LONG
        ),
        **given,
    )
    run = training.TrainingConfig(
        output_dir=str(tmp_path / "run"),
        train_batch_size=1,
        num_train_epochs=1.0,
        warmup_proportion=0.0,
        weight_decay_rate=0.0,
        learning_rate=0.1,
    )
    before = {
        name: x.numpy() for name, x in release_names(training_run.build_model(task, run)).items()
    }
    training.train(task, run)
    model = training.load_model(task, run, tf.train.latest_checkpoint(run.output_dir))
    moved = collections.defaultdict(float)
    for name, variable in release_names(model).items():
        depth = slow_depth(name) if is_in_encoder(name) else NUM_LAYERS + 1
        moved[depth] = max(moved[depth], np.abs(variable.numpy() - before[name]).max())
    assert moved[0] == moved[1] == 0.0
    # The first step of Adam is as long as the rate wherever there is a gradient.
    for depth, share in ((2, 0.25), (3, 0.5), (4, 1.0)):
        assert moved[depth] == pytest.approx(0.1 * share, rel=0.02)
