"""What WikiHop's features depend on."""

import dataclasses

from etcmodel.models import sentence_splitting

__all__ = ["WikiHopInputConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopInputConfig:
    """Settings of `examples.make_features`.

    The ids are the release's, for word pieces and sentence pieces alike.

    Attributes:
        long_seq_length, global_seq_length: int. Tokens in each input, padding included.
        max_num_sentences: int. Sentences of all documents that are kept.
        sentence_splitter: one of `sentence_splitting.SENTENCE_SPLITTERS`.
        shuffle_docs_within_example: bool. Put the documents in a random order.
        random_seed: int. Of that order, which also depends on the example's id.
        is_training: bool. Refuse an example without an answer.
        release_compatible: bool. Repeat the faults of the authors' release (see the README).
        *_global_token_id: int. Global tokens of candidates, query tokens, documents, sentences.
        *_global_token_type_id: int. Their token types.
        *_token_type_id: int. Token types of the parts of the long input.
    """

    long_seq_length: int = 4096
    global_seq_length: int = 430
    max_num_sentences: int = 200
    sentence_splitter: str = "punkt"
    shuffle_docs_within_example: bool = False
    random_seed: int = 0
    is_training: bool = False
    release_compatible: bool = False
    sentence_global_token_id: int = 1
    query_global_token_id: int = 3
    candidate_global_token_id: int = 4
    document_global_token_id: int = 5
    sentence_global_token_type_id: int = 0
    query_global_token_type_id: int = 5
    candidate_global_token_type_id: int = 6
    document_global_token_type_id: int = 7
    sentence_token_type_id: int = 1
    query_token_type_id: int = 3
    candidate_token_type_id: int = 4

    def __post_init__(self):
        for name in ("long_seq_length", "global_seq_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be positive. Received: {getattr(self, name)}")
        if self.max_num_sentences < 0:
            raise ValueError(
                f"`max_num_sentences` must not be negative. Received: {self.max_num_sentences}"
            )
        if self.sentence_splitter not in sentence_splitting.SENTENCE_SPLITTERS:
            raise ValueError(
                f"`sentence_splitter` must be one of {sentence_splitting.SENTENCE_SPLITTERS}. "
                f"Received: {self.sentence_splitter!r}"
            )

    def check_tokenizer(self, tokenizer):
        """Checks that a tokenizer fits these settings.

        Raises:
            ValueError: names the file and what is wrong with it.
        """
        if not tokenizer.sp_model:
            tokenizer.require_tokens(["[PAD]", "[UNK]"])
            if not tokenizer.basic_tokenizer.do_lower_case:
                raise ValueError(
                    "`do_lower_case` must be true with word pieces: candidates are compared in "
                    "lower case, and would never be found in the documents."
                )
        size = len(tokenizer.vocab)
        for field in dataclasses.fields(self):
            if field.name.endswith("_global_token_id") and getattr(self, field.name) >= size:
                raise ValueError(
                    f"`{field.name}` must be an id of the vocabulary "
                    f"{str(tokenizer.source_file)!r}, which has {size} tokens. "
                    f"Received: {getattr(self, field.name)}"
                )
