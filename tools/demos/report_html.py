"""Shows what a model has learned: one HTML file that needs nothing else, or text for a terminal.

Both show a question with its paragraphs, the answers marked in them, and, if the model predicts
supporting facts, each sentence by what it made of it: a supporting fact that it found, one that it
missed, or one that is none.
"""

import html
import re
import string
from typing import NamedTuple

from etcmodel.pictures import charts, metric_names, style

__all__ = ["render_report", "render_terminal"]

# Colors of Okabe and Ito, distinct to color-blind eyes; the symbols tell the same without them.
BLUE, ORANGE, VERMILION = "#0072B2", "#E69F00", "#D55E00"


class Mark(NamedTuple):
    """How one kind of sentence or answer is told apart."""

    symbol: str
    legend: str
    color: str
    ansi: str  # Select Graphic Rendition, the digits after `ESC [`.


SENTENCES = {
    "correct": Mark("✓", "supporting fact, found", BLUE, "34"),
    "missed": Mark("○", "supporting fact, missed", ORANGE, "33"),
    "wrong": Mark("✗", "no supporting fact, but predicted", VERMILION, "31"),
    "found": Mark("•", "predicted as supporting fact", BLUE, "34"),  # Where no gold is known.
}
ANSWERS = {
    "both": Mark("*", "right answer, predicted", BLUE, "1;4;34"),
    "gold": Mark("+", "right answer", ORANGE, "1;4;33"),
    "predicted": Mark("~", "predicted answer", VERMILION, "1;4;31"),
}

PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 1rem/1.55 system-ui, sans-serif; color: var(--ink); background: var(--ground);
  max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.2rem; margin-top: 2.5rem; }
h3 { font-size: 1.05rem; margin: 0 0 .4rem; }
h4 { font-size: .95rem; margin: .9rem 0 .1rem; }
p { margin: .2rem 0; }
.curves { display: flex; flex-wrap: wrap; gap: 1rem; }
.curves svg { width: 100%; max-width: 25rem; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child { text-align: left; }
article { border: 1px solid var(--grid); border-radius: .5rem;
  padding: 1rem 1.2rem; margin: 1.2rem 0; }
.legend, .plain { color: var(--muted); }
.legend span { display: inline-block; margin-right: .8rem; }
.sentence { border-left: .25rem solid transparent; padding: .05rem .5rem; }
mark { background: none; color: inherit; font-weight: 600; border-bottom: .15rem solid; }
$rules
</style>
</head>
<body>
<h1>$title</h1>
$sections
</body>
</html>
""")


def _rules():
    """The style sheet's lines for the marks; the `22` after a color is its opacity."""
    sentences = (
        f".sentence.{status} {{ border-color: {mark.color}; background: {mark.color}22;"
        " color: inherit; }"
        for status, mark in SENTENCES.items()
    )
    answers = (f"mark.{role} {{ border-color: {mark.color}; }}" for role, mark in ANSWERS.items())
    return "\n".join([style.style_sheet(), *sentences, *answers])


# What is shown, apart from how.


def _status(fact, gold, predicted):
    """What the model made of one sentence; None where facts, or the right ones, are unknown."""
    if predicted is None:
        return "plain"
    if gold is None:
        return "found" if fact in predicted else "plain"
    if fact in gold:
        return "correct" if fact in predicted else "missed"
    return "wrong" if fact in predicted else "plain"


def _spans(text, gold_answer, predicted_answer):
    """Splits a text at the whole-word occurrences of the answers into (text, role) pairs."""
    roles = {predicted_answer.lower(): "predicted", gold_answer.lower(): "gold"}
    if gold_answer.lower() == predicted_answer.lower():
        roles = {gold_answer.lower(): "both"}
    answers = sorted((re.escape(answer) for answer in roles if answer), key=len, reverse=True)
    if not answers:
        return [(text, "plain")]
    parts = re.split(rf"(?<!\w)({'|'.join(answers)})(?!\w)", text, flags=re.IGNORECASE)
    return [(part, roles.get(part.lower(), "plain")) for part in parts if part]


def _paragraphs(example, prediction):
    """Yields (spans of the title, [(status, spans) of each sentence]) for each paragraph."""
    facts = example.get("supporting_facts")
    gold = None if facts is None else {tuple(fact) for fact in facts}
    predicted = {tuple(fact) for fact in prediction["sp"]} if "sp" in prediction else None

    def spans(text, marked):  # An answer's words in a text that supports nothing are chance.
        is_marked = marked or predicted is None
        answers = (example.get("answer", ""), prediction["answer"]) if is_marked else ("", "")
        return _spans(text, *answers)

    for title, sentences in example["context"]:
        statuses = [_status((title, i), gold, predicted) for i in range(len(sentences))]
        yield (
            spans(title, any(status != "plain" for status in statuses)),
            [(s, spans(text, s != "plain")) for s, text in zip(statuses, sentences, strict=True)],
        )


def _heading(example, prediction):
    """The question and the answers, as (label, text) pairs."""
    known = [("Right answer", example["answer"])] if "answer" in example else []
    predicted = prediction["answer"] or "(none)"
    if "candidates" in example:
        known.append(("Candidates", ", ".join(example["candidates"])))
    return [("Question", example["question"]), ("Predicted answer", predicted), *known]


# HTML.


def _legend(has_facts):
    """Every mark with its meaning; those of sentences only where facts are predicted."""
    sentences = "".join(
        f'<span class="sentence {status}">{mark.symbol} {mark.legend}</span>'
        for status, mark in SENTENCES.items()
    )
    answers = "".join(
        f'<span><mark class="{role}">{mark.legend}</mark></span>' for role, mark in ANSWERS.items()
    )
    lines = [sentences, answers] if has_facts else [answers]
    return "\n".join(f'<p class="legend">{line}</p>' for line in lines)


def _html_spans(spans):
    """Escaped text with its answers marked."""
    return "".join(
        html.escape(part) if role == "plain" else f'<mark class="{role}">{html.escape(part)}</mark>'
        for part, role in spans
    )


def _html_sentence(status, spans):
    """A sentence in the color of its status."""
    mark = SENTENCES.get(status)
    note = f'<span title="{mark.legend}">{mark.symbol}</span> ' if mark else ""
    return f'<p class="sentence {status}">{note}{_html_spans(spans)}</p>'


def _html_question(example, prediction):
    """A question as an article: the answers first, then the paragraphs."""
    (_, question), *answers = _heading(example, prediction)
    lines = [f"<article>\n<h3>{html.escape(question)}</h3>"]
    lines += [f"<p>{label}: <b>{html.escape(text)}</b></p>" for label, text in answers]
    for title, sentences in _paragraphs(example, prediction):
        lines.append(f"<h4>{_html_spans(title)}</h4>")
        lines += [_html_sentence(status, spans) for status, spans in sentences]
    return "\n".join([*lines, "</article>"])


def _html_metrics(metrics):
    """A table with a row for each metric and a column for each system, in per cent."""
    names = list(dict.fromkeys(name for values in metrics.values() for name in values))
    head = "".join(f'<th scope="col">{html.escape(system)}</th>' for system in metrics)
    rows = [f'<tr><th scope="col">in per cent</th>{head}</tr>']
    for name in names:
        cells = "".join(
            f"<td>{100 * values[name]:.1f}</td>" if name in values else "<td>–</td>"
            for values in metrics.values()
        )
        label = metric_names.describe(name).name
        rows.append(f'<tr><th scope="row">{html.escape(label)}</th>{cells}</tr>')
    return '<div class="wide"><table>\n' + "\n".join(rows) + "\n</table></div>"


def _html_curves(train_curve, dev_curve):
    """The learning curves as pictures within the page, one for each thing that is measured."""
    drawn = (*_charts(train_curve, "training"), *_charts(dev_curve, "dev set"))
    pictures = (
        style.svg(lambda theme, chart=chart: charts.draw([chart], theme), chart.title)
        for chart in drawn
    )
    return '<div class="curves">\n' + "\n".join(pictures) + "\n</div>"


def _charts(curve, source):
    """A chart for each measure of a curve, with a line for each system."""
    lines = {}  # By title and whether it is a share.
    for name in dict.fromkeys(name for point in curve for name in point if name != "step"):
        measure, _, system = name.partition(", ")
        metric = metric_names.describe(measure)
        scale = 100 if metric.is_share else 1
        points = tuple((row["step"], scale * row[name]) for row in curve if name in row)
        label = system or metric.subject
        title = f"{metric.title}: {source}", metric.is_share
        lines.setdefault(title, []).append(charts.Line(label, points))
    return [
        charts.Chart(title, "training step", tuple(found), floor=0 if is_share else None)
        for (title, is_share), found in lines.items()
    ]


def render_report(
    *, title, train_curve, dev_curve, metrics, examples, predictions, num_questions=8
):
    """Makes a page of learning curves, metrics and some questions.

    Args:
        title: str.
        train_curve: list of dicts with a "step" and what was seen there, such as the "loss".
        dev_curve: likewise, with the dev set's metrics at each checkpoint. A name such as
            "f1, model" is of one of several systems, which share a chart.
        metrics: dict of systems ("model", "baseline", …) to dicts of metrics in [0, 1].
        examples: list of HotpotQA examples, or of others in their form; these may have
            "candidates", a list of str.
        predictions: dict. The model's predictions in HotpotQA's official format; without "sp" if
            it predicts no supporting facts.
        num_questions: int. How many of the examples to show, from the first.
    Returns:
        str. HTML that loads nothing, light or dark as the reader has it.
    """
    sections = [
        "<h2>Metrics</h2>",
        _html_metrics(metrics),
        "<h2>Learning curves</h2>",
        _html_curves(train_curve, dev_curve),
        "<h2>Some questions</h2>",
        _legend("sp" in predictions),
    ]
    for example in examples[:num_questions]:
        prediction = {"answer": predictions["answer"].get(example["_id"], "")}
        if "sp" in predictions:
            prediction["sp"] = predictions["sp"].get(example["_id"], [])
        sections.append(_html_question(example, prediction))
    return PAGE.substitute(title=html.escape(title), rules=_rules(), sections="\n".join(sections))


# Terminal.


def render_terminal(example, prediction, *, ansi=False):
    """Shows one question with its paragraphs as plain text.

    Args:
        example: dict. A HotpotQA example, with or without its answer and supporting facts.
        prediction: dict with the "answer" and, if facts are predicted, the "sp" of this question.
        ansi: bool. Whether to color with ANSI escape sequences.
    Returns:
        str. Lines without a final line break.
    """

    def clean(text):  # Text from a file must not steer the terminal.
        return re.sub(r"[\x00-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", text)

    def paint(text, mark):
        return f"\x1b[{mark.ansi}m{text}\x1b[0m" if ansi else text

    def join(spans):
        marks = ((clean(text), ANSWERS.get(role)) for text, role in spans)
        return "".join(
            paint(f"{mark.symbol}{text}{mark.symbol}", mark) if mark else text
            for text, mark in marks
        )

    lines = [f"{label}: {clean(text)}" for label, text in _heading(example, prediction)]
    for title, sentences in _paragraphs(example, prediction):
        lines += ["", join(title)]
        for status, spans in sentences:
            mark = SENTENCES.get(status)
            symbol = paint(mark.symbol, mark) if mark else " "
            lines.append(f"  {symbol} {join(spans)}")
    marks = (*(SENTENCES.values() if "sp" in prediction else ()), *ANSWERS.values())
    legend = [f"{mark.symbol} {mark.legend}" for mark in marks]
    return "\n".join([*lines, "", " | ".join(legend)])
