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
    "reference/etcmodel.models.led",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of the site, built and served on this machine."""
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    command += ["-f", "docs/site/mkdocs.yml"]
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


def test_the_search_finds_a_page_and_a_name(driver, address, sized):
    sized(1300, 1000)
    page = Page(driver, f"{address}/index.html")
    page.press("TAB")
    page.run("document.querySelector('[data-md-toggle=search]').click()")
    field = page.shown("input.md-search__input, [type=search], [type=text]")
    field.send_keys("hard masks")
    found = page.wait_for(lambda: [x.get_attribute("href") for x in page.all(RESULTS)])
    assert any("docs/concepts.html" in link for link in found)
    field.clear()
    field.send_keys("LedForConditionalGeneration")
    page.wait_for(
        lambda: any(
            "etcmodel.models.led" in (x.get_attribute("href") or "") for x in page.all(RESULTS)
        )
    )


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1300, 500])
def test_pages_fit_into_the_window(driver, address, sized, name, width):
    sized(width, 900)
    page = Page(driver, f"{address}/{name}.html")
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert page.shown("h1").text
    assert not page.complaints()
