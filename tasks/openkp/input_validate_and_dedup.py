"""Cleans OpenKP's raw file before `preprocess`: keeps valid key phrases, and each URL once.

A key phrase is valid if it occurs in the text as whole words; the first three are kept. If several
lines have the same URL, the one with the most key phrases is kept. The output has the official
layout.

  python -m etcmodel.tasks.openkp.input_validate_and_dedup --input_file=OpenKPTrain.jsonl \
    --output_file=OpenKPTrain.clean.jsonl
"""

import dataclasses
import json
import sys

from etcmodel import atomic_files
from etcmodel.options import Options, option, run_program
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import is_list_of

from . import phrases, vdom
from .config import MAX_KEY_PHRASES
from .examples import page_fields, read_lines

__all__ = ["Deduplicator", "ValidationReport", "clean_file", "is_whole_words", "validated"]

_MAX_BAD_LISTED = 1000


@dataclasses.dataclass
class ValidationReport:
    """Statistics of a cleaned file.

    Attributes:
        num_lines: int. Lines read.
        num_written: int. Pages kept.
        num_duplicates: int. Lines with a page of another line.
        num_bad: int. Malformed lines, and lines without a valid key phrase.
        num_phrases_dropped: int. Key phrases that are not in the text, or beyond the third.
        bad: list of str. The errors of the first bad lines.
    """

    num_lines: int = 0
    num_written: int = 0
    num_duplicates: int = 0
    num_bad: int = 0
    num_phrases_dropped: int = 0
    bad: list = dataclasses.field(default_factory=list)


def is_whole_words(text, phrase):
    """Whether a phrase occurs in a text as whole words (`phrases.split`), ignoring case.

    Args:
        text: str.
        phrase: list of str: words, or parts with several; empty words are left out.

    Returns:
        (bool, list of one str): the latter is the phrase in the form of the dataset.
    """
    cleaned = phrases.joined(filter(None, phrases.split(phrases.joined(phrase))))
    return bool(cleaned) and phrases.occurs_in(text, cleaned), [cleaned]


def validated(page, is_eval=False):
    """Checks a page's elements, and keeps its first three key phrases that occur in the text.

    Args:
        page: JSON-like dict of a line.
        is_eval: bool. There are no key phrases: pages with a valid VDOM are kept unchanged.

    Returns:
        (dict, int): the page, and the number of dropped phrases.

    Raises:
        ValueError: names the page and the field that is malformed, or says that no phrase is left.
    """
    fields = page_fields(page)
    url, text, elements = fields.example_id, fields.text("text"), fields.get("VDOM")
    try:
        vdom.check_complete(elements, phrases.split(text))
    except ValueError as error:
        raise ValueError(f"page {url!r}: {error}") from error
    if is_eval:
        return {**page, "url": url}, 0
    raw_phrases = fields.list_of("KeyPhrases", list, "lists of words")
    if not all(is_list_of(phrase, str) for phrase in raw_phrases):
        raise fields.error("KeyPhrases", "must be a list of lists of words", raw_phrases)
    checked = (is_whole_words(text, phrase) for phrase in raw_phrases)
    kept = [phrase for is_valid, phrase in checked if is_valid][:MAX_KEY_PHRASES]
    if not kept:
        raise ValueError(f"page {url!r}: no key phrase occurs in the text")
    return {**page, "url": url, "KeyPhrases": kept}, len(raw_phrases) - len(kept)


class Deduplicator:
    """Keeps one line per URL: the first of those with the most valid key phrases.

    Reads the input twice, first with `see`, then with `kept`, and stores only the better lines of
    repeated pages.

    Args:
        is_eval: bool. There are no key phrases: the first line of a URL is kept.
        strict: bool. Raise the first error instead of counting it.
    """

    def __init__(self, is_eval=False, strict=False):
        self.report = ValidationReport()
        self._is_eval = is_eval
        self._strict = strict
        self._first = {}  # From URL to the index of its page; a line may have several pages.
        self._num_phrases = {}
        self._better = {}  # Line that replaces the first one, by URL.

    def see(self, raw):
        """Registers a line, a dict of `examples.read_lines`.

        Raises:
            ValueError: in strict mode, names the line and its error.
        """
        self.report.num_lines += 1
        try:
            page, num_dropped = validated(raw_files.load_json_text(raw["line"]), self._is_eval)
        except ValueError as error:
            message = f"{raw['place']}: {error}"
            if self._strict:
                raise ValueError(message) from error
            self.report.num_bad += 1
            if len(self.report.bad) < _MAX_BAD_LISTED:
                self.report.bad.append(message)
            return
        url = page["url"]
        num_phrases = 0 if self._is_eval else len(page["KeyPhrases"])
        self.report.num_phrases_dropped += num_dropped
        if url not in self._first:
            self._first[url] = self.report.num_lines
            self._num_phrases[url] = num_phrases
            return
        self.report.num_duplicates += 1
        if num_phrases > self._num_phrases[url]:
            self._num_phrases[url] = num_phrases
            self._better[url] = raw["line"]

    def kept(self, raws):
        """The pages to keep, in the order of their first lines.

        Args:
            raws: iterable of the same dicts that `see` received.

        Yields:
            str: a line of JSON, without its end.
        """
        urls = {number: url for url, number in self._first.items()}
        for number, raw in enumerate(raws, 1):
            url = urls.get(number)
            if url is not None:
                line = self._better.get(url, raw["line"])
                page, _ = validated(raw_files.load_json_text(line), self._is_eval)
                self.report.num_written += 1
                yield json.dumps(page)


def clean_file(input_file, output_file, *, is_eval=False, strict=False):
    """Writes the lines of a file that `Deduplicator` keeps, with bounded memory.

    Args:
        input_file: str. See `examples.read_lines`.
        output_file: str. Appears when it is complete.
        is_eval, strict: see `Deduplicator`.

    Returns:
        `ValidationReport`.

    Raises:
        OSError: if a file cannot be read or written.
        ValueError: if the file is broken, nothing is left, or a line is bad in strict mode.
    """
    deduplicator = Deduplicator(is_eval, strict)
    for raw in read_lines(input_file):
        try:
            deduplicator.see(raw)
        except ValueError as error:
            raise ValueError(f"{input_file}: {error}") from error
    report = deduplicator.report
    if report.num_lines == report.num_bad:
        first = f", the first: {report.bad[0]}" if report.bad else ""
        raise ValueError(f"{input_file}: no line of {report.num_lines} can be kept{first}")
    kept = deduplicator.kept(read_lines(input_file))
    atomic_files.write_text(output_file, (f"{line}\n" for line in kept))
    return report


_MAX_BAD_SHOWN = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class CleaningOptions(Options):
    """The input and the output of the program."""

    input_file: str = option("", "OpenKP's JSONL file, compressed or not.", is_needed=True)
    output_file: str = option("", "File to write the clean lines to.", is_needed=True)
    is_eval: bool = option(False, "The input has no key phrases: only drop repeated URLs.")
    strict: bool = option(False, "Fail at the first invalid line instead of counting it.")


def main(options):
    """Cleans the file that `CleaningOptions` name, and reports what was left out."""
    report = clean_file(**dataclasses.asdict(options))
    for message in report.bad[:_MAX_BAD_SHOWN]:
        print(f"skipped {message}", file=sys.stderr)
    print(
        f"lines: {report.num_lines}, written: {report.num_written}, repeated: "
        f"{report.num_duplicates}, bad: {report.num_bad}, key phrases dropped: "
        f"{report.num_phrases_dropped}"
    )


if __name__ == "__main__":
    run_program(CleaningOptions, main)
