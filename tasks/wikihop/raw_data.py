"""WikiHop's files: a JSON array of objects, as the QAngaroo data set has it."""

import dataclasses
import functools

from etcmodel.preprocessing import raw_files

__all__ = [
    "WikiHopExample",
    "normalized",
    "parse_example",
    "read_examples",
]


def normalized(answer):
    """The form in which answers and candidates are compared: stripped, in lower case."""
    return answer.strip().lower()


@dataclasses.dataclass(frozen=True)
class WikiHopExample:
    """One question; `answer` is None where the file has no labels. All as the file spells them."""

    example_id: str
    query: str
    documents: tuple
    candidates: tuple
    answer: str | None = None

    @functools.cached_property
    def normalized_candidates(self):
        """tuple of str. What the model is given."""
        return tuple(map(normalized, self.candidates))

    def answer_index(self, *, release_compatible=False):
        """The number of the first candidate that is the answer.

        Args:
            release_compatible: bool. Do not strip the answer.

        Raises:
            ValueError: if none is, or there is no answer.
        """
        if self.answer is None:
            raise ValueError(f"example {self.example_id!r}: field `answer` is missing")
        answer = self.answer.lower() if release_compatible else normalized(self.answer)
        if answer not in self.normalized_candidates:
            shown = ", ".join(map(repr, self.candidates[:5]))
            more = ", ..." if len(self.candidates) > 5 else ""
            raise ValueError(
                f"example {self.example_id!r}: field `answer`: {self.answer!r} is not one of the "
                f"{len(self.candidates)} candidates: {shown}{more}"
            )
        return self.normalized_candidates.index(answer)


def parse_example(raw):
    """Checks a JSON object and gives it its type.

    Args:
        raw: dict with `id`, `query` (str), `candidates` and `supports` (lists of str), and, unless
            it has no label, `answer` (str). Documents may be empty, and there may be none.

    Returns:
        A `WikiHopExample`.

    Raises:
        ValueError: names the example's id and the field that is missing or malformed.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"an example must be a JSON object. Received: {_shown(raw)}")
    example_id = raw.get("id")
    if not isinstance(example_id, str) or not example_id:
        raise ValueError(f"an example has no field `id`. Its fields: {sorted(raw)}")
    field = functools.partial(_field, raw, example_id)
    candidates = tuple(field("candidates", _is_list_of_str, "must be a list of strings"))
    if not candidates:
        raise ValueError(f"example {example_id!r}: field `candidates` must not be empty")
    return WikiHopExample(
        example_id=example_id,
        query=field("query", _is_str, "must be a string"),
        documents=tuple(field("supports", _is_list_of_str, "must be a list of strings")),
        candidates=candidates,
        answer=(
            field("answer", _is_str, "must be a string") if raw.get("answer") is not None else None
        ),
    )


def _field(raw, example_id, name, is_valid, problem):
    if name not in raw:
        raise ValueError(f"example {example_id!r}: field `{name}` is missing")
    if not is_valid(raw[name]):
        raise ValueError(
            f"example {example_id!r}: field `{name}` {problem}. Received: {_shown(raw[name])}"
        )
    return raw[name]


def _is_str(value):
    return isinstance(value, str)


def _is_list_of_str(value):
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _shown(value):
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


read_examples = raw_files.example_reader(raw_files.read_json_elements, parse_example)
