"""What HotpotQA's features depend on."""

import dataclasses

from etcmodel.models import vocabulary

__all__ = ["ANSWER_TYPES", "BIO_IDS", "HotpotQAInputConfig"]

ANSWER_TYPES = {"span": 0, "yes": 1, "no": 2}
BIO_IDS = {"begin": 0, "inside": 1, "outside": 2}

# The released SentencePiece vocabulary has no [unusedN] of low id: other ids stand in.
_SENTENCEPIECE_IDS = {
    "cls_token_id": 40,
    "question_global_token_id": 41,
    "paragraph_global_token_id": 43,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQAInputConfig:
    """Settings of `examples.make_features`; the ids are those of BERT's uncased vocabulary.

    Attributes:
        long_seq_length, global_seq_length: int or None. Tokens in each input, padding included; no
            limit and no padding where None.
        is_training: bool. Make labels, and drop examples that cannot be trained on.
        answer_encoding_method: 'span' (first and last token of one answer) or 'bio' (an id of
            `BIO_IDS` for every long token, all answers).
        debug: bool. Add the tokens as text, and what is otherwise only made for inference.
        release_compatible: bool. Repeat the faults of the authors' release (see the README).
        cls_token_id: int. First token of both inputs.
        sentence_global_token_id, question_global_token_id, paragraph_global_token_id: int. Global
            tokens of sentences and titles, of question tokens, of paragraphs.
        *_token_type_id: int. Token types: of all global tokens, of the parts of the long input.
        answer_types_map: dict of 'span', 'yes', 'no' to their ids 0 to 2.
    """

    long_seq_length: int | None = 2048
    global_seq_length: int | None = 256
    is_training: bool = True
    answer_encoding_method: str = "span"
    debug: bool = False
    release_compatible: bool = False
    cls_token_id: int = 101
    sentence_global_token_id: int = 1
    question_global_token_id: int = 3
    paragraph_global_token_id: int = 5
    global_token_type_id: int = 0
    sentence_token_type_id: int = 1
    title_token_type_id: int = 2
    question_token_type_id: int = 3
    answer_types_map: dict = dataclasses.field(default_factory=lambda: dict(ANSWER_TYPES))

    def __post_init__(self):
        for name in ("long_seq_length", "global_seq_length"):
            length = getattr(self, name)
            if length is not None and length < 2:
                raise ValueError(
                    f"`{name}` must leave room for the CLS token and the question. "
                    f"Received: {name}={length}"
                )
        if self.answer_encoding_method not in ("span", "bio"):
            raise ValueError(
                "`answer_encoding_method` must be 'span' or 'bio'. "
                f"Received: {self.answer_encoding_method!r}"
            )
        types = self.answer_types_map
        if set(types) != set(ANSWER_TYPES) or set(types.values()) != set(ANSWER_TYPES.values()):
            raise ValueError(
                f"`answer_types_map` must map 'span', 'yes' and 'no' to 0, 1 and 2. "
                f"Received: {types}"
            )

    @classmethod
    def with_sentencepiece_ids(cls, **fields):
        """The defaults for the released SentencePiece vocabulary, replaced by `fields`."""
        return cls(**{**_SENTENCEPIECE_IDS, **fields})

    @classmethod
    def for_tokenizer(cls, tokenizer, **fields):
        """The defaults for a tokenizer's kind of vocabulary, replaced by `fields`.

        With word pieces the CLS token is the vocabulary's `[CLS]`, wherever it stands.

        Raises:
            ValueError: if the vocabulary lacks a token that the features need.
        """
        if tokenizer.sp_model:
            config = cls.with_sentencepiece_ids(**fields)
        else:
            tokenizer.require_tokens(["[PAD]", "[UNK]", "[CLS]"])
            config = cls(**{"cls_token_id": tokenizer.vocab["[CLS]"], **fields})
        config.check_vocabulary(tokenizer)
        return config

    def check_vocabulary(self, tokenizer):
        """Checks that every id of this config has a token.

        Raises:
            ValueError: names the field, its id, and the vocabulary's file and size.
        """
        vocabulary.check_token_ids(self, tokenizer)
