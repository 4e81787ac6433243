"""The messages in docs/troubleshooting.md are the program's own."""

import ast
import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "troubleshooting.md"
GAP = "…"
HEADINGS = re.findall(r"^### (.*)$", PAGE.read_text(encoding="utf-8"), re.M)
OF_THE_SYSTEM = [heading for heading in HEADINGS if heading.startswith("Killed (")]


def text_of(node):
    """The text of a string, with `GAP` for what is put in, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%\w", GAP, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or GAP for part in node.values)
    return None


@functools.cache
def messages():
    paths = (path for top in ("etcmodel", "tasks", "tools") for path in (ROOT / top).rglob("*.py"))
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in paths)
    return [text for tree in trees for node in ast.walk(tree) if (text := text_of(node))]


@pytest.mark.parametrize("heading", [x for x in HEADINGS if x not in OF_THE_SYSTEM])
def test_a_heading_is_in_a_message(heading):
    # Two places beside each other that something is put in are one in the page.
    assert any(heading in re.sub(f"{GAP}+", GAP, text) for text in messages())
