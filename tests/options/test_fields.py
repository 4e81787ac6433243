"""Flags are made from the fields of a dataclass, and come back as its values."""

import dataclasses
import subprocess
import sys

import pytest
from absl import flags

from etcmodel import options
from etcmodel.options import changed, option


@dataclasses.dataclass(frozen=True, kw_only=True)
class Base(options.Options):
    aliases = {"size": "length"}

    plain: object = None  # No option: no flag.
    length: int = option(4, "Tokens.", role="model", lower_bound=2, kept_as="max_length")
    path: str | None = option(None, "File.", is_file=True)
    is_used: bool = option(True, "Whether.", role="features")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Derived(Base):
    aliases = {"seq_len": "length", "use": "is_used"}

    length: int = changed(Base, "length", default=8, help_text="Tokens here.", lower_bound=3)
    rate: float = option(0.5, "Rate.", role="decoding", lower_bound=0, upper_bound=1)
    kind: str = option("a", "Kind.", role="decoding", choices=("a", "b"))
    names: tuple = option(("x", "y"), "Names.")
    sizes: tuple[int, ...] = option((1, 2), "Sizes.")


def program_flags(options_class, *arguments):
    values = flags.FlagValues()
    program = options.ProgramFlags({"task": options_class}, values)
    program.define()
    values(["program", *arguments], known_only=False)
    return program, values


def parse(*arguments, options_class=Derived):
    program, values = program_flags(options_class, *arguments)
    program.resolve_aliases()
    return values


def test_defaults_are_those_of_the_class():
    assert Derived(**options.values_from_flags(Derived, parse())) == Derived()


def test_flags_reach_their_fields_with_their_types():
    values = parse(
        "--length=9", "--rate=1", "--kind=b", "--names=p,q", "--nois_used", "--path=here"
    )
    read = options.values_from_flags(Derived, values)
    assert read == {
        "length": 9,
        "path": "here",
        "is_used": False,
        "rate": 1.0,
        "kind": "b",
        "names": ("p", "q"),
        "sizes": (1, 2),
    }
    assert isinstance(read["rate"], float)
    assert options.values_from_flags(Derived, parse("--sizes=7,8"))["sizes"] == (7, 8)


def test_a_changed_option_keeps_what_is_not_changed():
    (field,) = [f for f in options.option_fields(Derived) if f.name == "length"]
    assert field.default == 8 and Base().length == 4
    assert field.metadata["role"] == "model" and field.metadata["lower_bound"] == 3
    assert parse()["length"].help == "Tokens here."
    with pytest.raises(ValueError, match="`length` must be at least 3. Received: 2"):
        Derived(length=2)
    assert Base(length=2).length == 2


def test_only_given_flags_and_only_some_roles_can_be_asked_for():
    values = parse("--seq_len=9", "--rate=0.5")
    assert options.values_from_flags(Derived, values, only_given=True) == {"length": 9, "rate": 0.5}
    decoding = options.values_from_flags(Derived, values, only_given=True, roles=("decoding",))
    assert decoding == {"rate": 0.5}


def test_fields_are_selected_by_role():
    given = Derived(length=7, rate=0.1)
    assert options.select(given, "model", "decoding") == {"length": 7, "rate": 0.1, "kind": "a"}
    assert options.select(given, "training") == {}


def test_options_are_kept_under_their_former_names_and_read_by_any_of_them():
    assert options.kept(Derived(length=7), "model") == {"max_length": 7}
    for name in ("max_length", "length", "seq_len", "size"):
        read = options.from_kept(Derived, {name: 7, "names": ["z"], "other": 1})
        assert read == {"length": 7, "names": ("z",), "other": 1}


class TestAliases:
    def test_they_set_their_option_and_are_shown_as_aliases(self):
        for name in ("seq_len", "size", "length"):
            assert parse(f"--{name}=9")["length"].value == 9
        assert parse("--nouse")["is_used"].value is False
        values = parse()
        assert values["seq_len"].help == "Alias of --length."
        assert "Alias of --length." in values.get_help()
        assert "seq_len" not in parse(options_class=Base)

    def test_equal_values_are_fine_and_different_ones_an_error(self):
        assert parse("--seq_len=9", "--size=9", "--length=9")["length"].value == 9
        for arguments, message in (
            (["--length=8", "--size=9"], "--size=9 contradicts --length=8. Give one of them."),
            (["--seq_len=8", "--size=9"], "--seq_len=8 contradicts --size=9. Give one of them."),
        ):
            with pytest.raises(ValueError) as error_info:
                parse(*arguments)
            assert str(error_info.value) == message

    def test_they_must_name_options(self):
        with pytest.raises(ValueError, match=r"`aliases` must name options. Received: \['len'\]"):
            options.ProgramFlags({"task": Base}, flags.FlagValues(), aliases={"n": "len"})
        with pytest.raises(ValueError, match=r"`defaults` must name options. Received: \['len'\]"):
            options.ProgramFlags({"task": Base}, flags.FlagValues(), defaults={"len": 3})


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--length=2", "flag --length=2: 2 is not integer >= 3"),
        ("--seq_len=2", "flag --seq_len=2: 2 is not integer >= 3"),
        # absl makes one parser for 0 and 0.0, and tells the limits as the first program gave them.
        (
            "--rate=1.5",
            r"flag --rate=1.5: 1.5 is not a number in the range \[0(\.0)?, 1(\.0)?\]",
        ),
        ("--kind=c", "value should be one of <a.b>"),
        ("--names", "Missing value for flag --names"),
    ],
)
def test_flags_outside_their_range_are_refused(argument, message):
    with pytest.raises(flags.Error, match=message):
        parse(argument)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"length": 2}, "`length` must be at least 3. Received: 2"),
        ({"rate": 1.5}, "`rate` must be between 0 and 1. Received: 1.5"),
        ({"rate": float("nan")}, "`rate` must be between 0 and 1. Received: nan"),
        ({"kind": "c"}, r"`kind` must be one of \('a', 'b'\). Received: 'c'"),
    ],
)
def test_values_outside_their_range_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Derived(**fields)


def test_items_that_are_no_integers_are_named_with_their_flag():
    with pytest.raises(ValueError, match="--sizes must be integers. Received: 1,b"):
        options.values_from_flags(Derived, parse("--sizes=1,b"))


def test_a_repeated_list_adds_up_and_replaces_its_default():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Types(options.Options):
        types: tuple[int, ...] = option((0, 1, 2), "Types.", is_repeated=True)

    def types(*arguments):
        return options.values_from_flags(Types, parse(*arguments, options_class=Types))["types"]

    assert types() == (0, 1, 2)
    assert types("--types=3,4") == (3, 4)
    assert types("--types=3", "--types=4", "--types=5,6") == (3, 4, 5, 6)


def test_items_of_a_list_are_among_its_choices():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Models(options.Options):
        models: tuple = option(("etc",), "Models.", choices=("etc", "bert"))
        rows: tuple = option(("a", "a, b"), "A row.", choices=("a", "a, b"), is_repeated=True)

    def models(*arguments):
        program, values = program_flags(Models, *arguments)
        program.read_config()
        return Models(**options.values_from_flags(Models, values))

    assert models() == Models()
    assert models("--models=bert,etc").models == ("bert", "etc")
    assert models("--rows=a, b").rows == ("a, b",)  # An item each time: no comma divides.
    assert models("--rows=a, b", "--rows=a").rows == ("a, b", "a")
    assert models("--override=rows=a, b").rows == ("a, b",)
    with pytest.raises(ValueError, match=r"`models` must be one of .* Received: 'gpt'"):
        models("--models=etc,gpt")
    with pytest.raises(flags.Error, match="should be one of <a|a, b>"):
        models("--rows=b")


def test_a_file_that_is_not_there_is_named_with_its_flag(tmp_path):
    there = tmp_path / "there"
    there.write_text("")
    options.check_files(Derived(path=str(there)))
    options.check_files(Derived())
    with pytest.raises(ValueError, match="--path: no such file: '.*gone'"):
        options.check_files(Derived(path=str(tmp_path / "gone")))


def test_what_is_changed_must_be_an_option():
    with pytest.raises(ValueError, match="^Base has no option 'lenght'.$"):
        changed(Base, "lenght", default=8)


def test_an_empty_string_is_no_value_where_none_is_the_default():
    assert options.values_from_flags(Derived, parse("--path="))["path"] is None


def test_an_unknown_role_is_refused():
    with pytest.raises(ValueError, match="`role` must be one of .* Received: 'weights'"):
        option(1, "A number.", role="weights")


def test_options_need_no_tensorflow():
    code = "import sys, etcmodel.options; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


class TestHelpTexts:
    def test_they_replace_the_inherited_one_and_nothing_else(self):
        @dataclasses.dataclass(frozen=True, kw_only=True)
        class Explained(Derived):
            help_texts = {"rate": "How fast."}

        before = {field.name: field for field in options.option_fields(Derived)}
        after = {field.name: field for field in options.option_fields(Explained)}
        assert list(after) == list(before)
        assert after["rate"].metadata == {**before["rate"].metadata, "help_text": "How fast."}
        assert after["rate"].default == before["rate"].default
        assert after["rate"].type == before["rate"].type

    @pytest.mark.parametrize("name", ["absent", "own"])
    def test_they_must_name_inherited_options(self, name):
        namespace = {"__annotations__": {"own": int}, "own": options.option(1, "Own.")}
        with pytest.raises(TypeError, match=f"`help_texts` of Wrong must name .* '{name}'"):
            type("Wrong", (Derived,), {**namespace, "help_texts": {name: "?"}})


def test_options_that_two_classes_share_are_taken_from_one_to_the_other():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Other(options.Options):
        rate: float = options.option(7.0, "A rate.")
        another: int = options.option(3, "Base has none.")
        name: str = "no option here"

    assert options.shared(Other, Derived(rate=0.25)) == {"rate": 0.25}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Needing(options.Options):
    source: str = option("", "File.", is_needed=True)
    texts: tuple = option((), "Texts.", is_needed=True)
    output: str | None = option(None, "Folder.", is_needed=True)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "source"),
        ({"source": "", "texts": ("a",), "output": "b"}, "source"),
        ({"source": "a", "output": "b"}, "texts"),
        ({"source": "a", "texts": ("b",)}, "output"),
    ],
)
def test_what_is_needed_must_be_given(given, missing):
    with pytest.raises(ValueError, match=f"^--{missing} must be given.$"):
        Needing(**given)
    assert Needing(source="a", texts=("b",), output="c").output == "c"


def test_a_zero_is_given():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Numbers(options.Options):
        port: int | None = option(None, "Number.", is_needed=True)

    assert Numbers(port=0).port == 0
    with pytest.raises(ValueError, match="^--port must be given.$"):
        Numbers()


def test_help_tells_what_must_be_given():
    _, values = program_flags(Needing)
    assert values["output"].help == "Folder. Must be given."
    assert values["texts"].help == "Texts. Must be given."
