"""The code of docs/processor.md prints what the page shows."""

import pytest

from tests import page


@pytest.mark.slow
def test_the_page_shows_what_its_code_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = page.code_and_output("processor.md")
    assert len(blocks) >= 15
    for code, output in blocks:
        exec(code, names)  # The library's own page.
        assert capsys.readouterr().out == output
    assert (tmp_path / "batch.png").exists()
