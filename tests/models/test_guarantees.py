"""What the encoder guarantees, told what attends to what by a structure."""

import copy
import dataclasses
import random
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.layers import recompute_grad
from etcmodel.models import input_utils, modeling, multihop_utils
from etcmodel.ops import dropout as dropout_ops
from tests.models import etcs

CONFIG = etcs.config(
    segment_vocab_size=4, num_hidden_layers=2, local_radius=3, initializer_range=0.3
)
seeds = st.integers(0, 2**16)
lengths = st.tuples(st.integers(0, 20), st.integers(0, 4)).filter(any)
ways = st.fixed_dictionaries(
    {
        "att_implementation": st.sampled_from(["auto", "sparse", "full"]),
        "use_hard_g2l_mask": st.booleans(),
        "flat_sequence": st.booleans(),
    }
)


def make_model(**changes):
    """Initial biases are 0, which would hide faults: all weights are random."""
    model = modeling.EtcModel(dataclasses.replace(CONFIG, **changes))
    model.get_token_embedding_table()
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(scale=0.4, size=w.shape) for w in model.get_weights()])
    return model


MODEL = make_model()
SHALLOW = {"num_hidden_layers": 1}  # Enough in graphs, and faster to trace.


def random_example(rng, long_len, global_len):
    """Features of one example, without padding."""
    return {
        "token_ids": rng.integers(1, CONFIG.vocab_size, long_len),
        "global_token_ids": rng.integers(1, CONFIG.vocab_size, global_len),
        "long_sentence_ids": rng.integers(-1, max(global_len, 1), long_len),
        "long_paragraph_ids": rng.integers(-1, max(global_len, 1), long_len),
        "long_paragraph_breakpoints": _breakpoints(rng, long_len),
        "global_paragraph_breakpoints": _breakpoints(rng, global_len),
    }


def _breakpoints(rng, length):
    """1 at the last token of each paragraph."""
    breakpoints = rng.integers(0, 2, length)
    breakpoints[-1:] = 1
    return breakpoints


def padded(rng, example, long_len, global_len):
    """The example with padding up to the lengths: no breakpoints, anything else at random."""
    size = len(example["token_ids"]), len(example["global_token_ids"])
    padding = random_example(rng, long_len - size[0], global_len - size[1])
    for name in ("long_paragraph_breakpoints", "global_paragraph_breakpoints"):
        padding[name] = np.zeros_like(padding[name])
    return {name: np.concatenate([x, padding[name]]) for name, x in example.items()}


def arguments(rows, use_hard_g2l_mask=False, flat_sequence=False):
    """(token_ids, global_token_ids, structure) of a batch of rows of equal lengths."""
    batch = {name: tf.constant([row[name] for row in rows], tf.int32) for name in rows[0]}
    token_ids, global_token_ids = batch.pop("token_ids"), batch.pop("global_token_ids")
    structure = multihop_utils.make_structure(
        **batch,
        relative_pos_max_distance=CONFIG.relative_pos_max_distance,
        use_hard_g2l_mask=use_hard_g2l_mask,
        flat_sequence=flat_sequence,
    )
    return token_ids, global_token_ids, structure


def encode(encoder, rows, att_implementation="auto", **options):
    token_ids, global_token_ids, structure = arguments(rows, **options)
    return encoder(
        token_ids, global_token_ids, structure=structure, att_implementation=att_implementation
    )


def real(outputs, row, example):
    """The outputs of an example's own tokens."""
    sizes = len(example["token_ids"]), len(example["global_token_ids"])
    return [output[row, :size] for output, size in zip(outputs, sizes, strict=True)]


def assert_close(actual, expected, tolerance=1e-6):
    """Within a share of the largest expected number, or of 1."""
    for x, y in zip(actual, expected, strict=True):
        atol = tolerance * max(1, np.abs(y).max(initial=0))
        np.testing.assert_allclose(x, y, rtol=0, atol=atol)


def assert_identical(actual, expected):
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@settings(max_examples=4)
@given(
    st.lists(lengths, min_size=2, max_size=3),
    st.tuples(st.integers(0, 15), st.integers(0, 3)),
    ways,
    seeds,
)
def test_a_batch_gives_what_its_examples_give_alone_whatever_the_padding(sizes, more, way, seed):
    rng = np.random.default_rng(seed)
    examples = [random_example(rng, *size) for size in sizes]
    rows = [padded(rng, example, *(np.max(sizes, axis=0) + more)) for example in examples]
    outputs = encode(MODEL, rows, **way)
    for row, example in enumerate(examples):
        alone = encode(MODEL, [example], **way)
        assert_close(real(outputs, row, example), real(alone, 0, example))


@pytest.mark.slow
def test_all_implementations_give_the_same_at_every_length():
    rng = np.random.default_rng(0)
    for long_len in range(1, 10):
        rows = [random_example(rng, long_len, long_len % 3)]
        auto, sparse, full = (encode(MODEL, rows, way) for way in ("auto", "sparse", "full"))
        assert_close(sparse, auto)
        assert_close(full, auto)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("hard", [False, True])
def test_packed_examples_give_what_they_give_alone(hard):
    rng = np.random.default_rng(0)
    sizes = [(5, 2), (0, 3), (9, 0), (4, 1), (13, 4)]

    def run(examples, padding=(0, 0)):
        """Examples one after the other in one row."""
        fields = {"token_ids": [], "global_token_ids": [], "long": [], "global": [], "links": []}
        for number, (tokens, global_tokens, links) in enumerate(examples, start=1):
            fields["links"] += list(links + len(fields["global"]))
            fields["token_ids"] += list(tokens)
            fields["global_token_ids"] += list(global_tokens)
            fields["long"] += [number] * len(tokens)
            fields["global"] += [number] * len(global_tokens)
        rows = {
            name: tf.constant([values + [0] * padding["global" in name]], tf.int32)
            for name, values in fields.items()
        }
        structure = input_utils.make_structure_from_example_ids(
            rows["long"],
            rows["global"],
            rows["links"],
            relative_pos_max_distance=CONFIG.relative_pos_max_distance,
            use_hard_g2l_mask=hard,
            use_hard_l2g_mask=hard,
        )
        return MODEL(rows["token_ids"], rows["global_token_ids"], structure=structure)

    examples = [
        (
            rng.integers(1, CONFIG.vocab_size, long_len),
            rng.integers(1, CONFIG.vocab_size, global_len),
            rng.integers(0, max(global_len, 1), long_len),
        )
        for long_len, global_len in sizes
    ]
    packed = run(examples, padding=(6, 2))
    starts = np.cumsum([(0, 0), *sizes], axis=0)
    for example, start, end in zip(examples, starts, starts[1:], strict=False):
        parts = [output[:, i:j] for output, i, j in zip(packed, start, end, strict=True)]
        assert_close(parts, run([example]))


def test_an_empty_global_input_is_fine_without_a_structure_too():
    """Without side inputs all may attend, without labels."""
    token_ids, nothing = tf.constant([[1, 2, 3, 4, 5, 6, 7]]), tf.zeros([1, 0], tf.int32)
    all_one = tf.ones_like(token_ids)
    structure = input_utils.make_structure_from_example_ids(all_one, nothing, all_one, 0)
    model = make_model(relative_pos_max_distance=0)
    long_output, global_output = model(token_ids, nothing)
    assert global_output.shape == [1, 0, CONFIG.hidden_size]
    assert_close([long_output], [model(token_ids, nothing, structure=structure)[0]])


@pytest.mark.slow
@pytest.mark.parametrize("is_graph", [False, True], ids=["eagerly", "in a graph"])
def test_the_same_call_twice_gives_the_same_bits(is_graph):
    model = make_model(**SHALLOW)
    inputs = arguments([random_example(np.random.default_rng(0), 14, 3)])

    def run(training):
        with dropout_ops.seed_scope([1, 2]):
            return model(*inputs[:2], structure=inputs[2], training=training)

    run = tf.function(run, autograph=False) if is_graph else run
    plain, dropped = ([run(training) for _ in range(2)] for training in (False, True))
    assert_identical(*plain)
    assert_identical(*dropped)
    assert not np.allclose(plain[0][0], dropped[0][0])


def model_state(model):
    return {
        "config": model.config.to_dict(),
        "layer config": model.get_config(),
        "weights": [(weight.name, weight.numpy().tolist()) for weight in model.weights],
    }


def global_state():
    """What a call could change outside itself: policies, and the next random numbers."""
    return (
        tf_keras.mixed_precision.global_policy().name,
        tf_keras.backend.floatx(),
        tf.executing_eagerly(),
        tf.config.optimizer.get_jit(),
        tf.config.optimizer.get_experimental_options(),
        random.random(),
        np.random.random(),
        tf.random.uniform([]).numpy(),
        tf.random.get_global_generator().uniform([]).numpy(),
    )


def seed_all():
    random.seed(1)
    np.random.seed(1)
    tf.random.set_seed(1)
    tf.random.get_global_generator().reset_from_seed(1)


def test_a_call_changes_neither_the_model_nor_anything_outside():
    """Not even the random numbers that others draw, with dropout from a seed of its own."""
    *ids, structure = arguments([random_example(np.random.default_rng(0), 14, 3)])
    tensors = [*ids, *(x for x in tf.nest.flatten(structure) if tf.is_tensor(x))]
    before = [x.numpy().copy() for x in tensors]
    model = make_model()
    state = copy.deepcopy(model_state(model))
    seed_all()
    expected = global_state()
    seed_all()
    for training in (False, True):
        with dropout_ops.seed_scope([1, 2]), tf.GradientTape() as tape:
            outputs = model(*ids, structure=structure, training=training)
        tape.gradient(outputs, model.trainable_weights)
    assert global_state() == expected
    assert model_state(model) == state
    assert_identical(tensors, before)


@pytest.mark.slow
def test_one_trace_serves_every_length():
    num_traces, model = 0, make_model(**SHALLOW)
    options = {
        "relative_pos_max_distance": CONFIG.relative_pos_max_distance,
        "use_hard_g2l_mask": True,
    }
    names = list(random_example(np.random.default_rng(0), 1, 1))

    @tf.function(input_signature=[{name: tf.TensorSpec([None, None], tf.int32) for name in names}])
    def run(features):
        nonlocal num_traces
        num_traces += 1
        features = dict(features)
        ids = features.pop("token_ids"), features.pop("global_token_ids")
        return model(*ids, structure=multihop_utils.make_structure(**features, **options))

    for batch, *size in ((1, 1, 1), (2, 3, 0), (2, 0, 2), (3, 9, 2), (1, 70, 5)):
        rng = np.random.default_rng(batch)
        rows = [random_example(rng, *size) for _ in range(batch)]
        features = {name: tf.constant([row[name] for row in rows], tf.int32) for name in names}
        assert_close(run(features), encode(model, rows, use_hard_g2l_mask=True))
    assert num_traces == 1


@pytest.mark.slow
def test_gradient_checkpointing_changes_no_gradient():
    """In a graph, with dropout; compared with itself when it keeps all activations."""
    *ids, structure = arguments([random_example(np.random.default_rng(0), 14, 3)])
    model = make_model(grad_checkpointing_period=1, **SHALLOW)

    @tf.function
    def gradients():
        with tf.GradientTape() as tape, dropout_ops.seed_scope([1, 2]):
            outputs = model(*ids, structure=structure, training=True)
            target = tf.add_n([tf.reduce_sum(tf.sin(output)) for output in outputs])
        return [tf.convert_to_tensor(x) for x in tape.gradient(target, model.trainable_weights)]

    recomputed = gradients()
    with mock.patch.object(recompute_grad.tf, "recompute_grad", lambda run: run):
        kept = gradients.python_function()
    assert any(np.abs(x).max() > 0.1 for x in kept)
    assert_close(recomputed, kept, tolerance=1e-5)
