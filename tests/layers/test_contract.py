"""What every public layer must do, whatever it computes."""

import collections
import functools
import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import layers
from etcmodel.ops import dropout as dropout_ops
from tests.layers.layer_cases import CASES

RATES = ("rate", "dropout_probability", "hidden_dropout_prob", "att_dropout_prob")
every_layer = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
# The graphs of these are large, and all of them are in that of `EtcModel`.
LARGE = ("FusedGlobalLocalAttention", "GlobalLocalTransformerLayers", "RelativeTransformerLayers")
every_layers_graph = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[pytest.mark.slow] * (name in LARGE))
        for name, case in CASES.items()
    ],
)


def has_dropout(case):
    config = json.dumps(case.construct().get_config())
    return any(f'"{rate}": 0.{digit}' in config for rate in RATES for digit in range(1, 9))


WITH_DROPOUT = {name: case for name, case in CASES.items() if has_dropout(case)}


@pytest.fixture
def set_policy():
    """Sets the global precision policy until the test ends."""
    before = tf_keras.mixed_precision.global_policy()
    yield tf_keras.mixed_precision.set_global_policy
    tf_keras.mixed_precision.set_global_policy(before)


def float_arrays(outputs):
    return [tf.cast(output, tf.float32).numpy() for output in tf.nest.flatten(outputs)]


def assert_same(actual, expected, atol=1e-5):
    for one, other in zip(float_arrays(actual), float_arrays(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


def built_layer(case, **changes):
    """A layer with random weights, zeros such as biases included, and what it gives."""
    layer, inputs = case.construct(**changes), case.make_inputs()
    case.call(layer, inputs)
    rng = np.random.default_rng(1)
    noise = [rng.normal(scale=0.05, size=weight.shape) for weight in layer.get_weights()]
    layer.set_weights([a + b for a, b in zip(layer.get_weights(), noise, strict=True)])
    return layer, inputs, case.call(layer, inputs)


# For tests that change nothing of a layer.
known_layer = functools.cache(built_layer)


def functional_model(case, layer):
    inputs = {
        name: tf_keras.Input(shape=spec.shape[1:], dtype=spec.dtype, name=name)
        for name, spec in case.make_specs().items()
    }
    return tf_keras.Model(inputs, case.call(layer, inputs))


def test_every_public_layer_has_a_case():
    public = [getattr(layers, name) for name in layers.__all__]
    names = {
        found.__name__
        for found in public
        if isinstance(found, type) and issubclass(found, tf_keras.layers.Layer)
    }
    # It has neither a config nor a shape of its own: see test_helpers.py.
    assert names - {"TrackedLambda"} == set(CASES) - {"EtcModel"}


@pytest.mark.quick_cases(6)
@every_layer
def test_a_layer_made_from_the_config_is_the_same(case):
    layer, inputs, expected = known_layer(case)
    config = layer.get_config()
    twin = type(layer).from_config(json.loads(json.dumps(config)))
    assert twin.get_config() == config
    case.call(twin, inputs)
    twin.set_weights(layer.get_weights())
    assert_same(case.call(twin, inputs), expected, atol=0)
    assert [w.name for w in twin.weights] == [w.name for w in layer.weights]


@every_layer
def test_the_registered_name_is_enough_to_make_it_again(case):
    serialized = tf_keras.layers.serialize(case.construct())
    twin = tf_keras.layers.deserialize(json.loads(json.dumps(serialized)))
    assert type(twin) is case.layer_class


@every_layer
def test_constructor_arguments_are_all_in_the_config(case):
    changed = {"trainable": False, "name": "another_name", **case.init}
    config = case.construct(**changed).get_config()
    config.pop("config", None)  # `EtcModel` writes its config as a dict.
    assert {name: changed[name] for name in changed if name in config}.items() <= config.items()
    assert set(changed) - {"config"} <= set(config)


@pytest.mark.slow_cases(3)
@pytest.mark.quick_cases(2)
@every_layers_graph
@pytest.mark.parametrize("jit_compile", [False, True])
def test_graphs_of_unknown_lengths_give_what_eager_calls_give(case, jit_compile):
    layer, inputs, expected = built_layer(case)

    @tf.function(jit_compile=jit_compile, input_signature=[case.make_specs()])
    def run(inputs):
        return case.call(layer, inputs)

    assert_same(run({name: tf.constant(value) for name, value in inputs.items()}), expected)


@pytest.mark.slow_cases(4)
@pytest.mark.quick_cases(2)
@every_layers_graph
def test_it_can_be_part_of_a_functional_model_that_is_saved(case, tmp_path):
    layer, inputs, expected = built_layer(case)
    model = functional_model(case, layer)
    assert_same(model(inputs), expected)
    others = {
        "checkpoint": functional_model(case, case.construct()),
        "weights.h5": tf_keras.models.model_from_json(model.to_json()),
    }
    for file, other in others.items():
        model.save_weights(str(tmp_path / file))
        other.load_weights(str(tmp_path / file))
        assert_same(other(inputs), model(inputs), atol=0)


@pytest.mark.quick_cases(5)
@every_layer
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_computes_nearly_the_same_in_the_compute_type(case, policy, set_policy):
    full, inputs, expected = known_layer(case)
    set_policy(policy)
    layer = case.construct()
    outputs = tf.nest.flatten(case.call(layer, inputs))
    assert {output.dtype for output in outputs} == {tf.as_dtype(policy.removeprefix("mixed_"))}
    assert {weight.dtype for weight in layer.weights} <= {tf.float32}
    layer.set_weights(full.get_weights())
    assert_same(case.call(layer, inputs), expected, atol=0.08)
    assert type(layer).from_config(layer.get_config()).dtype_policy.name == policy


@pytest.mark.quick_cases(6)
@every_layer
def test_the_policy_given_to_a_layer_reaches_its_parts(case):
    layer, _, outputs = built_layer(case, dtype="mixed_bfloat16")
    assert {output.dtype for output in tf.nest.flatten(outputs)} == {tf.bfloat16}
    assert {part.compute_dtype for part in layer._flatten_layers()} == {"bfloat16"}


@pytest.mark.quick_cases(6)
@every_layer
def test_no_two_kernels_start_with_the_same_values(case):
    layer = case.construct()
    case.call(layer, case.make_inputs())
    by_shape = collections.defaultdict(list)
    for weight in layer.get_weights():
        if weight.std() > 0:
            by_shape[weight.shape].append(weight)
    for group in by_shape.values():
        for one, other in itertools.combinations(group, 2):
            assert not np.array_equal(one, other)


@pytest.mark.quick_cases(5)
@every_layer
def test_every_weight_has_a_gradient(case):
    layer, inputs, _ = known_layer(case)
    with tf.GradientTape() as tape:
        outputs = tf.nest.flatten(case.call(layer, inputs))
        loss = sum(tf.reduce_sum(tf.sin(3.0 * output)) for output in outputs)
    gradients = tape.gradient(loss, layer.trainable_weights)
    missing = [
        weight.name
        for weight, gradient in zip(layer.trainable_weights, gradients, strict=True)
        if gradient is None or not np.any(tf.convert_to_tensor(gradient))
    ]
    assert not missing


@every_layer
def test_weights_have_different_names(case):
    layer, _, _ = known_layer(case)
    names = [weight.name for weight in layer.weights]
    assert len(set(names)) == len(names)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("case", WITH_DROPOUT.values(), ids=WITH_DROPOUT.keys())
def test_dropout_acts_in_training_only_and_a_seed_repeats_it(case):
    layer, inputs, expected = known_layer(case)
    assert_same(case.call(layer, inputs), expected, atol=0)
    runs = []
    for seed in ([1, 2], [1, 2], [3, 4]):
        with dropout_ops.seed_scope(seed):
            runs.append(float_arrays(case.call(layer, inputs, training=True))[0])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
