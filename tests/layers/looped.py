"""A stack's outputs and gradients in a graph, by itself or on two devices, with or without a loop.

As a program it runs on two devices, into which it splits the CPU, compiled by XLA and in two parts
of a batch. Prints a line of JSON: the gradients with a loop, and those without.
"""

import contextlib
import json

import numpy as np
import tensorflow as tf

from etcmodel.layers import stack
from etcmodel.ops.dropout import seed_scope
from etcmodel.training import trainer as gradients_lib
from tests.layers.layer_cases import CASES

CASE = CASES["GlobalLocalTransformerLayers"]
INPUTS = CASE.make_inputs()
DROPOUT = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
UNSHARED = {"share_qkv_projections": False, "share_feed_forward_params": False}


def make(**options):
    """A stack with dropout, and with weights by which its layers do something."""
    tf.random.set_seed(0)
    layers = CASE.construct(initializer_range=0.3, **DROPOUT, **options)
    CASE.call(layers, INPUTS)
    return layers


def _target(outputs):
    return tf.add_n([tf.reduce_sum(tf.sin(tf.cast(x, tf.float32))) for x in outputs])


def _function(layers, mode, jit_compile):
    def run(long_input):
        scope = stack.loop_scope(mode) if mode else contextlib.nullcontext()
        with scope, tf.GradientTape() as tape, seed_scope(tf.constant([3, 4])):
            tape.watch(long_input)
            outputs = CASE.call(layers, {**INPUTS, "long_input": long_input}, training=True)
            target = _target(outputs)
        variables = layers.trainable_variables
        gradients = tape.gradient(target, [long_input, *variables])
        names = ["input", *(x.name for x in variables)]
        gradients = dict(zip(names, map(tf.convert_to_tensor, gradients), strict=True))
        return {"long": outputs[0], "global": outputs[1], **gradients}

    return tf.function(run, jit_compile=jit_compile)


def graph(layers, mode, jit_compile=None, batch_size=2):
    """The graph of outputs and gradients; in a `loop_scope` if there is a mode."""
    function = _function(layers, mode, jit_compile)
    spec = tf.TensorSpec([batch_size, *INPUTS["long_input"].shape[1:]])
    return function.get_concrete_function(spec).graph


def count_loops(graph):
    """How many loops of the forward pass the graph itself has."""
    operations = [x for x in graph.get_operations() if x.type in ("While", "StatelessWhile")]
    return sum("gradient_tape" not in x.name for x in operations)


def compare(layers, mode="always", jit_compile=None, rtol=1e-5, atol=1e-5):
    """Compares outputs and gradients with those without a loop; returns the number of loops."""
    found, expected = (
        _function(layers, x, jit_compile)(tf.constant(INPUTS["long_input"]))
        for x in (mode, "never")
    )
    for name, value in expected.items():
        actual, value = (tf.cast(x, tf.float64).numpy() for x in (found[name], value))
        np.testing.assert_allclose(actual, value, rtol=rtol, atol=atol, err_msg=name)
    return count_loops(graph(layers, mode, jit_compile))


def _on_two_devices(strategy, layers, mode):
    def losses(features):
        outputs = CASE.call(layers, features, training=True)
        return {"loss": _target(outputs)}

    def step():
        def run(features):
            return gradients_lib.mean_gradients(
                losses,
                layers.trainable_variables,
                features,
                num_parts=2,
                seed=tf.constant([1, 2]),
            )[0]

        features = {name: tf.constant(x) for name, x in INPUTS.items()}
        with stack.loop_scope(mode):  # Each device has a thread of its own.
            gradients = tf.function(run, jit_compile=True)(features)
        mean = tf.distribute.ReduceOp.MEAN
        return tf.distribute.get_replica_context().all_reduce(mean, gradients)

    per_replica = strategy.run(tf.function(step))
    values = [strategy.experimental_local_results(x)[1] for x in per_replica]
    return np.concatenate([np.ravel(x) for x in values]).tolist()


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        layers = make(num_hidden_layers=2)
    print(json.dumps([_on_two_devices(strategy, layers, mode) for mode in ("auto", "never")]))


if __name__ == "__main__":
    main()
