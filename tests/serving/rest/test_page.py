"""What the page at `/` is made of; what it does is tested in a browser (`make test-browser`)."""

import base64
import hashlib
import html.parser
import json
import re

import numpy as np
import pytest

from etcmodel.serving.rest import application as page
from etcmodel.serving.rest import model
from etcmodel.serving.rest.codec import Signature, TensorInfo
from tests.serving.rest import clients

NAME = "</script><b>&model"


class Parsed(html.parser.HTMLParser):
    """Elements, and the text of scripts and style sheets."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs).get("type", ""))

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, text):
        self.texts[self._open] = self.texts.get(self._open, "") + text

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def signatures_of(*names):
    info = TensorInfo(np.dtype(object), (None,))
    return {name: Signature(name, {"text": info}, {"y": info}) for name in names}


def test_nothing_is_loaded_and_nothing_else_may_run(models):
    text = page.render_page("model", "3", models["answer"].signatures)
    parsed = Parsed(text)
    allowed = parsed.of("meta")[1]["content"]
    for tag, kind in (("script", ""), ("style", "")):
        digest = hashlib.sha256(parsed.texts[tag, kind].encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in allowed
    assert "default-src 'none'" in allowed and "unsafe" not in allowed
    assert not re.search(r"https?://", text)
    assert not [x for _, x in parsed.elements if "src" in x or "onclick" in x or "style" in x]
    assert "innerHTML" not in text and "eval(" not in text


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("answer", "attention", "serving_default"), "answer"),
        (("classify",), "classify"),
        (("classify", "attention"), "classify"),
        (("keyphrases", "serving_default"), "keyphrases"),
        (("serving_default", "dense_features"), "other"),
    ],
)
def test_the_form_is_that_of_the_export(names, kind):
    parsed = Parsed(page.render_page("model", "3", signatures_of(*names)))
    data = json.loads(parsed.texts["script", "application/json"])
    assert data["kind"] == kind and data["attention"] == ({} if "attention" in names else None)
    labeled = {x["for"] for x in parsed.of("label")}
    fields = {x["id"] for tag in ("input", "textarea") for x in parsed.of(tag)} - {"files"}
    assert fields and fields <= labeled
    assert [x["id"] for x in parsed.of("button") if x["type"] == "submit"] == ["send"]


def test_names_are_shown_as_text():
    signatures = signatures_of("classify", "<i>")
    text = page.render_page(NAME, "3", signatures)
    parsed = Parsed(text)
    assert not parsed.of("b") and not parsed.of("i") and len(parsed.of("script")) == 2
    data = json.loads(parsed.texts["script", "application/json"])
    assert data["url"] == "/v1/models/%3C%2Fscript%3E%3Cb%3E%26model:predict"


def test_the_request_that_is_proposed_is_one_that_the_model_takes(models):
    signatures = models["keyphrases"].signatures
    with clients.running(models["keyphrases"]) as server:
        client = clients.Client(server)
        assert client.predict(json.loads(page.sample_request(signatures)))[0] == 200
        client.close()


def test_the_server_sends_the_page(server):
    answer = clients.raw(server, b"GET / HTTP/1.0\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Type: text/html; charset=utf-8" in head
    assert body.decode().startswith("<!DOCTYPE html>")


def test_labels_examples_and_sizes_of_a_text_export_reach_the_page():
    texts = model.Texts(["bad", "good"], [{"text": "</script>"}], {"layers": 3, "heads": 2})
    text = page.render_page("model", "3", signatures_of("classify", "attention"), texts)
    data = json.loads(Parsed(text).texts["script", "application/json"])
    assert (data["labels"], data["examples"], data["attention"]) == (
        texts.labels,
        texts.examples,
        texts.attention,
    )


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"options": []}, "`options` must be a JSON object"),
        ({"options": {"labels": [1]}}, "`labels` must be strings"),
        ({"options": {"examples": [{"text": 1}]}}, "Each of `examples` must be a dict of str"),
        ({"options": {"examples": 7}}, "not iterable"),
        ({"attention": {"layers": "2"}}, "`attention` must hold whole numbers"),
    ],
)
def test_what_an_export_says_of_itself_is_checked(metadata, message):
    with pytest.raises(ValueError, match=f"text.json: .*{message}.* Export again"):
        model._texts("text.json", metadata)


def test_an_export_of_an_earlier_version_says_less():
    assert model._texts("text.json", {"options": {"labels": ["a"]}}) == model.Texts(["a"], [], {})
