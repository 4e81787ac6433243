"""Reads Natural Questions' files, in the original, the simplified or Hugging Face's layout."""

import contextlib
import dataclasses
import itertools
import re
from typing import NamedTuple

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, id_of, is_int, objects_of
from etcmodel.shown_values import shown

from .spans import Span, span_of

__all__ = [
    "Annotation",
    "Candidate",
    "NqExample",
    "annotations_of",
    "example_id_of",
    "parse_example",
    "parse_line",
    "read_lines",
]

YES_NO_ANSWERS = ("NONE", "YES", "NO")
_YES_NO_NUMBERS = {-1: "NONE", 0: "NO", 1: "YES"}  # Of Hugging Face's labels.

_HTML_TAG = re.compile(r"</?[A-Za-z!].*>", re.DOTALL)


class Candidate(NamedTuple):
    """A part of the page that may be a long answer; nested candidates are not `top_level`."""

    start: int
    end: int
    top_level: bool


@dataclasses.dataclass(frozen=True)
class Annotation:
    """The annotation of one annotator.

    Attributes:
        long_answer: `Span`; `NO_SPAN` for none.
        short_answers: tuple of `Span`s, without missing ones, in file order.
        yes_no: str. 'NONE', 'YES' or 'NO'.
    """

    long_answer: Span
    short_answers: tuple
    yes_no: str


@dataclasses.dataclass(frozen=True)
class NqExample:
    """A question and a page.

    Attributes:
        example_id: int.
        question: str.
        words: tuple of str. The page's tokens, including HTML tags.
        is_html: tuple of bool, one for each token.
        candidates: tuple of `Candidate`.
        annotations: tuple of `Annotation`; empty if the file has no labels.
    """

    example_id: int
    question: str
    words: tuple
    is_html: tuple
    candidates: tuple
    annotations: tuple = ()


def read_lines(path):
    """Streams the examples of a file, one at a time.

    Args:
        path: str. JSON lines, or any other format of `raw_files.read_json_values`.

    Yields:
        str of JSON, not checked yet: see `parse_line`. Bytes that are not UTF-8 are surrogate code
        points.

    Raises:
        ValueError: if the file has another format, or is broken; names it and the place.
    """
    return (text for _, text in raw_files.read_json_texts(path))


def parse_line(line):
    """Parses a line of `read_lines` to an `NqExample`.

    Raises:
        ValueError: if the line is not UTF-8 or not JSON, and as `parse_example`.
    """
    return parse_example(raw_files.load_json_text(line))


def parse_example(raw):
    """Parses and checks a JSON object.

    Args:
        raw: dict. Either the original layout (`document_tokens` as [{"token": …, "html_token":
            …}, …]), the simplified one (`document_text`, tokens between single spaces), or that of
            Hugging Face `datasets` (`id`, `question` as {"text": …}, `document` as {"tokens":
            {"token": […], "is_html": […]}}, and other lists of objects as dicts of lists, too). The
            `annotations` are optional; everything not listed in `NqExample` is ignored.

    Returns:
        An `NqExample`.

    Raises:
        ValueError: names the example's id and the field that is missing or malformed; for a page
            without tokens; for overlapping top-level candidates; for a candidate or an answer
            outside the page; and for a long answer that differs from the candidate that it names.
    """
    fields = _Fields(example_id_of(raw), raw)
    words, is_html = fields.page()
    question = fields.question()
    candidates = fields.candidates(len(words))
    raw_annotations = fields.objects("annotations", optional=True)
    annotations = tuple(map(fields.annotation, range(len(raw_annotations)), raw_annotations))
    for index, annotation in enumerate(annotations):
        for span in (annotation.long_answer, *annotation.short_answers):
            if span.end > len(words):
                problem = f"lies outside the page, which has {len(words)} tokens"
                raise fields.error(f"annotations[{index}]", problem, (span.start, span.end))
        given = raw_annotations[index]["long_answer"].get("candidate_index", -1)
        fields.check_candidate_index(index, given, annotation.long_answer, candidates)
    return NqExample(fields.example_id, question, words, is_html, candidates, annotations)


def annotations_of(raw):
    """The annotations of a raw example, of which everything but the id may be missing.

    Returns:
        tuple of `Annotation`.

    Raises:
        ValueError: names the example's id and the field that is missing or malformed.
    """
    fields = _Fields(example_id_of(raw), raw)
    annotations = fields.objects("annotations", optional=True)
    return tuple(fields.annotation(i, annotation) for i, annotation in enumerate(annotations))


def example_id_of(raw):
    """The id of a JSON object of the data set or of predictions for it.

    Raises:
        ValueError: if it has no `example_id` (or `id`) that is a 64-bit integer.
    """
    example_id = id_of(raw, "example_id", "id")
    with contextlib.suppress(ValueError):
        number = int(example_id)
        if -(2**63) <= number < 2**63:
            return number
    raise ValueError(
        "an example's field `example_id` (or `id`) must be a 64-bit integer. Received: "
        f"{shown(example_id)}"
    )


class _Fields(Fields):
    """Checked access to the fields of one raw example."""

    def question(self):
        question = self.raw.get("question")
        if "question_text" in self.raw or not isinstance(question, dict):
            return self.filled_text("question_text")
        return self._within("question").filled_text("question.text")

    def page(self):
        """The tokens of the page, and which of them are HTML tags."""
        document = self.raw.get("document")
        if "document_tokens" in self.raw:
            words, is_html = self._tokens("document_tokens", "html_token")
        elif "document_text" in self.raw:
            text = self.text("document_text")
            words = tuple(text.split(" ")) if text else ()
            is_html = tuple([word[:1] == "<" and _is_tag(word) for word in words])
        elif isinstance(document, dict):
            words, is_html = self._within("document")._tokens("document.tokens", "is_html")
        else:
            raise self.missing("document_tokens", "document_text", "document")
        if not words:
            raise ValueError(f"example {self.example_id}: the page is empty")
        return words, is_html

    def _within(self, field):
        within = {f"{field}.{name}": value for name, value in self.raw[field].items()}
        return _Fields(self.example_id, within)

    def _tokens(self, field, html_name):
        tokens = self.get(field)
        names = ("token", html_name)
        if isinstance(tokens, dict):
            columns = self.columns(field, tokens, names)
        else:
            self.list_of(field, dict, "objects")
            try:
                columns = [[token[name] for token in tokens] for name in names]
            except KeyError as error:
                raise self.error(field, f"has no {error} in a token", tokens) from error
        words, is_html = map(tuple, columns)
        if not _are_all(words, str):
            raise self.error(field, "must have strings as tokens", tokens)
        if not _are_all(is_html, bool):
            odd = next(value for value in is_html if not isinstance(value, bool))
            raise self.error(field, f"must have booleans as {html_name}", odd)
        return words, is_html

    def candidates(self, num_words):
        candidates = []
        for index, raw in enumerate(self.objects("long_answer_candidates")):
            field = f"long_answer_candidates[{index}]"
            span, top_level = self._span(field, raw), raw.get("top_level", True)
            if not 0 <= span.start < span.end <= num_words:
                raise self.error(field, f"lies outside the page of {num_words} tokens", raw)
            if not isinstance(top_level, bool):
                raise self.error(f"{field}.top_level", "must be a boolean", top_level)
            candidates.append(Candidate(span.start, span.end, top_level))
        self._check_overlaps(candidates)
        return tuple(candidates)

    def _check_overlaps(self, candidates):
        """A word in two top-level candidates would be in the model's input twice."""
        top_level = [index for index, candidate in enumerate(candidates) if candidate.top_level]
        top_level.sort(key=lambda index: candidates[index].start)
        for index, following in itertools.pairwise(top_level):
            if candidates[following].start < candidates[index].end:
                raise self.error(
                    f"long_answer_candidates[{following}]",
                    f"overlaps long_answer_candidates[{index}], and both are `top_level`",
                    tuple(candidates[following]),
                )

    def annotation(self, index, raw):
        field = f"annotations[{index}]"
        long_answer = raw.get("long_answer")
        if not isinstance(long_answer, dict):
            raise self.error(f"{field}.long_answer", "must be an object", long_answer)
        short_answers = objects_of(raw.get("short_answers"))
        if short_answers is None:
            given = raw.get("short_answers")
            raise self.error(f"{field}.short_answers", "must be a list of objects", given)
        yes_no = raw.get("yes_no_answer")
        if is_int(yes_no):
            yes_no = _YES_NO_NUMBERS.get(yes_no, yes_no)
        if not isinstance(yes_no, str) or yes_no.upper() not in YES_NO_ANSWERS:
            raise self.error(f"{field}.yes_no_answer", f"must be in {YES_NO_ANSWERS}", yes_no)
        spans = [self._span(f"{field}.short_answers", answer) for answer in short_answers]
        long_span = self._span(f"{field}.long_answer", long_answer)
        short_spans = tuple(span for span in spans if span.exists)
        return Annotation(long_span, short_spans, yes_no.upper())

    def check_candidate_index(self, index, candidate_index, long_answer, candidates):
        """The index may be missing or -1; otherwise, it must match the long answer."""
        field = f"annotations[{index}].long_answer.candidate_index"
        if not is_int(candidate_index) or not -1 <= candidate_index < len(candidates):
            problem = f"must be -1 or the index of one of the {len(candidates)} candidates"
            raise self.error(field, problem, candidate_index)
        if candidate_index == -1:
            return
        candidate, answer = candidates[candidate_index][:2], long_answer[:2]
        if candidate != answer:
            problem = f"names the candidate {candidate}, but the long answer is {answer}"
            raise self.error(field, problem, candidate_index)

    def _span(self, field, raw):
        try:
            return span_of(raw)
        except ValueError as error:
            raise self.error(field, str(error), raw) from error


def _is_tag(word):
    return _HTML_TAG.fullmatch(word) is not None


def _are_all(values, item_type):
    return set(map(type, values)) <= {item_type}  # JSON gives no subclasses; a page has 10,000.
