"""The stacks: recomputed activations, shared parameters, and what they refuse."""

import contextlib
import functools
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import layers
from etcmodel.layers import recompute_grad, sublayers
from etcmodel.ops.dropout import seed_scope
from tests.layers.layer_cases import CASES

CASE = CASES["GlobalLocalTransformerLayers"]
INPUTS = CASE.make_inputs()
LOCAL_SIZES = {
    "long_hidden_size": 8,
    "global_hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "local_radius": 2,
}


def make_stack(period, num_hidden_layers=2):
    tf.random.set_seed(0)
    stack = CASE.construct(
        num_hidden_layers=num_hidden_layers,
        grad_checkpointing_period=period,
        hidden_dropout_prob=0.2,
        attention_probs_dropout_prob=0.2,
        initializer_range=0.3,
    )
    CASE.call(stack, INPUTS)
    return stack


def outputs_and_gradients(stack, training=True):
    """Long output, and gradients of the input and of all weights."""
    long_input = tf.constant(INPUTS["long_input"])
    with tf.GradientTape() as tape, seed_scope(tf.constant([3, 4])):
        tape.watch(long_input)
        long, wide = CASE.call(stack, {**INPUTS, "long_input": long_input}, training=training)
        target = tf.reduce_sum(tf.sin(long)) + tf.reduce_sum(tf.sin(wide))
    gradients = tape.gradient(target, [long_input, *stack.trainable_weights])
    return [long, *map(tf.convert_to_tensor, gradients)]


def assert_all_close(actual, expected, atol=1e-4):
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


@pytest.fixture
def keep_activations(monkeypatch):
    """Makes stacks do everything they do for recomputation, except to recompute."""
    return lambda: monkeypatch.setattr(recompute_grad.tf, "recompute_grad", lambda run: run)


@pytest.mark.slow
@pytest.mark.parametrize("period", [1, 2, 3, 5])
def test_without_dropout_recomputing_changes_nothing(period):
    stack, plain = make_stack(period, num_hidden_layers=3), make_stack(0, num_hidden_layers=3)
    plain.set_weights(stack.get_weights())
    assert_all_close(
        outputs_and_gradients(stack, training=False), outputs_and_gradients(plain, training=False)
    )


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("period", [2, 1])
def test_recomputed_activations_see_the_dropout_masks_of_the_forward_pass(period, keep_activations):
    stack = make_stack(period)
    recomputed = outputs_and_gradients(stack)
    keep_activations()
    assert_all_close(recomputed, outputs_and_gradients(stack))


@pytest.mark.slow
def test_the_comparison_would_notice_other_masks(monkeypatch, keep_activations):
    no_scope = contextlib.contextmanager(lambda seed: iter([None]))
    monkeypatch.setattr(recompute_grad.dropout_ops, "seed_scope", no_scope)
    stack = make_stack(1, num_hidden_layers=1)
    output, *gradients = outputs_and_gradients(stack)
    keep_activations()
    expected_output, *expected_gradients = outputs_and_gradients(stack)
    np.testing.assert_allclose(output, expected_output, atol=1e-4)
    assert not np.allclose(gradients[0], expected_gradients[0], atol=1e-2)


def test_the_gradient_with_dropout_agrees_with_finite_differences():
    stack = make_stack(1, num_hidden_layers=1)
    direction = tf.constant(np.random.default_rng(0).normal(size=[2, 7, 8]), tf.float32)

    def target(step):
        moved = {**INPUTS, "long_input": INPUTS["long_input"] + step * direction}
        with seed_scope([3, 4]):
            long, _ = CASE.call(stack, moved, training=True)
        return tf.reduce_sum(tf.sin(long))

    step = tf.constant(0.0)
    with tf.GradientTape() as tape:
        tape.watch(step)
        value = target(step)
    size = 1e-2
    expected = (target(size) - target(-size)) / (2 * size)
    np.testing.assert_allclose(tape.gradient(value, step), expected, rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_recomputing_works_in_graphs(jit_compile, keep_activations):
    """Compared with a graph too: XLA draws other masks from the same seed."""
    stack = make_stack(1, num_hidden_layers=1)

    def compiled():
        return tf.function(lambda: outputs_and_gradients(stack), jit_compile=jit_compile)()

    recomputed = compiled()
    keep_activations()
    assert_all_close(recomputed, compiled())


REPLICATED = """
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.layers import test_transformer as tests

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    stack = tests.make_stack(1, num_hidden_layers=1)
results = tf.function(lambda: strategy.run(tests.outputs_and_gradients, [stack]))()
assert strategy.num_replicas_in_sync == 2
expected = tests.outputs_and_gradients(stack)
for result, value in zip(results, expected, strict=True):
    for local in strategy.experimental_local_results(result):
        np.testing.assert_allclose(local, value, atol=1e-4)
"""


@pytest.mark.exhaustive
def test_recomputing_works_on_two_replicas():
    """In a process of its own: logical devices must be made before anything else runs."""
    done = subprocess.run([sys.executable, "-c", REPLICATED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@functools.cache
def weight_names(**options):
    stack = layers.GlobalLocalTransformerLayers(
        **LOCAL_SIZES, relative_vocab_size=4, **{"share_qkv_projections": False, **options}
    )
    sublayers.build_sublayer(stack, None)
    return {weight.name.partition("/")[2].removesuffix(":0") for weight in stack.weights}


def in_layers(part, names):
    return {f"{part}_{layer}/{name}" for layer in range(2) for name in names}


def kernel_and_bias(*projections, linear="/linear"):
    return [
        f"fused_global_local_att/{name}_projection{linear}/{variable}"
        for name in projections
        for variable in ("kernel", "bias")
    ]


@pytest.mark.parametrize(
    "option, gone",
    [
        ("share_kv_projections", kernel_and_bias("l2g_key", "l2g_value", "g2l_key", "g2l_value")),
        (
            "share_qkv_projections",
            kernel_and_bias(
                "global_query",
                "g2g_key",
                "g2g_value",
                "l2g_key",
                "l2g_value",
                "g2l_key",
                "g2l_value",
            ),
        ),
        ("share_att_output_projection", kernel_and_bias("global_output", linear="")),
    ],
)
def test_sharing_projections_leaves_out_exactly_the_shared_ones(option, gone):
    separate = weight_names(share_feed_forward_params=False)
    shared = weight_names(share_feed_forward_params=False, **{option: True})
    assert separate - shared == in_layers("fused_att_layer", gone)
    assert not shared - separate


def test_shared_feed_forward_layers_are_one_per_layer():
    names = [
        f"{part}/{variable}"
        for part, variables in {
            "layer_norm": ("gamma", "beta"),
            "dense_layers/layer_0": ("kernel", "bias"),
            "dense_layers/layer_1": ("kernel", "bias"),
        }.items()
        for variable in variables
    ]
    separate, shared = weight_names(share_feed_forward_params=False), weight_names()
    assert shared - separate == in_layers("feed_forward_layer", names)
    assert separate - shared == in_layers("long_feed_forward_layer", names) | in_layers(
        "global_feed_forward_layer", names
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_long_and_global_sizes_may_differ_where_nothing_is_shared(sparse):
    sizes = {**LOCAL_SIZES, "global_hidden_size": 4}
    stack = layers.GlobalLocalTransformerLayers(
        **sizes, share_feed_forward_params=False, share_qkv_projections=False
    )
    long, wide = stack(
        np.zeros([1, 5, 8], np.float32),
        np.zeros([1, 2, 4], np.float32),
        att_implementation="sparse" if sparse else "full",
    )
    assert long.shape == [1, 5, 8] and wide.shape == [1, 2, 4]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"num_hidden_layers": 0}, "`num_hidden_layers` must be at least 1. Received: 0"),
        ({"grad_checkpointing_period": -1}, "must not be negative. Received: -1"),
        ({"local_radius": 0}, "`local_radius` must be at least 1. Received: 0"),
        ({"num_attention_heads": 3}, "long_total_att_size` must be a multiple .* 3 heads"),
        (
            {"global_intermediate_size": 6},
            r"`share_feed_forward_params` needs equal .* long \(8, 32\), global \(8, 6\)",
        ),
        (
            {"global_hidden_size": 4, "share_feed_forward_params": False},
            "`share_qkv_projections` needs equal .* long_hidden_size=8, global_hidden_size=4",
        ),
    ],
)
def test_sizes_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        layers.GlobalLocalTransformerLayers(**{**LOCAL_SIZES, **changes})


@pytest.mark.parametrize("num_hidden_layers", [0, -1])
def test_a_relative_stack_needs_a_layer(num_hidden_layers):
    with pytest.raises(ValueError, match="`num_hidden_layers` must be at least 1"):
        layers.RelativeTransformerLayers(8, num_hidden_layers, 2)


def test_labels_need_a_relative_vocab_size():
    stack = layers.GlobalLocalTransformerLayers(**LOCAL_SIZES)
    with pytest.raises(ValueError, match="got relative labels, but its `relative_vocab_size`"):
        CASE.call(stack, INPUTS)


def test_labels_of_global_tokens_come_in_both_pieces():
    stack = make_stack(0)
    with pytest.raises(ValueError, match="Give both `g2g_relative_att_ids` and"):
        CASE.call(stack, {**INPUTS, "g2l_relative_att_ids": None})


def test_an_unknown_implementation_is_refused():
    stack = layers.GlobalLocalTransformerLayers(**LOCAL_SIZES)
    with pytest.raises(ValueError, match="must be 'auto', 'sparse' or 'full'. Received: 'dense'"):
        stack(INPUTS["long_input"], INPUTS["global_input"], att_implementation="dense")
