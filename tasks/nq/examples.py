"""Converts Natural Questions' typed examples to features, in plain Python.

A page is split into overlapping windows of `long_seq_length` tokens, each preceded by the question
(Ainslie et al. 2020, section 4.2 and appendix C, "Natural Questions").

Differences from the release (`release_compatible=True` reproduces it):
- An answer is labeled with its first and last token in the input. There a long answer has no label
  where its first or last word is an HTML tag that was left out (`include_html_tokens=False`).
- A window is an example of a yes, no or long answer where the long answer begins or ends in it.
  There every window of a page with a yes or no is, also without the text that says so, and a window
  with an end of the long but none of the short answer counts as one without an answer.
- `la_global` is also known where only the long answer's end is in the window.
- The last SEP and the padding are linked to no global token, and the last real global token is the
  last one that is attended to. There it is the padding token behind it.
- With `fixed_blocks` the type ids of the global tokens are those of the blocks. There they are
  those of another layout, and more than there are global tokens.
- The short span reaches from the first short answer on the page to the last one. There it goes
  from the first that is listed to the last that is listed, even backwards.
- An answer's end in a word that the window's border cuts is labeled in the window with the word's
  own first or last token. There any of its tokens will do.
- The windows show all of the page. There a stride that is larger than a window's part of the page
  leaves out what is between two windows, and the last one may show nothing.
- Candidates are taken in the order of the page. There in that of the file (the same in true files).
- A page without tokens in a candidate is an error, and so is a question without tokens.
"""

import dataclasses
import random

from etcmodel.preprocessing import raw_files

from . import layout, windows
from .config import NqInputConfig
from .pages import make_page, make_word_tokenizer
from .raw_data import NqExample, parse_example, parse_line, read_lines

__all__ = [
    "ConvertedPage",
    "NqExample",
    "NqInputConfig",
    "make_page",
    "make_windows",
    "make_word_tokenizer",
    "parse_example",
    "parse_line",
    "read_examples",
    "read_lines",
]


@dataclasses.dataclass(frozen=True)
class ConvertedPage:
    """A converted page.

    Attributes:
        windows: list of dict of str to list of int; see `layout.window_features`.
        num_page_tokens: int. Number of tokens of the page, without the question.
        num_unknown: int. Number of windows without an answer that were dropped.
        num_left_out: int. Number of candidates without room for their global token, over all
            windows.
    """

    windows: list
    num_page_tokens: int
    num_unknown: int
    num_left_out: int


def _numbered_lines(path):
    return ((f"example {number}", line) for number, line in enumerate(read_lines(path), start=1))


read_examples = raw_files.example_reader(_numbered_lines, parse_line)


def make_windows(example, config, word_ids):
    """Converts an example.

    Args:
        example: an `NqExample`.
        config: an `NqInputConfig`.
        word_ids: the result of `make_word_tokenizer`.

    Returns:
        A `ConvertedPage`.

    Raises:
        ValueError: if no candidate or the question has a token, or training finds no annotation.
    """
    if config.is_training and not example.annotations:
        raise ValueError(
            f"example {example.example_id}: field `annotations` is empty, and training needs it"
        )
    page = make_page(example, config, word_ids)
    if not page.question_ids and not config.release_compatible:
        raise ValueError(
            f"example {example.example_id}: field `question_text`: {example.question!r} has no "
            "tokens"
        )
    if not page.token_ids:
        raise ValueError(
            f"example {example.example_id}: the page has no token in a top-level candidate of "
            "`long_answer_candidates`"
        )
    rate = 1.0
    if config.is_training:
        unanswerable = page.answers[0].answer_type == 0
        rate = config.unanswerable_rate if unanswerable else config.include_unknown_rate
    # A separate generator for each page, so that choices do not depend on other pages.
    rng = random.Random(f"{config.seed} {page.example_id}")
    all_windows = windows.cut_windows(page, config)
    kept = [window for window in all_windows if windows.has_answer(window) or rng.random() < rate]
    converted = [layout.window_features(page, window, config) for window in kept]
    return ConvertedPage(
        windows=[features for features, _ in converted],
        num_page_tokens=len(page.token_ids),
        num_unknown=len(all_windows) - len(kept),
        num_left_out=sum(num_left_out for _, num_left_out in converted),
    )
