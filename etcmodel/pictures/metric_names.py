"""Display names of metrics, with the direction that is better and the unit."""

import dataclasses
import re

HIGHER, LOWER = "higher is better", "lower is better"


@dataclasses.dataclass(frozen=True)
class Metric:
    """The description of a metric.

    Attributes:
        measure: str. What is measured, such as "F1". Metrics of one measure may share an axis.
        subject: str. What it is measured on, such as "supporting facts"; '' for everything.
        direction: str. "higher is better", "lower is better" or ''.
        is_share: bool. Whether the value is in [0, 1], and shown in percent.
        is_reference: bool. Whether it belongs to a baseline.
        is_setting: bool. Whether it describes the data or a threshold rather than quality.
    """

    measure: str
    subject: str = ""
    direction: str = ""
    is_share: bool = False
    is_reference: bool = False
    is_setting: bool = False

    @property
    def name(self):
        """str: "F1, supporting facts"."""
        return ", ".join(filter(None, [self.measure, self.subject]))

    @property
    def title(self):
        """The title of an axis: str, "F1, % (higher is better)"."""
        unit = ", %" if self.is_share else ""
        return self.measure + unit + (f" ({self.direction})" if self.direction else "")

    def shown(self, value):
        """A value in readable form: "71.3 %", "0.482", "512"."""
        if self.is_share:
            return f"{100 * value:.1f} %"
        if float(value).is_integer() and abs(value) >= 1:
            return f"{value:,.0f}"
        return f"{value:.4g}"


_SHARES = {
    "em": "Exact match",
    "exact": "Exact match",
    "exact_match": "Exact match",
    "f1": "F1",
    "prec": "Precision",
    "precision": "Precision",
    "recall": "Recall",
    "accuracy": "Accuracy",
    "tag_accuracy": "Tag accuracy",
    "micro_f1": "Micro F1",
    "macro_f1": "Macro F1",
    "answered": "Questions with an answer",
    "token_accuracy": "Token accuracy",
}
_OTHERS = {
    "mse": ("Mean squared error", LOWER),
    "pearson": ("Correlation (Pearson)", HIGHER),
    "spearman": ("Rank correlation (Spearman)", HIGHER),
    "bits_per_character": ("Bits per character", LOWER),
    "perplexity": ("Perplexity", LOWER),
    "gradient_norm": ("Gradient norm, before clipping", ""),
    "learning_rate": ("Learning rate", ""),
    "examples_per_second": ("Speed, examples per second", HIGHER),
}
_SUBJECTS = {
    "sp": "supporting facts",
    "joint": "answer and facts jointly",
    "verified": "verified questions",
    "HasAns": "questions with an answer",
    "NoAns": "questions without an answer",
    "best": "at the best threshold",
    "mlm": "masked words",
    "cpc": "masked sentences",
}
_ROUGE = {"1": "words (ROUGE-1)", "2": "pairs of words (ROUGE-2)"} | {
    "L": "common subsequence (ROUGE-L)",
    "Lsum": "the same by sentence (ROUGE-Lsum)",
}
_KINDS = {"A": "other answers", "B": "another span", "E": "nothing", "N": "no", "Y": "yes"}


def describe(name):
    """The `Metric` for a name in the metrics files; an unknown name keeps its words.

    Args:
        name: str, such as "sp_f1" or "long-best-threshold-f1".
    """
    for rule in (_exactly, _rouge, _at_depth, _of_nq, _loss, _counted, _by_label, _with_prefix):
        if (found := rule(name)) is not None:
            return found
    return Metric(name.replace("_", " ").replace("-", " "))


def _exactly(name):
    if name == "expected_calibration_error":
        return Metric("Calibration error", "", LOWER, is_share=True)
    if name in _SHARES:
        return Metric(_SHARES[name], "", HIGHER, is_share=True)
    if name in _OTHERS:
        return Metric(_OTHERS[name][0], "", _OTHERS[name][1])
    return None


def _rouge(name):
    found = re.fullmatch(r"rouge(1|2|L|Lsum)", name)
    return found and Metric("ROUGE, F-measure", _ROUGE[found[1]], HIGHER, is_share=True)


def _at_depth(name):
    found = re.fullmatch(r"(precision|recall|f1)@(\d+)", name)
    if not found:
        return None
    subject = "first phrase" if found[2] == "1" else f"first {found[2]} phrases"
    return Metric(_SHARES[found[1]], subject, HIGHER, is_share=True)


def _of_nq(name):
    if name == "mean-best-threshold-f1":
        return Metric("F1 at the best threshold", "mean of both", HIGHER, is_share=True)
    found = re.fullmatch(r"(long|short)-(.*)", name)
    if not found:
        return None
    subject, rest = f"{found[1]} answers", found[2]
    if rest == "best-threshold":
        return Metric("Best threshold", subject, is_setting=True)
    if rest == "answer-n":
        return Metric("Questions", subject, is_setting=True)
    if at := re.fullmatch(r"(recall|precision)-at-precision>=([\d.]+)", rest):
        measure = f"{_SHARES[at[1]]} where precision is at least {100 * float(at[2]):.0f} %"
        return Metric(measure, subject, HIGHER, is_share=True)
    measure = _SHARES.get(rest.rpartition("-")[2])
    if measure is None:
        return None
    where = " at the best threshold" if rest.startswith("best-threshold-") else ""
    return Metric(measure + where, subject, HIGHER, is_share=True)


def _loss(name):
    found = re.fullmatch(r"(?:(.*)_)?loss(?:/(.*))?", name)
    if not found:
        return None
    subject = found[1] or found[2] or ""
    return Metric("Loss", _SUBJECTS.get(subject, subject.replace("_", " ")), LOWER)


def _counted(name):
    found = re.fullmatch(r"(counts|percentages)/([YNA])_([ABENY])", name)
    if not found:
        return None
    told = _KINDS[found[3]] if found[3] != "A" or found[2] != "A" else "the right answer"
    subject = f"{_KINDS[found[2]]} answered with {told}"
    is_share = found[1] == "percentages"
    measure = "Share of answers" if is_share else "Number of answers"
    return Metric(measure, subject, is_share=is_share, is_setting=True)


def _by_label(name):
    score, _, label = name.partition("/")
    if score not in ("precision", "recall", "f1") or not label:
        return None
    return Metric(_SHARES[score], label, HIGHER, is_share=True)


def _with_prefix(name):
    """Metrics on a part of the data, of a baseline, or on a kind of question."""
    if name in ("characters", "tokens"):
        return Metric(name.capitalize(), is_setting=True)
    if of_best := re.fullmatch(r"best_(exact|f1)_thresh", name):  # SQuAD's.
        return Metric("Best threshold", _SHARES[of_best[1]], is_setting=True)
    prefix, _, rest = name.partition("_")
    if "total" in (name, rest):
        return Metric("Questions", _SUBJECTS.get(prefix, ""), is_setting=True)
    if name == "cpc_chance":
        accuracy = _SHARES["accuracy"]
        return Metric(accuracy, "by chance", HIGHER, is_share=True, is_reference=True)
    if prefix in ("constant", "unigram") and (found := _exactly(rest)):
        told = {"constant": "one answer for all", "unigram": "by frequency alone"}[prefix]
        return dataclasses.replace(found, subject=told, is_reference=True)
    if prefix in _SUBJECTS and (found := _exactly(rest)):
        return dataclasses.replace(found, subject=_SUBJECTS[prefix])
    if name.startswith("exact_match_"):
        found = _exactly("exact_match")
        kind = name.removeprefix("exact_match_").replace("_", " ")
        return dataclasses.replace(found, subject=kind)
    return None
