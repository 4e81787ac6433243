"""Lays out the tokens of one HotpotQA example in the long and the global input."""

from etcmodel.preprocessing.padding import padded

from . import edges

__all__ = ["InputLayout"]

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
            self._pieces.append(edges.question_piece(tokenized.tokens[:num_added], 1))
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
            piece = edges.text_piece(tokenized.tokens, sentence_id, self._paragraph[1], is_title)
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
        """All features of the example: see `examples.make_features`."""
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
        """The features of the edges: see `examples.make_features`."""
        room = self._config.num_word_edges
        if not room:
            return {}
        features = {}
        for name, found in (
            ("same_word_edges", edges.same_word_edges(self._pieces)),
            ("title_edges", edges.title_edges(self._pieces)),
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
