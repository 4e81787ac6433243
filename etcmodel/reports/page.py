"""The report: a self-contained HTML file."""

import dataclasses
import functools
import re

from etcmodel import extras, pages
from etcmodel.pictures import charts, metric_names, style
from etcmodel.reports import curves, marking, scores

__all__ = ["render"]

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
        curve_charts = curves.charts_of_run(run.train_rows, run.eval_rows) if run else []
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
    steps = run.notes.get("num_train_steps")
    of = f" of {steps:,}" if isinstance(steps, int) else ""
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
            for row in scores.score_rows([own, *baselines.values()], main)
        ],
        "systems": [system or "this run", *map(_clean, baselines)],
        "system": system,
        "scores_of": _scores_of(run, results),
        "measured": _measured(results, baselines) if results and main in own else None,
        "places": results.places if results else None,
        "bars": scores.place_bars(results.places.points) if results and results.places else [],
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
    low, high = (f"{100 * value:.1f}" for value in scores.interval(mean, len(known)))
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
    found = marking.roles(*answers)
    passages = [
        {
            "title": _clean(passage.title),
            "sentences": [
                (status, marking.spans(_clean(text), *answers))
                for status, text in passage.sentences
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
