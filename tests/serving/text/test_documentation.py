"""The code of docs/serving.md runs, and prints what the page shows."""

import pytest

from tests import page

pytestmark = pytest.mark.slow


def test_the_page_shows_what_its_code_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = []
    names = {"print": lambda *values: printed.append(" ".join(map(str, values)) + "\n")}
    for code, output in page.code_and_output("serving.md#strings-in-answers-out"):
        printed.clear()
        exec(code, names)  # The library's own page.
        assert "".join(printed) == output
