"""The names and signatures that users of the authors' release rely on, from a table."""

import ast
import importlib
import inspect
import pathlib

import pytest
import tf_keras

from etcmodel import tensor_utils

TABLE = pathlib.Path(__file__).with_name("public_signatures.txt")
# Defaults that are no literals.
VALUES = {
    "tensor_utils.get_activation('gelu')": tensor_utils.gelu,
    "tf.keras.initializers.TruncatedNormal(stddev=0.5)": tf_keras.initializers.TruncatedNormal(
        stddev=0.5
    ),
}


def table_lines():
    """(module, line) of each entry; a line in brackets begins a module."""
    module = None
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            module = f"etcmodel.{line.strip('[]')}"
        elif line:
            yield module, line


SIGNATURES = [(module, line) for module, line in table_lines() if line.endswith(")")]
OTHERS = [(module, line) for module, line in table_lines() if not line.endswith(")")]


def is_constant(line):
    """Whether a line such as `NAME = 5` gives a value, and not where else a name is."""
    _, _, value = line.partition(" = ")
    return bool(value) and not isinstance(ast.parse(value).body[0].value, ast.Name | ast.Attribute)


CONSTANTS = [(module, line) for module, line in OTHERS if is_constant(line)]
NAMES = [(module, line) for module, line in OTHERS if not is_constant(line)]


def listed_parameters(line):
    """`inspect.Parameter`s of a line such as `Name(a, b=1, **kwargs)`; defaults as source."""
    arguments = ast.parse(f"def f{line[line.index('(') :]}: pass").body[0].args
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = [inspect.Parameter.empty] * (len(arguments.args) - len(arguments.defaults))
    defaults += map(ast.unparse, arguments.defaults)
    parameters = [
        inspect.Parameter(argument.arg, kind, default=default)
        for argument, default in zip(arguments.args, defaults, strict=True)
    ]
    variable = (
        (arguments.vararg, inspect.Parameter.VAR_POSITIONAL),
        (arguments.kwarg, inspect.Parameter.VAR_KEYWORD),
    )
    return parameters + [inspect.Parameter(x.arg, kind) for x, kind in variable if x]


def actual_parameters(module, name):
    found = importlib.import_module(module)
    for part in name.split("."):
        owner, found = found, getattr(found, part)
    parameters = list(inspect.signature(found).parameters.values())
    is_method = inspect.isclass(owner) and parameters and parameters[0].name == "self"
    return parameters[1:] if is_method else parameters


def value_of(module, source):
    if source in VALUES:
        return VALUES[source]
    if source.isidentifier() and not isinstance(ast.parse(source).body[0].value, ast.Constant):
        return getattr(importlib.import_module(module), source)
    return ast.literal_eval(source)


def default_of(parameter):
    """The default; what a dataclass makes for each object counts, too."""
    default = parameter.default
    return [] if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS" else default


def is_same(default, expected):
    if isinstance(expected, tf_keras.initializers.Initializer):
        return type(default) is type(expected) and default.get_config() == expected.get_config()
    return type(default) is type(expected) and default == expected


@pytest.mark.parametrize(
    "module, line", SIGNATURES, ids=[f"{m}.{line.split('(')[0]}" for m, line in SIGNATURES]
)
def test_arguments_have_the_listed_names_order_and_defaults_and_ours_come_last(module, line):
    listed = listed_parameters(line)
    actual = actual_parameters(module, line.split("(")[0])
    plain = [p for p in actual if p.kind is p.POSITIONAL_OR_KEYWORD]
    wanted = [p for p in listed if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in plain[: len(wanted)]] == [p.name for p in wanted]
    for parameter, expected in zip(plain, wanted, strict=False):
        if expected.default is inspect.Parameter.empty:
            assert parameter.default is inspect.Parameter.empty, parameter
        else:
            value = value_of(module, expected.default)
            assert is_same(default_of(parameter), value), parameter
    ours = [p for p in actual if p.name not in {x.name for x in listed}]
    assert all(p.default is not p.empty for p in ours if p.kind is not p.VAR_KEYWORD), ours
    variable = {p.kind for p in listed} - {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    assert variable <= {p.kind for p in actual}


@pytest.mark.parametrize("module, line", NAMES, ids=[f"{m}.{line}" for m, line in NAMES])
def test_names_are_where_the_release_has_them(module, line):
    name, _, path = line.partition(" = ")
    found = importlib.import_module(module)
    expected = getattr(found, name)
    if not path:
        assert inspect.ismodule(expected) and expected.__name__ == f"{module}.{name}"
        return
    for part in path.split("."):
        found = getattr(found, part)
    assert found is expected


@pytest.mark.parametrize(
    "module, line", CONSTANTS, ids=[f"{m}.{line.split()[0]}" for m, line in CONSTANTS]
)
def test_constants_have_the_listed_values(module, line):
    name, _, value = line.partition(" = ")
    assert is_same(getattr(importlib.import_module(module), name), ast.literal_eval(value))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b=1: None,
        lambda a, x=1, c=None: None,
        lambda a, c=None, b=1: None,
        lambda a, b=True, c=None: None,
        lambda a, d=2, b=1, c=None: None,
        lambda a, b=1, d=2, c=None: None,
        lambda a=0, b=1, c=None: None,
        lambda a, b=1, *, c=None: None,
    ],
)
def test_the_check_tells_every_kind_of_difference(function, monkeypatch):
    check = test_arguments_have_the_listed_names_order_and_defaults_and_ours_come_last
    probe = "etcmodel.tensor_utils", "probe(a, b=1, c=None)"
    monkeypatch.setattr(tensor_utils, "probe", lambda a, b=1, c=None, d=2: None, raising=False)
    check(*probe)
    monkeypatch.setattr(tensor_utils, "probe", function)
    with pytest.raises(AssertionError):
        check(*probe)
