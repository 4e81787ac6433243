"""Links between the project's pages lead somewhere."""

import pathlib
import re

import pytest

from tests import page

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "notebooks").glob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
    ROOT / "etcmodel" / "README.md",
]
LINK = re.compile(r"""(?:\]\(|\bsrc(?:set)?=")([^)"\s]+)[)"]""")


def anchors(path):
    """The names of a page's headings, each of which is there once."""
    names = [name for _, _, name in page.headings(path.read_text(encoding="utf-8"))]
    assert len(names) == len(set(names)), path
    return names


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for link in LINK.findall(page.CODE.sub("", path.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name) if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_say_in_words_where_they_lead(path):
    text = page.CODE.sub("", path.read_text(encoding="utf-8"))
    assert not re.findall(r"\[`?[\w./]+\.(?:md|ipynb)`?\]\(", text)
