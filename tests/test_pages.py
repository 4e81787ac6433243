"""Links between the project's pages lead somewhere; some pages' code prints what they show."""

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


@pytest.mark.parametrize(
    ("place", "made"),
    [
        pytest.param("keras3.md", (), marks=pytest.mark.exhaustive),
        pytest.param("processor.md", ("batch.png",), marks=pytest.mark.slow),
        pytest.param("serving.md#strings-in-answers-out", (), marks=pytest.mark.slow),
    ],
)
def test_a_page_shows_what_its_code_prints(place, made, tmp_path):
    page.check_output(place, tmp_path)
    assert all((tmp_path / name).exists() for name in made)
