"""Small vocabularies and models for graphs that read text."""

from etcmodel.text.processor import EtcProcessor
from tests.models import etcs

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
PIECES = (*SPECIAL, "a", "##a", "b", "##b", "c", "##c", "d", ".", "!", "?")


def processor(folder, **settings):
    """An `EtcProcessor` of words of the letters a, b and c."""
    path = folder / "vocab.txt"
    path.write_text("\n".join(PIECES), encoding="utf-8")
    return EtcProcessor(str(path), **settings)


def model(head, relation_names=(), num_layers=1, **settings):
    """A tiny model with random weights."""
    config = etcs.config(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=num_layers,
        local_radius=4,
        intermediate_size=32,
        relative_pos_max_distance=3,
        relative_vocab_size=16,
        initializer_range=0.5,
    )
    return head(config, relation_names=relation_names, **settings)


def examples_of(questions, documents):
    """Examples of questions, and of rows of documents with empty strings behind."""
    return [
        {"question": question, "documents": row if row[-1] else row[:-1] if row[0] else []}
        for question, row in zip(questions, documents, strict=True)
    ]


def spans_of(encoding, begin, end):
    """The score of each span of a window, above that of its first token: the definition."""
    begin, end = begin - begin[:, :1], end - end[:, :1]
    for first in range(len(encoding.token_ids)):
        for last in range(first, min(first + 30, len(encoding.token_ids))):
            span = encoding.char_span(first, last)
            if span and span[0] > 0:  # Not of the question.
                yield float(begin[encoding.row, first] + end[encoding.row, last])
