"""The pages of `etcmodel report` and of the demo, on a phone and on a desk, in light and dark."""

import json
import pathlib

import pytest

from etcmodel.tools import report
from tests.browser.browser import Page
from tests.pictures.test_pictures import luminance
from tests.reports import task_files
from tests.reports.test_page import HOSTILE, write_run
from tests.tools import test_run_demo

pytestmark = pytest.mark.browser

PHONE, DESK = (390, 844), (1280, 900)
OVERFLOWING = """
const width = document.documentElement.clientWidth;
return [...document.body.querySelectorAll("*")]
  .filter((x) => !x.closest(".wide") && x.getBoundingClientRect().right > width + 1)
  .map((x) => x.outerHTML.slice(0, 80));
"""
# Words, the colors that they and the page have, and how high their letters are on the screen.
WORDS = """
const words = [...document.querySelectorAll(arguments[0])].filter((x) => x.textContent.trim());
return words.map((x) => [getComputedStyle(x)[arguments[1]],
  getComputedStyle(document.body).backgroundColor, x.getBoundingClientRect().height]);
"""


@pytest.fixture(scope="module", params=["hotpotqa", "openkp", "summarization", "demo"])
def path(request, tmp_path_factory):
    """The file of a report on a run and on its answers, of which every second is wrong."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "demo":
        return test_run_demo.write_page(folder, json.loads(task_files.wikihop(test_run_demo.DEV)))
    gold, predictions = task_files.make(request.param, folder)
    options = {"task": request.param, "predictions": predictions, "eval_gold": gold}
    options |= {"run": str(write_run(folder)), "output": str(folder / "report.html")}
    report.write_report(report.ReportOptions(**options))
    return pathlib.Path(options["output"])


@pytest.fixture(params=[(PHONE, "light"), (PHONE, "dark"), (DESK, "light"), (DESK, "dark")])
def page(request, driver, path):
    """The report on a screen, which nothing of it may make the browser complain of."""
    (width, height), scheme = request.param
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    page = Page.of_file(driver, path)
    page.scheme, page.width = scheme, width
    yield page
    complaints = page.complaints()
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert not complaints


def contrast(one, other):
    """Of two colors as browsers tell them: "rgb(1, 2, 3)"."""
    levels = [
        luminance("#" + "".join(f"{int(x):02x}" for x in color[4:-1].split(",")))
        for color in (one, other)
    ]
    return (max(levels) + 0.05) / (min(levels) + 0.05)


def test_nothing_is_wider_than_the_screen_even_when_all_is_open(page):
    assert page.run("return window.innerWidth") == page.width
    page.run("for (const x of document.querySelectorAll('details')) x.open = true")
    assert page.run("return document.documentElement.scrollWidth") <= page.width
    assert page.run(OVERFLOWING) == []


def test_words_are_read_easily(page):
    words = page.run(WORDS, "h1, h2, h3, p, th, td, dt, dd, summary, mark", "color")
    letters = page.run(WORDS, "svg text", "fill")
    assert len(words) > 50 and len(letters) > 20
    for color, ground, _ in (*words, *letters):
        assert contrast(color, ground) >= 4.5
    assert min(height for *_, height in letters) >= 10  # Pixels; the page's words have 14 or more.
    is_dark = contrast(words[0][1], "rgb(0, 0, 0)") < contrast(words[0][1], "rgb(255, 255, 255)")
    assert is_dark == (page.scheme == "dark")


def test_the_filter_leaves_the_wrong_answers(page):
    def shown():
        return [x.get_attribute("class") for x in page.all("article") if x.is_displayed()]

    told = page.one("#shown").text
    assert shown() == ["right", "wrong"] * (task_files.COUNT // 2)
    page.one("#filter").click()
    assert shown() == ["wrong"] * (task_files.COUNT // 2)
    assert page.one("#shown").text == "3 of the 6 on this page"
    page.one("#filter").click()
    assert len(shown()) == task_files.COUNT and page.one("#shown").text == told


def test_the_input_opens_with_what_is_marked_in_it(page, path):
    first = page.all("article")[0]
    sentences = first.find_elements("css selector", "details .sentence")
    assert sentences and not any(x.is_displayed() for x in sentences)
    first.find_element("css selector", "details.input > summary").click()
    assert all(x.is_displayed() for x in sentences)
    marks = first.find_elements("css selector", "details.input mark")
    assert all(x.is_displayed() for x in marks)
    assert marks or "summarization" in path.parent.name  # A summary is no part of its document.


def test_texts_of_files_are_not_run(page, path):
    if path.parent.name.startswith("demo"):
        pytest.skip("Shows nothing but what it generated.")
    page.run("document.querySelector('#settings details:last-of-type').open = true")
    assert HOSTILE.partition(" & ")[0] in page.one("#settings").text
