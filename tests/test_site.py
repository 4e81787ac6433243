"""The documentation site is built without a warning, and has what is to be looked up."""

import inspect
import json
import pathlib
import re
import subprocess
import sys
import zlib

import pytest

import etcmodel
from etcmodel import layers, serving

pytestmark = pytest.mark.slow
ROOT = pathlib.Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "etcmodel.tools.docs"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [*COMMAND, f"--output_dir={folder}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stdout + done.stderr
    return folder


def search_text(site):
    """What the search looks through: dict of the texts by their places."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    return {entry["location"]: f"{entry['title']} {entry['text']}" for entry in index["docs"]}


@pytest.mark.exhaustive
def test_the_search_finds_pages_and_docstrings(site):
    texts = search_text(site)
    assert "serve" in texts["docs/serving.html#over-http"].lower()
    assert any("etcmodel.LedModel.html" in place for place in texts)
    memory = {place for place, text in texts.items() if "out of memory" in text.lower()}
    assert any(place.startswith("docs/troubleshooting.html") for place in memory)


def test_each_public_name_has_a_page_with_its_import_and_an_example(site):
    for module in (etcmodel, layers, serving):
        package = module.__name__
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) or value is etcmodel.from_pretrained:
                continue
            pages = [site / "reference" / f"{package}.{name}.html"]
            text = pages[0].read_text(encoding="utf-8")
            words = re.sub(r"<[^>]+>", "", text)
            assert re.search(rf"from {package} import {name}\b", words), name
            assert '<span class="gp">&gt;&gt;&gt; </span>' in text, name


def test_the_inventory_has_every_public_name(site):
    body = (site / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1]
    listed = {line.split(" ")[0] for line in zlib.decompress(body).decode().splitlines()}
    public = [getattr(etcmodel, name) for name in etcmodel.__all__]
    assert {f"{value.__module__}.{value.__qualname__}" for value in public} <= listed
    assert {
        "etcmodel.layers.attention.relative.RelativeAttention",
        "etcmodel.ops.blockwise.attend",
        "etcmodel.ops.structure.GlobalLocalStructure",
    } <= listed


def test_examples_of_docstrings_are_code(site):
    pages = [path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html")]
    page = site / "reference" / "etcmodel.EtcForSequenceClassification.html"
    assert '<span class="go">TensorShape([2, 2])</span>' in page.read_text(encoding="utf-8")
    assert not [page for page in pages if "<blockquote>" in page]  # As Markdown has `>>>`.


def test_sections_of_docstrings_are_lists(site):
    pages = [path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html")]
    # A section of one line, such as "Args: as of a call.", is a paragraph of its own.
    run_on = r"<p>[^<]*\S\s+(?:Call args|Raises|Returns|Yields):\s"
    assert not [found for page in pages for found in re.findall(run_on, page)]
    for section in ("Returns", "Raises"):
        title = f'<span class="doc-section-title">{section}:</span>'
        assert sum(page.count(title) for page in pages) > 100
    # A title that griffe does not know, or a sentence that looks like one, becomes a note.
    assert not [page for page in pages if '<details class="' in page]


def test_there_are_few_pages_beside_the_reference(site):
    pages = [path for path in site.rglob("*.html") if "reference" not in path.parts]
    assert len([path for path in pages if path.name != "404.html"]) <= 30


def test_pictures_follow_the_theme_and_links_stay_on_the_site(site):
    concepts = (site / "docs" / "concepts.html").read_text(encoding="utf-8")
    assert 'src="concepts/packing.png#only-light"' in concepts
    assert 'src="concepts/packing_dark.png#only-dark"' in concepts
    for path in site.rglob("*.html"):
        for link in re.findall(r'href="([^"#:]+\.md)', path.read_text(encoding="utf-8")):
            raise AssertionError(f"{path} has a link to {link}, which is not on the site")


def test_nothing_on_a_page_is_fetched_from_elsewhere(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for start in ('src="http', 'rel="stylesheet" href="http', 'rel="preconnect"'):
            assert start not in text, path
