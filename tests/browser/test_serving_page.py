"""The page of `tools.serve`: from a pasted document to an answer in the text."""

import contextlib
import dataclasses
import json
import re
import threading
from unittest import mock

import pytest
import tensorflow as tf

from etcmodel.serving import rest
from etcmodel.serving.rest.model import Texts
from tests.browser.browser import Page
from tests.serving.rest import clients, text_models

pytestmark = pytest.mark.browser

NO_TEXTS = Texts(labels=[], examples=[], attention={})
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
    signatures = dict.fromkeys(("serving_default", "dense_features"), numbers.halve)
    tf.saved_model.save(numbers, str(folder / "other"), signatures)
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
    return answered(open_page, QUESTION, DOCUMENTS)


def answered(open_page, question, documents):
    page = open_page("answer")
    ask(page, question, documents)
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
    assert shares == sorted(shares, reverse=True) and shares
    assert rows[0][1] == "It is 88 km long, of which 30 can be sailed"
    assert rows[0][2] == "Document 2"
    # The others have no digit, which is what makes evidence here.
    sentences = [x[3] for x in text_models.sentences_of(DOCUMENTS) if re.search("[0-9]", x[3])]
    assert sorted(row[1] for row in rows) == sorted(map(str.strip, sentences))
    underlined = "".join(x.get_attribute("textContent") for x in asked.all(".text .evidence"))
    assert underlined == "".join(sentences)


def test_a_word_that_is_pointed_at_shows_what_it_looks_at(asked):
    words = [x for text in (QUESTION, *DOCUMENTS) for x in text.split(" ")]
    number = words.index("88")
    asked.hover(asked.one(f'mark[data-token="{number}"]'))
    state = asked.run(STATE)
    assert state["query"] == [number] and state["seen"] == [number, number + 1]
    first = words.index("A")
    assert set(state["global"]) == set(range(first, len(words))) - {number, number + 1}
    told = state["told"].replace("\u2068", "").replace("\u2069", "")
    assert told.startswith("“88” attends to “88” 50.0 %, “km” 25.0 %, the global token of")
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
    assert page.run(STATE)["told"].startswith(
        "“\u2068is\u2069” attends to “\u2068is\u2069” 50.0 %, “\u2068it?\u2069” 25.0 %"
    )


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


def test_a_classifier_tells_the_label_and_all_probabilities(models, open_page):
    texts = dataclasses.replace(NO_TEXTS, labels=["prose", "number"])
    with mock.patch.object(models["classify"], "texts", texts):
        page = open_page("classify")
    page.paste("#text", "123 x")
    page.one("#send").click()
    page.shown("#result")
    assert page.one("#answer .best").text == "number"
    rows = [row.text for row in page.all("#answer tbody tr")]
    assert rows == ["60.0 % number", "40.0 % prose"] and not page.complaints()


def test_key_phrases_are_listed_and_marked(open_page):
    page = open_page("keyphrases")
    page.paste("#text", "🙂 Route 66 <i>")
    page.one("#send").click()
    page.shown("#result")
    assert [row.text for row in page.all("#answer tbody tr")] == ["75.0 % 66"]
    assert page.run(MARKS) == [["Text", "🙂 Route 66 <i>", [[8, "66"]]]]
    assert not page.complaints()


QUESTIONS = [
    {
        "query": "Where is the mill?",
        "candidates": ["tarn (a)", "bank", "Überlingen"],
        "supports": ["🙂 In Tarn\n(A), not in Banks: TARN (a)!", "The bank.", "İt is <b>far</b>."],
    },
    {"query": "מה?", "candidates": ["מים", "אש"], "supports": ["יש מים בים. <i>"]},
]


def prepare(raw, default_id):
    """The most mentioned candidate is the answer; like a task, with records and decoding."""
    if "supports" not in raw or default_id:
        raise ValueError("field `supports` is missing")
    text = " ".join(" ".join(raw["supports"]).lower().split())
    counts = [text.count(x.lower()) for x in raw["candidates"]]

    def decode(outputs):
        (halves,) = [output["y"] - 1 for output in outputs]
        shares = (halves / halves.sum()).tolist()
        best = raw["candidates"][shares.index(max(shares))]
        return {"answer": best, "probabilities": list(zip(raw["candidates"], shares, strict=True))}

    return [{"x": counts}], decode


FIELDS = {"question": "query", "documents": "supports", "candidates": "candidates"}


@pytest.fixture
def choosing(models, driver):
    """The page of a model that takes raw questions with candidates, and has two of them."""
    examples = rest.RawExamples(prepare, FIELDS, QUESTIONS)
    with clients.running(models["other"], examples=examples) as server:
        yield Page(driver, server.url)


def test_a_question_with_candidates_is_answered_by_the_probability_of_each(choosing):
    choosing.shown("#example").click()
    assert fields(choosing) == [QUESTIONS[0]["query"], QUESTIONS[0]["supports"]]
    written = choosing.one("#candidates").get_attribute("value")
    assert written.split("\n") == QUESTIONS[0]["candidates"]
    choosing.driver.refresh()  # All of it survives.
    assert choosing.one("#candidates").get_attribute("value") == written
    choosing.one("#candidates").send_keys("\n\n")
    choosing.one("#send").click()
    choosing.shown("#result")
    assert choosing.one("#asked").text == QUESTIONS[0]["query"]
    assert choosing.one("#answer .best").text == "tarn (a)"
    rows = [row.text for row in choosing.all("#answer tbody tr")]
    assert rows == ["50.0 % tarn (a)", "50.0 % bank", "0.0 % Überlingen"]
    first, second, third = QUESTIONS[0]["supports"]
    assert choosing.run(MARKS) == [
        ["Document 1", first, [[5, "Tarn\n(A)"], [29, "TARN (a)"]]],
        ["Document 2", second, []],
        ["Document 3", third, []],
    ]
    assert choosing.one("#more p mark").text == "mentions of the answer"
    opened = [x.get_attribute("open") is not None for x in choosing.all("#more details")]
    assert opened == [True, False, False] and not choosing.complaints()


def test_candidates_from_right_to_left_with_the_keyboard_on_a_phone(choosing):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    choosing.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        choosing.one("#question").send_keys(QUESTIONS[1]["query"])
        choosing.press("TAB")
        for text in ("\n".join(QUESTIONS[1]["candidates"]), QUESTIONS[1]["supports"][0]):
            choosing.driver.switch_to.active_element.send_keys(text)
            choosing.press("TAB")
        choosing.press("SHIFT+TAB", "CONTROL+ENTER")
        choosing.shown("#result")
        assert choosing.one("#answer .best").text == "מים"
        assert choosing.run(MARKS)[0][2] == [[3, "מים"]]
        assert choosing.run("return document.documentElement.scrollWidth <= innerWidth")
        direction = "return getComputedStyle(arguments[0]).direction"
        for selector in ("#candidates", "#asked", "#answer .best", "#more .text"):
            assert choosing.run(direction, choosing.one(selector)) == "rtl", selector
        assert not choosing.complaints()
    finally:
        choosing.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_question_without_candidates_is_not_sent(choosing):
    ask(choosing, QUESTION, ["Here."])
    assert choosing.shown("#error").text == "Write the candidates, one on each line."


def test_other_models_of_raw_examples_have_one_in_their_json(models, driver):
    examples = rest.RawExamples(prepare, {}, QUESTIONS)
    with clients.running(models["other"], examples=examples) as server:
        page = Page(driver, server.url)
        page.one("#send").click()
        page.shown("#result")
        answer = json.loads(page.one("#answer pre").text)
        assert answer["predictions"][0]["answer"] == "tarn (a)"
        assert json.loads(page.one("#text").get_attribute("value")) == {
            "signature_name": "examples",
            "instances": QUESTIONS[:1],
        }


def test_other_models_are_asked_in_json_and_may_answer_what_json_lacks(open_page):
    page = open_page("other")
    page.one("#send").click()
    page.shown("#result")
    assert json.loads(page.one("#answer pre").text) == {"outputs": [[1]]}
    page.paste("#text", '{"instances": [[Infinity, 3]]}')
    page.one("#send").click()
    page.wait_for(lambda: "2.5" in page.one("#answer").text)
    assert json.loads(page.one("#answer pre").text) == {"predictions": [[None, 2.5]]}


@contextlib.contextmanager
def waiting(model):
    """A server whose answers wait until the event is set: (server, event)."""
    event = threading.Event()
    batcher = rest.Batcher(model)

    def predict(signature, inputs, num_rows):
        event.wait()
        return batcher(signature, inputs, num_rows)

    with rest.RestServer(rest.Application(model, predict)).running() as server:
        try:
            yield server, event
        finally:
            event.set()
    batcher.close()


def test_while_the_model_reads_the_old_answer_is_gone_and_the_seconds_count(models, driver):
    with waiting(models["answer"]) as (server, event):
        page = Page(driver, server.url)
        event.set()
        ask(page, "Old?", ["Nothing."])
        page.shown("#result")
        event.clear()
        ask(page, QUESTION, ["It is 88 km long."])
        assert page.shown("#waiting-for").text == QUESTION
        assert not page.one("#result").is_displayed() and not page.all("#answer *, #more *")
        page.wait_for(lambda: page.one("#seconds").text == "1 s")
        assert "Reading…" in page.one("#waiting").text and not page.one("#send").is_enabled()
        event.set()
        page.shown("#result")
        assert page.one("#asked").text == QUESTION and page.one("#answer .best").text == "88"
        assert not page.one("#waiting").is_displayed() and page.one("#send").is_enabled()


def test_a_question_is_cancelled_and_the_next_one_is_answered(models, driver):
    with waiting(models["answer"]) as (server, event):
        page = Page(driver, server.url)
        ask(page, "Old?", ["1"])
        page.shown("#cancel").click()
        page.wait_for(lambda: page.one("#send").is_enabled())
        shown = (page.one(x).is_displayed() for x in ("#waiting", "#error", "#result"))
        assert not any(shown)
        assert page.driver.switch_to.active_element == page.one("#send")
        event.set()
        ask(page, QUESTION, ["It is 88 km long."])
        page.shown("#result")
        assert page.one("#answer .best").text == "88" and not page.complaints()


@pytest.mark.parametrize(
    ("question", "documents", "told"),
    [("", ["7"], "Write a question."), (QUESTION, ["  "], "Paste a document to ask about.")],
)
def test_what_is_missing_is_asked_for(open_page, question, documents, told):
    page = open_page("answer")
    ask(page, question, documents)
    assert page.shown("#error").text == told and not page.one("#error-more").is_displayed()


def fields(page):
    """(question, documents) as they stand in the form."""
    return page.run(
        "return [document.getElementById('question').value, "
        "[...document.querySelectorAll('#documents textarea')].map((x) => x.value)]"
    )


def test_examples_of_the_export_are_filled_in_one_after_the_other(models, driver):
    examples = [
        {"question": "Where?", "documents": ["Here, 1.", "There, 2."]},
        {"question": "When?", "documents": ["In 1815."]},
    ]
    with clients.running(models["answer"]) as server:
        assert not Page(driver, server.url).one("#example").is_displayed()
    texts = dataclasses.replace(NO_TEXTS, examples=examples)
    with (
        mock.patch.object(models["answer"], "texts", texts),
        clients.running(models["answer"]) as server,
    ):
        page = Page(driver, server.url)
        for example in [*examples, examples[0]]:
            page.shown("#example").click()
            assert fields(page) == [example["question"], example["documents"]]
        driver.refresh()
        page.one("#example").click()  # What is there is an example, and needs no question.
        assert fields(page)[0] == "Where?"
        page.paste("#question", "My own?")
        page.one("#example").click()
        driver.switch_to.alert.dismiss()
        assert fields(page)[0] == "My own?"
        page.one("#send").click()
        page.shown("#result")
        assert page.one("#answer .best").text == "1"


def test_documents_are_removed_and_the_others_count_anew(open_page):
    page = answered(open_page, QUESTION, ["One.", "Two.", "3."])
    page.one('[aria-label="Remove document 2"]').click()
    assert fields(page)[1] == ["One.", "3."]
    assert [x.text for x in page.all("#documents label")] == ["Document 1", "Document 2"]
    page.one('[aria-label="Remove document 1"]').click()
    assert not page.one("#documents button").is_displayed()


def test_what_is_typed_survives_a_reload(open_page):
    page = open_page("answer")
    page.paste("#question", QUESTION)
    page.paste("#document-1", "One.")
    page.one("#add").click()
    page.paste("#document-2", "<b>Two</b> 🙂")
    page.driver.refresh()
    assert fields(page) == [QUESTION, ["One.", "<b>Two</b> 🙂"]]


def test_files_become_documents_and_what_is_no_text_is_named(open_page, tmp_path):
    page = open_page("answer")
    names = {"river.txt": "It is 88 km long. 🙂".encode(), "town.md": b"It is old."}
    confused = [tmp_path / name for name in ("scan.pdf", "new.txt")]
    for name, content in {**names, "scan.pdf": b"%PDF\xff\xfe\0"}.items():
        (tmp_path / name).write_bytes(content)
    page.one("#files").send_keys("\n".join(str(tmp_path / name) for name in names))
    page.wait_for(lambda: fields(page)[1] == [x.decode() for x in names.values()])
    confused[1].write_text("New.")
    page.one("#files").send_keys("\n".join(map(str, confused)))
    told = page.shown("#error").text
    assert told == "scan.pdf is no plain text (UTF-8). Save it as text, and try again."
    page.wait_for(lambda: fields(page)[1][2:] == ["New."])


WHERE = """
const box = arguments[0].closest(".text").getBoundingClientRect();
const place = arguments[0].getBoundingClientRect();
return box.top <= place.top && place.bottom <= box.bottom && 0 <= place.top
  && place.bottom <= innerHeight;
"""


def test_a_long_document_is_scrolled_to_its_answer_on_a_phone_and_evidence_leads_there(open_page):
    page = open_page("answer")
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        plain = "The moor is wide and the sheep are many. " * 600
        ask(page, QUESTION, [f"{plain}\n\nIt is 88 km long.\n\n{plain} Since 1815 nobody rows."])
        page.shown("#result")
        best = page.one("#answer .best")
        assert page.run("return arguments[0].getBoundingClientRect().bottom < innerHeight", best)
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        page.one("#answer button").click()
        mark = page.one("#more .text mark")
        assert mark.text == "88" and page.run(WHERE, mark)
        (last,) = (x for x in page.all("#more td button") if "1815" in x.text)
        last.click()
        pieces = page.all(".here")
        assert "".join(x.get_attribute("textContent") for x in pieces).strip() == last.text
        assert page.run(WHERE, pieces[0]) and not page.run(WHERE, mark)
        assert page.driver.switch_to.active_element == page.one("#more details:last-child .text")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_texts_run_from_right_to_left_where_they_are_written_so(open_page):
    page = answered(open_page, "מה אורכו?", ["אורכו 88 קילומטר.", "It is old."])
    direction = "return getComputedStyle(arguments[0]).direction"
    boxes = page.all("#more .text")
    assert [page.run(direction, x) for x in boxes] == ["rtl", "rtl", "ltr"]
    assert page.run(direction, page.one("#asked")) == page.run(direction, page.one("#question"))
    assert page.run(direction, page.one("#question")) == "rtl"


GROUND = {"light": "rgba(244, 246, 248, 1)", "dark": "rgba(20, 23, 27, 1)"}


@pytest.mark.parametrize("width", [800, 1440])
@pytest.mark.parametrize("theme", GROUND)
def test_what_is_told_never_covers_the_text_and_more_is_a_stronger_color(asked, theme, width):
    driver, size = asked.driver, {"width": width, "height": 900}
    features = [{"name": "prefers-color-scheme", "value": theme}]
    try:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size |= {"deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert asked.one("body").value_of_css_property("background-color") == GROUND[theme]
        told = asked.one("#told")
        assert told.size["height"] == 0
        asked.hover(asked.one('[data-token="0"]'))
        assert told.text.startswith("“")
        if width < 1000:  # One line, below everything.
            assert told.rect["height"] < 60 and told.value_of_css_property("bottom") == "0px"
        else:
            right = max(x.rect["x"] + x.rect["width"] for x in asked.all("#more .text"))
            assert told.rect["x"] >= right
        first, second = (
            asked.one(f'[data-token="{number}"]').value_of_css_property("background-color")
            for number in (0, 1)
        )
        opacity = [float(re.findall(r"[\d.]+", x)[-1]) for x in (first, second)]
        assert opacity[0] == pytest.approx(2 * opacity[1], rel=0.02)
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_what_was_typed_for_another_kind_of_model_is_left_alone(models, driver):
    """Both are served at one address, as a user does who tries one after the other."""
    application = rest.Application(models["classify"], models["classify"])
    with rest.RestServer(application).running() as server:
        page = Page(driver, server.url)
        page.paste("#text", "Some text.")
        application._page = rest.Application(models["answer"], models["answer"])._page
        driver.refresh()
        assert fields(page) == ["", [""]]


def test_arrows_follow_the_direction_of_the_text(open_page):
    page = answered(open_page, "How?", ["אורכו 88 קילומטר"])
    first, second = page.all("#more details:last-child [data-token]")[:2]
    page.run("arguments[0].focus()", first)
    page.press("ARROW_LEFT")
    assert page.driver.switch_to.active_element == second
