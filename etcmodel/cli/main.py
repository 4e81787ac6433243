"""Parses the command line of `etcmodel` and starts the program, or explains what is wrong."""

import ast
import difflib
import importlib.util
import os
import pathlib
import sys
import textwrap
import types
import typing
from collections.abc import Iterable

import etcmodel
from etcmodel import program_start
from etcmodel.cli.commands import AIMS, COMMANDS, Command

_WHAT = "ETC and other encoders of long and structured inputs, for TensorFlow 2"
_HELP = ("--help", "-help", "-h")
_FLAG_OF_MODE = "run_mode"


class UsageError(Exception):
    """The command line names no program."""


def main() -> None:
    """Runs the command line, as the entry point of the `etcmodel` command.

    Raises:
        SystemExit: as `run`.
    """
    program_start.begin()
    try:
        run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # The reader of the help has stopped, such as `| head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)


def run(words: list[str]) -> None:
    """Runs a command given as words, such as ["train", "hotpotqa", "--output_dir=run"].

    Raises:
        SystemExit: with code 1, after a one-sentence message, if the words name no program;
            otherwise as the program exits.
    """
    try:
        _run(words)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _run(words: list[str]) -> None:
    if not words or words[0] in _HELP:
        print(_help())
    elif words[0] == "--version":
        print(f"etcmodel {etcmodel.__version__}")
    elif words[0] in COMMANDS:
        _run_command(words[0], words[1:])
    else:
        raise UsageError(_no_such(f"there is no command {words[0]!r}", words[0], COMMANDS))


def _run_command(name: str, words: list[str]) -> None:
    command, follows = COMMANDS[name], ""
    programs, others = command.programs(), command.names()
    if words and not words[0].startswith("-"):
        follows, *words = words
    if follows and command.has_words:
        follows, words = "", [follows, *words]
    asks_for_help = words[:1] and words[0] in _HELP
    if follows in programs:
        program, title = programs[follows], f"etcmodel {name} {follows}".rstrip()
        _check_mode(title, program.flags, words)
        if asks_for_help:
            words = ["--help", *words[1:]]
            if others and not follows:
                print(f"`{title} NAME` runs another program. NAME is one of {', '.join(others)}.\n")
        if program.is_of_checkout:
            _find_in_checkout(program.module, title)
        run_module(program.full_name, title, [*program.flags, *words])
    elif follows and not others:
        raise UsageError(f"`etcmodel {name}` takes flags alone. Received: {follows!r}")
    elif of_others := [other for other, x in COMMANDS.items() if follows in x.names()]:
        known = f"For {follows} there are: {', '.join(of_others)}."
        raise UsageError(f"`etcmodel {name}` has no {follows!r}. {known}")
    elif follows:
        raise UsageError(_no_such(f"`etcmodel {name}` has no {follows!r}", follows, others))
    elif asks_for_help:
        print(_help_of(name, command))
    else:
        raise UsageError(f"`etcmodel {name}` must be followed by one of {', '.join(others)}.")


def _find_in_checkout(module: str, title: str) -> None:
    """Lets a module be imported that is part of the checkout, not of the installed package."""
    root = pathlib.Path(etcmodel.__file__).parents[1]
    if not root.joinpath(*module.split(".")).with_suffix(".py").exists():
        raise UsageError(
            f"`{title}` is in the checkout, and {str(root)!r} is none. Run this from one, after "
            "`make` or `pip install -e .`."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def _check_mode(title: str, preset: tuple[str, ...], words: list[str]) -> None:
    """Rejects a mode beside the command's own: one of them would be ignored."""
    given = any(x.lstrip("-").partition("=")[0] == _FLAG_OF_MODE for x in words if x[:1] == "-")
    for flag in preset:
        if given and flag.startswith(f"--{_FLAG_OF_MODE}="):
            raise UsageError(f"`{title}` gives {flag} itself. Leave --{_FLAG_OF_MODE} out.")


def _no_such(what: str, word: str, known: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), by_lower, cutoff=0.5)
    if close:
        return f"{what}. The nearest: {', '.join(by_lower[name] for name in close)}."
    return f"{what}. There are {', '.join(sorted(by_lower.values()))}."


def _help() -> str:
    width = max(map(len, COMMANDS))
    tables = [
        f"{aim}:\n{_table([(name, COMMANDS[name].summary) for name in names], width)}\n\n"
        for aim, names in AIMS.items()
    ]
    return (
        f"etcmodel: {_WHAT}\n\n"
        "usage: etcmodel COMMAND [NAME] [--flag=value ...]\n\n"
        f"{''.join(tables)}"
        "`etcmodel COMMAND --help` lists the names that may follow, such as data sets, or the\n"
        "flags if no name is needed; `etcmodel COMMAND NAME --help` lists the flags of a program."
    )


def _help_of(name: str, command: Command) -> str:
    programs = sorted(command.programs().items())
    rows = [(follows, summary(x.full_name)) for follows, x in programs]
    return (
        f"usage: etcmodel {name} NAME [--flag=value ...]\n\n"
        f"{command.summary} NAME is one of\n\n"
        f"{_table(rows)}\n\n"
        f"`etcmodel {name} {rows[0][0]} --help` lists the flags."
    )


def _table(rows: list[tuple[str, str]], width: int = 0) -> str:
    width = max(width, *(len(name) for name, _ in rows))
    return textwrap.indent("\n".join(f"{name:{width}}  {what}" for name, what in rows), "  ")


# Starts a program of the package in this process, as `python -m` would.


def run_module(module: str, title: str, arguments: list[str]) -> None:
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
