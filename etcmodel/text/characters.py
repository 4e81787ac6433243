"""Classes of characters for tokenizers, and a cache of computed results."""

import re
import unicodedata

_MAX_CACHED_WORDS = 1 << 18
_SURROGATE = re.compile("[\ud800-\udfff]")

# First and last code point of the blocks of CJK ideographs (kana and Hangul are not among them).
_CJK_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


# First and last letter of scripts that put no spaces between words: CJK ideographs, kana and
# bopomofo; Thai, Lao and Myanmar; Tibetan; Khmer; Tai Le, New Tai Lue and Tai Tham; half-width
# kana; further kana.
BLOCKS_WITHOUT_SPACES = (
    *_CJK_BLOCKS,
    (0x3005, 0x3007),
    (0x3040, 0x312F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x0E00, 0x0EFF),
    (0x0F00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x1950, 0x19DF),
    (0x1A20, 0x1AAF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xFF66, 0xFF9F),
    (0x1B000, 0x1B16F),
    (0x30000, 0x323AF),
)


def composed(text):
    """Composes letters and accents into single characters where Unicode has them.

    Texts that look alike may be encoded either way (the normal forms C and D): this is form C.
    """
    return unicodedata.normalize("NFC", text)


class Memo(dict):
    """Cache of a function's results: `memo[x]` calls it at most once while there is room."""

    def __init__(self, function, max_entries=_MAX_CACHED_WORDS):
        super().__init__()
        self.function = function
        self.max_entries = max_entries

    def __missing__(self, key):
        value = self.function(key)
        if len(self) < self.max_entries:
            self[key] = value
        return value


def _clean_code_point(code_point):
    """Cleans a character before a text is split at white space: '' if it is removed."""
    char = chr(code_point)
    category = unicodedata.category(char)
    if char in "\t\n\r" or category == "Zs":
        return " "
    if code_point in (0, 0xFFFD) or category in ("Cc", "Cf"):
        return ""
    if any(first <= code_point <= last for first, last in _CJK_BLOCKS):
        return f" {char} "
    return char


def _clean_between_spaces(code_point):
    """Like `_clean_code_point`, but does not set ideographs apart."""
    cleaned = CLEAN[code_point]
    return cleaned.strip() or cleaned


CLEAN = Memo(_clean_code_point)  # For `str.translate`, which looks up each code point in it.
CLEAN_BETWEEN_SPACES = Memo(_clean_between_spaces)


def is_of_word(char):
    """Whether a character belongs to words that end at a space or a mark: letter, digit or accent.

    Letters of scripts without spaces between words, such as Chinese or Thai, are not.
    """
    if not (char.isalnum() or unicodedata.category(char) in ("Mn", "Mc", "Pc")):
        return False
    return not any(first <= ord(char) <= last for first, last in BLOCKS_WITHOUT_SPACES)


def is_punctuation(char):
    """True for Unicode's punctuation and every ASCII symbol (`$`, `+`, `^` too)."""
    if "!" <= char <= "~":
        return not char.isalnum()
    return unicodedata.category(char).startswith("P")


def strip_accents(word):
    decomposed = unicodedata.normalize("NFD", word)
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


def replace_surrogates(text):
    """Replaces halves of surrogate pairs, which UTF-8 has no bytes for, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
