"""`RelativeWindowAttention`: projections around windows with relative positions."""

import json

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.layers.attention.sliding_window import RelativeWindowAttention
from etcmodel.ops import sliding_window
from tests.ops import numpy_sliding_window as twin

SIZE, HEADS = 8, 2


def layer_with_weights(**options):
    """A built layer, biases included not at 0."""
    layer = RelativeWindowAttention(SIZE, HEADS, **{"radius": 3, "is_causal": True, **options})
    layer(inputs(2))
    rng = np.random.default_rng(0)
    layer.set_weights([rng.normal(scale=0.5, size=x.shape) for x in layer.get_weights()])
    return layer


def inputs(length, seed=0):
    return np.random.default_rng(seed).normal(size=[2, length, SIZE]).astype(np.float32)


def by_twin(layer, x, is_global=None):
    """The outputs of tokens that are not global."""
    of = {weight.name.split(":")[0].partition("/")[2]: weight.numpy() for weight in layer.weights}
    batch, length, _ = x.shape

    def project(name):
        flat = x @ of[f"{name}/linear/kernel"] + of[f"{name}/linear/bias"]
        return flat.reshape(batch, length, HEADS, SIZE // HEADS)

    queries, keys, values = map(project, ("query", "key", "value"))
    of_positions = [of[n] for n in ("position_projection", "content_bias", "position_bias")]
    all_tokens = np.ones([batch, length], bool)
    is_global = ~all_tokens if is_global is None else is_global
    windows = [(x.left, x.right, x.dilation) for x in layer.windows]
    sees = twin.dense_mask(length, windows, all_tokens, is_global)
    logits = twin.distance_logits(queries, *of_positions, keys)
    with_keys = np.einsum("bihs,bjhs->bhij", queries + of["content_bias"], keys)
    logits = np.where(is_global[:, np.newaxis, np.newaxis], with_keys, logits)
    attended, _ = twin.attend(queries, keys, values, sees, logits)
    return attended.reshape(x.shape) @ of["output/kernel"] + of["output/bias"]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("dilation", [1, 2, [1, 3]])
@pytest.mark.parametrize("length", [1, 12, 100])
def test_outputs_of_the_slow_twin(length, dilation):
    layer, x = layer_with_weights(dilation=dilation), inputs(length)
    np.testing.assert_allclose(layer(x), by_twin(layer, x), atol=1e-4)


def test_global_tokens_are_seen_without_a_distance():
    layer, x = layer_with_weights(is_causal=False), inputs(12)
    is_global = np.arange(12) == [[2], [9]]
    found = layer(x, global_tokens=sliding_window.find_global_tokens(tf.constant(is_global)))
    expected = by_twin(layer, x, is_global)
    np.testing.assert_allclose(found[~is_global], expected[~is_global], atol=1e-4)


def test_a_layer_made_from_the_config_is_the_same():
    layer, x = layer_with_weights(dilation=[1, 2]), inputs(20)
    config = json.loads(json.dumps(layer.get_config()))
    again = RelativeWindowAttention.from_config(config)
    again(x)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(x), layer(x))


def test_probabilities_weigh_the_values():
    layer, x = layer_with_weights(), inputs(9)
    probs, of_globals = layer.attention_probs(x)
    assert of_globals is None
    values = layer.value(x).numpy()
    values = np.pad(values, [[0, 0], [3, 0], [0, 0], [0, 0]])
    windows = np.stack([values[:, step : step + 9] for step in range(4)], -1)
    attended = np.einsum("bhlk,blhsk->blhs", probs, windows)
    found = layer.output_projection(attended.reshape(2, 9, SIZE))
    np.testing.assert_allclose(found, layer(x), atol=1e-5)


def test_positions_stay_exact_in_half_precision():
    layer = RelativeWindowAttention(SIZE, HEADS, 3, is_causal=True, dtype="mixed_bfloat16")
    output = layer(inputs(5))
    assert output.dtype == tf.bfloat16
    assert all(x.dtype == tf.float32 for x in vars(layer.positions()).values())


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_graph_gives_what_an_eager_call_gives(jit_compile):
    layer, x = layer_with_weights(dilation=[1, 2]), inputs(80)
    run = tf.function(layer, jit_compile=jit_compile, autograph=False)
    np.testing.assert_allclose(run(x), layer(x), atol=1e-5)


def test_an_odd_size_is_refused():
    with pytest.raises(ValueError, match="`hidden_size` must be even: .* Received: 9"):
        RelativeWindowAttention(9, 3, 2)
