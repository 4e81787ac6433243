"""The page of `tools.serve` over text exports: it shows what the model attends to."""

import pytest
import tensorflow as tf

import etcmodel
from etcmodel import serving
from etcmodel.serving import rest
from tests.browser.browser import Page
from tests.serving.rest import clients
from tests.serving.text import vocabularies

pytestmark = pytest.mark.browser

QUESTION = "a b?"
DOCUMENT = "ab. c d a! " * 6
STATE = """
const tokens = [...document.querySelectorAll("[data-token]")];
const with_ = (name) => [...new Set(tokens.filter((x) => x.classList.contains(name))
  .map((x) => Number(x.dataset.token)))];
return { query: with_("query"), seen: with_("attended"),
  all: tokens.map((x) => Number(x.dataset.token)),
  text: [...document.querySelectorAll("#more .text")].map((x) => x.textContent),
  told: document.getElementById("told").textContent };
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """dict of the kind of an export to its `ServedModel`; texts are read in windows."""
    folder = tmp_path_factory.mktemp("exports")
    tf.keras.utils.set_random_seed(1)
    processor = vocabularies.processor(folder, max_long_len=24, stride=8)
    heads = {
        "answer": etcmodel.EtcForQuestionAnswering,
        "classify": etcmodel.EtcForSequenceClassification,
    }
    for name, head in heads.items():
        model = vocabularies.model(head)
        serving.export_text_model(model, str(folder / name), processor, attention_keys=3)
    return {name: rest.ServedModel(str(folder / name)) for name in heads}


def looked_at(model, **inputs):
    """The output of `attention`, of one example: dict of name to nested lists."""
    arrays = {key: tf.constant([value]) for key, value in inputs.items()}
    found = tf.saved_model.load(model.directory).signatures["attention"](**arrays)
    return {key: value.numpy()[0].tolist() for key, value in found.items()}


def check_words(page, found, texts):
    """Each fifth word: what it attends to is marked, the same word of another window once."""
    places = [*zip(found["document"], found["start"], found["end"], strict=True)]
    shown = page.run(STATE)["all"]
    assert sorted(shown) == [
        number
        for number, place in enumerate(places)
        if place[0] > -2 and places.index(place) == number
    ]
    assert len(shown) < sum(place[0] > -2 for place in places)  # Windows repeat some.
    for number in shown[::5]:
        page.hover(page.one(f'[data-token="{number}"]'))
        state = page.run(STATE)
        assert state["query"] == [number]
        keys = [key for key in found["attended"][number] if 0 <= key < len(places)]
        seen = {places.index(places[key]) for key in keys if places[key][0] > -2}
        assert set(state["seen"]) == seen
        document, start, end = places[number]
        assert state["told"].startswith(f"“\u2068{texts[document][start:end]}\u2069” attends to ")
        share = 100 * found["attention"][number][0]
        assert f" {share:.1f} %" in state["told"]


def test_words_of_a_question_and_of_documents(models, driver):
    with clients.running(models["answer"]) as server:
        page = Page(driver, server.url)
        page.paste("#question", QUESTION)
        page.paste("#document-1", DOCUMENT)
        page.one("#send").click()
        page.shown("#result")
        found = looked_at(models["answer"], question=QUESTION, documents=[DOCUMENT])
        assert page.run(STATE)["text"] == [QUESTION, DOCUMENT]
        check_words(page, found, {-1: QUESTION, 0: DOCUMENT})
        assert not page.complaints()


def test_words_of_a_text_that_is_classified(models, driver):
    with clients.running(models["classify"]) as server:
        page = Page(driver, server.url)
        page.paste("#text", DOCUMENT)
        page.one("#send").click()
        page.shown("#result")
        assert page.run(STATE)["text"] == [DOCUMENT]
        check_words(page, looked_at(models["classify"], text=DOCUMENT), {0: DOCUMENT})
        assert not page.complaints()


def test_another_layer_and_head_are_asked_of_the_model_for_a_word_that_is_chosen(models, driver):
    model = models["answer"]
    with clients.running(model) as server:
        page = Page(driver, server.url)
        page.paste("#question", QUESTION)
        page.paste("#document-1", DOCUMENT)
        page.one("#send").click()
        page.shown("#result")
        found = looked_at(model, question=QUESTION, documents=[DOCUMENT])
        sizes = model.texts.attention
        assert len(page.all("#layer option")) == sizes["layers"]
        assert len(page.all("#head option")) == 1 + sizes["heads"]
        assert page.one("#layer").get_attribute("value") == str(sizes["layer"])
        page.one('#head option[value="1"]').click()
        number = page.run(STATE)["all"][3]
        page.hover(page.one(f'[data-token="{number}"]'))
        assert page.run(STATE)["told"].startswith("Click ")  # Only a choice asks.
        page.one(f'[data-token="{number}"]').click()
        page.wait_for(lambda: " attends to " in page.run(STATE)["told"])
        place = {name: found[name][number] for name in ("document", "start", "end")}
        asked = {name: tf.constant([x], tf.int32) for name, x in place.items()}
        span = tf.saved_model.load(model.directory).signatures["attention_of_span"](
            question=tf.constant([QUESTION]),
            documents=tf.constant([[DOCUMENT]]),
            layer=tf.constant([sizes["layer"]], tf.int32),
            **asked,
        )
        most = float(tf.reduce_max(span["attention"][0, 1]))
        assert f" {100 * most:.1f} %" in page.run(STATE)["told"]
        assert not page.complaints()
