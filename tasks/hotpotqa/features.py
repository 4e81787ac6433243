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
- BIO labels mark all of an answer that is in the input (there: none from the first span on that
  passes the input's end, as one in a left-out sentence may).
- `yes` and `no` have no span: answer_begins and answer_ends are -1 (there: the first such letters,
  else the CLS token).
- An example is dropped without a supporting *sentence* in the input (there: or its paragraph).
- A question that does not fit is an error (there: what does not fit is left out), and so is one
  without tokens.
- Supporting facts that name no paragraph are an error in training. A sentence index out of range,
  which the true training set has, is skipped and counted, as in the release.
"""

import collections
import dataclasses
import itertools
from typing import NamedTuple

from etcmodel import preprocessing
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.padding import padded
from etcmodel.text import alignment
from etcmodel.text.vocabulary import SPIECE_UNDERLINE

from . import examples, marks
from .config import (
    BIO_IDS,
    DROP_REASONS,
    NO_ANSWER,
    NO_SUPPORTING_FACT,
    HotpotQAInputConfig,
)

__all__ = [
    "DECODING_FEATURES",
    "EDGE_FEATURES",
    "GLOBAL_FEATURES",
    "LONG_FEATURES",
    "WORDS_FEATURE",
    "ConvertedExample",
    "ConverterFactory",
    "FeatureMaker",
    "InputLayout",
    "Piece",
    "make_features",
    "question_piece",
    "same_word_edges",
    "text_piece",
    "title_edges",
]

# The names of features.
LONG_FEATURES = (
    "long_token_ids",
    "long_token_type_ids",
    "long_sentence_ids",
    "long_paragraph_ids",
    "long_paragraph_breakpoints",
)
GLOBAL_FEATURES = ("global_token_ids", "global_token_type_ids", "global_paragraph_breakpoints")
EDGE_FEATURES = ("same_word_edges", "title_edges")
DECODING_FEATURES = ("global_paragraph_ids", "global_sentence_ids")
WORDS_FEATURE = "long_tokens_to_unigrams"

# Edges between the global tokens of a HotpotQA input that refer to the same thing.
#
# The paper's input encodes which sentence a token is in, but not which words of the question a
# sentence contains, nor which other paragraph it names. Both can be found in the text, and both are
# relations between global tokens, as in any graph (Ainslie et al. 2020, section 3.2).


class Piece(NamedTuple):
    """The words of the question, a title or a sentence.

    Attributes:
        words: list of (str, tuple of int). Each word in lower case, with its global tokens: its own
            in the question, that of the sentence or title elsewhere.
        paragraph: int. The paragraph's global token; -1 for the question.
        is_title: bool.
    """

    words: list
    paragraph: int = -1
    is_title: bool = False


def question_piece(tokens, first_global_token):
    """The `Piece` of the question, whose tokens (list of str) each have a global token."""
    return Piece(
        [
            (word, tuple(range(first_global_token + begin, first_global_token + end)))
            for word, begin, end in _words(tokens)
        ]
    )


def text_piece(tokens, global_token, paragraph, is_title):
    """The `Piece` of a title or a sentence with these tokens (list of str)."""
    words = [(word, (global_token,)) for word, _, _ in _words(tokens)]
    return Piece(words, paragraph, is_title)


def same_word_edges(pieces):
    """Pairs of a sentence or title and a question token whose word it contains.

    Words in more than half of the paragraphs, and in at least three, are not distinctive and are
    ignored; so are punctuation marks.

    Args:
        pieces: list of `Piece`, the question's first.
    Returns:
        list of (global token of the sentence or title, global token of the question).
    """
    question, *others = pieces
    common = _common_words(others)
    tokens_of = collections.defaultdict(list)
    for word, tokens in question.words:
        if word not in common and any(map(str.isalnum, word)):
            tokens_of[word] += tokens
    edges = (
        (own, token)
        for piece in others
        for word, (own,) in piece.words
        for token in tokens_of.get(word, ())
    )
    return list(dict.fromkeys(edges))


def title_edges(pieces):
    """Pairs of a mention of a paragraph's title, and that paragraph.

    A title must be mentioned as a whole, except for parentheses at its end.

    Args:
        pieces: list of `Piece`.
    Returns:
        list of (global token of a sentence, of another title or of a question's word, global token
        of a paragraph).
    """
    edges = []
    for title in (piece for piece in pieces if piece.is_title):
        name = _name([word for word, _ in title.words])
        for piece in pieces:
            if piece.paragraph != title.paragraph:
                edges += ((token, title.paragraph) for token in _where(name, piece))
    return list(dict.fromkeys(edges))


def _words(tokens):
    """list of (word, first token, token after the last) of word or sentence pieces."""
    is_sentencepiece = any(token.startswith(SPIECE_UNDERLINE) for token in tokens)
    words = []
    for index, token in enumerate(tokens):
        if is_sentencepiece:
            text = token.lstrip(SPIECE_UNDERLINE)
            goes_on = text == token and text[:1].isalnum()
        else:
            text = token.removeprefix("##")
            goes_on = text != token
        if goes_on and words:
            word, begin, _ = words[-1]
            words[-1] = (word + text.lower(), begin, index + 1)
        else:  # Empty for a sentence piece that is only a space.
            words.append((text.lower(), index, index + 1))
    return [word for word in words if word[0]]


def _common_words(pieces):
    paragraphs_of = collections.defaultdict(set)
    for piece in pieces:
        for word, _ in piece.words:
            paragraphs_of[word].add(piece.paragraph)
    num_paragraphs = len({piece.paragraph for piece in pieces})
    most = max(2, num_paragraphs // 2)
    return {word for word, found in paragraphs_of.items() if len(found) > most}


def _name(words):
    if "(" in words[1:] and words[-1] == ")":
        return words[: words.index("(", 1)]
    return words


def _where(name, piece):
    """The global tokens of the places where a piece contains the words of `name` in sequence."""
    words = [word for word, _ in piece.words]
    for start in range(len(words) - len(name) + 1) if name else ():
        if words[start] == name[0] and words[start : start + len(name)] == name:
            for _, tokens in piece.words[start : start + len(name)]:
                yield from tokens


# Lays out the tokens of one HotpotQA example in the long and the global input.


# Features of the two inputs, and their padding values.
_LONG_PADDING = {
    "token_ids": 0,
    "sentence_ids": -1,
    "paragraph_ids": -1,
    "paragraph_breakpoints": 0,
    "token_type_ids": 0,
    "tokens_to_unigrams": -1,
}
_GLOBAL_PADDING = {
    "token_ids": 0,
    "sentence_ids": -1,
    "paragraph_ids": -1,
    "paragraph_breakpoints": 0,
    "token_type_ids": 0,
    "supporting_facts": 0,
}


class InputLayout:
    """The two inputs of an example, while they are filled.

    Attributes:
        long, globals: dict from feature to list, all as long as the input so far.
        labels: dict from feature to list. Added to the features unchanged.
        num_left_out: int. Number of pieces and edges without room.
    """

    def __init__(self, config):
        self._config = config
        self.long = {name: [] for name in _LONG_PADDING}
        self.globals = {name: [] for name in _GLOBAL_PADDING}
        self.long_tokens = []
        self.labels = {}
        self.num_left_out = 0
        self._pieces = []  # Their words, if there are edges.
        self._paragraph = (-1, -1)  # Its index in the file, and its global token.
        self._num_sentences = 0  # In the paragraph, so far.
        self._has_fact_sentence = False

    def add_question(self, example, tokenized):
        """Adds CLS, then the question, with one global token per long token.

        Raises:
            ValueError: if it does not fit (the release leaves out the rest), or has no tokens.
        """
        config = self._config
        if not tokenized.tokens and not config.release_compatible:
            raise ValueError(
                f"example {example.example_id!r}: field `question`: {example.question!r} has no "
                "tokens"
            )
        needed = 1 + len(tokenized.tokens)
        limits = (config.long_seq_length, config.global_seq_length)
        if not config.release_compatible and any(limit and limit < needed for limit in limits):
            raise ValueError(
                f"example {example.example_id!r}: the CLS token and the question need {needed} "
                f"tokens, more than long_seq_length={limits[0]} or global_seq_length={limits[1]}"
            )
        self._add_global(config.cls_token_id)
        self._add_long([config.cls_token_id], config.sentence_token_type_id, sentence_id=-1)
        self._break()
        for token_id in tokenized.token_ids:
            if self._has_room(1):
                sentence_id = self._add_global(config.question_global_token_id)
                self._add_long([token_id], config.question_token_type_id, sentence_id)
        if config.num_word_edges:
            num_added = len(self.globals["token_ids"]) - 1
            self._pieces.append(question_piece(tokenized.tokens[:num_added], 1))
        self._break()

    def start_paragraph(self, index, is_fact):
        """Adds the paragraph's own global token; `index` is its place in the file."""
        self._num_sentences = 0
        self._paragraph = (index, len(self.globals["token_ids"]))
        if self._has_room(0):
            self._add_global(self._config.paragraph_global_token_id, is_fact=is_fact)

    def add_piece(self, tokenized, sentence_index, is_fact):
        """Adds a title (`sentence_index` None) or a sentence if all of it fits.

        Returns:
            bool. Whether it was added.
        """
        config = self._config
        if not self._has_room(len(tokenized.tokens)):
            return False
        if sentence_index is None:
            token_type_id = config.title_token_type_id
        else:
            token_type_id = config.sentence_token_type_id
            self._has_fact_sentence |= is_fact
        sentence_id = self._add_global(
            config.sentence_global_token_id, self._sentence_number(sentence_index), is_fact
        )
        if config.num_word_edges:
            is_title = sentence_index is None
            piece = text_piece(tokenized.tokens, sentence_id, self._paragraph[1], is_title)
            self._pieces.append(piece)
        unigrams = getattr(tokenized, "tokens_to_unigrams", None)
        self._add_long(tokenized.token_ids, token_type_id, sentence_id, unigrams)
        return True

    def end_paragraph(self):
        """Marks the paragraph's last tokens."""
        self._break()
        self._paragraph = (-1, -1)

    def has_supporting_fact(self):
        """Whether a supporting sentence is in the input (in the release: or its paragraph)."""
        if self._config.release_compatible:
            return any(self.globals["supporting_facts"])
        return self._has_fact_sentence

    def has_long_position(self, position):
        """Whether the long input, including padding, reaches `position`."""
        limit = self._config.long_seq_length
        return limit is None or position < limit

    def padded_long_length(self):
        """The length of the long features."""
        return self._config.long_seq_length or len(self.long["token_ids"])

    def features(self, example, tokenizer):
        """All features of the example: see `make_features`."""
        config = self._config
        for_inference = not config.is_training or config.debug
        features = {"unique_ids": [example.example_id]}
        features |= {"type": [example.type], "level": [example.level]}
        for name, padding in _LONG_PADDING.items():
            features[f"long_{name}"] = padded(self.long[name], config.long_seq_length, padding)
        for name, padding in _GLOBAL_PADDING.items():
            values = padded(self.globals[name], config.global_seq_length, padding)
            features[f"global_{name}"] = values
        features |= self._edges()
        facts = features.pop("global_supporting_facts")
        if config.is_training:
            features |= {"supporting_facts": facts, **self.labels}
        if not for_inference:
            del features["global_sentence_ids"], features["global_paragraph_ids"]
        if not for_inference or tokenizer.sp_model:
            del features["long_tokens_to_unigrams"]
        if config.debug:
            for side, inputs in (("long", self.long), ("global", self.globals)):
                tokens = tokenizer.convert_ids_to_tokens(inputs["token_ids"])
                features[f"{side}_tokens"] = tokens
        return features

    def _edges(self):
        """The features of the edges: see `make_features`."""
        room = self._config.num_word_edges
        if not room:
            return {}
        features = {}
        for name, found in (
            ("same_word_edges", same_word_edges(self._pieces)),
            ("title_edges", title_edges(self._pieces)),
        ):
            self.num_left_out += max(0, len(found) - room)
            pairs = [token for pair in found[:room] for token in pair]
            features[name] = padded(pairs, 2 * room, -1)
        return features

    def _sentence_number(self, sentence_index):
        """Value of `global_sentence_ids`; the release counts the sentences that were added."""
        config = self._config
        if sentence_index is None:
            return -1
        if not config.release_compatible:
            return sentence_index
        if config.sentence_global_token_id != config.sentence_token_type_id:
            return -1
        self._num_sentences += 1
        return self._num_sentences - 1

    def _has_room(self, num_long_tokens):
        """Whether one more global token and this many long tokens fit; counts a failure."""
        config = self._config
        long_length = len(self.long["token_ids"]) + num_long_tokens
        global_length = len(self.globals["token_ids"]) + 1
        fits = (config.long_seq_length is None or long_length <= config.long_seq_length) and (
            config.global_seq_length is None or global_length <= config.global_seq_length
        )
        self.num_left_out += not fits
        return fits

    def _add_global(self, token_id, sentence_number=-1, is_fact=False):
        """Adds a global token and returns its position."""
        position = len(self.globals["token_ids"])
        self.globals["token_ids"].append(token_id)
        self.globals["sentence_ids"].append(sentence_number)
        self.globals["paragraph_ids"].append(self._paragraph[0])
        self.globals["paragraph_breakpoints"].append(0)
        self.globals["token_type_ids"].append(self._config.global_token_type_id)
        self.globals["supporting_facts"].append(int(is_fact))
        return position

    def _add_long(self, token_ids, token_type_id, sentence_id, unigrams=None):
        count = len(token_ids)
        self.long["token_ids"] += token_ids
        self.long["sentence_ids"] += [sentence_id] * count
        self.long["paragraph_ids"] += [self._paragraph[1]] * count
        self.long["paragraph_breakpoints"] += [0] * count
        self.long["token_type_ids"] += [token_type_id] * count
        self.long["tokens_to_unigrams"] += unigrams or [-1] * count

    def _break(self):
        self.long["paragraph_breakpoints"][-1] = 1
        self.globals["paragraph_breakpoints"][-1] = 1


# From an example to its features.


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
                another, see the functions of these names; -1 twice is padding. Only where there is
                room for any.
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
        check_labels(example, config)
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


def check_labels(example, config):
    """Raises a ValueError if an example of a `HotpotQAInputConfig` has not what training needs."""
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
        length = layout.padded_long_length()
        if config.release_compatible:
            spans = list(itertools.takewhile(lambda span: span[1] < length, spans))
        layout.labels["answer_bio_ids"] = _bio_ids(spans, length)
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


class FeatureMaker:
    """Makes features of examples in the form that the settings say.

    Args:
        config: a `HotpotQAInputConfig`.
        tokenizer: its tokenizer.
    Call args:
        example: a `HotpotQAExample`.
    Returns:
        `ConvertedExample`, or `marks.MarkedExample`.
    Raises:
        ValueError: if a first stage is given its own result; naming the file, if that is malformed;
            in a call, naming the example, as `make_features`, or if the second stage lacks the
            result of the first.
    """

    def __init__(self, config, tokenizer):
        self.config, self._tokenizer, self._first_stage = config, tokenizer, {}
        if config.first_stage:
            if not config.max_num_paragraphs:
                raise ValueError(
                    "--first_stage is for the second stage, and this model reads all paragraphs. "
                    "Leave it out."
                )
            self._first_stage = marks.read_first_stage(config.first_stage)

    def __call__(self, example):
        config = self.config
        return config.form.make_features(example, config, self._tokenizer, self._first_stage)


# HotpotQA's converter: what a preprocessing worker does with one raw example.


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `HotpotQAInputConfig`."""

    task = "hotpotqa"
    read = staticmethod(raw_files.read_json_values)

    def input_config(self, tokenizer):
        return HotpotQAInputConfig.for_tokenizer(tokenizer, **self.fields)

    def __call__(self):
        tokenizer = self.tokenizer()
        make = FeatureMaker(self.input_config(tokenizer), tokenizer)
        return lambda raw: self.convert(raw, make.config, make)

    def convert(self, raw, config, make):
        example = examples.parse_example(raw, config.is_training)
        converted = make(example)
        return preprocessing.Converted.of_one(
            converted,
            drop_reasons=DROP_REASONS,
            counts={
                "examples_truncated": int(converted.num_left_out > 0),
                "unmatched_supporting_facts": converted.num_unmatched_facts,
            },
        )
