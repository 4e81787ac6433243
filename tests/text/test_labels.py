"""Labels as people write them become what a model learns, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcmodel.text.labels import MULTI_LABEL, REGRESSION, Labels, in_order

WORDS = st.lists(st.text("abc1 ", min_size=1).map(str.strip).filter(bool), min_size=1, unique=True)


def test_numbers_come_by_size_and_words_after_them():
    assert in_order(["b", "10", "a", "9", "b"]) == ("9", "10", "a", "b")
    assert in_order(["1", "-1", "-", "0"]) == ("-1", "0", "1", "-")


@given(names=WORDS, data=st.data())
def test_a_label_is_the_number_of_its_name(names, data):
    name = data.draw(st.sampled_from(names))
    assert names[Labels(names).target(f" {name} ")] == name
    several = data.draw(st.lists(st.sampled_from(names), unique=True))
    flags = [int(x in several) for x in names]
    assert Labels(names, MULTI_LABEL).target(several) == flags
    assert Labels(names, MULTI_LABEL).target("|".join(several)) == flags


@pytest.mark.parametrize(
    ("labels", "value", "target"),
    [
        (Labels(["neg", "pos"]), 1, 1),  # Such as of a `ClassLabel`.
        (Labels(["1", "2"]), 1, 0),  # The name goes first.
        (Labels(["1", "2"]), 2.0, 1),  # Of a column with a missing cell, by pandas.
        (Labels(["-1", "1"]), -1.0, 0),
        (Labels(["neg", "pos"]), 1.0, 1),
        (Labels(["a", "b", "2"], MULTI_LABEL), ["a", 2.0], [1, 0, 1]),
        (Labels(["false", "true"]), True, 1),
        (Labels(["neg", "pos"]), True, 1),
        (Labels(3), "2", 2),
        (Labels(3), 2, 2),
        (Labels(["a", "b", "c"], MULTI_LABEL), [1, 0, 1], [1, 0, 1]),
        (Labels(3, MULTI_LABEL), [0, 1, 1], [0, 1, 1]),
        (Labels((), REGRESSION), "0.5", 0.5),
    ],
)
def test_what_else_says_a_label(labels, value, target):
    assert labels.target(value) == target and labels.has(value)


@pytest.mark.parametrize(
    ("labels", "value", "message"),
    [
        (Labels(["neg", "pos"]), "great", r"^'great' is none of the 2 labels: 'neg', 'pos'$"),
        (Labels(["neg", "pos"]), 2, "^2 is none of the 2 labels"),
        (Labels(["neg", "pos"]), -1, "^-1 is none of"),
        (Labels(["1", "2"]), 0, "^0 is none of the 2 labels: '1', '2'"),
        (Labels(["neg", "pos"]), 2.0, "^2.0 is none of the 2 labels"),
        (Labels(["neg", "pos"]), float("nan"), "must be a label"),
        (Labels(["neg", "pos"]), float("inf"), "must be a label"),
        (Labels(["neg", "pos"]), 1e17, "must be a label"),
        (Labels(["neg", "pos"]), 0.5, "must be a label: a string, a whole number, true or false"),
        (Labels(["neg", "pos"]), ["neg"], "must be a label"),
        (Labels(2), "neg", "must be a whole number below 2, since the labels have no names"),
        (Labels(list("abcdefg")), "x", r"'a', 'b', 'c', 'd', 'e', \.\.\.$"),
        (Labels(["a", "b", "c"], MULTI_LABEL), [1, 0], "'1' is none of the 3 labels"),
        (Labels(["a"], MULTI_LABEL), 1.5, "must be a list of labels"),
        (Labels(["a"], MULTI_LABEL), "a|b", "'b' is none of the 1 labels"),
        (Labels((), REGRESSION), "nan", "must be a finite number"),
        (Labels((), REGRESSION), True, "must be a finite number"),
        (Labels((), REGRESSION), "1_5", "must be a finite number"),  # Python reads 15.
    ],
)
def test_what_says_none_is_refused(labels, value, message):
    assert not labels.has(value)
    with pytest.raises(ValueError, match=message):
        labels.target(value)
