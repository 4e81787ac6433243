"""Links between the project's pages lead somewhere."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "notebooks").glob("*.md"),
    *(ROOT / "tasks").glob("*/README.md"),
    *(ROOT / "etcmodel").rglob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
]
LINK = re.compile(r"""(?:\]\(|\bsrc(?:set)?=")([^)"\s]+)[)"]""")
CODE = re.compile(r"^```.*?^```", re.M | re.S)


def anchors(page):
    """The names of a page's headings, as GitHub makes them."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name) if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
