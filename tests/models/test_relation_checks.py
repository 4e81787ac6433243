"""What the encoder refuses of relations by name."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import input_utils, modeling
from etcmodel.ops import relations
from tests.models.test_relations import (
    BOTH,
    CONFIG,
    LABELS,
    assert_equals_dense_form,
    dense,
    make_structure,
)


@pytest.fixture(scope="module")
def model():
    model = modeling.EtcModel(CONFIG)
    model.get_token_embedding_table()  # Builds it.
    return model


EDGES = "must hold pairs of global tokens, or -1 twice as padding. Received:"
WRONG = [
    (
        relations.LinkIds([[0, 1, 2, 3, 0, 0]], "cites", 8),
        "must hold indices of global tokens, or -1 for no link. Received: 3 in example 0 at token "
        "3 for 3 global tokens",
    ),
    (
        relations.LinkPairs([[[5, 2], [6, 0]]], "cites", 8),
        "must hold pairs (long token, global token), or -1 twice as padding. Received: [6, 0] in "
        "example 0 at edge 1 for 6 long tokens and 3 global tokens",
    ),
    (
        relations.GlobalEdges([[[0, 1], [-1, -1], [1, 3]]], "cites", 8),
        f"{EDGES} [1, 3] in example 0 at edge 2 for 3 global tokens",
    ),
    (
        relations.GlobalEdges([[[0, 1], [-1, 1]]], "cites", 8),
        f"{EDGES} [-1, 1] in example 0 at edge 1 for 3 global tokens",
    ),
    (
        relations.GlobalEdges(np.array([[[2**32, 1]]]), "cites", 8),
        f"{EDGES} [4294967296, 1] in example 0 at edge 0 for 3 global tokens",
    ),
    (
        relations.LongEdges([[[0, 2], [5, 2]]], "cites", 8),
        "must hold pairs of long tokens within the local radius of each other, or -1 twice as "
        "padding. Received: [5, 2] in example 0 at edge 1 for 6 long tokens and radius 2",
    ),
    (
        relations.GlobalLabels([[[0, 1, 2], [0, -1, 12], [0, 0, 0]]], "cites"),
        "must hold labels of the model's table, or -1. Received: 12 in example 0 at query 1 and "
        "key 2 for 12 labels (`relative_vocab_size`)",
    ),
    (
        relations.LongLabels(np.full([1, 6, 5], -2), "cites"),
        "must hold labels of the model's table, or -1. Received: -2 in example 0 at query 0 and "
        "column 0 for 12 labels (`relative_vocab_size`)",
    ),
    (
        relations.GlobalEdges([[0, 1]], "cites", 8),
        "must have shape [batch, num_edges, 2], here [1, num_edges, 2]. Received shape: [1, 2]",
    ),
    (
        relations.LongLabels(np.zeros([1, 6, 3], int), "cites"),
        "must have shape [batch, long_len, 2*local_radius+1], here [1, 6, 5]. Received shape: "
        "[1, 6, 3]",
    ),
    (
        relations.GlobalEdges([[[0, 1]]], "cites", 12),
        "must have a label below `relative_vocab_size`, 12. Received: 12",
    ),
]


@pytest.mark.parametrize("relation, line", WRONG)
def test_what_does_not_fit_is_named_with_field_example_and_index(model, relation, line):
    with pytest.raises(ValueError) as raised:
        model(*BOTH, structure=make_structure().with_relations(relation))
    name = f"{relation.feature}/cites" if relation.feature else "cites"  # As in a batch.
    assert str(raised.value) == f"`structure.relations[0] ({name})` {line}"


def test_the_example_that_is_named_is_the_first_wrong_one(model):
    structure = input_utils.make_structure_from_example_ids(
        np.ones([3, 6]), np.ones([3, 3]), np.zeros([3, 6]), 2
    )
    edges = np.array([[[0, 1], [1, 2]], [[0, 0], [2, 3]], [[3, 3], [3, 3]]])
    structure = structure.with_relations(
        relations.GlobalEdges(edges[:, :1], "is a", 9), relations.GlobalEdges(edges, "cites", 8)
    )
    for number, line in (
        (0, r"\(edges/is a\).* \[3, 3\] in example 2 at edge 0"),
        (1, "3.*example 1"),
    ):
        kept = structure._replace(relations=structure.relations[number:])
        with pytest.raises(ValueError, match=line):
            model(np.ones([3, 6], int), np.ones([3, 3], int), structure=kept)


def with_citations(structure, edges):
    return structure.with_relations(
        relations.GlobalEdges(edges, "cites", LABELS["cites"], is_hard=True),
        relations.LongEdges(edges, "cites", LABELS["cites"]),
    )


def by_graph(model, jit_compile=False):
    """The model as a graph that knows no length when it is traced."""
    unknown = tf.TensorSpec([None, None], tf.int32)

    @tf.function(
        input_signature=[unknown, unknown, tf.TensorSpec([None, None, 2], tf.int32)],
        jit_compile=jit_compile,
    )
    def run(tokens, global_tokens, edges):
        structure = input_utils.make_structure_from_example_ids(
            tf.ones_like(tokens), tf.ones_like(global_tokens), tokens // 2, 2
        )
        return model(tokens, global_tokens, structure=with_citations(structure, edges))

    return run


@pytest.mark.slow
def test_a_graph_refuses_wrong_edges_when_it_runs(model):
    run, edges = by_graph(model), np.array([[[0, 1], [2, 1]]])
    for given in (edges, edges[:, :0], np.array([[[0, 1], [2, 1], [-1, -1]]])):
        expected = model(*BOTH, structure=with_citations(make_structure(), given))
        for x, y in zip(run(*BOTH, given), expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)
    line = r"relations\[0\] \(edges/cites\)` must .*\[0 3\] \[in example\] \[0\] \[at edge\] \[1\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=line):
        run(*BOTH, np.array([[[0, 1], [0, 3]]]))


@pytest.mark.slow
def test_compiled_by_xla_such_edges_mean_nothing(model):
    run = by_graph(model, jit_compile=True)
    outputs = run(*BOTH, np.array([[[0, 1], [2, 9], [7, 0], [-5, 1]]]))
    expected = model(*BOTH, structure=with_citations(make_structure(), [[[0, 1]]]))
    for x, y in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)


@pytest.mark.parametrize(
    "make, line",
    [
        (
            lambda: relations.GlobalEdges([[[0, 1]]], "cites", 6),
            "Relation 'cites' has the label of 'linked', 6. Free labels begin at 8, and each is "
            "for one name",
        ),
        (
            lambda: relations.GlobalEdges([[[0, 1]]], "cites", 4),
            "Relation 'cites' has the label of 'position -2', 4. Free labels begin at 8, and each "
            "is for one name",
        ),
        (
            lambda: relations.LinkIds([[0]], "cites", 9),
            "Relation 'cites' has the label of 'is a', 9. Free labels begin at 8, and each is for "
            "one name",
        ),
        (
            lambda: relations.LinkIds([[0]], "is a", 10),
            "Relation 'is a' has two labels, 9 and 10. Give one of them another name",
        ),
        (lambda: relations.LinkIds([[0]], ""), "A relation needs a name. Received: ''"),
        (
            lambda: relations.LinkIds([[0]], "cites", -1),
            "The label of relation 'cites' must be an int, at least 0. Received: -1",
        ),
        (
            lambda: relations.GlobalLabels([[[0]]], "cites", 8),
            "The labels of relation 'cites' are its ids. Received: label=8",
        ),
    ],
)
def test_names_and_labels_are_one_to_one(make, line):
    structure = make_structure().with_relations(relations.GlobalEdges([[[0, 1]]], "is a", 9))
    with pytest.raises(ValueError) as raised:
        structure.with_relations(make())
    assert str(raised.value) == line


def test_a_relation_may_have_the_name_and_label_that_links_have():
    structure = make_structure().with_relations(
        relations.LinkPairs([[[0, 2]]], "linked", LABELS.linked)
    )
    assert dense(structure)["l2g_relative_att_ids"][0, 0].tolist() == [6, 5, 6]


def test_a_model_without_labels_refuses_those_of_relations():
    config = dataclasses.replace(CONFIG, relative_pos_max_distance=0, relative_vocab_size=None)
    structure = make_structure(distance=0)
    masked = structure.with_relations(relations.GlobalEdges([[[0, 1]]], "cites", is_hard=True))
    model = modeling.EtcModel(config)
    assert_equals_dense_form(model, masked)
    labeled = structure.with_relations(relations.GlobalEdges([[[0, 1]]], "cites", 8))
    with pytest.raises(ValueError, match="must have no labels, since the model has none"):
        model(*BOTH, structure=labeled)
    words = r"leaves 0 free. Received 1 names: \['cites'\]. Set `relative_vocab_size` to 5 or more."
    with pytest.raises(ValueError, match=words):
        config.relation_labels("cites")


def test_a_kind_of_links_holds_for_the_pairs_that_it_says(monkeypatch):
    monkeypatch.setattr(relations, "KINDS", dict(relations.KINDS))

    class UpTo(relations.LinkIds):
        """Links each token to that global token and all before it."""

        __slots__ = ()

        def holds(self, sizes):
            return self.int32()[:, :, tf.newaxis] >= tf.range(sizes.global_len)

    structure = make_structure().with_relations(UpTo([[1, -1, -1, -1, -1, 0]], "cites", 8))
    labels = dense(structure)["l2g_relative_att_ids"][0]
    assert np.argwhere(labels == 8).tolist() == [[0, 0], [0, 1], [5, 0]]
    model = modeling.EtcModel(dataclasses.replace(CONFIG, initializer_range=0.5))
    assert_equals_dense_form(model, structure)


def test_only_relations_are_relations():
    with pytest.raises(ValueError, match=r"must hold relations. Received: str$"):
        make_structure().with_relations("cites")


def _own_kind(monkeypatch, **changes):
    """A relation of a kind that says which global token follows each."""

    def holds(relation, sizes):
        return tf.equal(relation.int32()[:, :, tf.newaxis], tf.range(sizes.global_len))

    monkeypatch.setattr(relations, "KINDS", dict(relations.KINDS))
    defined = {
        "__slots__": (),
        "piece": "g2g",
        "axes": "batch global_len",
        "holds": holds,
        "wrong": lambda relation, sizes, vocab_size: relation.int64() >= sizes.global_len,
        "limits": lambda relation, sizes, vocab_size: ["for", sizes.global_len, "tokens"],
    }
    return type("Next", (relations.Relation,), {**defined, **changes})


@pytest.mark.parametrize("ids", [[[1, 2, -1]], np.array([[1, 2, -1]])])
def test_a_kind_takes_ids_as_the_librarys_own_do(model, monkeypatch, ids):
    of_ids = _own_kind(monkeypatch)(ids, "cites", 8)
    edges = relations.GlobalEdges([[[0, 1], [1, 2]]], "cites", 8)
    outputs = [model(*BOTH, structure=make_structure().with_relations(x)) for x in (of_ids, edges)]
    for one, other in zip(*outputs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "changes, line",
    [
        (
            {"piece": None},
            "Next needs a `piece`, one of 'l2l', 'g2g', 'l2g', and the `axes` of its ids. "
            "Received: None and 'batch global_len'",
        ),
        (
            {"piece": "g2l"},
            "Next needs a `piece`, one of 'l2l', 'g2g', 'l2g', and the `axes` of its ids. "
            "Received: 'g2l' and 'batch global_len'",
        ),
        (
            {"axes": None},
            "Next needs a `piece`, one of 'l2l', 'g2g', 'l2g', and the `axes` of its ids. "
            "Received: 'g2g' and None",
        ),
        (
            {"piece": "l2l"},
            "`Next.holds` must have shape [batch or 1, long_len, 2*local_radius+1], here [1, 6, "
            "5]. Received shape: [1, 3, 3]",
        ),
        (
            {"holds": lambda relation, sizes: tf.zeros([1, 3, 3], tf.int32)},
            "`Next.holds` must return bool. Received: int32",
        ),
        (
            {"holds": lambda relation, sizes: None},
            "`Next.holds` must return bool. Received: NoneType",
        ),
        (
            {"wrong": lambda relation, sizes, vocab_size: None},
            "`Next.wrong` must return bool. Received: NoneType",
        ),
        (
            {"labels": lambda relation, sizes: tf.zeros([1, 3, 3])},
            "`Next.labels` must return int32. Received: float32",
        ),
        (
            {"wrong": lambda relation, sizes, vocab_size: relation.int64() == 2},
            "`structure.relations[0] (cites)` must hold valid entries. Received: 2 in example 0 at "
            "1 for 3 tokens",
        ),
    ],
)
def test_what_is_wrong_with_a_kind_is_said_in_a_line(model, monkeypatch, changes, line):
    kind = _own_kind(monkeypatch, **changes)
    with pytest.raises(ValueError) as raised:
        model(*BOTH, structure=make_structure().with_relations(kind([[1, 2, -1]], "cites", 8)))
    assert str(raised.value) == line


def test_a_kind_of_relation_says_which_pairs_it_holds_for():
    class Silent(relations.Relation):
        __slots__ = ()

    with pytest.raises(TypeError, match="Silent is abstract: it lacks holds, limits, wrong"):
        Silent([[0]], "cites", 8)
