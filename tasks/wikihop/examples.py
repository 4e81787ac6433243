"""From typed WikiHop examples to features, in plain Python.

Long input: the candidates, the query, the documents' sentences. Global input: a token for each
candidate, for each token of the query, for each document and each of its sentences (Ainslie et al.
2020, appendix C, "WikiHop").

Differences from the release (`release_compatible=True` reproduces it):
- Candidates' mentions: see `mentions`.
- The answer is stripped like the candidates (there: one with white space at its ends is an error).
- Sentences are also dropped to fit the global input (there: an error).
- A query without tokens is an error.
- `candidates` and `ground_truth_answer` are spelled as in the file (there: normalized).
"""

import dataclasses
import random

from etcmodel.text import sentence_splitting

from .config import WikiHopInputConfig
from .layout import InputLayout
from .mentions import mention_finder
from .raw_data import WikiHopExample, parse_example, read_examples
from .truncation import truncate_documents

__all__ = [
    "ConvertedExample",
    "WikiHopExample",
    "WikiHopInputConfig",
    "make_features",
    "parse_example",
    "read_examples",
]


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


def make_features(example, config, tokenizer, split_sentences=None):
    """Converts an example.

    Args:
        example: a `WikiHopExample`.
        config: a `WikiHopInputConfig`.
        tokenizer: an `etcmodel.text.tokenization.FullTokenizer`.
        split_sentences: function from a str to the list of its sentences. None: the config's.
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
    split_sentences = split_sentences or sentence_splitting.sentence_splitter(
        config.sentence_splitter
    )
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
