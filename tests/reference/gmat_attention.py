"""The cases of GMAT's attention alone."""

import numpy as np
import tensorflow as tf

from etcmodel.layers.attention.chunk_memory import ChunkMemoryAttention
from etcmodel.ops import blockwise
from etcmodel.ops.interception import intercept
from tests.reference.gmat_arrays import arrays_of, assert_close

_PROJECTIONS = {"q": "query", "k": "key", "v": "value", "o": "output_projection"}


def attention_weights(layer):
    """Names of an attention's weights in the cases, without what is before: to variables."""
    found = {}
    for letter, part in _PROJECTIONS.items():
        projections = {letter: getattr(layer, part), f"m{letter}": getattr(layer, f"memory_{part}")}
        for name, dense in projections.items():
            found |= {f"{name}_w": dense.kernel, f"{name}_b": dense.bias}
    own = {
        **dict.fromkeys("qkv", layer.has_own_memory_projections),
        "o": layer.has_own_memory_output,
    }
    return {
        name: variable
        for name, variable in found.items()
        if not name.startswith("m") or own[name[1]]
    }


def assign(variables, arrays, prefix):
    for name, variable in variables.items():
        variable.assign(arrays[prefix + name])


def _layer_of(config):
    layer = ChunkMemoryAttention(
        config["hidden"],
        config["heads"],
        config["att_size"] // config["heads"],
        chunk_size=config["chunk"],
        use_bias=True,
        has_own_memory_projections=config["untied"],
        has_own_memory_output=config["untied_out"],
    )
    with tf.name_scope("attention"):
        layer.build([None, None, config["hidden"]])
    return layer


def check_attention(case, is_compiled=False):
    """Compares a case; what XLA compiles without what is before the output projection."""
    config, arrays = case["config"], arrays_of(case)
    layer = _layer_of(config)
    weights = attention_weights(layer)
    assign(weights, arrays, "w_")
    x, memory = (tf.constant(arrays[name]) for name in ("x", "memory"))
    has_memory = config["memory"] > 0
    masks = arrays["main_mask"], arrays["memory_mask"] if has_memory else None
    cotangents = [arrays.get("cot_main", 0.0), arrays.get("cot_memory", 0.0)]
    names = ["x", "memory", *(f"w_{name}" for name in weights)]
    names = [name for name in names if "cot_main" in arrays and f"grad_{name}" in arrays]

    def run(x, memory):
        with tf.GradientTape() as tape:
            tape.watch([x, memory])
            outputs = layer(x, memory if has_memory else None, *masks)
            outputs = outputs if has_memory else [outputs]
            total = sum(tf.reduce_sum(y * c) for y, c in zip(outputs, cotangents, strict=False))
        sources = {"x": x, "memory": memory, **{f"w_{name}": v for name, v in weights.items()}}
        gradients = tape.gradient(total, [sources[name] for name in names])
        return outputs, [tf.convert_to_tensor(x) for x in gradients]

    if is_compiled:
        run = tf.function(run, jit_compile=True, autograph=False)
    outputs, gradients = run(x, memory)
    limit = 1e-4 if case.get("note") == "large scores" else 1e-5
    if not is_compiled:
        _check_attended(layer, x, memory, masks, arrays, limit)
    rows = [arrays["main_mask"] > 0, arrays["memory_mask"] > 0]
    for name, found, valid in zip(("main_out", "memory_out"), outputs, rows, strict=False):
        assert_close(found, arrays[name], limit, valid, name)
    for name, gradient in zip(names, gradients, strict=True):
        value = arrays[f"grad_{name}"]
        if name.endswith("k_b"):  # Mathematically 0: all logits of a softmax change alike.
            top = np.abs(arrays[f"grad_{name[:-1]}w"]).max()
            assert max(np.abs(x).max() for x in (gradient, value)) <= 1e-4 * top, name
        else:
            assert_close(gradient, value, 1e-4, None, name)


def _check_attended(layer, x, memory, masks, arrays, limit):
    """What is before the output projection, and the probabilities."""
    calls = []

    def keep(_, call, queries, key_sets, **options):
        calls.append((call(queries, key_sets, **options), queries, key_sets))
        return calls[-1][0]

    has_memory = memory.shape[1] > 0
    with intercept(blockwise.attend, by=keep):
        layer(x, memory if has_memory else None, *masks)
    rows = [arrays["main_mask"] > 0, arrays["memory_mask"] > 0]
    for side, (context, *_), valid in zip(("main", "memory"), calls, rows, strict=False):
        context = tf.reshape(context, [*context.shape[:2], -1])
        assert_close(context, arrays[f"{side}_context"], limit, valid, side)
    if "probs" in arrays:  # Memory first.
        probs = [
            tf.concat(blockwise.attention_probs(queries, key_sets)[::-1], -1).numpy()
            for _, queries, key_sets in calls[::-1]
        ]
        found, wanted = (np.moveaxis(x, 1, 2) for x in (np.concatenate(probs, 2), arrays["probs"]))
        assert_close(found, wanted, limit, np.concatenate(rows[::-1], 1), "probs")


def check_pattern(case):
    config, arrays = case["config"], arrays_of(case)
    layer = ChunkMemoryAttention(4, 1, chunk_size=config["chunk"])
    seen = []

    def keep(_, call, queries, key_sets, **options):
        probs = blockwise.attention_probs(queries, key_sets)
        seen.append(tf.concat(probs[::-1], -1)[0, 0].numpy() > 0)  # Memory first.
        return call(queries, key_sets, **options)

    memory = tf.zeros([1, config["memory"], 4]) if config["memory"] else None
    with intercept(blockwise.attend, by=keep):
        layer(tf.zeros([1, config["length"], 4]), memory)
    np.testing.assert_array_equal(np.concatenate(seen[::-1]), arrays["allowed"] > 0)
