"""The official scores, against their published definitions said slowly; clusters of windows."""

import itertools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from etcmodel.tasks.coreference import metrics

# Pradhan et al. 2014, section 4: the example by which the official scorer is explained.
KEY = [[("a", "a"), ("b", "b"), ("c", "c")], [("d", "d"), ("e", "e"), ("f", "f"), ("g", "g")]]
RESPONSE = [
    [("a", "a"), ("b", "b")],
    [("c", "c"), ("d", "d")],
    [("f", "f"), ("g", "g"), ("h", "h"), ("i", "i")],
]


def test_the_published_example_has_the_published_scores():
    found = metrics.scores([(KEY, RESPONSE)])
    names = [f"{x}_{y}" for x in ("muc", "b_cubed", "ceaf_e") for y in ("recall", "precision")]
    published = [0.4, 0.4, 0.42, 0.50, 0.65, 0.43]
    assert [round(found[name], 2) for name in names] == published
    mean = np.mean([found[f"{name}_f1"] for name in ("muc", "b_cubed", "ceaf_e")])
    assert found["f1"] == pytest.approx(mean)


def muc(key, response):
    """(numerator, denominator) of recall: the links that are there, of those that are needed."""
    part = whole = 0
    for cluster in key:
        pieces = [set(cluster) & set(x) for x in response if set(cluster) & set(x)]
        alone = set(cluster).difference(*response)
        part += len(cluster) - len(pieces) - len(alone)
        whole += len(cluster) - 1
    return part, whole


def b_cubed(key, response):
    part = whole = 0
    for mention in itertools.chain(*key):
        own = next(set(x) for x in key if mention in x)
        told = next((set(x) for x in response if mention in x), set())
        part += len(own & told) / len(own)
        whole += 1
    return part, whole


def ceaf_e(key, response):
    def alike(x, y):
        return 2 * len(set(x) & set(y)) / (len(x) + len(y))

    few, many = sorted((key, response), key=len)
    best = max(sum(map(alike, few, chosen)) for chosen in itertools.permutations(many, len(few)))
    return best, len(key)


MENTIONS = st.integers(0, 9).map(lambda x: (x, x + 1))


@st.composite
def documents(draw):
    """(key, response): partitions of some mentions, singletons among them."""
    sides = []
    for _ in range(2):
        of = draw(st.dictionaries(MENTIONS, st.integers(0, 4)))
        sides.append([[x for x in of if of[x] == y] for y in sorted(set(of.values()))])
    return tuple(sides)


@hypothesis.given(st.lists(documents(), min_size=1, max_size=3))
def test_scores_are_those_of_the_definitions(pairs):
    found = metrics.scores(pairs)
    for name, twin in (("muc", muc), ("b_cubed", b_cubed), ("ceaf_e", ceaf_e)):
        recall, precision = (
            (lambda part, whole: part / whole if whole else 0.0)(
                *np.sum([twin(*pair[::step]) for pair in pairs], axis=0)
            )
            for step in (1, -1)
        )
        both = recall + precision
        assert found[f"{name}_recall"] == pytest.approx(recall)
        assert found[f"{name}_precision"] == pytest.approx(precision)
        assert found[f"{name}_f1"] == pytest.approx(2 * recall * precision / both if both else 0.0)


def test_a_mention_told_twice_counts_where_it_is_first():
    twice = [[(1, 1), (2, 2), (1, 1)], [(1, 1), (3, 3)]]
    assert metrics.scores([(KEY, twice)]) == metrics.scores([(KEY, [[(1, 1), (2, 2)], [(3, 3)]])])
    once = [[(1, 1), (2, 2)], [(3, 3)]]
    assert metrics.counts(once, twice) == metrics.counts(once, once)


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=50)
def test_the_matching_is_the_best_of_all(data):
    shape = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
    values = st.lists(st.integers(0, 4), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    weights = np.array(data.draw(values), np.float64).reshape(shape) / 4
    found = metrics.best_matching(weights)
    few = weights if shape[0] <= shape[1] else weights.T
    best = max(
        sum(few[row, column] for row, column in enumerate(chosen))
        for chosen in itertools.permutations(range(few.shape[1]), few.shape[0])
    )
    assert sum(weights[pair] for pair in found) == pytest.approx(best)
    assert len(found) == len({x for x, _ in found}) == len({x for _, x in found}) == min(shape)


def output(words, spans, links, document=b""):
    """A record's features and outputs: spans by slots, and (span, antecedent, score)s."""
    scores = np.full([len(spans) + 1, 2], -1e9, np.float32)
    antecedents = np.zeros([len(spans) + 1, 2], np.int32)
    for span, antecedent, score in links:
        scores[span, 1], antecedents[span, 1] = score, antecedent
    starts, ends = np.array([*spans, (-1, -1)], np.int32).T
    told = {"starts": starts, "ends": ends, "antecedents": antecedents, "scores": scores}
    return {"example_id": b"d", "document": document, "words": np.array([*words, -1]), **told}


DOCUMENT = b"""{"sentences": [["a", "b", "c"], ["d", "e", "f"]],
"speakers": [["", "", ""], ["", "", ""]], "clusters": [[[0, 0], [3, 4]]]}"""


def test_spans_follow_their_best_antecedents_and_windows_join_by_common_spans():
    first = output(
        [0, 1, 2, 3, 4], [(0, 0), (1, 2), (1, 1), (3, 4)], [(1, 0, -1.0), (3, 0, 2.0)], DOCUMENT
    )
    second = output([3, 4, 5], [(0, 1), (1, 1), (2, 2)], [(2, 0, 0.5)])
    for order in ((first, second), (second, first)):
        (found,) = metrics.combine(map(metrics.line, order)).values()
        assert found["clusters"] == [[[0, 0], [3, 4], [5, 5]]]
        assert found["mentions"] == [["a", "d e", "f"]]
        assert found["gold"] == [[[0, 0], [3, 4]]] and found["words_left_out"] == 0
    assert metrics.metrics([found])["mention_precision"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("count", "problem"), [(0, "lack the first one"), (2, "are of two documents")]
)
def test_records_of_none_or_two_documents_are_refused(count, problem):
    lines = [
        metrics.line(output([0], [], [], DOCUMENT if place < count else b"")) for place in range(2)
    ]
    with pytest.raises(ValueError, match=f"'d' {problem}"):
        metrics.combine(lines)
