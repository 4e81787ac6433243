"""Aligns tokens with characters: finds where a string of the raw text lies in a tokenized text.

Word pieces lose case, accents and spacing, so they are aligned with the text through *unigrams*,
the words between white space. Sentence pieces spell their text exactly, apart from the model's
normalization. Spans are pairs (first, last), both inclusive.
"""

import bisect
import dataclasses
import itertools
import re
import unicodedata
from typing import NamedTuple

from etcmodel.text import characters, tokenization, vocabulary

# SQuAD's white space. No-break and ideographic spaces stay within a unigram.
_SPACES = " \t\r\n\u202f"
_UNIGRAM = re.compile(f"[^{_SPACES}]+")


class Wordpieces(NamedTuple):
    """The word pieces of a text; the lists are those of `WordpieceText`."""

    tokens: list
    token_ids: list
    tokens_to_unigrams: list


@dataclasses.dataclass(frozen=True)
class WordpieceText:
    """A text in word pieces, aligned with its characters through its unigrams.

    Attributes:
        text: str. As given.
        tokens, token_ids: list of str, list of int [num_tokens].
        unigrams: list of str [num_unigrams]. The words of `text` between white space.
        chars_to_unigrams: list of int [len(text)]. White space belongs to the unigram before it,
            and has -1 at the start of the text.
        unigrams_to_tokens: list of int [num_unigrams]. The first token of each unigram.
        tokens_to_unigrams: list of int [num_tokens].
    """

    text: str
    tokens: list
    token_ids: list
    unigrams: list
    chars_to_unigrams: list
    unigrams_to_tokens: list
    tokens_to_unigrams: list

    def token_span(self, char_span, string_tokens):
        """Returns the tokens of the unigrams that `char_span` touches, narrowed to `string_tokens`.

        Returns:
            (first, last) token, or None where the characters have no token.
        """
        first_unigram, last_unigram = (self.chars_to_unigrams[char] for char in char_span)
        starts = [*self.unigrams_to_tokens, len(self.tokens)]
        first, last = starts[max(first_unigram, 0)], starts[last_unigram + 1] - 1
        if first > last:
            return None
        return self._narrowed(first, last, string_tokens)

    def _narrowed(self, first, last, string_tokens):
        length = len(string_tokens)
        for start in range(first, last - length + 2):
            if length and self.tokens[start : start + length] == string_tokens:
                return start, start + length - 1
        return first, last


@dataclasses.dataclass(frozen=True)
class SentencepieceText:
    """A text in sentence pieces, aligned with its characters.

    Attributes:
        text: str. The normalized text, as spelled by the pieces. Words that the tokenizer splits at
            punctuation stay together, as in the raw text.
        tokens, token_ids: list of str, list of int [num_tokens].
        chars_to_tokens: list of int [len(text)].
    """

    text: str
    tokens: list
    token_ids: list
    chars_to_tokens: list

    def token_span(self, char_span, string_tokens=None):
        """Returns the (first, last) token that `char_span` touches."""
        del string_tokens  # The characters are exact.
        first, last = char_span
        return self.chars_to_tokens[first], self.chars_to_tokens[last]


def whitespace_split_with_indices(text):
    """Splits `text` at white space and aligns the words with the characters.

    Returns:
        unigrams: list of str.
        unigrams_to_chars: list of int. The first character of each unigram.
        chars_to_unigrams: list of int [len(text)]. See `WordpieceText`.
    """
    matches = list(_UNIGRAM.finditer(text))
    starts = [match.start() for match in matches]
    chars_to_unigrams = []
    for index, end in enumerate([*starts, len(text)]):
        chars_to_unigrams += [index - 1] * (end - len(chars_to_unigrams))
    return [match.group() for match in matches], starts, chars_to_unigrams


def get_wordpiece_tokenized_text(text, tokenizer):
    """Splits `text` into word pieces, unigram by unigram.

    Args:
        text: str.
        tokenizer: a `FullTokenizer` of word pieces.

    Returns:
        A `WordpieceText`.
    """
    unigrams, _, chars_to_unigrams = whitespace_split_with_indices(text)
    pieces = get_wordpieces(text, tokenizer)
    counts = (len(tokenizer.pieces_of_word(unigram)[0]) for unigram in unigrams)
    return WordpieceText(
        text=text,
        tokens=pieces.tokens,
        token_ids=pieces.token_ids,
        unigrams=unigrams,
        chars_to_unigrams=chars_to_unigrams,
        unigrams_to_tokens=list(itertools.accumulate(counts, initial=0))[:-1],
        tokens_to_unigrams=pieces.tokens_to_unigrams,
    )


def get_wordpieces(text, tokenizer):
    """Like `get_wordpiece_tokenized_text`, without the alignment with characters, which is slower.

    Returns:
        A `Wordpieces`.
    """
    words = [tokenizer.pieces_of_word(unigram) for unigram in _UNIGRAM.findall(text)]
    return Wordpieces(
        tokens=[token for tokens, _ in words for token in tokens],
        token_ids=[token_id for _, ids in words for token_id in ids],
        tokens_to_unigrams=[index for index, (tokens, _) in enumerate(words) for _ in tokens],
    )


def get_sentencepiece_tokenized_text(text, tokenizer):
    """Splits `text` into sentence pieces.

    Args:
        text: str.
        tokenizer: a `FullTokenizer` of a SentencePiece model.

    Returns:
        A `SentencepieceText`.
    """
    if tokenizer.split_punctuation:
        return _split_sentencepiece_text(text, tokenizer)
    tokens = tokenizer.tokenize(text)
    chars_to_tokens = [index for index, token in enumerate(tokens) for _ in token]
    spelled = sentencepiece_detokenize(tokens)
    return SentencepieceText(
        text=spelled,
        tokens=tokens,
        token_ids=tokenizer.convert_tokens_to_ids(tokens),
        chars_to_tokens=chars_to_tokens[len(chars_to_tokens) - len(spelled) :],
    )


def _split_sentencepiece_text(text, tokenizer):
    """Tokens between punctuation each begin with a space; the text has only the raw ones."""
    tokens, spelled, chars_to_tokens = [], "", []
    for word in tokenizer.basic_tokenizer.tokenize_words(text):
        space = " " if spelled else ""
        for piece in (piece for token in word for piece in tokenizer.tokenize(token)):
            letters = space + piece.replace(vocabulary.SPIECE_UNDERLINE, "")
            chars_to_tokens += [len(tokens)] * len(letters)
            tokens.append(piece)
            spelled += letters
            space = ""
    return SentencepieceText(
        text=spelled,
        tokens=tokens,
        token_ids=tokenizer.convert_tokens_to_ids(tokens),
        chars_to_tokens=chars_to_tokens,
    )


def wordpiece_tokens_to_normalized_text(wordpiece_tokens):
    """Joins word pieces: `["un", "##aff", "1"]` gives `"unaff 1"`."""
    return " ".join(wordpiece_tokens).replace(" ##", "").removeprefix("##").strip()


def sentencepiece_detokenize(tokens):
    """Joins sentence pieces: `["▁Hello", "▁World"]` gives `"Hello World"`."""
    return "".join(tokens).replace(vocabulary.SPIECE_UNDERLINE, " ").removeprefix(" ")


def find_char_spans(text, substring):
    """Finds `substring` in `text`, also inside words; overlaps are left out.

    Returns:
        list of (first, last) character; empty for an empty `substring`.
    """
    if not substring:
        return []
    return [(m.start(), m.end() - 1) for m in re.finditer(re.escape(substring), text)]


def find_word_spans(text, substring):
    """Finds `substring` in `text` as whole words, whatever the white space between them.

    Returns:
        list of (first, last) character; empty for a blank `substring`.
    """
    words = substring.split()
    if not words:
        return []
    pattern = r"\s+".join(re.escape(word) for word in words)
    before = r"(?<!\w)" if re.match(r"\w", words[0]) else ""
    after = r"(?!\w)" if re.match(r"\w", words[-1][-1]) else ""
    return [(m.start(), m.end() - 1) for m in re.finditer(before + pattern + after, text)]


def in_any_form(find_chars):
    """Makes a search function indifferent to how accents are encoded in either text.

    Args:
        find_chars: function of (text, substring) to a list of (first, last) character.
    Returns:
        A function like `find_chars`: "é" matches whether it is one character or a letter and its
        accent.
    """

    def find(text, substring):
        form = characters.composed(text)
        spans = find_chars(form, characters.composed(substring))
        if form == text or not spans:
            return spans
        # Both decompose into the same letters and accents, whose positions map one to the other.
        starts, ends = _parts(form)
        own_starts, own_ends = _parts(text)
        return [
            (
                bisect.bisect_right(own_starts, starts[first]) - 1,
                bisect.bisect_left(own_ends, ends[last]),
            )
            for first, last in spans
        ]

    return find


def _parts(text):
    """Where the parts of each character start and end among all parts."""
    lengths = [len(unicodedata.normalize("NFD", char)) for char in text]
    ends = list(itertools.accumulate(lengths))
    return [0, *ends[:-1]], ends


def find_answer_spans(tokenized_text, answer, tokenizer, find_chars=find_char_spans):
    """Finds the tokens of `answer` in a tokenized text.

    Args:
        tokenized_text: a `WordpieceText` or a `SentencepieceText`.
        answer: str. Compared with `tokenized_text.text`, case and accents included.
        tokenizer: the `FullTokenizer` that made `tokenized_text`.
        find_chars: function of (text, answer) that finds the character spans.

    Returns:
        list of (first, last) token, in the order of the text. If the answer's word pieces are not
        consecutive within its unigrams, the span is all tokens of these unigrams.
    """
    answer_tokens = tokenizer.tokenize(answer)
    char_spans = find_chars(tokenized_text.text, answer)
    spans = (tokenized_text.token_span(char_span, answer_tokens) for char_span in char_spans)
    return [span for span in spans if span is not None]


def get_final_text(token_text, unigram_text, do_lower_case=True):
    """Returns the part of `unigram_text` that was tokenized into `token_text`.

    Args:
        token_text: str. Word pieces of the answer, joined.
        unigram_text: str. The raw words that contain the answer.
        do_lower_case: bool. The tokenizer's setting.

    Returns:
        str. All of `unigram_text` if the two cannot be aligned.
    """
    basic_tokens = tokenization.BasicTokenizer(do_lower_case).tokenize(unigram_text)
    basic_text = " ".join(basic_tokens)
    start = basic_text.find(token_text)
    kept = [index for index, char in enumerate(unigram_text) if char != " "]
    if start < 0 or not token_text or len(kept) != len(basic_text.replace(" ", "")):
        return unigram_text
    first = len(basic_text[:start].replace(" ", ""))
    last = first + len(token_text.replace(" ", "")) - 1
    return unigram_text[kept[first] : kept[last] + 1]
