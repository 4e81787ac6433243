"""What the report and the terminal view show, and that no text can break out of them."""

import html.parser
import re

from etcmodel.tools.demos import report_html
from etcmodel.tools.demos.report_html import render_report, render_terminal

EXAMPLE = {
    "_id": "a",
    "question": "What is the home of Ilse made of?",
    "answer": "oak",
    "supporting_facts": [["Ilse", 0], ["Tarn Hollow", 1]],
    "context": [
        ["Ilse", ["Ilse lives at Tarn Hollow.", "She was born in 1850."]],
        ["Tarn Hollow", ["It is old.", "Tarn Hollow is made of oak, not of oaken pine."]],
        ["Ember Crag", ["It is made of oak, too.", "It is red."]],
    ],
}
RIGHT = {"answer": "Oak", "sp": EXAMPLE["supporting_facts"]}
WRONG = {"answer": "pine", "sp": [["Tarn Hollow", 1], ["Ember Crag", 1]]}
UNLABELED = {key: EXAMPLE[key] for key in ("_id", "question", "context")}
HOSTILE = '<script>alert("x")</script> & \x1b[2J'


class Page(html.parser.HTMLParser):
    """The tags of a page, its texts by the tag and class around them, and whether tags match."""

    VOID = {"meta", "img"}

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attrs).get("class", "")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open:
            self.texts.append((*self.open[-1], data.strip()))

    def texts_in(self, tag, css_class=""):
        """Texts after the legend, which has the same marks."""
        start = next(i for i, (name, *_) in enumerate(self.texts) if name == "article")
        return [text for name, css, text in self.texts[start:] if (name, css) == (tag, css_class)]


def report(prediction=RIGHT, example=EXAMPLE, **changes):
    values = {
        "title": "Demo",
        "train_curve": [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5}],
        "dev_curve": [{"step": 2, "f1": 0.5, "em": 0.25}],
        "metrics": {"model": {"em": 0.25, "f1": 0.5}, "baseline": {"f1": 0.125}},
        "examples": [example],
        "predictions": {key: {"a": value} for key, value in prediction.items()},
    }
    return render_report(**{**values, **changes})


class TestReport:
    def test_tags_match_and_nothing_is_loaded(self):
        page = Page(report())
        assert not page.open
        assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe"}
        sources = [attrs.get("src") or attrs.get("href") or "" for _, attrs in page.tags]
        assert all(source.startswith("data:") for source in sources if source)
        text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", report())
        assert not re.search(r"url\((?!#)|@import|https?:", text)

    def test_each_measure_has_a_chart_of_its_own_that_names_its_systems(self):
        curve = [
            {"step": 1, "loss, one": 2.0, "loss, other": 3.0, "accuracy, one": 0.5},
            {"step": 2, "loss, one": 1.0, "loss, other": 2.0},
        ]
        page = report(train_curve=curve, dev_curve=[{"step": 2, "f1": 0.5, "em": 0.25}])
        shown = re.findall(r'<svg[^>]*aria-label="([^"]*)".*?</svg>', page, flags=re.DOTALL)
        assert shown == [
            "Loss (lower is better): training",
            "Accuracy, % (higher is better): training",
            "F1, % (higher is better): dev set",
            "Exact match, % (higher is better): dev set",
        ]
        loss, accuracy, *_ = page.split("<svg")[1:]
        assert ">one</text>" in loss and ">other</text>" in loss
        assert ">one</text>" in accuracy and ">other</text>" not in accuracy
        (line, _) = report_html._charts(curve, "x")[0].lines
        assert line.points == ((1, 2.0), (2, 1.0))
        assert report_html._charts(curve, "x")[1].lines[0].points == ((1, 50.0),)

    def test_the_page_is_light_or_dark(self):
        assert "prefers-color-scheme: dark" in report()
        assert "background: var(--ground)" in report()

    def test_metrics_are_compared_in_per_cent(self):
        cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", report())
        assert cells[:9] == [
            *("in per cent", "model", "baseline"),
            *("Exact match", "25.0", "–"),
            *("F1", "50.0", "12.5"),
        ]

    def test_right_prediction_is_marked(self):
        page = Page(report(RIGHT))
        assert page.texts_in("mark", "both") == ["oak"]
        assert page.texts_in("p", "sentence correct")[0] == "Ilse lives at Tarn Hollow."
        assert not page.texts_in("p", "sentence missed") + page.texts_in("p", "sentence wrong")

    def test_wrong_prediction_is_marked(self):
        page = Page(report(WRONG))
        assert page.texts_in("mark", "gold") == ["oak"]
        assert page.texts_in("mark", "predicted") == ["pine"]
        assert page.texts_in("p", "sentence missed") == ["Ilse lives at Tarn Hollow."]
        assert page.texts_in("p", "sentence wrong") == ["It is red."]

    def test_missing_prediction_is_shown_as_none(self):
        page = Page(report({"answer": "", "sp": []}, predictions={"answer": {}, "sp": {}}))
        assert page.texts_in("b") == ["(none)", "oak"]

    def test_shows_the_first_questions_only(self):
        examples = [{**EXAMPLE, "question": f"Question {i}?"} for i in range(5)]
        page = report(examples=examples, num_questions=2)
        assert re.findall(r"Question \d", page) == ["Question 0", "Question 1"]

    def test_curves_may_be_empty(self):
        assert "<svg" not in report(train_curve=[], dev_curve=[])

    def test_hostile_text_is_escaped(self):
        places = ("question", "answer", "title", "sentence", "predicted")
        examples, predictions = [], {"answer": {}, "sp": {}}
        for place in places:
            text = {name: HOSTILE if name == place else "t" for name in places}
            example = {"_id": place, "question": text["question"], "answer": text["answer"]}
            example["context"] = [[text["title"], [text["sentence"]]]]
            examples.append({**example, "supporting_facts": [[text["title"], 0]]})
            predictions["answer"][place] = text["predicted"]
            predictions["sp"][place] = [[text["title"], 0]]
        page = report(examples=examples, predictions=predictions)
        assert "<script" not in page
        escaped = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp;"
        assert page.count(escaped) == len(places)

    def test_hostile_headings_are_escaped(self):
        page = report(title=HOSTILE, metrics={HOSTILE: {HOSTILE: 0.5}})
        assert "<script" not in page
        assert page.count("&lt;script&gt;") == 4


class TestTerminal:
    def test_plain_text_tells_what_colors_would(self):
        assert render_terminal(EXAMPLE, WRONG).split("\n")[:14] == [
            "Question: What is the home of Ilse made of?",
            "Predicted answer: pine",
            "Right answer: oak",
            "",
            "Ilse",
            "  ○ Ilse lives at Tarn Hollow.",
            "    She was born in 1850.",
            "",
            "Tarn Hollow",
            "    It is old.",
            "  ✓ Tarn Hollow is made of +oak+, not of oaken ~pine~.",
            "",
            "Ember Crag",
            "    It is made of oak, too.",
        ]

    def test_example_without_gold_shows_the_prediction_only(self):
        text = render_terminal(UNLABELED, WRONG)
        assert "Right answer:" not in text
        assert "  • Tarn Hollow is made of oak, not of oaken ~pine~." in text
        assert "  • It is red." in text

    def test_colors_only_when_asked(self):
        plain, colored = (render_terminal(EXAMPLE, WRONG, ansi=ansi) for ansi in (False, True))
        assert "\x1b" not in plain
        assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
        assert "\x1b[1;4;31m~pine~\x1b[0m" in colored

    def test_control_characters_of_the_data_do_not_reach_the_terminal(self):
        example = {"question": HOSTILE, "answer": HOSTILE, "context": [[HOSTILE, [HOSTILE]]]}
        text = render_terminal(example, {"answer": HOSTILE, "sp": [[HOSTILE, 0]]})
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
