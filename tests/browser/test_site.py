"""The documentation site: its search finds, and nothing is wider than a phone."""

import functools
import http.server
import subprocess
import sys
import threading

import pytest

from tests import page as pages
from tests.browser.browser import Page

pytestmark = pytest.mark.browser
ROOT = pages.DOCS.parent
RESULTS = "[data-md-component=search-result] a, .md-search-result a"
PAGES = (
    "index",
    "docs/concepts",
    "docs/systems",
    "docs/nq",
    "docs/processor",
    "docs/performance",
    "docs/notebooks/structure_attention",
    "reference/index",
    "reference/etcmodel.LedModel",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of the site, built and served on this machine."""
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "etcmodel.tools.docs", f"--output_dir={folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def sized(driver):
    """Sets the size of the window, which is as it was afterwards."""
    before = driver.get_window_size()
    yield driver.set_window_size
    driver.set_window_size(before["width"], before["height"])


def searched(driver, address, words):
    """Where the results of a search lead, the best first: list of str."""
    page = Page(driver, f"{address}/index.html")
    page.run("document.querySelector('[data-md-toggle=search]').click()")
    page.shown("input.md-search__input").send_keys(words)
    return page.wait_for(lambda: [x.get_attribute("href") or "" for x in page.all(RESULTS)])


@pytest.mark.parametrize(
    "words, place",
    [
        ("hard masks", "docs/concepts.html"),
        ("LedForConditionalGeneration", "reference/etcmodel.LedForConditionalGeneration.html"),
        ("out of memory", "docs/troubleshooting.html"),
    ],
)
def test_the_search_finds_pages_and_names(driver, address, sized, words, place):
    sized(1440, 900)
    assert any(place in link for link in searched(driver, address, words)[:3])


def test_the_pictures_follow_the_toggle(driver, address, sized):
    sized(1440, 900)
    page = Page(driver, f"{address}/docs/concepts.html")
    shown = "return [...document.querySelectorAll('img[src*=packing]')].filter(x => x.offsetWidth)"
    shown += ".map(x => x.src)"
    before = page.run(shown)
    page.run("document.querySelector('.md-header__option label:not([hidden])').click()")
    after = page.wait_for(lambda: page.run(shown) != before and page.run(shown))
    assert len(before) == len(after) == 1
    assert sum("_dark" in source for source in before + after) == 1


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_fit_into_the_window(driver, address, sized, name, width):
    sized(width, 900)
    page = Page(driver, f"{address}/{name}.html")
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    if width > 1000:
        wide = "x => x.scrollWidth > x.clientWidth + 1 && !x.closest('.language-text')"
        code = f"return [...document.querySelectorAll('pre code')].filter({wide})"
        assert not page.run(f"{code}.map(x => x.textContent)")
    assert page.shown("h1").text
    assert not page.complaints()
