"""Which sentences are dropped until the documents fit."""

from hypothesis import given
from hypothesis import strategies as st

from etcmodel.tasks.wikihop.features import truncate_documents

DOCUMENTS = st.lists(
    st.lists(st.lists(st.just("t"), max_size=4), max_size=5), min_size=0, max_size=5
)


def slowly(documents, max_num_sentences, max_num_tokens):
    """The rule, word for word: a queue, in which a document that was cut goes to the end."""
    kept = [len(document) for document in documents]
    queue = list(range(len(documents)))

    def is_too_much():
        tokens = [t for d, n in zip(documents, kept, strict=True) for s in d[:n] for t in s]
        return sum(kept) > max_num_sentences or len(tokens) > max_num_tokens

    while sum(kept) and is_too_much():
        longest = next(i for i in queue if kept[i] == max(kept))
        kept[longest] -= 1
        queue.remove(longest)
        queue.append(longest)
    return kept


@given(DOCUMENTS, st.integers(0, 12), st.integers(0, 30))
def test_matches_the_rule(documents, max_num_sentences, max_num_tokens):
    kept = truncate_documents(
        documents, max_num_sentences=max_num_sentences, max_num_tokens=max_num_tokens
    )
    assert kept == slowly(documents, max_num_sentences, max_num_tokens)


def test_the_document_with_most_sentences_is_cut_first():
    documents = [[["a"]] * 2, [["b"]] * 4, [["c"]] * 3]
    assert truncate_documents(documents, max_num_sentences=7, max_num_tokens=99) == [2, 3, 2]
    assert truncate_documents(documents, max_num_sentences=99, max_num_tokens=6) == [2, 2, 2]
    assert truncate_documents(documents, max_num_sentences=99, max_num_tokens=99) == [2, 4, 3]
