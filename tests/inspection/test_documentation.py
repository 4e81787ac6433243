"""The code of docs/inspection.md, as it stands there."""

import json
import re

import numpy as np
import pytest

from etcmodel.options import option_fields
from etcmodel.tools import inspect_attention
from tests import page


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the page defines, and the folder of its files, by name."""
    folder = tmp_path_factory.mktemp("page")
    names = {"folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec("\n".join(page.blocks("inspection.md")), names)  # The library's own page.
    return names


@pytest.mark.slow
def test_the_states_and_the_attention_are_those_that_the_page_says(names):
    assert names["long_states"].shape == (1, 11, 16) and names["global_states"].shape == (1, 3, 16)
    assert len(names["states"]) == 3
    assert names["of_river"].query_side == "long"
    assert names["of_third_sentence"].query_side == "global"
    row = names["row"]
    assert {side: len(probs) for side, probs in row.items()} == {"long": 11, "global": 3}
    np.testing.assert_allclose(sum(probs.sum() for probs in row.values()), 1, atol=1e-5)
    assert np.count_nonzero(row["long"]) == 5  # "river", the word before it, and three after it.


def test_what_a_full_page_of_attention_takes_is_as_the_page_says():
    entries = 4096 * (2 * 84 + 1 + 230) + 230 * (4096 + 230)
    assert round(entries / 1e6, 1) == 2.6


def test_what_a_decoder_looks_at_is_on_a_page(names):
    assert {part.query_side for part in names["of_input"]} == {"long"}
    assert {part.num_keys for part in names["of_summary"]} == {(11, 3)}
    text = (names["folder"] / "summary.html").read_text("utf-8")
    assert "River (summary 0)" in text and ">Input tokens<" in text


def test_the_contributions_add_up(names):
    contributions = names["contributions"]
    difference = contributions.score - contributions.baseline_score
    assert np.abs(contributions.completeness_error) <= 0.05 * np.abs(difference) + 1e-3
    assert [x.shape for x in contributions.tokens] == [(1, 11), (1, 3)]


def test_all_files_hold_the_text(names):
    for name in ("attention.html", "likeness.html", "longformer.html"):
        text = (names["folder"] / name).read_text("utf-8")
        data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
        assert data["long"] == names["words"]
        assert ("attributions" in data) == (name == "likeness.html")


def test_the_command_of_the_page_has_the_flags_that_there_are():
    text = (page.DOCS / "inspection.md").read_text(encoding="utf-8")
    known = {field.name for field in option_fields(inspect_attention.InspectOptions)}
    flags = set(re.findall(r"--(\w+)=", text))
    assert flags == {"checkpoint", "input", "output", "layers", "heads"} <= known
