"""Values in messages: as Python writes them, and of a sane length whatever they are."""

from hypothesis import given
from hypothesis import strategies as st

from etcmodel.shown_values import as_flag, named, shortened, shown

SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner),
    max_leaves=4,
)


@given(SMALL)
def test_what_is_short_is_shown_as_python_writes_it(value):
    assert shown(value) == repr(value) or len(repr(value)) > 100 or "..." in shown(value)


def test_what_is_long_loses_its_middle():
    assert shortened("a" * 10, 10) == "a" * 10
    assert shortened("begin" + "x" * 100 + "end!!", 10) == "begin … (110 characters) … end!!"
    assert shown("x" * 9000).startswith("'xxx") and shown("x" * 9000).endswith("xxx'")


def test_values_of_flags_are_those_of_a_command_line():
    assert [as_flag(x) for x in (True, 3, 1e-5, "a b", None)] == [
        "true",
        "3",
        "1e-05",
        "a b",
        "None",
    ]
    assert as_flag(("a", "b")) == as_flag(["a", "b"]) == "a,b"
    assert len(as_flag("x" * 9000)) < 500 and len(as_flag(["x" * 9000])) < 500


def test_every_value_is_shown_in_a_short_line():
    lists, entries = [[0] * 10**5] * 99, dict.fromkeys(range(999), "y" * 9999)
    for value in (10**9000, -(10**9000), "x" * 10**6, "\n" * 10**6, lists, entries):
        assert 0 < len(shown(value)) < 300 and "\n" not in shown(value)


def test_an_integer_that_python_would_not_write_is_shown_by_its_size():
    assert shown(1 << 20_000) == "an integer of 20001 bits"


def test_of_many_names_the_first_are_told_and_of_long_ones_both_ends():
    assert named(["a", 3]) == "a, 3"
    assert named([str(number) for number in range(9)]) == "0, 1, 2, 3, 4 and 4 more"
    assert len(named(["x" * 9000] * 9)) < 1500
