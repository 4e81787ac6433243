"""What the page's script does, in Node.js with a stand-in for a browser's document."""

import json
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

from etcmodel import pages
from etcmodel.inspection import MEAN
from tests.inspection.test_page import ATTENTION, page_of

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node.js")
SCRIPT = pages.read("attention.js") + pages.read("inspection.js")
DOCUMENT = pathlib.Path(__file__).with_name("document.js")
NUM_LONG = 7
ATTRIBUTIONS = ([0.5, -1, 0, 0, 0, 0.2, 0], [2, 0])


def after(*actions):
    """What the page shows after each action."""
    _, page = page_of(attributions=ATTRIBUTIONS)
    spans = [x for x in page.of("span") if "data-token" in x]
    tokens = {
        side: [{"number": int(x["data-token"])} for x in spans if side in x["class"].split()]
        for side in ("long", "global")
    }
    data = json.loads(page.texts["data"])
    selects = {
        "layer": sorted({str(x["layer"]) for x in data["attention"]}, key=int),
        "head": [str(MEAN), "0"],
        "view": ["attention", "attributions"],
    }
    values = {
        "tokens": tokens,
        "selects": selects,
        "data": page.texts["data"],
        "script": SCRIPT,
        "actions": actions,
    }
    done = subprocess.run(
        [NODE, DOCUMENT], input=json.dumps(values), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def looked_at(part, query, head):
    """[(number of the token, probability)] of what a query attends to, the most probable first."""
    here = (part.query == query) & (part.head == head)
    numbers = part.key[here] + NUM_LONG * part.key_side[here]
    return list(zip(numbers.tolist(), part.probability[here].tolist(), strict=True))


def assert_shows(state, number, pairs):
    assert state["query"] == [number] and not state["hidden"]
    assert state["seen"] == sorted(number for number, _ in pairs)
    for seen, probability in pairs:
        shade = probability / pairs[0][1]
        assert state["shades"][seen] == pytest.approx(shade, rel=1e-4)
    shown = [float(row[3]) for row in state["rows"]]
    np.testing.assert_allclose(shown, [probability for _, probability in pairs], rtol=6e-3)
    places = [(row[1], int(row[2])) for row in state["rows"]]
    assert places == [("long", n) if n < NUM_LONG else ("global", n - NUM_LONG) for n, _ in pairs]


def test_a_token_that_is_pointed_at_shows_what_it_looks_at():
    hovered, of_global = after(["mouseover", 2], ["mouseover", NUM_LONG])
    assert_shows(hovered, 2, looked_at(ATTENTION[0], 2, MEAN))
    assert re.match(r"\u2068ri\u2069 \(long 2\) attends to \S", hovered["told"])
    assert_shows(of_global, NUM_LONG, looked_at(ATTENTION[1], 0, MEAN))


def test_layer_and_head_are_those_that_are_chosen():
    _, head, layer = after(["mouseover", 4], ["change", "head", "0"], ["change", "layer", "11"])
    assert_shows(head, 4, looked_at(ATTENTION[0], 4, 0))
    assert_shows(layer, 4, looked_at(ATTENTION[2], 4, 0))


def test_a_token_without_attention_says_so():
    (state,) = after(["mouseover", 3])
    assert state["told"] == "\u2068ses\u2069 (long 3): what it attends to is not known here"
    assert state["hidden"] and not state["rows"] + state["seen"]


def test_a_tap_keeps_a_token_until_the_next_one():
    kept, hovered, released, hovered_again = after(
        ["click", 2], ["mouseover", 4], ["click", 2], ["mouseover", 4]
    )
    assert kept["query"] == hovered["query"] == [2] and hovered["pressed"] == [2]
    assert not released["pressed"] and hovered_again["query"] == [4]


def test_the_keyboard_reaches_every_token_of_a_side():
    start, right, left, clamped, last = after(
        ["focus", 0],
        ["keydown", 0, "ArrowRight"],
        ["keydown", 1, "ArrowLeft"],
        ["keydown", 0, "ArrowUp"],
        ["keydown", NUM_LONG + 1, "ArrowDown"],
    )
    assert [x["focused"] for x in (start, right, left, clamped, last)] == [0, 1, 0, 0, NUM_LONG + 1]
    assert start["tabbable"] == [0, NUM_LONG]
    assert right["tabbable"] == [1, NUM_LONG] and right["query"] == [1]
    kept, held, released = after(["keydown", 2, "Enter"], ["focus", 4], ["keydown", 4, "Escape"])
    assert kept["pressed"] == held["query"] == [2] and not released["pressed"]


def test_attributions_color_all_tokens_by_their_sign():
    state, back = after(["change", "view", "attributions"], ["change", "view", "attention"])
    assert state["seen"] == list(range(9)) and state["below"] == [1]
    np.testing.assert_allclose(state["shades"], np.abs(np.concatenate(ATTRIBUTIONS)) / 2)
    assert [row[:3] for row in state["rows"][:3]] == [
        ["sentence 1", "global", "0"],
        ["river", "long", "1"],
        ["The", "long", "0"],
    ]
    assert not back["seen"] + back["below"] + back["rows"]
    assert back["hasHint"] and not state["hasHint"]  # It is of attention.
