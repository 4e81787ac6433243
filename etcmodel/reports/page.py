"""The report: a self-contained HTML file."""

import dataclasses
import functools
import math
import re
from typing import NamedTuple

from etcmodel import extras, pages
from etcmodel.pictures import charts, metric_names, style

# The charts of a training run, one per measure.


_TRAINING, _EVALUATION = "training", "evaluation"
# In this order, after the evaluation's scores and losses.
_MACHINERY = ("learning_rate", "gradient_norm", "examples_per_second")
_MOST_POINTS = 400  # More than a chart has pixels would only make the page larger.


def charts_of_run(train_rows, eval_rows):
    """Charts of the metrics by step: scores first, then losses, then training statistics.

    Metrics of the same measure share a chart, across subjects and across the two sources.
    Non-finite values are left out.

    Args:
        train_rows, eval_rows: lists of dict, "step" and metrics.
    Returns:
        list of `charts.Chart`.
    """
    sources = {_TRAINING: train_rows, _EVALUATION: eval_rows}
    found = {}  # Of a title and whether it is a share to (source, metric, points).
    for source, rows in sources.items():
        for name in dict.fromkeys(name for row in rows for name in row if name != "step"):
            metric = metric_names.describe(name)
            if metric.is_setting:
                continue
            scale = 100 if metric.is_share else 1
            values = ((row["step"], row.get(name)) for row in rows)
            points = [(step, scale * value) for step, value in values if _is_finite(value)]
            if points:
                found.setdefault(metric.title, []).append((source, metric, _thinned(points)))
    titles = sorted(found, key=lambda title: _rank(found[title]))
    return [_chart(title, found[title]) for title in titles]


def _is_finite(value):
    return isinstance(value, int | float) and math.isfinite(value)


def _rank(lines):
    """Sort key: scores, losses, and last the training statistics."""
    metrics = [metric for _, metric, _ in lines]
    machinery = [metric_names.describe(name).measure for name in _MACHINERY]
    if metrics[0].measure in machinery:
        return 2, machinery.index(metrics[0].measure)
    is_loss = metrics[0].measure == "Loss"
    return (1 if is_loss else 0), 0


def _chart(title, lines):
    sources = {source for source, _, _ in lines}
    labels = [_label(source, metric, len(sources) > 1) for source, metric, _ in lines]
    if len(lines) == 1 and not lines[0][1].subject:
        labels = [""]  # The title is enough.
    made = (
        charts.Line(label, tuple(points), is_reference=metric.is_reference)
        for label, (_, metric, points) in zip(labels, lines, strict=True)
    )
    is_share = lines[0][1].is_share
    return charts.Chart(title, "training step", tuple(made), floor=0 if is_share else None)


def _label(source, metric, is_told):
    subject = metric.subject or ("" if is_told else "all")
    return ", ".join(filter(None, [subject, source if is_told else ""]))


def _thinned(points):
    step = -(-len(points) // _MOST_POINTS)
    kept = points[::step]
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


# Finds the answers to mark, in a text or among candidates.


def roles(gold, predicted):
    """The role of each answer: dict from the lower-cased answer to "gold", "predicted" or "both".

    Args:
        gold, predicted: sequences of str.
    """
    found = {answer.lower(): "predicted" for answer in predicted if answer.strip()}
    for answer in filter(str.strip, gold):
        found[answer.lower()] = "both" if answer.lower() in found else "gold"
    return found


def spans(text, gold, predicted):
    """Splits a text at answers that occur as whole words, ignoring case.

    Args:
        text: str.
        gold, predicted: as in `roles`.
    Returns:
        list of (part, role): the role is "gold", "predicted", "both" or "plain".
    """
    found = roles(gold, predicted)
    if not found:
        return [(text, "plain")]
    pattern = "|".join(sorted(map(re.escape, found), key=len, reverse=True))
    parts = re.split(rf"(?<!\w)({pattern})(?!\w)", text, flags=re.IGNORECASE)
    return [(part, found.get(part.lower(), "plain")) for part in parts if part]


# Scores beside their baselines, and by the position of the evidence.


_PARTS = ("first", "second", "third", "fourth", "last")
_NORMAL_95 = 1.96  # Standard deviations on each side that hold 95 % of a normal distribution.


class Row(NamedTuple):
    """A row of the table of scores."""

    name: str
    is_lower_better: bool
    values: tuple  # Of str; "–" if a system lacks the metric.
    is_main: bool


class Bar(NamedTuple):
    """The mean score for a part of the input."""

    name: str
    count: int
    share: float | None  # In [0, 1]; None without examples.

    @property
    def shown(self):
        """The score in readable form: str."""
        return "–" if self.share is None else f"{100 * self.share:.1f} %"


def score_rows(systems, main=""):
    """The table of scores: the main metric first, descriptions of the data last.

    Args:
        systems: list of dict of float, the run's own metrics first.
        main: str. Name of the main metric.
    Returns:
        list of `Row`.
    """
    names = dict.fromkeys(name for metrics in systems for name in metrics if name != "step")
    described = {name: metric_names.describe(name) for name in names}
    order = sorted(names, key=lambda name: (name != main, described[name].is_setting))
    return [
        Row(
            described[name].name,
            described[name].direction == metric_names.LOWER,
            tuple(described[name].shown(x[name]) if name in x else "–" for x in systems),
            name == main,
        )
        for name in order
    ]


def interval(mean, count):
    """The 95 % interval of a mean of values in [0, 1], by Wilson's score method.

    It is meant for values that are 0 or 1; for others it is wider than necessary.

    Args:
        mean: float.
        count: int. Number of values, at least one.
    Returns:
        (float, float) in [0, 1].
    """
    square = _NORMAL_95**2 / count
    middle = (mean + square / 2) / (1 + square)
    half = math.sqrt(square * (mean * (1 - mean) + square / 4)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def place_bars(points):
    """Mean scores for the fifths of the input.

    Args:
        points: iterable of (position, score), both in [0, 1].
    Returns:
        list of `Bar`.
    """
    fifths = [[] for _ in _PARTS]
    for place, score in points:
        fifths[min(int(place * len(_PARTS)), len(_PARTS) - 1)].append(score)
    return [
        Bar(f"{name} fifth", len(scores), sum(scores) / len(scores) if scores else None)
        for name, scores in zip(_PARTS, fifths, strict=True)
    ]


# The page.


_LINE_END = re.compile("\r\n?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SYMBOLS = {"plain": "", "correct": "✓ ", "missed": "○ ", "wrong": "✗ "}


def render(
    *,
    title,
    run=None,
    results=None,
    curve_charts=None,
    num_examples=100,
    headline="",
    lead="",
):
    """Renders the report on a run, on predictions, or on both.

    All texts are escaped, as documents may contain anything.

    Args:
        title: str.
        run: `run_files.RunFiles`, or None.
        results: `results.Results`, or None. Without results, the scores are those recorded in the
            run.
        curve_charts: list of `charts.Chart`, in place of the run's charts.
        num_examples: int. Number of the results' items to show, starting from the first.
        headline: str. Headline of the page; '' for the results' main score.
        lead: str. A sentence or two below the headline.
    Returns:
        str. HTML.
    Raises:
        MissingExtraError: if Jinja or Matplotlib is not installed.
    """
    environment = _environment()
    from markupsafe import Markup

    if curve_charts is None:
        curve_charts = charts_of_run(run.train_rows, run.eval_rows) if run else []
    script = _source(environment, "report.js")
    return environment.get_template("report.html").render(
        title=_clean(title),
        headline=_clean(headline),
        lead=_clean(lead),
        subtitle=_subtitle(run),
        style=Markup(style.style_sheet() + "\n" + _source(environment, "report.css")),
        script=Markup(script),
        script_hash=pages.content_hash(script),
        pictures=[Markup(_picture(chart)) for chart in curve_charts],
        settings=_settings(run) if run else [],
        tables=[_cleaned(x) for x in results.tables] if results else [],
        **_of_scores(run, results),
        **_of_items(results, num_examples),
    )


@functools.cache
def _environment():
    with extras.needed("plots"):
        import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("etcmodel.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )


def _source(environment, name):
    return environment.loader.get_source(environment, name)[0]


def _clean(text):
    """Replaces characters that cannot be stored or displayed, and normalizes line ends."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _LINE_END.sub("\n", str(text)))


def _cleaned(table):
    rows = tuple(tuple(map(_clean, row)) for row in table.rows)
    return dataclasses.replace(table, columns=tuple(map(_clean, table.columns)), rows=rows)


def _picture(chart):
    return style.svg(lambda theme: charts.draw([chart], theme), chart.title)


def _subtitle(run):
    if run is None:
        return ""
    of = "" if run.last_step is None else f" of {run.last_step:,}"
    last = max((row["step"] for row in [*run.train_rows, *run.eval_rows]), default=None)
    trained = "" if last is None else f", trained for {last:,}{of} steps"
    best = "" if run.best_step is None else f", best checkpoint at step {run.best_step:,}"
    return _clean(f"{run.directory}{trained}{best}")


def _of_scores(run, results):
    noted = run.best_row if run else {}
    noted = {k: v for k, v in noted.items() if k != "step" and isinstance(v, int | float)}
    own = results.metrics if results else noted
    baselines = results.baselines if results else {}
    main = results.best_metric if results else ""
    system = _clean(results.system) if results else ""
    return {
        "rows": [
            row._replace(name=_clean(row.name))
            for row in score_rows([own, *baselines.values()], main)
        ],
        "systems": [system or "this run", *map(_clean, baselines)],
        "system": system,
        "scores_of": _scores_of(run, results),
        "measured": _measured(results, baselines) if results and main in own else None,
        "places": results.places if results else None,
        "bars": place_bars(results.places.points) if results and results.places else [],
    }


def _scores_of(run, results):
    if results:
        return f"On {len(results.items):,} {results.noun}, with the task's official metrics."
    step = run.best_row.get("step") if run else None
    return "" if step is None else f"As recorded by the run at step {step:,}."


def _measured(results, baselines):
    metric = metric_names.describe(results.best_metric)
    return {
        "value": metric.shown(results.metrics[results.best_metric]),
        "name": metric.name,
        "direction": metric.direction,
        "sample": _sample(results),
        "baselines": [
            (_clean(name), metric.shown(values[results.best_metric]))
            for name, values in baselines.items()
            if results.best_metric in values
        ],
    }


def _sample(results):
    """The number of items, and the confidence interval of the mean score."""
    told = f"{len(results.items):,} {results.noun}"
    known = [item.score for item in results.items if item.score is not None]
    mean = sum(known) / len(known) if known else None
    is_share = metric_names.describe(results.best_metric).is_share
    if not known or not is_share or abs(mean - results.metrics[results.best_metric]) > 1e-6:
        return told  # The score is not the mean of the items' scores.
    low, high = (f"{100 * value:.1f}" for value in interval(mean, len(known)))
    return f"{told} (95 % interval: {low} to {high} %)"


def _settings(run):
    parts = {"Training": run.training, "Model and features": run.options, "Notes": run.notes}
    return [(name, _flat(values)) for name, values in parts.items() if values]


def _flat(tree, prefix=""):
    rows = []
    for key, value in sorted(tree.items()):
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            rows += _flat(value, f"{name}.")
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            rows.append((_clean(name), _clean(shown)))
    return rows


def _of_items(results, num_examples):
    shown = results.items[:num_examples] if results else ()
    passages = [passage for item in shown for passage in item.passages]
    statuses = {status for passage in passages for status, _ in passage.sentences}
    counted = f"the first {len(shown):,} of {len(results.items):,}" if results else ""
    return {
        "items": [_item(item) for item in shown],
        "shown_of": f"{counted} {results.noun}" if results else "",
        "filter_name": results.filter_name if results else "",
        "score_name": results.score_name if results else "",
        "has_facts": bool(statuses - {"plain"}),
        "symbols": _SYMBOLS,
    }


def _item(item):
    """An `Item` with its texts cleaned and split at the marks."""
    answers = [tuple(map(_clean, x)) for x in (item.marked_gold, item.marked_predicted)]
    found = roles(*answers)
    passages = [
        {
            "title": _clean(passage.title),
            "sentences": [
                (status, spans(_clean(text), *answers)) for status, text in passage.sentences
            ],
        }
        for passage in item.passages
    ]
    texts = {name: _clean(getattr(item, name)) for name in ("key", "question", "prediction")}
    return {
        **texts,
        "gold": _clean(item.gold),
        "others": [(_clean(name), _clean(text), right) for name, text, right in item.others],
        "candidates": [
            (text, found.get(text.lower(), "plain")) for text in map(_clean, item.candidates)
        ],
        "is_right": item.is_right,
        "score": item.score,
        "passages": passages,
    }
