"""One browser for all pages."""

import pytest

from tests.browser import browser


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    with browser.browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver
