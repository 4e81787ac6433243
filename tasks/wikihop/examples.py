"""Reads WikiHop's files: JSON objects, in the layout of QAngaroo or Hugging Face `datasets`."""

import dataclasses
import functools

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified
from etcmodel.text import characters

__all__ = ["WikiHopExample", "is_same", "normalized", "parse_example", "read_examples"]


def normalized(answer):
    """A candidate in the form that the model gets: stripped, in lower case."""
    return answer.strip().lower()


def is_same(answer, other):
    """Whether two answers are equal, ignoring case, white space and the encoding of accents."""
    return normalized(characters.composed(answer)) == normalized(characters.composed(other))


@dataclasses.dataclass(frozen=True)
class WikiHopExample:
    """One question, spelled as in the file; `answer` is None if the file has no labels."""

    example_id: str
    query: str
    documents: tuple
    candidates: tuple
    answer: str | None = None

    @functools.cached_property
    def normalized_candidates(self):
        """tuple of str. The candidates in the form that the model gets."""
        return tuple(map(normalized, self.candidates))

    def answer_index(self, *, release_compatible=False):
        """The index of the first candidate that is the answer.

        Args:
            release_compatible: bool. Do not strip the answer.

        Raises:
            ValueError: if no candidate is, or there is no answer.
        """
        if self.answer is None:
            raise ValueError(f"example {self.example_id!r}: field `answer` is missing")
        if release_compatible:
            same = [self.answer.lower() == candidate for candidate in self.normalized_candidates]
        else:
            same = [is_same(self.answer, candidate) for candidate in self.candidates]
        if not any(same):
            shown = ", ".join(map(repr, self.candidates[:5]))
            more = ", ..." if len(self.candidates) > 5 else ""
            raise ValueError(
                f"example {self.example_id!r}: field `answer`: {self.answer!r} is not one of the "
                f"{len(self.candidates)} candidates: {shown}{more}"
            )
        return same.index(True)


def parse_example(raw, needs_labels=False):
    """Parses and checks a JSON object.

    Args:
        raw: dict with `id` (str or int), `query` (str; `question` in Hugging Face `datasets`),
            `candidates` and `supports` (lists of str), and, unless it has no label, `answer` (str).
            Documents may be empty, and there may be none.
        needs_labels: bool. Whether an answer is required, as for training.

    Returns:
        A `WikiHopExample`.

    Raises:
        ValueError: names the example's id and the field that is missing or malformed.
    """
    fields = identified(raw, "id")
    candidates = tuple(fields.list_of("candidates", str, "strings"))
    if not candidates:
        raise fields.error("candidates", "must not be empty", [])
    is_original = "query" in raw or "question" not in raw
    return WikiHopExample(
        example_id=fields.example_id,
        query=fields.text("query" if is_original else "question"),
        documents=tuple(fields.list_of("supports", str, "strings")),
        candidates=candidates,
        answer=fields.text("answer", optional=not needs_labels),
    )


read_examples = raw_files.example_reader(raw_files.read_json_elements, parse_example)
