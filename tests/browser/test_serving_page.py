"""The page of `tools.serve`: from a pasted document to an answer in the text."""

import contextlib
import json

import pytest
import tensorflow as tf

from etcmodel.serving import rest
from tests.browser.browser import Page
from tests.serving.rest import clients, text_models

pytestmark = pytest.mark.browser

QUESTION = "How long is it?"
DOCUMENTS = [
    "The café 🙂🙂 is <script>window.hacked = true</script> old. <b>Bold</b> & <img src=x>",
    "A 🙂 river. It is 88 km long, of which 30 can be sailed.\n\nIt ends in the sea.",
]
# Of each box of text: its name, the text, and what is marked, with its place in characters.
MARKS = """
return [...document.querySelectorAll("#more .text")].map((box) => {
  const marks = [...box.querySelectorAll("mark")];
  const range = document.createRange();
  range.setStart(box, 0);
  const places = marks.map((mark) => {
    range.setEndBefore(mark);
    return [Array.from(range.toString()).length, mark.textContent];
  });
  return [box.getAttribute("aria-label"), box.textContent, places];
});
"""
STATE = """
const tokens = [...document.querySelectorAll("[data-token]")];
const with_ = (name) => [...new Set(tokens.filter((x) => x.classList.contains(name))
  .map((x) => Number(x.dataset.token)))];
return { query: with_("query"), seen: with_("attended"), global: with_("attended-global"),
  told: document.getElementById("told").textContent };
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """dict of the kind of an export to its `ServedModel`."""
    folder = tmp_path_factory.mktemp("exports")
    kinds = {"answer": ("answer", "attention"), "classify": ("classify",)}
    for kind, names in {**kinds, "keyphrases": ("keyphrases",)}.items():
        text_models.export(str(folder / kind), *names)
    numbers = tf.Module()
    spec = tf.TensorSpec([None, None], tf.float32, "x")
    numbers.halve = tf.function(lambda x: {"y": x / 2 + 1}, input_signature=[spec])
    tf.saved_model.save(numbers, str(folder / "other"), {"serving_default": numbers.halve})
    return {path.name: rest.ServedModel(str(path)) for path in folder.iterdir()}


@pytest.fixture
def open_page(models, driver):
    """A function of the kind of an export that opens its page; it serves until the test ends."""
    with contextlib.ExitStack() as stack:

        def open_one(kind):
            server = stack.enter_context(clients.running(models[kind]))
            return Page(driver, server.url)

        yield open_one


@pytest.fixture
def asked(open_page):
    """The page after a question about the documents."""
    page = open_page("answer")
    ask(page, QUESTION, DOCUMENTS)
    page.shown("#result")
    return page


def ask(page, question, documents):
    page.paste("#question", question)
    for number, text in enumerate(documents, 1):
        if number > len(page.all("#documents textarea")):
            page.one("#add").click()
        page.paste(f"#document-{number}", text)
    page.one("#send").click()


def test_the_answer_is_told_and_marked_at_its_characters(asked):
    answer, _, start, _ = text_models.answer_of([DOCUMENTS[1]])
    assert asked.one("#answer .best").text == answer == "88"
    assert "33.3 %" in asked.one("#answer").text
    assert asked.run(MARKS) == [
        ["Question", QUESTION, []],
        ["Document 1", DOCUMENTS[0], []],
        ["Document 2", DOCUMENTS[1], [[start, answer]]],
    ]
    assert not asked.complaints()


def test_a_document_with_html_in_it_is_text(asked):
    assert asked.run("return window.hacked") is None
    assert not asked.all("#more script, #more b, #more img")
    assert [script.get_attribute("id") for script in asked.all("script")] == ["data", ""]


def test_evidence_is_listed_by_its_probability_and_underlined(asked):
    rows = [[x.text for x in row.find_elements("css selector", "td")] for row in asked.all("tr")]
    rows = [row for row in rows if len(row) == 3 and "%" in row[0]]
    shares = [float(row[0].removesuffix(" %")) for row in rows]
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[1]
    assert rows[0][1] == "It is 88 km long, of which 30 can be sailed"
    assert rows[0][2] == "Document 2"
    sentences = text_models.sentences_of(DOCUMENTS)
    assert sorted(row[1] for row in rows) == sorted(x[3].strip() for x in sentences)
    underlined = "".join(x.get_attribute("textContent") for x in asked.all(".text .evidence"))
    assert underlined == "".join(x[3] for x in sentences)


def test_a_word_that_is_pointed_at_shows_what_it_looks_at(asked):
    words = [x for text in (QUESTION, *DOCUMENTS) for x in text.split(" ")]
    number = words.index("88")
    asked.hover(asked.one(f'mark[data-token="{number}"]'))
    state = asked.run(STATE)
    assert state["query"] == [number] and state["seen"] == [number, number + 1]
    first = words.index("A")
    assert set(state["global"]) == set(range(first, len(words))) - {number, number + 1}
    assert state["told"].startswith("“88” attends to “88” 50.0 %, “km” 25.0 %, the global token of")
    asked.hover(asked.one('[data-token="0"]'))
    assert asked.run(STATE)["query"] == [0]


def test_the_keyboard_is_enough(open_page):
    page = open_page("answer")
    page.one("#question").send_keys(QUESTION)
    page.press("TAB")
    page.driver.switch_to.active_element.send_keys("It is 88 km long.")
    page.press("CONTROL+ENTER")
    page.shown("#result")
    assert page.one("#answer .best").text == "88"
    page.run('document.querySelector("[data-token]").focus()')
    page.press("ARROW_RIGHT", "ARROW_RIGHT")
    assert page.run(STATE)["query"] == [2]
    assert page.run(STATE)["told"].startswith("“is” attends to “is” 50.0 %, “it?” 25.0 %")


def test_an_error_is_a_sentence_and_the_next_question_is_answered(open_page):
    page = open_page("answer")
    ask(page, "impossible", ["7"])
    assert page.shown("#error-text").text == "The model can't use this text."
    page.one("#error-more summary").click()
    said = "The model says: `question` holds what is impossible."
    assert page.one("#error-more p").text == said
    assert not page.one("#result").is_displayed() and page.one("#send").is_enabled()
    ask(page, QUESTION, ["Nothing."])
    page.shown("#result")
    assert not page.one("#error").is_displayed()
    assert page.one("#answer .best").text == "No answer was found."


def test_a_server_that_has_gone_is_told(models, driver):
    with clients.running(models["answer"]) as server:
        page = Page(driver, server.url)
    ask(page, QUESTION, ["7"])
    assert page.shown("#error").text == "The server does not answer. Is it still running?"


def test_a_classifier_tells_the_label_and_all_probabilities(open_page):
    page = open_page("classify")
    page.paste("#text", "123 x")
    page.one("#send").click()
    page.shown("#result")
    assert page.one("#answer .best").text == "number"
    rows = [row.text for row in page.all("#answer tbody tr")]
    assert rows == ["60.0 % number", "40.0 % label 0"] and not page.complaints()


def test_key_phrases_are_listed_and_marked(open_page):
    page = open_page("keyphrases")
    page.paste("#text", "🙂 Route 66 <i>")
    page.one("#send").click()
    page.shown("#result")
    assert [row.text for row in page.all("#answer tbody tr")] == ["75.0 % 66"]
    assert page.run(MARKS) == [["Text", "🙂 Route 66 <i>", [[8, "66"]]]]
    assert not page.complaints()


def test_other_models_are_asked_in_json_and_may_answer_what_json_lacks(open_page):
    page = open_page("other")
    page.one("#send").click()
    page.shown("#result")
    assert json.loads(page.one("#answer pre").text) == {"outputs": [[1]]}
    page.paste("#text", '{"instances": [[Infinity, 3]]}')
    page.one("#send").click()
    page.wait_for(lambda: "2.5" in page.one("#answer").text)
    assert json.loads(page.one("#answer pre").text) == {"predictions": [[None, 2.5]]}
