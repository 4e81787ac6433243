"""From typed WikiHop examples to features, in plain Python.

Long input: the candidates, the query, the documents' sentences. Global input: a token for each
candidate, for each token of the query, for each document and each of its sentences (Ainslie et al.
2020, appendix C, "WikiHop").

Differences from the release (`release_compatible=True` reproduces it):
- Candidates' mentions: see the comment above `find_candidate_mentions`.
- The answer is stripped like the candidates (there: one with white space at its ends is an error).
- Sentences are also dropped to fit the global input (there: an error).
- A query without tokens is an error.
- `candidates` and `ground_truth_answer` are spelled as in the file (there: normalized).
"""

import dataclasses
import heapq
import random
import re

from etcmodel import preprocessing
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.padding import padded
from etcmodel.text import alignment, sentence_splitting

from . import examples, marks
from .config import WikiHopInputConfig

__all__ = [
    "GLOBAL_PADDING",
    "LONG_PADDING",
    "ConvertedExample",
    "ConverterFactory",
    "InputLayout",
    "find_candidate_mentions",
    "make_features",
    "make_marked_features",
    "mention_finder",
    "truncate_documents",
]

# Drops sentences from the documents with the most sentences, until an example fits.


def truncate_documents(documents, *, max_num_sentences, max_num_tokens):
    """Drops the last sentence of the document with the most sentences, until both limits hold.

    Among documents of equal length, the first is cut; a document that was just cut goes to the end
    of its equals.

    Args:
        documents: list of list of sentences, each a list of tokens.
        max_num_sentences, max_num_tokens: int. Limits over all documents.

    Returns:
        list of int. The number of sentences to keep of each document.
    """
    kept = [len(sentences) for sentences in documents]
    num_sentences = sum(kept)
    num_tokens = sum(len(tokens) for sentences in documents for tokens in sentences)
    heap = [(-count, index, index) for index, count in enumerate(kept)]
    heapq.heapify(heap)
    order = len(heap)
    while num_sentences and (num_sentences > max_num_sentences or num_tokens > max_num_tokens):
        count, _, index = heapq.heappop(heap)
        kept[index] -= 1
        num_sentences -= 1
        num_tokens -= len(documents[index][kept[index]])
        heapq.heappush(heap, (count + 1, order, index))
        order += 1
    return kept


# Where the candidates are mentioned in a sentence, in tokens. Spans are (first, last), inclusive.
#
# Differences from the release (`release_compatible=True` reproduces it):
# - Of candidates that overlap the longest is taken, and the first of equal ones (there: the last in
#   the list, so that the answer may lose its mentions to an equal or a shorter candidate).
# - Sentence pieces are compared as text, ignoring case (there: as pieces, so that a candidate,
#   which is in lower case, is not found where it is capitalized or follows a bracket).
# - Word pieces are compared without their accents, which they have lost, and whatever the white
#   space between them (there, with sentence pieces too: the sentence, in lower case, must also
#   contain the candidate as a string).
# - A mention ends where a word ends (there: a word piece of the same word may follow, so that
#   "walk" is found in "walk ##able"), and unknown word pieces match nothing (there: each other).


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


# Lays out the tokens of one WikiHop example in the long and the global input.


# Features of the two inputs, and their padding values.
LONG_PADDING = {
    "long_token_ids": 0,
    "long_token_type_ids": 0,
    "long_sentence_ids": -1,
    "long_paragraph_ids": -1,
    "long_paragraph_breakpoints": 0,
    "l2g_linked_ids": -1,
}
GLOBAL_PADDING = {
    "global_token_ids": 0,
    "global_token_type_ids": 0,
    "global_paragraph_breakpoints": 0,
}


class InputLayout:
    """The two inputs of an example, while they are filled.

    Candidates come first, so a candidate's index is the position of its global token.

    Args:
        config: a `WikiHopInputConfig`.
        tokenizer: the `FullTokenizer` of all texts.
        example_id: str. For error messages.
    """

    def __init__(self, config, tokenizer, example_id):
        self._config = config
        self._tokenizer = tokenizer
        self._example_id = example_id
        self._long = {name: [] for name in LONG_PADDING}
        self._globals = {name: [] for name in GLOBAL_PADDING}
        self._document = -1  # The global token of the current document.

    @property
    def num_long_tokens(self):
        """int. Without padding."""
        return len(self._long["long_token_ids"])

    @property
    def num_global_tokens(self):
        """int. Without padding."""
        return len(self._globals["global_token_ids"])

    def add_candidate(self, candidate):
        """Adds a candidate, whose long tokens mention itself.

        Raises:
            ValueError: if it has no tokens.
        """
        config = self._config
        tokens = self._tokenizer.tokenize(candidate)
        if not tokens:
            raise ValueError(
                f"example {self._example_id!r}: field `candidates`: {candidate!r} has no tokens"
            )
        number = self._add_global(
            config.candidate_global_token_id, config.candidate_global_token_type_id
        )
        begin = self._add_long(tokens, config.candidate_token_type_id, number)
        self._link(number, begin, begin + len(tokens) - 1)
        self._break()

    def add_query(self, query):
        """Adds the query, with one global token per long token.

        Raises:
            ValueError: if the candidates and the query do not fit, or it has no tokens.
        """
        config = self._config
        tokens = self._tokenizer.tokenize(query)
        if not tokens and not config.release_compatible:
            raise ValueError(
                f"example {self._example_id!r}: field `query`: {query!r} has no tokens"
            )
        for token in tokens:
            position = self._add_global(
                config.query_global_token_id, config.query_global_token_type_id
            )
            self._add_long([token], config.query_token_type_id, position)
        self._break()
        if self.num_long_tokens_left() < 0:
            raise ValueError(
                f"example {self._example_id!r}: the candidates and the query need "
                f"{self.num_long_tokens} long tokens, more than "
                f"long_seq_length={config.long_seq_length}"
            )

    def num_long_tokens_left(self):
        """The room left in the long input, in tokens."""
        return self._config.long_seq_length - self.num_long_tokens

    def max_num_sentences(self, num_documents):
        """The maximum number of sentences: the config's, or the room in the global input.

        Raises:
            ValueError: if candidates, query and documents do not fit even without sentences.
        """
        config = self._config
        needed = self.num_global_tokens + num_documents
        if needed > config.global_seq_length:
            raise self._error_of_global_length(needed)
        if config.release_compatible:
            return config.max_num_sentences
        return min(config.max_num_sentences, config.global_seq_length - needed)

    def add_document(self):
        """Starts a document with its own global token."""
        config = self._config
        self._document = self._add_global(
            config.document_global_token_id, config.document_global_token_type_id
        )

    def add_sentence(self, tokens, mentions):
        """Adds a sentence of the document.

        Args:
            tokens: list of str.
            mentions: list of (candidate number, first token, last token), within the sentence.
        """
        config = self._config
        sentence = self._add_global(
            config.sentence_global_token_id, config.sentence_global_token_type_id
        )
        begin = self._add_long(tokens, config.sentence_token_type_id, sentence)
        for number, first, last in mentions:
            self._link(number, begin + first, begin + last)

    def end_document(self):
        """Marks the document's last tokens."""
        self._break()
        self._document = -1

    def features(self):
        """The features of both inputs, padded: see `make_features`.

        Raises:
            ValueError: if the global input is too long (the release does not cut it).
        """
        config = self._config
        if self.num_global_tokens > config.global_seq_length:
            raise self._error_of_global_length(self.num_global_tokens)
        return {
            **_padded(self._long, LONG_PADDING, config.long_seq_length),
            **_padded(self._globals, GLOBAL_PADDING, config.global_seq_length),
        }

    def _error_of_global_length(self, needed):
        return ValueError(
            f"example {self._example_id!r}: its candidates, query and documents need {needed} "
            f"global tokens, more than global_seq_length={self._config.global_seq_length}"
        )

    def _add_global(self, token_id, token_type_id):
        """Adds a global token and returns its position."""
        self._globals["global_token_ids"].append(token_id)
        self._globals["global_token_type_ids"].append(token_type_id)
        self._globals["global_paragraph_breakpoints"].append(0)
        return self.num_global_tokens - 1

    def _add_long(self, tokens, token_type_id, sentence_id):
        """Adds long tokens and returns the position of the first."""
        begin = self.num_long_tokens
        count = len(tokens)
        self._long["long_token_ids"] += self._tokenizer.convert_tokens_to_ids(tokens)
        self._long["long_token_type_ids"] += [token_type_id] * count
        self._long["long_sentence_ids"] += [sentence_id] * count
        self._long["long_paragraph_ids"] += [self._document] * count
        self._long["long_paragraph_breakpoints"] += [0] * count
        self._long["l2g_linked_ids"] += [-1] * count
        return begin

    def _link(self, number, first, last):
        self._long["l2g_linked_ids"][first : last + 1] = [number] * (last + 1 - first)

    def _break(self):
        self._long["long_paragraph_breakpoints"][-1] = 1
        self._globals["global_paragraph_breakpoints"][-1] = 1


def _padded(features, padding, length):
    return {name: padded(values, length, padding[name]) for name, values in features.items()}


# From an example to its features.


@dataclasses.dataclass(frozen=True)
class ConvertedExample:
    """A converted example.

    Attributes:
        features: dict of str to list of int, float or str.
        num_long_tokens, num_global_tokens: int. Without padding.
        num_sentences_left_out: int. Number of sentences without room.
        num_mentions: int. Number of candidate mentions found in the documents.
    """

    features: dict
    num_long_tokens: int
    num_global_tokens: int
    num_sentences_left_out: int
    num_mentions: int


def make_features(example, config, tokenizer):
    """Converts an example.

    Args:
        example: a `WikiHopExample`.
        config: a `WikiHopInputConfig`.
        tokenizer: an `etcmodel.text.tokenization.FullTokenizer`.
    Returns:
        A `ConvertedExample`. Its features (L long tokens, G global tokens):
            example_id, query: one str. candidates: str, one a candidate.
            ground_truth_answer: one str. It and `label_id` are left out without an answer.
            label_id: one float, the candidate that is the answer, and its global token.
            is_real_example: one int, 1.
            long_token_ids, long_token_type_ids: int [L]. 0 is padding.
            long_sentence_ids: int [L]. The global token of each long token's candidate, query token
                or sentence; -1 for padding.
            long_paragraph_ids: int [L]. The global token of the document; -1 outside of them.
            l2g_linked_ids: int [L]. The global token of the candidate that is mentioned; or -1.
            long_paragraph_breakpoints, global_paragraph_breakpoints: int [L], [G]. 1 at the last
                token of each candidate, of the query and of each document.
            global_token_ids, global_token_type_ids: int [G]. 0 is padding.

    Raises:
        ValueError: naming the example, if the answer is no candidate or missing in training, a
            candidate or the query has no tokens, or it does not fit even without sentences.
    """
    split_sentences = sentence_splitting.sentence_splitter(config.sentence_splitter)
    candidates = example.normalized_candidates
    find_mentions = mention_finder(
        candidates, tokenizer, release_compatible=config.release_compatible
    )
    layout = InputLayout(config, tokenizer, example.example_id)
    for candidate in candidates:
        layout.add_candidate(candidate)
    layout.add_query(example.query)
    sentences = [split_sentences(document) for document in _ordered_documents(example, config)]
    tokens = [[tokenizer.tokenize(text) for text in document] for document in sentences]
    kept = truncate_documents(
        tokens,
        max_num_sentences=layout.max_num_sentences(len(sentences)),
        max_num_tokens=layout.num_long_tokens_left(),
    )
    num_mentions = 0
    for texts, texts_tokens, num_kept in zip(sentences, tokens, kept, strict=True):
        layout.add_document()
        for text, text_tokens in zip(texts[:num_kept], texts_tokens, strict=False):
            mentions = find_mentions(text, text_tokens)
            layout.add_sentence(text_tokens, mentions)
            num_mentions += len(mentions)
        layout.end_document()
    return ConvertedExample(
        features={**_texts_and_label(example, config), **layout.features()},
        num_long_tokens=layout.num_long_tokens,
        num_global_tokens=layout.num_global_tokens,
        num_sentences_left_out=sum(map(len, sentences)) - sum(kept),
        num_mentions=num_mentions,
    )


def make_marked_features(example, config, tokenizer):
    """Converts an example with `candidates_as="marks"`.

    Args: as for `make_features`.
    Returns:
        `marks.ChunkedExample`. Its features are those of `marks.make_features`, and the texts and
        the label of `make_features`.
    Raises:
        ValueError: as of these two.
    """
    documents = _ordered_documents(example, config)
    converted = marks.make_features(example, documents, config, tokenizer)
    features = {**_texts_and_label(example, config), **converted.features}
    return converted._replace(features=features)


def _ordered_documents(example, config):
    """The documents, in an order that depends only on the seed and the example."""
    documents = list(example.documents)
    if config.shuffle_docs_within_example:
        random.Random(f"{config.random_seed} {example.example_id}").shuffle(documents)
    return documents


def _texts_and_label(example, config):
    """The features that belong to neither input."""
    compatible = config.release_compatible
    features = {
        "example_id": [example.example_id],
        "query": [example.query],
        "candidates": list(example.normalized_candidates if compatible else example.candidates),
        "is_real_example": [1],
    }
    if config.is_training or example.answer is not None:
        features["label_id"] = [float(example.answer_index(release_compatible=compatible))]
        answer = example.answer.lower() if compatible else example.answer
        features["ground_truth_answer"] = [answer]
    return features


# WikiHop's converter: what a preprocessing worker does with one raw example.


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `WikiHopInputConfig`."""

    task = "wikihop"
    input_class = WikiHopInputConfig
    read = staticmethod(raw_files.read_json_values)

    def input_config(self, tokenizer):
        config = super().input_config(tokenizer)
        config.check_tokenizer(tokenizer)
        return config

    def convert(self, raw, config, tokenizer):
        example = examples.parse_example(raw, config.is_training)
        return config.form.convert(example, config, tokenizer)
