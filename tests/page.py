"""The pages of the documentation whose code the tests run."""

import os
import pathlib
import re
import subprocess

from tests.warm import python as warm

__all__ = [
    "DOCS",
    "PAGE",
    "blocks",
    "code",
    "code_and_output",
    "run_commands",
    "run_python",
    "section",
]

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PAGE = DOCS / "extending.md"


def section(*titles):
    """The text of the sections with these titles, such as "Add a head"."""
    parts = re.split(r"^## (Add .*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    by_title = dict(zip(parts[1::2], parts[2::2], strict=True))
    return "".join(by_title[title] for title in titles)


def code(*titles):
    """Their blocks of Python, in order: list of str."""
    return re.findall(r"```python\n(.*?)```", section(*titles), re.DOTALL)


def code_and_output(name):
    """All blocks of Python of a page of that name, each with what the page says that it prints."""
    text = (DOCS / name).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    return [(code, output or "") for code, output in found]


def blocks(name):
    """All blocks of Python of a page of that name, in order: list of str."""
    return [code for code, _ in code_and_output(name)]


def run_commands(name, folder, having="python -m"):
    """Runs the one block of commands of a page that has these words, in a folder.

    Programs are begun as `warm.python` tells; the last one of a task is started by Python itself.

    Returns:
        str. What they printed.
    """
    text = (DOCS / name).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)
    (commands,) = (block for kind, block in found if kind in ("", "sh") and having in block)
    first, start, last = commands.rpartition("\npython -m etcmodel.tasks.")
    if start:  # Else all are of the command line.
        commands = f"{first}\nPATH=${{PATH#*:}}{start}{last}"
    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=folder,
        env=warm.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run_python(name, having, folder, export, **names):
    """Runs the one block of Python of a page that has these words, with an export at its place.

    Args:
        name: str. Of the page.
        having: str. The place of the export that the block names, such as "runs/nq/export".
        folder: path. A new folder, in which the block runs.
        export: path. Of the export, to which that place leads.
        **names: what the block uses.
    Returns:
        dict. What is defined then.
    """
    (code,) = (code for code in blocks(name) if having in code)
    place = pathlib.Path(folder) / having
    place.parent.mkdir(parents=True)
    place.symlink_to(export)
    before = os.getcwd()
    os.chdir(folder)
    try:
        exec(code, names)  # The library's own page.
    finally:
        os.chdir(before)
    return names
