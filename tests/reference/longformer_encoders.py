"""How cases of Longformer's encoder are run: hidden states, attentions, gradients."""

import functools

import tensorflow as tf

from tests.reference import cases, longformer_cases, ways

TOPIC = longformer_cases.TOPIC
CASES = [case for case in cases.load_cases(TOPIC) if case["kind"].endswith("_base")]


@functools.cache
def model_and_function(kind, way):
    """A model, and a function that gives all it can; a graph is for any batch and length."""
    model = longformer_cases.model_of({"kind": kind})
    call = functools.partial(model, output_hidden_states=True, output_attentions=True)
    return model, ways.in_way(way, call)


def check(case, way=ways.EAGER):
    arrays = cases.arrays_of(TOPIC, case)
    inputs = longformer_cases.inputs_of(arrays, "cotangent_hidden", "cotangent_pooler")
    model, function = model_and_function(case["kind"], way)
    if "in/cotangent_hidden" in arrays:
        check_gradients(model, inputs, arrays, way)
        return
    hidden, pooled, extras = function(**inputs)
    results = {"out/last_hidden_state": hidden, "out/pooler_output": pooled}
    for name, values in extras.items():
        for number, value in enumerate(values):
            results[f"out/{name}/{number}"] = value
    wanted = {name: x for name, x in arrays.items() if name.startswith("out/")}
    # Not every case has the attentions.
    results = {name: x.numpy() for name, x in results.items() if name in wanted}
    longformer_cases.assert_same(results, arrays)


def check_gradients(model, inputs, arrays, way):
    def run():
        with tf.GradientTape() as tape:
            hidden, pooled = model(**inputs)
            loss = tf.reduce_sum(hidden * arrays["in/cotangent_hidden"])
            loss += tf.reduce_sum(pooled * arrays["in/cotangent_pooler"])
        return loss, hidden, longformer_cases.gradients(model, tape, loss)

    loss, hidden, gradients = ways.in_way(way, run)()
    results = {"out/loss": loss.numpy(), "out/last_hidden_state": hidden.numpy()}
    longformer_cases.assert_same(results, arrays)
    longformer_cases.assert_same_gradients(gradients, arrays)
