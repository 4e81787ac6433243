"""The page of `etcmodel.inspection`: pointing at a token shows what it attends to."""

import numpy as np
import pytest

from etcmodel.inspection import MEAN
from tests.browser.browser import Page
from tests.inspection.test_page import ATTENTION, page_of
from tests.inspection.test_page_script import ATTRIBUTIONS, NUM_LONG, looked_at

pytestmark = pytest.mark.browser

STATE = """
const tokens = [...document.querySelectorAll("[data-token]")];
const with_ = (name) => tokens.filter((x) => x.classList.contains(name))
  .map((x) => Number(x.dataset.token)).sort((a, b) => a - b);
const shades = {};
for (const x of tokens) shades[x.dataset.token] = Number(x.style.getPropertyValue("--p"));
return { query: with_("query"), below: with_("attended-below"), shades,
  seen: tokens.filter((x) => x.className.includes("attended")).map((x) => Number(x.dataset.token))
    .sort((a, b) => a - b),
  told: document.getElementById("told").textContent,
  focused: Number(document.activeElement.dataset.token),
  rows: [...document.querySelectorAll("#seen tbody tr")].map(
    (row) => [...row.cells].map((x) => x.textContent)) };
"""


@pytest.fixture
def opened(driver, tmp_path):
    text, _ = page_of(attributions=ATTRIBUTIONS)
    path = tmp_path / "attention.html"
    path.write_text(text, encoding="utf-8")
    page = Page.of_file(driver, path)
    yield page
    assert not page.complaints()


@pytest.fixture
def page(opened):
    opened.one('#view option[value="attention"]').click()
    return opened


def token(page, number):
    return page.one(f'[data-token="{number}"]')


def assert_shows(page, number, pairs):
    state = page.run(STATE)
    assert state["query"] == [number]
    assert state["seen"] == sorted(number for number, _ in pairs)
    for seen, probability in pairs:
        assert state["shades"][str(seen)] == pytest.approx(probability / pairs[0][1], rel=1e-4)
    shown = [float(row[3]) for row in state["rows"]]
    np.testing.assert_allclose(shown, [probability for _, probability in pairs], rtol=6e-3)


def test_a_token_that_is_pointed_at_shows_what_it_looks_at(page):
    for number, part, query in ((2, ATTENTION[0], 2), (NUM_LONG, ATTENTION[1], 0)):
        page.hover(token(page, number))
        assert_shows(page, number, looked_at(part, query, MEAN))
    background = token(page, page.run(STATE)["seen"][0]).value_of_css_property("background-color")
    assert background not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")


def test_a_click_keeps_a_token_and_the_choices_hold_for_it(page):
    token(page, 4).click()
    page.hover(token(page, 2))
    assert_shows(page, 4, looked_at(ATTENTION[0], 4, MEAN))
    page.one('#head option[value="0"]').click()
    assert_shows(page, 4, looked_at(ATTENTION[0], 4, 0))
    page.one('#layer option[value="11"]').click()
    assert_shows(page, 4, looked_at(ATTENTION[2], 4, 0))


def test_the_keyboard_goes_from_token_to_token(page):
    page.run("arguments[0].focus()", token(page, 0))
    page.press("ARROW_RIGHT", "ARROW_RIGHT")
    assert_shows(page, 2, looked_at(ATTENTION[0], 2, MEAN))
    page.press("ENTER", "ARROW_RIGHT")
    assert page.run(STATE)["query"] == [2] and page.run(STATE)["focused"] == 3


def test_a_page_of_attributions_opens_with_them_and_colors_the_text_by_their_sign(opened):
    state = opened.run(STATE)
    assert state["seen"] == list(range(9)) and state["below"] == [1]
