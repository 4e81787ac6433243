"""Both ways in give the same: a structure, and the dense masks and labels that it stands for."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.models import side_inputs
from etcmodel.ops import attention, relations
from etcmodel.ops.structure import GlobalLocalStructure

NUM_HEADS, SIZE = 2, 4
NUM_NAMES = 3  # Of free labels.


def ascending_ids(rng, batch, length):
    """Ids of successive segments, and 0 for padding at the end."""
    ids = np.cumsum(rng.random([batch, length]) < 0.2, axis=1) + 1
    return np.where(np.arange(length) < rng.integers(0, length + 1, [batch, 1]), ids, 0)


@st.composite
def with_relations(draw, structure, radius, rng):
    """The structure with up to four relations of any kind; some of their indices are no token's."""
    batch, long_len = structure.long_segment_ids.shape
    global_len = structure.global_example_ids.shape[1]
    label = 2 * structure.max_distance + 4

    def edges(num_first, num_second, reach=None):
        firsts = rng.integers(-1, num_first + 1, [batch, rng.integers(0, 9)])
        if reach is None:
            seconds = rng.integers(-1, num_second + 1, firsts.shape)
        else:
            seconds = firsts + rng.integers(-reach, reach + 1, firsts.shape)
        return np.stack([firsts, seconds], axis=-1)

    def labels(*shape):
        return np.maximum(rng.integers(-4 * label, label + NUM_NAMES, [batch, *shape]), -1)

    makers = {
        relations.LinkIds: lambda: rng.integers(-1, global_len + 1, [batch, long_len]),
        relations.LinkPairs: lambda: edges(long_len, global_len),
        relations.GlobalEdges: lambda: edges(global_len, global_len),
        relations.LongEdges: lambda: edges(long_len, long_len, radius),
        relations.GlobalLabels: lambda: labels(global_len, global_len),
        relations.LongLabels: lambda: labels(long_len, 2 * radius + 1),
    }
    for kind in draw(st.lists(st.sampled_from([*makers]), max_size=4)):
        ids, is_hard = makers[kind](), draw(st.booleans())
        if kind in (relations.GlobalLabels, relations.LongLabels):
            relation = kind(ids, "several", is_hard=is_hard)
        else:
            number = draw(st.integers(-1, NUM_NAMES - 1))
            named = (f"name {number}", label + number) if number >= 0 else ("nothing",)
            relation = kind(ids, *named, is_hard=is_hard)
        structure = structure.with_relations(relation)
    return structure


@st.composite
def cases(draw, max_long=40, max_global=7):
    """A structure, and the length, radius and random generator it was made with."""
    long_len, global_len = draw(st.integers(1, max_long)), draw(st.integers(1, max_global))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    batch = draw(st.integers(1, 2))
    links = [rng.integers(-1, global_len + 1, [batch, long_len]) for _ in range(3)]
    flags = draw(st.tuples(*[st.booleans()] * 6))
    structure = GlobalLocalStructure(
        long_segment_ids=ascending_ids(rng, batch, long_len),
        long_example_ids=rng.integers(0, 2, [batch, long_len]),
        global_example_ids=rng.integers(0, 2, [batch, global_len]),
        links=tuple(links[: draw(st.integers(1, 2))]),
        label_links=tuple(links[2:]) if flags[0] else (),
        global_segment_ids=ascending_ids(rng, batch, global_len) if flags[1] else None,
        ignore_hard_g2l_mask=rng.integers(0, 2, [batch, global_len]) if flags[2] else None,
        ignore_hard_l2g_mask=rng.integers(0, 2, [batch, long_len]) if flags[3] else None,
        max_distance=draw(st.sampled_from([0, 1, 3])),
        use_hard_g2l_mask=flags[4],
        use_hard_l2g_mask=flags[5],
    )
    radius = draw(st.integers(1, 10))
    structure = draw(with_relations(structure, radius, rng))
    structure = tf.nest.map_structure(
        lambda x: tf.constant(x, tf.int32) if isinstance(x, np.ndarray) else x, structure
    )
    return structure, radius, rng


def random_heads(rng, batch, length):
    return tf.constant(rng.normal(size=[batch, length, NUM_HEADS, SIZE]), tf.float32)


def make_tensors(structure, rng):
    """Queries, keys and values of both inputs, and labels."""
    batch, long_len = structure.long_segment_ids.shape
    global_len = structure.global_example_ids.shape[1]
    num_labels = 2 * structure.max_distance + 4 + NUM_NAMES
    tables = [
        tf.constant(rng.normal(size=[num_labels, NUM_HEADS, *size]), tf.float32)
        for size in ([SIZE], [])
    ]
    heads = {
        **{f"long_{what}": random_heads(rng, batch, long_len) for what in "qkv"},
        **{f"global_{what}": random_heads(rng, batch, global_len) for what in "qkv"},
    }
    return heads, tables


def by_structure(
    heads,
    tables,
    structure,
    radius,
    implementation="auto",
    dropout_rate=0.0,
    tiling=None,
):
    labels = attention.RelativeLabels(*tables)
    long_kv = (heads["long_k"], heads["long_v"])
    global_kv = (heads["global_k"], heads["global_v"])
    return (
        attention.long_attend(
            heads["long_q"],
            long_kv,
            global_kv,
            structure,
            local_radius=radius,
            labels=labels,
            implementation=implementation,
            dropout_rate=dropout_rate,
            tiling=tiling,
        ),
        attention.global_attend(
            heads["global_q"],
            global_kv,
            long_kv,
            structure,
            labels=labels,
            dropout_rate=dropout_rate,
            tiling=tiling,
        ),
    )


def by_pairs(heads, tables, structure, radius):
    """The same through dense masks and labels."""
    dense = side_inputs.side_inputs_of(structure, radius)
    labels = attention.RelativeLabels(*tables)
    long_output = attention.local_attend(
        heads["long_q"],
        heads["long_k"],
        heads["long_v"],
        local_radius=radius,
        att_mask=dense.l2l_att_mask,
        att_ids=dense.l2l_relative_att_ids,
        side=attention.SideKeys(
            heads["global_k"], heads["global_v"], dense.l2g_att_mask, dense.l2g_relative_att_ids
        ),
        labels=labels,
    )
    joined = {
        name: None if own is None else tf.concat([own, other], axis=2)
        for name, own, other in (
            ("att_mask", dense.g2g_att_mask, dense.g2l_att_mask),
            ("att_ids", dense.g2g_relative_att_ids, dense.g2l_relative_att_ids),
        )
    }
    keys, values = (
        tf.concat([heads[f"global_{what}"], heads[f"long_{what}"]], axis=1) for what in "kv"
    )
    global_output = attention.attend(heads["global_q"], keys, values, labels=labels, **joined)
    return long_output, global_output


def outputs_and_gradients(function, heads, tables, *arguments, **options):
    sources = [*heads.values(), *tables]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = function(heads, tables, *arguments, **options)
        target = tf.add_n([tf.reduce_sum(tf.sin(x)) for x in outputs])
    return [*outputs, *tape.gradient(target, sources, unconnected_gradients="zero")]


def assert_all_close(actual, expected, atol=1e-5):
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(x), tf.convert_to_tensor(y), atol=atol)


@pytest.mark.parametrize(
    ("implementation", "max_examples"),
    [
        ("auto", 12),
        *(pytest.param(x, 40, marks=pytest.mark.exhaustive) for x in ("auto", "sparse", "full")),
    ],
)
def test_a_structure_equals_its_dense_form(implementation, max_examples):
    @settings(max_examples=max_examples)
    @given(cases())
    def check(case):
        structure, radius, rng = case
        heads, tables = make_tensors(structure, rng)
        arguments = (heads, tables, structure, radius)
        assert_all_close(
            outputs_and_gradients(by_structure, *arguments, implementation=implementation),
            outputs_and_gradients(by_pairs, *arguments),
        )

    check()
