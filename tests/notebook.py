"""The notebook of a page of the documentation: its text and code as cells, in the same order.

python -m tests.notebook    writes docs/first_model.ipynb anew
"""

import json
import re

from tests import page

__all__ = ["NAME", "PATH", "code_and_output", "notebook_of", "written"]

NAME = "first_model"
PATH = page.DOCS / f"{NAME}.ipynb"
_PARTS = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def notebook_of(text):
    """What a notebook's file holds, for a page in Markdown: dict."""
    cells, end = [], 0
    for match in _PARTS.finditer(text):
        cells += [_markdown(text[end : match.start()]), _code(*match.groups())]
        end = match.end()
    cells.append(_markdown(text[end:]))
    cells = [cell for cell in cells if cell["source"]]
    return {
        "cells": [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def written(notebook):
    """The file of a notebook: str."""
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def code_and_output():
    """The code cells of the notebook's file, each with what it says that it prints."""
    cells = json.loads(PATH.read_text(encoding="utf-8"))["cells"]
    return [
        ("".join(cell["source"]) + "\n", "".join(x for y in cell["outputs"] for x in y["text"]))
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def _markdown(text):
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text.strip())}


def _code(code, output):
    stream = {"name": "stdout", "output_type": "stream", "text": _lines(output or "")}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [stream] if output else [],
        "source": _lines(code.rstrip("\n")),
    }


def _lines(text):
    return text.splitlines(keepends=True)


def main():
    text = (page.DOCS / f"{NAME}.md").read_text(encoding="utf-8")
    PATH.write_text(written(notebook_of(text)), encoding="utf-8")


if __name__ == "__main__":
    main()
