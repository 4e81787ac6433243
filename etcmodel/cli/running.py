"""Starts a program of the package in this process, as `python -m` would."""

import ast
import importlib.util
import sys
import types
import typing

__all__ = ["run", "summary"]


def run(module: str, title: str, arguments: list[str]) -> None:
    """Runs a module as the main program.

    Processes that the program starts find it under its own name, as after `python -m`.

    Args:
        module: str. Its full name.
        title: str. The program's name in `--help`.
        arguments: list of str.
    Raises:
        SystemExit: as the program exits.
    """
    loader, main = _loader(module), types.ModuleType("__main__")
    main.__spec__ = importlib.util.find_spec(module)
    main.__package__, main.__file__ = module.rpartition(".")[0], loader.get_filename(module)
    before = sys.modules["__main__"], sys.argv
    sys.modules["__main__"], sys.argv = main, [title, *arguments]
    try:
        exec(loader.get_code(module), main.__dict__)
    finally:
        sys.modules["__main__"], sys.argv = before


def summary(module: str) -> str:
    """The first line of a module's docstring, read without running the module."""
    source = _loader(module).get_source(module)
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def _loader(module: str) -> typing.Any:
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    return spec.loader
