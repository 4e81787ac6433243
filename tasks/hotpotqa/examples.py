"""Converts HotpotQA's typed examples to features, in plain Python.

Long input: CLS, the question, then the title and the sentences of each paragraph. Global input:
CLS, a token for each question token, then for each paragraph a token for itself, for its title and
for each of its sentences (Ainslie et al. 2020, appendix C, "HotpotQA"). Pieces that do not fit as a
whole are left out; shorter ones after them may still fit.

Differences from the release (`release_compatible=True` reproduces it):
- `global_sentence_ids` are the indices in the file; there they shift after a left-out sentence, and
  are all -1 unless the sentences' global token id equals their token type id.
- The answer is searched only in text that is in the input, as whole words first (there: any
  letters, also where a left-out sentence would have begun), whatever its white space and however
  its accents are written.
- `yes` and `no` have no span: answer_begins and answer_ends are -1 (there: the first such letters,
  else the CLS token).
- An example is dropped without a supporting *sentence* in the input (there: or its paragraph).
- A question that does not fit is an error (there: what does not fit is left out), and so is one
  without tokens.
- Supporting facts that name no paragraph are an error in training. A sentence index out of range,
  which the true training set has, is skipped and counted, as in the release.
"""

import dataclasses

from etcmodel.preprocessing import raw_files
from etcmodel.text import alignment

from .config import BIO_IDS, HotpotQAInputConfig
from .layout import InputLayout
from .raw_data import HotpotQAExample, Paragraph, SupportingFact, parse_example

__all__ = [
    "ConvertedExample",
    "HotpotQAExample",
    "HotpotQAInputConfig",
    "Paragraph",
    "SupportingFact",
    "make_features",
    "parse_example",
    "read_examples",
]

NO_SUPPORTING_FACT = "no_supporting_fact_in_input"
NO_ANSWER = "no_answer_in_input"
DROP_REASONS = (NO_SUPPORTING_FACT, NO_ANSWER)


_find_words = alignment.in_any_form(alignment.find_word_spans)
_find_letters = alignment.in_any_form(alignment.find_char_spans)


@dataclasses.dataclass(frozen=True)
class ConvertedExample:
    """A converted example.

    Attributes:
        features: dict of str to list of int (or of str), or None if the example is dropped.
        drop_reason: str, one of `DROP_REASONS`, or None.
        num_long_tokens, num_global_tokens: int. Without padding.
        num_left_out: int. Number of pieces (question tokens, paragraphs, titles, sentences) and
            edges without room.
        num_unmatched_facts: int. Number of supporting facts that match no sentence of the context.
    """

    features: dict | None
    drop_reason: str | None
    num_long_tokens: int
    num_global_tokens: int
    num_left_out: int
    num_unmatched_facts: int


read_examples = raw_files.example_reader(raw_files.read_json_elements, parse_example)


def make_features(example, config, tokenizer):
    """Converts an example.

    Args:
        example: a `HotpotQAExample`.
        config: a `HotpotQAInputConfig`. Padding fills each feature up to its lengths.
        tokenizer: an `etcmodel.text.tokenization.FullTokenizer`.

    Returns:
        A `ConvertedExample`. Its features (L long tokens, G global tokens):
            unique_ids, type, level: one str.
            long_token_ids, long_token_type_ids: int [L]. 0 is padding.
            long_sentence_ids: int [L]. The global token of each long token's sentence (or title or
                question token); -1 for CLS and padding.
            long_paragraph_ids: int [L]. The global token of the paragraph; -1 outside of them.
            long_paragraph_breakpoints, global_paragraph_breakpoints: int [L], [G]. 1 at the last
                token of CLS, the question and each paragraph.
            global_token_ids, global_token_type_ids: int [G]. 0 is padding.
            same_word_edges, title_edges: int [2 * num_word_edges]. Pairs of global tokens one after
                another, see `edges`; -1 twice is padding. Only where there is room for any.
        In inference or debug: global_paragraph_ids and global_sentence_ids, int [G], the indices in
            the file, or -1; long_tokens_to_unigrams, int [L], word pieces only.
        In training: supporting_facts, int [G], 1 for the sentences to find, and their titles and
            paragraphs; answer_types, one int; answer_begins and answer_ends, one int each (-1 for
            yes and no), or answer_bio_ids, int [L].
        In debug: long_tokens and global_tokens, str, not padded.

    Raises:
        ValueError: if the question does not fit or has no tokens, or labels are missing in
            training.
    """
    if config.is_training:
        _check_labels(example, config)
    layout = InputLayout(config)
    layout.add_question(example, _tokenized(example.question, tokenizer))
    finder = _AnswerFinder(example, config, tokenizer)
    facts = set(example.supporting_facts or ())
    for index, paragraph in enumerate(example.paragraphs):
        _add_paragraph(layout, index, paragraph, facts, finder, tokenizer)
    drop_reason = None
    if config.is_training:
        drop_reason = _add_labels(layout, example, config, finder)
    return ConvertedExample(
        features=None if drop_reason else layout.features(example, tokenizer),
        drop_reason=drop_reason,
        num_long_tokens=len(layout.long["token_ids"]),
        num_global_tokens=len(layout.globals["token_ids"]),
        num_left_out=layout.num_left_out,
        num_unmatched_facts=_num_unmatched(example),
    )


def _check_labels(example, config):
    for name in ("answer", "supporting_facts"):
        if getattr(example, name) is None:
            raise ValueError(
                f"example {example.example_id!r}: field `{name}` is missing, and training needs it"
            )
    titles = {paragraph.title for paragraph in example.paragraphs}
    strays = [fact.title for fact in example.supporting_facts if fact.title not in titles]
    if strays and not config.release_compatible:
        raise ValueError(
            f"example {example.example_id!r}: field `supporting_facts` names no paragraph of the "
            f"context. Received: {strays[0]!r}"
        )


def _num_unmatched(example):
    sentences = {
        (paragraph.title, index)
        for paragraph in example.paragraphs
        for index in range(len(paragraph.sentences))
    }
    return len(set(example.supporting_facts or ()) - sentences)


def _tokenized(text, tokenizer):
    if tokenizer.sp_model:
        return alignment.get_sentencepiece_tokenized_text(text, tokenizer)
    return alignment.get_wordpiece_tokenized_text(text, tokenizer)


def _pieces(text, tokenizer):
    """For a text that is not searched for the answer."""
    if tokenizer.sp_model:
        return alignment.get_sentencepiece_tokenized_text(text, tokenizer)
    return alignment.get_wordpieces(text, tokenizer)


def _add_paragraph(layout, index, paragraph, facts, finder, tokenizer):
    """Adds a paragraph's pieces and searches for the answer in the supporting ones."""
    supports = any(fact.title == paragraph.title for fact in facts)
    layout.start_paragraph(index, supports)
    pieces = [(None, paragraph.title), *enumerate(paragraph.sentences)]
    for sentence_index, text in pieces:
        is_fact = supports if sentence_index is None else (paragraph.title, sentence_index) in facts
        tokenized = _tokenized(text, tokenizer) if is_fact else _pieces(text, tokenizer)
        begin = len(layout.long["token_ids"])
        is_added = layout.add_piece(tokenized, sentence_index, is_fact)
        if is_fact:
            finder.search(tokenized, begin, is_added)
    layout.end_paragraph()


class _AnswerFinder:
    """Collects the spans of an example's answer in the long input.

    Whole words take precedence over letters within words, anywhere in the input. The release
    accepts any letters, also of `yes` and `no`, and also in text that was left out of the input, at
    the place where it would have begun.
    """

    def __init__(self, example, config, tokenizer):
        self._tokenizer = tokenizer
        self._compatible = config.release_compatible
        self._answer = (example.answer or "") if config.is_training else ""
        if not self._compatible:
            if self._answer in ("yes", "no"):
                self._answer = ""
            elif tokenizer.sp_model:  # Normalized like the text.
                self._answer = _tokenized(self._answer, tokenizer).text
        self._whole_words = []
        self._letters = []

    def search(self, tokenized, begin, is_added):
        """Searches for the answer in a piece whose first long token is `begin`."""
        if is_added or self._compatible:
            for spans, find_chars in (
                (self._whole_words, _find_words),
                (self._letters, alignment.find_char_spans if self._compatible else _find_letters),
            ):
                spans += [
                    (begin + first, begin + last)
                    for first, last in alignment.find_answer_spans(
                        tokenized, self._answer, self._tokenizer, find_chars
                    )
                ]

    def spans(self):
        """list of (first, last) long token, in text order."""
        if self._compatible:
            return self._letters
        return self._whole_words or self._letters


def _add_labels(layout, example, config, finder):
    """Adds the labels to `layout`; returns the reason to drop the example, or None."""
    if not layout.has_supporting_fact():
        return NO_SUPPORTING_FACT
    spans = finder.spans()
    is_span = example.answer not in ("yes", "no")
    first_span = min(spans, key=lambda span: span[1], default=None)
    if is_span and (first_span is None or not layout.has_long_position(first_span[1])):
        return NO_ANSWER
    layout.labels["answer_types"] = [
        config.answer_types_map[example.answer if not is_span else "span"]
    ]
    if config.answer_encoding_method == "bio":
        layout.labels["answer_bio_ids"] = _bio_ids(spans, layout.padded_long_length())
    else:
        begin, end = first_span or ((0, 0) if config.release_compatible else (-1, -1))
        layout.labels["answer_begins"] = [begin]
        layout.labels["answer_ends"] = [end]
    return None


def _bio_ids(spans, length):
    ids = [BIO_IDS["outside"]] * length
    for begin, end in spans:
        for position in range(begin, min(end + 1, length)):
            ids[position] = BIO_IDS["begin" if position == begin else "inside"]
    return ids
