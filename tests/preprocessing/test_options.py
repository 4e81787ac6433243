"""Flags are made from the fields of a dataclass, and come back as its values."""

import dataclasses

import pytest
from absl import flags

from etcmodel.preprocessing import options
from etcmodel.preprocessing.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class Base:
    plain: object = None  # No option: no flag.
    length: int = option(4, "Tokens.", role="model", lower_bound=2)
    path: str | None = option(None, "File.", is_file=True)
    is_used: bool = option(True, "Whether.", role="features")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Derived(Base):
    length: int = option(8, "Tokens of this task.", role="model", flag="seq_len", lower_bound=3)
    rate: float = option(0.5, "Rate.", role="decoding")
    kind: str = option("a", "Kind.", role="decoding", choices=("a", "b"))
    names: tuple = option(("x", "y"), "Names.")


def parse(*arguments, options_class=Derived):
    values = flags.FlagValues()
    options.define_flags(options_class, values)
    values(["program", *arguments], known_only=False)
    return values


def test_defaults_are_those_of_the_class():
    assert Derived(**options.values_from_flags(Derived, parse())) == Derived()


def test_flags_reach_their_fields_with_their_types():
    values = parse(
        "--seq_len=9", "--rate=2", "--kind=b", "--names=p,q", "--nois_used", "--path=here"
    )
    read = options.values_from_flags(Derived, values)
    assert read == {
        "length": 9,
        "path": "here",
        "is_used": False,
        "rate": 2.0,
        "kind": "b",
        "names": ("p", "q"),
    }
    assert isinstance(read["rate"], float)


def test_a_repeated_field_replaces_the_inherited_flag():
    assert "length" in parse(options_class=Base) and "seq_len" not in parse(options_class=Base)
    assert "seq_len" in parse() and "length" not in parse()
    assert options.flag_name(Base, "length") == "length"
    assert options.flag_name(Derived, "length") == "seq_len"
    assert parse()["seq_len"].help == "Tokens of this task."


def test_only_given_flags_and_only_some_roles_can_be_asked_for():
    values = parse("--seq_len=9", "--rate=0.5")
    assert options.values_from_flags(Derived, values, only_given=True) == {"length": 9, "rate": 0.5}
    decoding = options.values_from_flags(Derived, values, only_given=True, roles=("decoding",))
    assert decoding == {"rate": 0.5}


def test_fields_are_selected_by_role():
    given = Derived(length=7, rate=0.1)
    assert options.select(given, "model", "decoding") == {"length": 7, "rate": 0.1, "kind": "a"}
    assert options.select(given, "training") == {}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--seq_len=2", "flag --seq_len=2: 2 is not integer >= 3"),
        ("--kind=c", "value should be one of <a.b>"),
        ("--names", "Missing value for flag --names"),
    ],
)
def test_values_outside_their_range_are_refused(argument, message):
    with pytest.raises(flags.Error, match=message):
        parse(argument)


def test_a_repeated_list_adds_up_and_replaces_its_default():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Types:
        types: tuple = option(("0", "1", "2"), "Types.", is_repeated=True)

    def types(*arguments):
        return options.values_from_flags(Types, parse(*arguments, options_class=Types))["types"]

    assert types() == ("0", "1", "2")
    assert types("--types=3,4") == ("3", "4")
    assert types("--types=3", "--types=4", "--types=5,6") == ("3", "4", "5", "6")


def test_a_file_that_is_not_there_is_named_with_its_flag(tmp_path):
    there = tmp_path / "there"
    there.write_text("")
    options.check_files(Derived(path=str(there)))
    options.check_files(Derived())
    with pytest.raises(ValueError, match="--path: no such file: '.*gone'"):
        options.check_files(Derived(path=str(tmp_path / "gone")))


def test_an_empty_string_is_no_value_where_none_is_the_default():
    assert options.values_from_flags(Derived, parse("--path="))["path"] is None


def test_an_unknown_role_is_refused():
    with pytest.raises(ValueError, match="`role` must be one of .* Received: 'weights'"):
        option(1, "A number.", role="weights")
