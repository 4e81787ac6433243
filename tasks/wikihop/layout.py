"""Lays out the tokens of one WikiHop example in the long and the global input."""

from etcmodel.preprocessing.padding import padded

__all__ = ["GLOBAL_PADDING", "LONG_PADDING", "InputLayout"]

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
        """The features of both inputs, padded: see `examples.make_features`.

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
