"""docs/first_model.ipynb is docs/first_model.md; tests/models/test_first_model_page.py runs it."""

import nbformat

from tests import notebook, page


def test_it_is_made_of_the_page():
    text = (page.DOCS / f"{notebook.NAME}.md").read_text(encoding="utf-8")
    expected = notebook.written(notebook.notebook_of(text))
    assert notebook.PATH.read_text(encoding="utf-8") == expected, "run `python -m tests.notebook`"


def test_it_has_the_code_and_the_outputs_of_the_page():
    assert notebook.code_and_output() == page.code_and_output(f"{notebook.NAME}.md")


def test_it_is_a_notebook():
    nbformat.validate(nbformat.read(notebook.PATH, as_version=4))
