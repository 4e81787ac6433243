"""What type checkers are told of the package's names is what `__init__.py` imports."""

import ast
import pathlib

import tomllib

import etcmodel

ROOT = pathlib.Path(__file__).parents[1]
STUB = ast.parse((ROOT / "etcmodel" / "__init__.pyi").read_text(encoding="utf-8"))


def functions(tree):
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def arguments(function):
    """The names and the defaults of a function's arguments."""
    names = function.args
    plain = [x.arg for x in (*names.args, *names.kwonlyargs)]
    defaults = [x and ast.unparse(x) for x in (*names.defaults, *names.kw_defaults)]
    return plain, defaults, names.kwarg and names.kwarg.arg


def test_the_stub_has_each_name_from_its_home():
    homes = {
        alias.name: node.module
        for node in STUB.body
        if isinstance(node, ast.ImportFrom) and node.module not in ("typing", "etcmodel")
        for alias in node.names
    }
    ours = {name: home for name, home in etcmodel._HOMES.items() if home != "etcmodel.checkpoints"}
    assert homes == ours, "bring etcmodel/__init__.pyi in line with `_HOMES` of `__init__.py`"
    (names,) = (
        node.value
        for node in STUB.body
        if isinstance(node, ast.Assign) and "__all__" in [x.id for x in node.targets]
    )
    assert set(ast.literal_eval(names)) == set(etcmodel.__all__)


def test_the_loaders_have_the_arguments_of_the_stub():
    path = ROOT / "etcmodel" / "checkpoints" / "pretrained.py"
    real = {x.name: arguments(x) for x in functions(ast.parse(path.read_text(encoding="utf-8")))}
    *overloads, save = functions(STUB)
    assert [x.name for x in overloads] == ["from_pretrained"] * 2 and save.name == "save_pretrained"
    assert arguments(save) == real["save_pretrained"]
    assert arguments(overloads[1]) == real["from_pretrained"]
    assert arguments(overloads[0])[0] == real["from_pretrained"][0]


def test_the_package_is_marked_and_what_is_checked_is_there():
    assert (ROOT / "etcmodel" / "py.typed").exists()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert all((ROOT / name).exists() for name in settings["files"])
    assert settings["disallow_untyped_defs"] and settings["check_untyped_defs"]
