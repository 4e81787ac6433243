"""What a structure says of pairs is made into tensors once for all layers."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.layers import GlobalLocalTransformerLayers
from etcmodel.ops import relations
from etcmodel.ops.structure import GlobalLocalStructure

LONG, GLOBAL, HIDDEN, RADIUS = 12, 5, 8, 2
RELATIONS = {
    "edges between global tokens": relations.GlobalEdges([[[1, 0], [2, 0]]], "cites", 8),
    "edges between long tokens": relations.LongEdges([[[4, 3]]], "next", 9),
    "links as pairs": relations.LinkPairs([[[4, 2]]], "names", 10),
}


def make_stack(num_hidden_layers):
    stack = GlobalLocalTransformerLayers(
        long_hidden_size=HIDDEN,
        global_hidden_size=HIDDEN,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=2,
        local_radius=RADIUS,
        relative_vocab_size=11,
    )
    stack.build(None)
    return stack


def make_structure(*its_relations):
    return GlobalLocalStructure(
        long_segment_ids=tf.ones([1, LONG], tf.int32),
        long_example_ids=tf.ones([1, LONG], tf.int32),
        global_example_ids=tf.ones([1, GLOBAL], tf.int32),
        max_distance=2,
        relations=its_relations,
    )


def operations_that_read(relation, num_hidden_layers):
    """The first operations that take a relation's ids, in the graph of a stack."""
    stack = make_stack(num_hidden_layers)
    rng = np.random.default_rng(0)
    hidden = [tf.constant(rng.normal(size=[1, n, HIDDEN]), tf.float32) for n in (LONG, GLOBAL)]

    @tf.function(autograph=False)
    def call(ids):
        return stack(*hidden, structure=make_structure(relation._replace(ids=ids)))

    graph = call.get_concrete_function(tf.constant(relation.ids)).graph
    (ids,) = graph.inputs[:1]
    return sorted(operation.type for operation in ids.consumers())


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", RELATIONS)
def test_more_layers_do_not_read_a_relation_more_often(name):
    read = operations_that_read(RELATIONS[name], num_hidden_layers=1)
    assert read and operations_that_read(RELATIONS[name], num_hidden_layers=2) == read


def test_with_its_tensors_a_structure_says_the_same():
    structure = make_structure(*RELATIONS.values())
    stack, rng = make_stack(1), np.random.default_rng(0)
    hidden = [tf.constant(rng.normal(size=[1, n, HIDDEN]), tf.float32) for n in (LONG, GLOBAL)]
    (block,) = stack.fused_att_layers
    attention = block.inner_layer
    expected = attention(*hidden, structure=structure)  # A layer that is used alone.
    for x, y in zip(
        attention(*hidden, structure=structure.with_pairs(RADIUS)), expected, strict=True
    ):
        np.testing.assert_allclose(x, y, atol=1e-6)


def test_a_further_relation_is_not_forgotten():
    structure = make_structure().with_pairs(RADIUS).with_relations(*RELATIONS.values())
    assert structure.pairs is None


def test_tensors_that_do_not_fit_are_named():
    structure = make_structure()._replace(global_segment_ids=tf.ones([1, GLOBAL + 1], tf.int32))
    with pytest.raises(ValueError, match="`structure.global_segment_ids` must have shape"):
        structure.with_pairs(RADIUS)
