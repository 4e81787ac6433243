"""The base of all stacks: other attention than ETC's, against a plain NumPy twin."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.layers import RelativeAttention, recompute_grad
from etcmodel.layers.dense import Dense
from etcmodel.layers.stack import Step, Stream, TransformerStack

HIDDEN, HEADS, LAYERS = 8, 2, 3
rng = np.random.default_rng(0)
TOKENS = rng.normal(size=[2, 5, HIDDEN]).astype(np.float32)
MEMORY = rng.normal(size=[2, 4, HIDDEN]).astype(np.float32)
MASK = np.tril(np.ones([1, 5, 5], np.int32))
MEMORY_MASK = np.array([[[1, 1, 1, 0]], [[1, 0, 1, 1]]], np.int32).repeat(5, axis=1)


class DecoderLayers(TransformerStack):
    """Causal attention, attention to an encoder's output, and a feed-forward layer."""

    def __init__(self, **kwargs):
        super().__init__(LAYERS, HEADS, hidden_act="relu", initializer_range=0.3, **kwargs)
        self.attention_layers = self.attention_blocks()
        self.cross_attention_layers = self.cross_attention_blocks()
        self.feed_forward_layers = self.feed_forward_blocks()

    @property
    def streams(self):
        return (Stream("tokens", HIDDEN, 12),)

    def make_attention(self, index):
        return RelativeAttention(HIDDEN, HEADS, att_dropout_prob=self.attention_probs_dropout_prob)

    make_cross_attention = make_attention

    def steps(self, index):
        return (
            Step(self.attention_layers[index], options="attention"),
            Step(self.cross_attention_layers[index], options="cross_attention"),
            Step(self.feed_forward_layers[index]),
        )

    def call(self, inputs, memory, training=None):
        (output,) = self.run(
            [inputs],
            training,
            attention={"att_mask": MASK},
            cross_attention={"to_seq": memory, "att_mask": MEMORY_MASK},
        )
        return output


def built(stack_class=DecoderLayers, **options):
    """A stack with weights that depend on nothing but their shapes and order."""
    stack = stack_class(**options)
    stack(TOKENS, MEMORY)
    weights = np.random.default_rng(1)
    stack.set_weights([weights.normal(scale=0.3, size=w.shape) for w in stack.get_weights()])
    return stack


def linear(x, dense):
    return x @ dense.kernel.numpy() + dense.bias.numpy()


def normalize(x, layer):
    centered = x - x.mean(-1, keepdims=True)
    normed = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-12)
    return normed * layer.gamma.numpy() + layer.beta.numpy()


def attend(layer, x, other, mask):
    def heads(projection, inputs):
        return linear(inputs, projection.linear).reshape(*inputs.shape[:2], HEADS, -1)

    queries = heads(layer.query_projection, x)
    keys, values = heads(layer.key_projection, other), heads(layer.value_projection, other)
    logits = np.einsum("bqhd,bkhd->bhqk", queries, keys) / np.sqrt(HIDDEN // HEADS)
    logits += -10000.0 * (1 - mask[:, np.newaxis])
    probs = np.exp(logits - logits.max(-1, keepdims=True))
    probs /= probs.sum(-1, keepdims=True)
    attended = np.einsum("bhqk,bkhd->bqhd", probs, values).reshape(x.shape)
    return linear(attended, layer.output_projection)


def twin(stack, x, memory):
    """The decoder in NumPy, in either order of normalization."""

    def residual(block, x, inner):
        (norm,) = block.normalization_layers
        if block.use_pre_activation_order:
            return x + inner(normalize(x, norm))
        return normalize(x + inner(x), norm)

    for index in range(LAYERS):
        own, cross, feed_forward = (step.block for step in stack.steps(index))
        first, second = feed_forward.inner_layer.layers
        x = residual(own, x, lambda h, at=own: attend(at.inner_layer, h, h, MASK))
        x = residual(cross, x, lambda h, at=cross: attend(at.inner_layer, h, memory, MEMORY_MASK))
        x = residual(
            feed_forward, x, lambda h, a=first, b=second: linear(np.maximum(linear(h, a), 0), b)
        )
    return x


@pytest.mark.parametrize("use_pre_activation_order", [False, True])
def test_a_decoder_computes_what_its_twin_does(use_pre_activation_order):
    stack = built(use_pre_activation_order=use_pre_activation_order)
    np.testing.assert_allclose(stack(TOKENS, MEMORY), twin(stack, TOKENS, MEMORY), atol=2e-5)


def outputs_and_gradients(stack, training=False):
    tokens, memory = tf.constant(TOKENS), tf.constant(MEMORY)
    with tf.GradientTape() as tape:
        tape.watch([tokens, memory])
        output = stack(tokens, memory, training=training)
        target = tf.reduce_sum(tf.sin(output))
    return [output, *tape.gradient(target, [tokens, memory, *stack.trainable_weights])]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("period", [2, 1])
def test_recomputing_gives_the_same_gradients_also_to_what_cross_attention_sees(period):
    expected = outputs_and_gradients(built())
    assert np.abs(expected[2]).max() > 0.1  # The gradient of the memory.
    recomputed = outputs_and_gradients(built(grad_checkpointing_period=period))
    for one, other in zip(recomputed, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


class RmsNorm(tf_keras.layers.Layer):
    def build(self, input_shape):
        self.scale = self.add_weight(name="scale", shape=input_shape[-1:], initializer="ones")

    def call(self, x):
        return self.scale * x / tf.sqrt(tf.reduce_mean(x**2, -1, keepdims=True) + 1e-6)


class Gated(tf_keras.layers.Layer):
    def __init__(self, stream, **kwargs):
        super().__init__(**kwargs)
        self.gate = Dense(stream.intermediate_size, activation="sigmoid", name="gate")
        self.wide = Dense(stream.intermediate_size, name="wide")
        self.out = Dense(stream.hidden_size, name="out")

    def call(self, x):
        return self.out(self.gate(x) * self.wide(x))


class Pooling(tf_keras.layers.Layer):
    """Attention that is none: each stream gets the mean of the other."""

    def call(self, first, second):
        means = [tf.reduce_mean(x, 1, keepdims=True) for x in (first, second)]
        return [tf.zeros_like(first) + means[1], tf.zeros_like(second) + means[0]]


class TwoStreamLayers(TransformerStack):
    """Two streams with parts of their own: RMS norm and, if not shared, gated feed-forward."""

    def __init__(self, share=True, **kwargs):
        super().__init__(LAYERS, HEADS, use_pre_activation_order=True, **kwargs)
        self.attention_layers = self.attention_blocks(num_streams=2)
        self.main_layers = self.feed_forward_blocks()
        if share:
            self.check_shared_feed_forward()
            self.memory_layers = self.main_layers
        else:
            self.memory_layers = self.feed_forward_blocks("memory_feed_forward_layer", stream=1)

    @property
    def streams(self):
        return (Stream("main", HIDDEN, 12), Stream("memory", HIDDEN, 12))

    def make_attention(self, index):
        return Pooling()

    def make_feed_forward(self, index, stream):
        return Gated(stream, name="gated")

    def make_normalization(self, name):
        return RmsNorm(name=name)

    def steps(self, index):
        return (
            Step(self.attention_layers[index], streams=(0, 1)),
            Step(self.main_layers[index]),
            Step(self.memory_layers[index], streams=(1,)),
        )

    def call(self, inputs, memory, training=None):
        return self.run([inputs, memory], training)


def two_streams_twin(stack, *hidden):
    def norm(x, layer):
        return layer.scale.numpy() * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)

    hidden = list(hidden)
    for index in range(LAYERS):
        attention, *feed_forwards = (step.block for step in stack.steps(index))
        layers = attention.normalization_layers
        means = [norm(x, n).mean(1, keepdims=True) for x, n in zip(hidden, layers, strict=True)]
        hidden = [hidden[0] + means[1], hidden[1] + means[0]]
        for number, block in enumerate(feed_forwards):
            x, inner = norm(hidden[number], block.normalization_layers[0]), block.inner_layer
            gate = 1 / (1 + np.exp(-linear(x, inner.gate)))
            hidden[number] = hidden[number] + linear(gate * linear(x, inner.wide), inner.out)
    return hidden


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("period", [0, 2])
def test_two_streams_with_parts_of_their_own(share, period):
    stack = built(TwoStreamLayers, share=share, grad_checkpointing_period=period)
    expected = two_streams_twin(stack, TOKENS, MEMORY)
    for output, other in zip(stack(TOKENS, MEMORY), expected, strict=True):
        np.testing.assert_allclose(output, other, atol=2e-5)


def test_what_streams_share_is_there_once():
    shared, own = (
        {weight.name.split("/")[1] for weight in built(TwoStreamLayers, share=share).weights}
        for share in (True, False)
    )
    assert own - shared == {f"memory_feed_forward_layer_{i}" for i in range(LAYERS)}
    assert shared < own


def test_streams_of_other_sizes_share_no_feed_forward_layer(monkeypatch):
    wide = (Stream("main", 8, 12), Stream("memory", 8, 16))
    monkeypatch.setattr(TwoStreamLayers, "streams", property(lambda self: wide))
    with pytest.raises(ValueError, match=r"needs equal main and memory .* main \(8, 12\), memory"):
        TwoStreamLayers()


def test_dropout_of_recomputed_layers_is_that_of_the_forward_pass(monkeypatch):
    """Each of three layers drops out thrice; the twin keeps its activations, with their masks."""
    options = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.3}
    stack = built(grad_checkpointing_period=1, **options)

    def gradient(seed):
        tf.random.set_seed(seed)
        tokens = tf.constant(TOKENS)
        with tf.GradientTape() as tape:
            tape.watch(tokens)
            target = tf.reduce_sum(tf.sin(stack(tokens, MEMORY, training=True)))
        return tape.gradient(target, tokens).numpy()

    found, others = gradient(seed=7), gradient(seed=8)
    monkeypatch.setattr(recompute_grad, "_recomputed", lambda run, *args: run(*args))
    np.testing.assert_allclose(found, gradient(seed=7), atol=1e-5 * np.abs(found).max())
    assert np.abs(found - others).max() > 0.1 * np.abs(found).max()


def test_a_system_without_cross_attention_says_so():
    with pytest.raises(NotImplementedError, match="TwoStreamLayers has no cross-attention"):
        TwoStreamLayers().make_cross_attention(0)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"hidden_dropout_prob": 1.0}, "`hidden_dropout_prob` must be at least 0 and below 1"),
        ({"grad_checkpointing_period": -1}, "must not be negative. Received: -1"),
    ],
)
def test_numbers_out_of_range_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        DecoderLayers(**changes)
