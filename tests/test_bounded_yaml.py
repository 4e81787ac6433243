"""YAML within bounds: plain values as PyYAML has them, all else refused in a line at once."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.bounded_yaml import MAX_BYTES, MAX_DEPTH, MAX_VALUES, loads

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab1~ <", max_size=3), inner)
    ),
    max_leaves=6,
)


def bomb(num_levels, width):
    """Lists of aliases: of 300 bytes the last line stands for `width ** num_levels` values."""
    lines = ["a0: &a0 [" + ",".join("x" * width) + "]"]
    for level in range(1, num_levels):
        aliases = ",".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return "\n".join(lines)


@given(PLAIN)
@settings(max_examples=150)
def test_what_pyyaml_writes_is_read_back(value):
    assert loads(yaml.safe_dump(value, allow_unicode=True), "f") == value


def test_anchors_aliases_and_merges_are_taken_within_the_bounds():
    text = "base: &base {rate: 1, steps: [1, 2]}\nmine: {<<: *base, rate: 2}\nsame: *base\n"
    base = {"rate": 1, "steps": [1, 2]}
    assert loads(text, "f") == {"base": base, "mine": {**base, "rate": 2}, "same": base}
    assert loads("- " * (MAX_DEPTH - 1) + "x", "f")
    assert len(loads("- x\n" * (MAX_VALUES - 1), "f")) == MAX_VALUES - 1
    assert loads(b"a: b #" + b"c" * (MAX_BYTES - 6), "f") == {"a": "b"}


def test_what_looks_like_a_date_is_a_text():
    assert loads("[2001-01-01, 2001-99-99, 2001-01-01 10:00:00]", "f") == [
        *("2001-01-01", "2001-99-99", "2001-01-01 10:00:00")
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            bomb(9, 9),
            "f, line 5: malformed YAML: more than 10000 values, those of aliases included.",
        ),
        ("- x\n" * MAX_VALUES, "f, line 10000: malformed YAML: more than 10000 values"),
        ("a: &a {b: &b [x, *a]}", "f, line 1: malformed YAML: the alias 'a' stands within itself."),
        (
            "a: " + "[" * 3000 + "]" * 3000,
            "f, line 1: malformed YAML: nested deeper than 50 levels.",
        ),
        ("- " * 3000 + "x", "f, line 1: malformed YAML: nested deeper than 50 levels."),
        ("? " * 3000 + "x", "f, line 1: malformed YAML: nested deeper than 50 levels."),
        (
            "a: &a " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 30 + "*a" + "]" * 30,
            "f, line 2: malformed YAML: nested deeper than 50 levels.",
        ),
        ("x" * (MAX_BYTES + 1), "f: is longer than 256 KiB."),
        ("\nn: " + "9" * 400, "f, line 2: malformed YAML: '999"),
        (
            "n: 9223372036854775808",
            "f, line 1: malformed YAML: '9223372036854775808' does not fit into",
        ),
        ("n: " + "9" * 5000, "f, line 1: malformed YAML: '999"),
        ("n: 0x" + "f" * 5000, "f, line 1: malformed YAML: '0xfff"),
        ("n: 1" + ":1" * 9000, "f, line 1: malformed YAML: '1:1:1"),
        ("n: " + "1:" * 999 + "1.5", "f, line 1: malformed YAML: '1:1:1"),
        ("n: !!int ''", "f, line 1: malformed YAML: '' is no value of the kind `int`."),
        ("n: !!float ''", "f, line 1: malformed YAML: '' is no value of the kind `float`."),
        ("n: !!bool x", "f, line 1: malformed YAML: 'x' is no value of the kind `bool`."),
        ("n: !!map [a]", "f, line 1: malformed YAML: expected a mapping node, but found sequence."),
        ("n: !!seq {a: b}", "f, line 1: malformed YAML: expected a sequence node, but found"),
        ("n: !!timestamp x", "f, line 1: malformed YAML: 'timestamp' is no kind of value here."),
        ("n: !!binary eA==", "f, line 1: malformed YAML: 'binary' is no kind of value here."),
        ("n: !!set {a}", "f, line 1: malformed YAML: 'set' is no kind of value here."),
        ("n: !!python/name:os.system", "f, line 1: malformed YAML: 'python/name:os.system' is no"),
        ("n: !" + "t" * 9000 + " x", "f, line 1: malformed YAML: '!ttt"),
        ("n: *" + "b" * 9000, "f, line 1: malformed YAML: found undefined alias 'bbb"),
        ("? [a]\n: 3", "f, line 1: malformed YAML: found unhashable key."),
        ("a: 1\n" + '"a": 2', "f, line 2: malformed YAML: `a` stands there twice."),
        ("k" * 900 + ": 1\n" + "k" * 900 + ": 2", "f, line 2: malformed YAML: `kkk"),
        ("a: b\nc: \x00", "f, line 2: malformed YAML: the character U+0000 is not allowed."),
        ("a: [", "f, line 1: malformed YAML: "),
        ("a\n---\nb", "f, line 2: malformed YAML: but found another document."),
        (b"a: \xff", "f: is not UTF-8: invalid start byte at byte 3."),
        ("\ud800: 1", "f: is not UTF-8: "),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_refused_is_told_in_a_short_line(text, problem):
    with pytest.raises(ValueError) as error:
        loads(text, "f")
    message = str(error.value)
    assert message.startswith(problem)
    assert "\n" not in message and len(message) < 600


def test_integers_are_those_of_64_bits_with_a_sign():
    assert loads("[-9223372036854775808, 9223372036854775807]", "f") == [-(2**63), 2**63 - 1]


@given(st.text("ab1:-?*&!<>[]{},'\"|# \n\t%~=.", max_size=60))
@settings(max_examples=400)
def test_any_text_is_read_as_pyyaml_does_or_refused(text):
    try:
        value = loads(text, "f")
    except ValueError as error:
        assert str(error).startswith("f") and "\n" not in str(error)
    else:
        assert value == yaml.safe_load(text) or value != value or "nan" in repr(value)
