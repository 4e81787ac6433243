"""The pages of the documentation whose code the tests run."""

import pathlib
import re

__all__ = ["DOCS", "PAGE", "blocks", "code", "code_and_output", "section"]

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
