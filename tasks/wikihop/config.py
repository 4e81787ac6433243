"""The options of WikiHop\'s features."""

import dataclasses

from etcmodel.options import FeatureOptions, Options, changed, option
from etcmodel.text import sentence_splitting

__all__ = ["WikiHopExampleOptions", "WikiHopFeatureOptions", "WikiHopInputConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopFeatureOptions(Options):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(FeatureOptions, "long_seq_length")
    global_seq_length: int = changed(FeatureOptions, "global_seq_length", default=430)
    max_num_sentences: int = option(
        200,
        "Maximum number of sentences to keep from an example's documents.",
        role="features",
        lower_bound=0,
    )
    sentence_splitter: str = option(
        "punkt",
        "How documents are split into sentences: as NLTK does (punkt), or at white space after . ! "
        "or ? (simple).",
        role="features",
        choices=sentence_splitting.SENTENCE_SPLITTERS,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopExampleOptions(WikiHopFeatureOptions):
    """Further options of preprocessing."""

    shuffle_docs_within_example: bool = option(
        False, "Shuffle the documents of each example.", role="features"
    )
    random_seed: int = option(
        0, "Seed of that shuffling, which also depends on the example's id.", role="features"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopInputConfig(WikiHopExampleOptions, FeatureOptions):
    """Settings of `examples.make_features`.

    The ids are those of the release, for both WordPiece and SentencePiece.

    Attributes:
        is_training: bool. Reject examples without an answer.
        *_global_token_id: int. The global tokens of candidates, query tokens, documents and
            sentences.
        *_global_token_type_id: int. Their token types.
        *_token_type_id: int. Token types of the parts of the long input.
    """

    is_training: bool = False
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

    def check_tokenizer(self, tokenizer):
        """Checks that a tokenizer fits these settings.

        Raises:
            ValueError: names the file and its problem.
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
