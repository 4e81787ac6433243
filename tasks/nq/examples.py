"""Reads Natural Questions' files, in the original, the simplified or Hugging Face's layout."""

import dataclasses
import glob
import gzip
import itertools
import json
import os
import re
from typing import NamedTuple

from etcmodel import atomic_files, opener
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, id_of, is_int, objects_of
from etcmodel.shown_values import shown

__all__ = [
    "NO_SPAN",
    "Annotation",
    "Candidate",
    "NqExample",
    "Span",
    "annotations_of",
    "are_same_sets",
    "default_cache_path",
    "example_id_of",
    "matching_files",
    "parse_example",
    "parse_line",
    "read_examples",
    "read_gold",
    "read_lines",
    "span_of",
    "write_gold_cache",
]

# Spans of a page in Natural Questions' files, and their equality.


class Span(NamedTuple):
    """A part of a page, in tokens and in bytes of its HTML.

    Attributes:
        start, end: int. The tokens `[start, end)`; both are -1 for no span.
        start_byte, end_byte: int. The same in bytes; both are -1 if they are not known.
    """

    start: int
    end: int
    start_byte: int = -1
    end_byte: int = -1

    @property
    def exists(self):
        """Whether it is an answer: either kind of offset suffices, as in the official scorer."""
        return self.start >= 0 or self.start_byte >= 0

    def is_same(self, other):
        """Whether both have bytes and these agree, or both have tokens and these agree."""
        same_tokens = self.start >= 0 and self[:2] == other[:2]
        return same_tokens or (self.start_byte >= 0 and self[2:] == other[2:])


NO_SPAN = Span(-1, -1)


def are_same_sets(spans, others):
    """Whether each span of either side equals one of the other side."""
    return all(any(span.is_same(other) for other in others) for span in spans) and all(
        any(span.is_same(other) for span in spans) for other in others
    )


def span_of(raw):
    """Parses a `Span` from a dict in the data set's format.

    Args:
        raw: dict. `start_token` and `end_token`, and possibly `start_byte` and `end_byte`; negative
            values mean no span.

    Raises:
        ValueError: if they are not integers, if only one of the two is negative, or if the start is
            not before the end.
    """
    if not isinstance(raw, dict):
        raise ValueError("must be an object")
    return Span(*_offsets(raw, "token"), *_offsets(raw, "byte", optional=True))


def _offsets(raw, unit, optional=False):
    """(start, end) in one unit, (-1, -1) for none."""
    names = f"start_{unit}", f"end_{unit}"
    if optional and not any(name in raw for name in names):
        return -1, -1
    start, end = (raw.get(name) for name in names)
    start_name, end_name = (f"`{name}`" for name in names)
    if not (is_int(start) and is_int(end)):
        raise ValueError(f"must have integers {start_name} and {end_name}")
    if (start < 0) != (end < 0):
        raise ValueError(f"must have both {start_name} and {end_name}, or -1 for both")
    if 0 <= end <= start:
        raise ValueError(f"must have its {start_name} before its {end_name}")
    return (int(start), int(end)) if start >= 0 else (-1, -1)


# Typed examples, and the files that have them.


YES_NO_ANSWERS = ("NONE", "YES", "NO")
_YES_NO_NUMBERS = {-1: "NONE", 0: "NO", 1: "YES"}  # Of Hugging Face's labels.

_WHOLE = re.compile(r"\s*-?[0-9]{1,20}\s*")
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
    # Python reads "1_0" as 10, which would be the id of another example.
    if _WHOLE.fullmatch(example_id) and -(2**63) <= (number := int(example_id)) < 2**63:
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


def _numbered_lines(path):
    return ((f"example {number}", line) for number, line in enumerate(read_lines(path), start=1))


read_examples = raw_files.example_reader(_numbered_lines, parse_line)


# The gold annotations, without the pages.


def read_gold(pattern, skip=None):
    """Reads annotations.

    Args:
        pattern: str. Natural Questions files, with or without the pages (such as the one of
            `write_gold_cache`); wildcards allowed. Only what the metrics need is kept in memory.
        skip: function called with the message about a malformed line, which is then skipped, as in
            preprocess; None makes it an error.

    Returns:
        dict from example id to tuple of `Annotation`, at least one.

    Raises:
        ValueError: if no file matches, or one has no example or is broken; names file and place of
            an example that is malformed, duplicate or without annotation.
    """
    gold = {}
    for path in matching_files(pattern):
        num_before, num_skipped = len(gold), 0
        for where, line in raw_files.read_json_texts(path):
            place = f"{path}: {where}"
            try:
                example_id, annotations = _annotated(line)
            except ValueError as error:
                if skip is None:
                    raise ValueError(f"{place}: {error}") from error
                skip(f"{place}: {error}")
                num_skipped += 1
                continue
            _check_useful(place, example_id, annotations, gold)
            gold[example_id] = annotations
        if len(gold) == num_before:
            found = (
                f"all of its {num_skipped} lines are malformed" if num_skipped else "it is empty"
            )
            raise ValueError(f"{path}: the file holds no example: {found}")
    return gold


def write_gold_cache(pattern, path, skip=None):
    """Writes a small file of the annotations, as JSON lines for `read_gold`.

    Args:
        pattern, skip: see `read_gold`.
        path: str. A name that ends in `.gz` makes a compressed file. It appears when complete.

    Returns:
        int. Number of examples.

    Raises:
        ValueError: as in `read_gold`.
    """
    gold = read_gold(pattern, skip)
    open_text = gzip.open if path.endswith(".gz") else open
    with (
        atomic_files.new_file(path) as unfinished,
        open_text(unfinished, "wt", encoding="utf-8") as file,
    ):
        for example_id, annotations in gold.items():
            file.write(json.dumps(_as_raw(example_id, annotations)) + "\n")
    return len(gold)


def default_cache_path(pattern):
    """`cache`, beside the first of the gold files, as in the release.

    Raises:
        ValueError: if no file matches.
    """
    return os.path.join(os.path.dirname(matching_files(pattern)[0]), "cache")


def matching_files(pattern):
    """The gold files of a pattern, in order: list of str.

    Raises:
        ValueError: if no file matches.
    """
    if "://" in pattern:
        import tensorflow as tf  # Slow to import, and not needed for local files.

        files = tf.io.gfile.glob(pattern)
    else:
        files = glob.glob(pattern)
    files = sorted(opener.shown(files, pattern))
    if not files:
        raise ValueError(f"No gold file matches {pattern!r}.")
    return files


def _annotated(line):
    raw = raw_files.load_json_text(line)
    return example_id_of(raw), annotations_of(raw)


def _check_useful(place, example_id, annotations, gold):
    """Rejects ids that preprocess accepts, but whose predictions could not be scored."""
    if not annotations:
        raise ValueError(f"{place}: example {example_id} has no annotation to compare with")
    if example_id in gold:
        raise ValueError(f"{place}: there is another example {example_id}")


def _as_raw(example_id, annotations):
    """An example in Natural Questions' layout, without what the metrics ignore."""
    return {
        "example_id": example_id,
        "annotations": [
            {
                "long_answer": _span_json(annotation.long_answer),
                "short_answers": [_span_json(span) for span in annotation.short_answers],
                "yes_no_answer": annotation.yes_no,
            }
            for annotation in annotations
        ],
    }


def _span_json(span):
    tokens = {"start_token": span.start, "end_token": span.end}
    return {**tokens, "start_byte": span.start_byte, "end_byte": span.end_byte}
