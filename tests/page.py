"""The pages of the documentation whose code the tests run."""

import contextlib
import io
import os
import pathlib
import re
import subprocess

from tests.warm import python as warm

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PAGE = DOCS / "extending.md"
CODE = re.compile(r"^(`{3,}).*?^\1$", re.M | re.S)  # Blocks, with their fences.


def section(*titles):
    """The text of the sections with these titles, such as "Add a head"."""
    parts = re.split(r"^## (Add .*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    by_title = dict(zip(parts[1::2], parts[2::2], strict=True))
    return "".join(by_title[title] for title in titles)


def code(*titles):
    """Their blocks of Python, in order: list of str."""
    return re.findall(r"```python\n(.*?)```", section(*titles), re.DOTALL)


def code_in_place(*titles):
    """The same, each with so many empty lines before it that its lines have the page's numbers."""
    text = PAGE.read_text(encoding="utf-8")
    return ["\n" * text[: text.index(block)].count("\n") + block for block in code(*titles)]


def headings(text):
    """The headings of a page, in order: list of (line's start, level, anchor)."""
    code = [match.span() for match in CODE.finditer(text)]
    return [
        (match.start(), len(match[1]), anchor(match[2]))
        for match in re.finditer(r"^(#+) (.*)$", text, re.M)
        if not any(start <= match.start() < end for start, end in code)
    ]


def anchor(heading):
    """What a link to a heading names, as GitHub makes it and the site does."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(text, place):
    """The anchors of the sections that hold a place (an int) of a page's text, outermost first."""
    held = []
    for start, level, name in headings(text):
        if start <= place:
            held = [*(x for x in held if x[0] < level), (level, name)]
    return [name for _, name in held]


def read(place):
    """The text of a page, or of its section: "serving.md", "serving.md#over-http"."""
    name, _, section_name = place.partition("#")
    text = (DOCS / name).read_text(encoding="utf-8")
    if not section_name:
        return text
    places = [(at, level) for at, level, name in headings(text) if name == section_name]
    ((start, level),) = places
    ends = [at for at, other, _ in headings(text) if at > start and other <= level]
    return text[start : min(ends, default=len(text))]


def code_and_output(place):
    """All blocks of Python of a page or section, each with what the page says that it prints."""
    text = read(place)
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    return [(code, output or "") for code, output in found]


def blocks(place):
    """All blocks of Python of a page or section, in order: list of str."""
    return [code for code, _ in code_and_output(place)]


def check_output(place, folder, leave_out=""):
    """Runs the blocks of a page or section in order: each prints what stands behind it.

    Args:
        place: str. The page or section.
        folder: path. The folder in which they run.
        leave_out: str. A block with these words is not run.
    Returns:
        dict. What is defined then.
    """
    names, found = {}, code_and_output(place)
    assert found, place
    for code, output in found:
        if not leave_out or leave_out not in code:
            with working_in(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, names)  # The library's own page.
            assert printed.getvalue() == output
    return names


def run_commands(place, folder, having="python -m"):
    """Runs the one block of commands of a page or section that has these words, in a folder.

    Programs are begun as `warm.python` tells; the last one of a task is started by Python itself.

    Returns:
        str. What they printed.
    """
    found = re.findall(r"^```(\w*)\n(.*?)^```", read(place), re.M | re.S)
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


def run_python(place, having, folder, export, **names):
    """Runs the one block of Python of a page that has these words, with an export at its place.

    Args:
        place: str. The page or section.
        having: str. The place of the export that the block names, such as "runs/nq/export".
        folder: path. A new folder, in which the block runs.
        export: path. Of the export, to which that place leads.
        **names: what the block uses.
    Returns:
        dict. What is defined then.
    """
    (code,) = (code for code in blocks(place) if having in code)
    link = pathlib.Path(folder) / having
    link.parent.mkdir(parents=True)
    link.symlink_to(export)
    with working_in(folder):
        exec(code, names)  # The library's own page.
    return names


@contextlib.contextmanager
def working_in(folder):
    """`contextlib.chdir`, which Python 3.10 does not have."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
