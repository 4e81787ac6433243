"""Where the candidates are mentioned in a sentence, in tokens. Spans are (first, last), inclusive.

Differences from the release (`release_compatible=True` reproduces it):
- Of candidates that overlap the longest is taken, and the first of equal ones (there: the last in
  the list, so that the answer may lose its mentions to an equal or a shorter candidate).
- Sentence pieces are compared as text, ignoring case (there: as pieces, so that a candidate, which
  is in lower case, is not found where it is capitalized or follows a bracket).
- Word pieces are compared without their accents, which they have lost, and whatever the white space
  between them (there, with sentence pieces too: the sentence, in lower case, must also contain the
  candidate as a string).
- A mention ends where a word ends (there: a word piece of the same word may follow, so that "walk"
  is found in "walk ##able"), and unknown word pieces match nothing (there: each other).
"""

import re

from etcmodel.text import alignment

__all__ = ["find_candidate_mentions", "mention_finder"]


def find_candidate_mentions(tokens, candidate_tokens):
    """Every place where a candidate's tokens occur consecutively in a sentence.

    Args:
        tokens, candidate_tokens: list of str. Both from the same tokenizer.

    Returns:
        list of (first, last) token; empty for a candidate without tokens.
    """
    length = len(candidate_tokens)
    return [
        (start, start + length - 1)
        for start in range(len(tokens) - length + 1)
        if length and tokens[start : start + length] == candidate_tokens
    ]


def mention_finder(candidates, tokenizer, *, release_compatible=False):
    """Makes a function that finds all candidates of an example in a sentence.

    Args:
        candidates: list of str, normalized.
        tokenizer: the `FullTokenizer` of the texts.
        release_compatible: bool. Find every candidate independently, as in the release.

    Returns:
        function from a sentence and the list of its tokens to a list of (candidate index, first
        token, last token), of which later ones overwrite earlier ones.
    """
    tokens = [tokenizer.tokenize(candidate) for candidate in candidates]
    if release_compatible:
        return _every_candidate_finder(candidates, tokens)
    if tokenizer.sp_model:
        return _longest_text_finder(tokens)
    return _longest_tokens_finder(tokens)


def _every_candidate_finder(candidates, candidates_tokens):
    def find(sentence, tokens):
        text = sentence.lower()
        return [
            (number, first, last)
            for number, candidate_tokens in enumerate(candidates_tokens)
            if candidates[number] in text
            for first, last in find_candidate_mentions(tokens, candidate_tokens)
        ]

    return find


def _longest_tokens_finder(candidates_tokens):
    by_first_token = {}
    for number, tokens in enumerate(candidates_tokens):
        if tokens and "[UNK]" not in tokens:
            by_first_token.setdefault(tokens[0], []).append((number, tokens))
    for entries in by_first_token.values():
        entries.sort(key=lambda entry: -len(entry[1]))

    def find(sentence, tokens):
        del sentence
        mentions = []
        end = 0
        for start, token in enumerate(tokens):
            if start < end or token not in by_first_token:
                continue
            for number, candidate_tokens in by_first_token[token]:
                if _is_whole_mention(tokens, start, candidate_tokens):
                    end = start + len(candidate_tokens)
                    mentions.append((number, start, end - 1))
                    break
        return mentions

    return find


def _is_whole_mention(tokens, start, candidate_tokens):
    """Whether the candidate is at `start` and its last token ends a word."""
    end = start + len(candidate_tokens)
    is_word_end = end >= len(tokens) or not tokens[end].startswith("##")
    return is_word_end and tokens[start:end] == candidate_tokens


def _longest_text_finder(candidates_tokens):
    numbers = {}
    for number, tokens in enumerate(candidates_tokens):
        numbers.setdefault(_spelled(tokens), number)
    pattern = _any_of(numbers)

    def find(sentence, tokens):
        del sentence  # The tokens contain the text as normalized by the model.
        text = _spelled(tokens)
        chars_to_tokens = [index for index, token in enumerate(tokens) for _ in token]
        chars_to_tokens = chars_to_tokens[len(chars_to_tokens) - len(text) :]
        return [
            (
                numbers[match.group()],
                chars_to_tokens[match.start()],
                chars_to_tokens[match.end() - 1],
            )
            for match in pattern.finditer(text)
        ]

    return find


def _spelled(tokens):
    """The text of sentence pieces, lower-cased except where that would change its length."""
    text = alignment.sentencepiece_detokenize(tokens)
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _any_of(texts):
    """A pattern of any of `texts` as whole words, the longest first.

    The boundary before a word is checked once for all; the rest then fails at its first letter.
    """
    words, others = [], []
    for text in sorted(filter(None, texts), key=len, reverse=True):
        after = r"(?!\w)" if re.match(r"\w", text[-1]) else ""
        starts_a_word = re.match(r"\w", text)
        (words if starts_a_word else others).append(re.escape(text) + after)
    choices = [rf"(?<!\w)(?:{'|'.join(words)})"] if words else []
    return re.compile("|".join(choices + others) or r"(?!)")
