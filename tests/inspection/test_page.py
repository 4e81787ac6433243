"""The page on attention: what it holds, and that no text can break out of it."""

import base64
import hashlib
import html.parser
import json
import re

import numpy as np
import pytest

from etcmodel.inspection import MEAN, SIDES, Attention, show_page, write_page
from etcmodel.inspection.page import render_page

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"'><img src=https://example.com onerror=alert(1)>",
    "&lt;b&gt;",
    "\u2028\u2029\x00\x1b[2J\ud800",
    "${alert(1)}`$title",
    "]]>",
]


def probabilities(layer, side, num_queries, heads=(0, MEAN), num_keys=(7, 2)):
    """An `Attention` of random probabilities, of every other query."""
    rng = np.random.default_rng(layer)
    entries = []
    for query in range(0, num_queries, 2):
        for head in heads:
            probs = np.sort(rng.dirichlet(np.ones(3)))[::-1]
            places = rng.permutation(sum(num_keys))[:3]
            for place, prob in zip(places, probs, strict=True):
                key_side = int(place >= num_keys[0])
                entries.append((query, head, key_side, place - key_side * num_keys[0], prob))
    columns = [np.array(column) for column in zip(*entries, strict=True)]
    return Attention(layer, side, *(x.astype(np.int32) for x in columns[:4]), columns[4], num_keys)


ATTENTION = [
    probabilities(0, "long", 7),
    probabilities(0, "global", 2),
    probabilities(11, "long", 7, heads=(0,)),
]
LONG = ["The", "river", "ri", "##ses", "on", "moor", "##s"]
GLOBAL = ["sentence 1", "sentence 2"]


class Page(html.parser.HTMLParser):
    """The tags of a page, whether they match, and the text in each of those with an id."""

    VOID = {"meta"}

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.texts = [], [], {}
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attrs).get("id", tag)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, name in self.open:
            self.texts[name] = self.texts.get(name, "") + data

    def of(self, tag):
        """The attributes of all tags of this kind."""
        return [attrs for name, attrs in self.tags if name == tag]


def page_of(long_tokens=LONG, global_tokens=GLOBAL, **options):
    text = render_page(ATTENTION, long_tokens, global_tokens, **options)
    return text, Page(text)


def test_the_data_of_the_page_are_the_arrays():
    _, page = page_of()
    data = json.loads(page.texts["data"])
    assert data["global"] == GLOBAL
    assert data["long"] == ["The", "river", "ri", "ses", "on", "moor", "s"]
    shown = {(x["layer"], x["side"], x["head"]): x for x in data["attention"]}
    assert len(shown) == len(data["attention"]) == 5
    for part in ATTENTION:
        for head in set(part.head.tolist()):
            rows = shown[part.layer, part.query_side, head]
            assert rows["queries"] == sorted(set(part.query.tolist()))
            spans = zip(rows["queries"], rows["starts"], rows["starts"][1:], strict=False)
            for query, start, end in spans:
                seen = np.zeros(9)
                seen[rows["keys"][start:end]] = rows["probabilities"][start:end]
                expected = np.concatenate([*part.dense(query, head).values()])
                np.testing.assert_allclose(seen, expected, rtol=1e-5)
                assert np.all(np.diff(rows["probabilities"][start:end]) <= 0)
        assert sum(
            map(
                len,
                (x["keys"] for key, x in shown.items() if key[:2] == (part.layer, part.query_side)),
            )
        ) == len(part.key)


def test_the_text_can_be_read_and_each_token_has_its_number():
    _, page = page_of()
    assert page.texts["long"].strip() == "The river rises on moors"
    assert page.texts["global"].split("  ") == [" sentence 1 sentence 2"]
    numbers = [x["data-token"] for x in page.of("span") if "data-token" in x]
    assert sorted(map(int, numbers)) == list(range(9))


def test_pieces_of_sentencepiece_are_joined_to_words():
    _, page = page_of(["▁The", "▁riv", "er", "▁", "##", ".", "▁so"])
    assert page.texts["long"].strip() == "The river ▁##. so"


def test_pieces_of_bytes_are_shown_as_text():
    _, page = page_of(["<s>", "A", "Ġriv", "er", "ĠÃ", "¼", "Ġâ"])
    assert page.texts["long"].strip() == "<s>A river …ü …"


def test_pieces_of_bytes_that_spell_what_cannot_be_seen_are_shown_as_they_are_written():
    text, page = page_of(["<s>", "ĠA", "Ċ", "Ā", "Â", "Ľ", "Ġ<"])
    assert json.loads(page.texts["data"])["long"] == ["<s>", "A", "Ċ", "Ā", "…", "Ľ", "<"]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def test_a_table_tells_without_the_script_what_each_query_looks_at_most():
    _, page = page_of()
    (long_part, global_part, _) = ATTENTION
    lines = [line for line in page.texts["details"].splitlines() if "(long" in line]
    assert "Layer 0, mean of all heads" in page.texts["details"]
    assert len(page.of("th")) == 4 + 2 + 4 + 1  # Both headers, and a row for each query.
    for part in (long_part, global_part):
        for query in set(part.query.tolist()):
            here = (part.query == query) & (part.head == MEAN)
            name = f"({part.query_side} {query})"
            (line,) = (x for x in lines if re.match(rf"[^(]*{re.escape(name)}", x))
            seen = [
                f"({SIDES[side]} {key}) {prob:.2f}"
                for side, key, prob in zip(
                    part.key_side[here], part.key[here], part.probability[here], strict=True
                )
            ]
            assert re.findall(r"\(\w+ \d+\) \d\.\d\d", line) == seen


def test_layers_heads_and_attributions_can_be_chosen():
    text, page = page_of(attributions=([0.5, -1, 0, 0, 0, 0, 1e-9], [2, 0]))
    assert [x["id"] for x in page.of("select")] == ["layer", "head", "view"]
    assert [x["value"] for x in page.of("option")] == [
        *("0", "11"),
        *(str(MEAN), "0"),
        *("attributions", "attention"),
    ]
    assert json.loads(page.texts["data"])["attributions"] == [0.5, -1, 0, 0, 0, 0, 1e-9, 2, 0]
    assert len(page_of()[1].of("select")) == 2


def test_nothing_is_loaded_and_only_the_pages_own_script_may_run():
    text, page = page_of(attributions=([0.0] * 7, [0.0] * 2))
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "img", "object", "base", "form"}
    assert not re.search(r"url\(|@import|https?:|//\w", text)
    for _, attributes in page.tags:
        assert not {"src", "href", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    (policy,) = (x["content"] for x in page.of("meta") if "http-equiv" in x)
    assert "default-src 'none'" in policy
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_hostile_text_stays_text():
    text, page = page_of(HOSTILE, HOSTILE[:2], title=HOSTILE[0])
    plain_text, plain = page_of()
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert page.of("span") == plain.of("span")
    data = json.loads(page.texts["data"])
    assert (
        data["long"][:4] == HOSTILE[:4] and data["long"][4] == "\u2028\u2029\ufffd\ufffd[2J\ufffd"
    )
    assert page.texts["title"] == HOSTILE[0] and HOSTILE[2] in page.texts["long"]
    for start, end in (
        (m.start(), text.find("</script>", m.start())) for m in re.finditer("<script", text)
    ):
        assert "<" not in text[text.index(">", start) + 1 : end] or "use strict" in text[start:end]


def test_sides_have_the_names_that_they_are_given():
    text, page = page_of(sides=("US input", HOSTILE[0]))
    assert page.texts["long-title"] == "US input tokens"
    assert page.texts["global-title"] == HOSTILE[0] + " tokens"
    assert json.loads(page.texts["data"])["sides"] == ["US input", HOSTILE[0]]
    assert "(US input 0)" in page.texts["details"]
    assert "alert(1)</script>" not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_light_and_dark(scheme):
    text, _ = page_of()
    assert "color-scheme: light dark" in text
    assert contrasts(text, scheme) > 4.5


def contrasts(text, scheme):
    """The least contrast of the text, as WCAG 2 defines it, on all backgrounds of a scheme."""
    light, dark = (
        dict(re.findall(r"--([\w-]+): ([^;]+);", block))
        for block in re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    )
    values = light if scheme == "light" else {**light, **dark}
    colors = {
        name: np.array([int(value[i : i + 2], 16) for i in (1, 3, 5)])
        for name, value in values.items()
        if value.startswith("#")
    }
    card, strength = colors["card"], float(values["strength"])
    marks = (np.array(list(map(int, values[name].split()))) for name in ("long", "global"))
    backgrounds = [colors["page"], card, *(card + strength * (mark - card) for mark in marks)]
    least = [contrast(colors["text"], x) for x in backgrounds]
    least += [
        contrast(colors[x], colors[y])
        for x in ("quiet", "accent", "wrong")
        for y in ("page", "card")
    ]
    return min(*least, contrast(colors["on-answer"], colors["answer"]))


def contrast(one, other):
    def luminance(color):
        linear = np.where(color <= 10.3, color / 3294.6, ((color / 255 + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722] + 0.05

    high, low = sorted([luminance(one), luminance(other)])[::-1]
    return high / low


def test_the_file_appears_complete_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "page.html"
    write_page(str(path), ATTENTION, LONG, GLOBAL, title="Moors")
    assert path.read_text("utf-8") == page_of(title="Moors")[0]
    with pytest.raises(ValueError, match="each of 7 long and 2 global tokens.* 6 and 2 words"):
        write_page(str(path), ATTENTION, LONG[1:], GLOBAL, title="Moors")
    assert [x.name for x in path.parent.iterdir()] == ["page.html"]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="`attention` is empty"):
        render_page([], LONG, GLOBAL)
    with pytest.raises(ValueError, match=r"each of \(7, 2\) tokens. Received: \(7, 1\)"):
        render_page(ATTENTION, LONG, GLOBAL, attributions=(np.zeros(7), np.zeros(1)))


def test_a_notebook_shows_the_page_in_a_frame_that_can_do_no_more_than_run_it():
    shown = show_page(ATTENTION, LONG, HOSTILE[:2], title="<b>", height=300)
    parts = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: parts.append((tag, dict(attributes)))
    parser.feed(shown._repr_html_())
    ((tag, attributes),) = parts
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    assert attributes["height"] == "300"
    assert attributes["srcdoc"] == render_page(ATTENTION, LONG, HOSTILE[:2], title="<b>")
    assert "html" not in repr(shown)
