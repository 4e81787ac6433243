"""A graph makes the features of `EtcProcessor`, to the bit."""

import random

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from etcmodel.serving.text import arrangement as fair_shares
from etcmodel.serving.text import documents, tokenizers
from etcmodel.text import truncation
from tests.serving.text import vocabularies

SETTINGS = {
    "windows": {"max_long_len": 16, "stride": 4},
    "all": {},
    "end": {"max_long_len": 20, "max_global_len": 7},
    "start": {"max_long_len": 20, "max_global_len": 8, "give_way": "start"},
    "blocks": {"max_long_len": 18, "truncation": "blocks"},
    "blocks of the end": {"max_long_len": 18, "truncation": "blocks", "give_way": "start"},
    "longest": {"max_long_len": 20, "max_global_len": 8, "give_way": "longest"},
    "blocks of the longest": {
        "max_long_len": 22,
        "truncation": "blocks",
        "give_way": "longest",
        "separators": False,
    },
    "two separators": {"question_separators": 2, "max_long_len": 18},
    "no separators": {"separators": False, "max_long_len": 18},
    "windows without separators": {"separators": False, "max_long_len": 18, "stride": 5},
    "segments": {"segments": {"sentence": 3, "document": 4}, "max_long_len": 24},
    "segments of questions": {
        "segments": {"question": 2},
        "segment_id": 1,
        "separators": False,
        "special_tokens": False,
    },
    "relations of long tokens": {
        "long_relation_names": ["part_of", "row"],
        "pad_to_multiple_of": 4,
        "max_long_len": 30,
    },
    "windows of blocks": {"max_long_len": 16, "stride": 5, "truncation": "blocks"},
    "few global tokens": {"max_long_len": 18, "max_global_len": 6, "stride": 6},
    "tokens of the question": {"max_long_len": 24, "stride": 3, "question_globals": "tokens"},
    "as the authors' checkpoints": {"global_token_id": 1, "segment_id": 1},
    "one id for the question's tokens": {
        "question_globals": "tokens",
        "global_tokens": {"question": "c"},
        "segment_id": 0,
    },
    "bare": {"whole_token": False, "special_tokens": False, "position_ids": True},
    "padded": {
        "pad_to": "max",
        "max_long_len": 50,
        "max_global_len": 20,
        "pad_to_multiple_of": 8,
        "global_tokens": {"sentence": "b", "question": "c", "whole": "d"},
        "global_segments": {"whole": 3, "question": 1, "sentence": 2},
    },
}
RELATIONS = ["has_part", "part_of", "row", "mentions"]


def random_text(rng, most_words):
    """Words and ends of sentences; maybe nothing."""
    ends = ["", ".", "!", ".  "]
    words = ["".join(rng.choices("abcd", k=rng.randrange(1, 4))) for _ in range(most_words)]
    return " ".join(word + rng.choice(ends) for word in words[: rng.randrange(most_words + 1)])


def padded_rows(rows, padding):
    width = max(map(len, rows))
    return [[*row, *[padding] * (width - len(row))] for row in rows]


def up_to_last(row):
    """What a processor is given: without the padding at the end."""
    return row[: max([index + 1 for index, entry in enumerate(row) if any(entry)], default=0)]


class Graph:
    """Reads as exported models do, op by op: tracing takes longer."""

    def __init__(self, processor):
        self.tokenizer = tokenizers.make_tokenizer(processor.tokenizer)
        self.arrangers = [fair_shares.Arranger(processor, has) for has in (False, True)]
        self.read = {1: self.text, 2: self.documents, 3: self.sentences}

    def __call__(self, questions, strings, rank):
        return self.read[rank](tf.constant(questions), tf.constant(strings))

    def text(self, _, texts):
        found = documents.of_texts(texts)
        return self.arrangers[0](
            documents.read(found, None, tf.size(texts), self.tokenizer, "multilingual")
        )

    def documents(self, questions, strings):
        return self._asked(questions, documents.of_documents(strings))

    def sentences(self, questions, strings):
        return self._asked(questions, documents.of_sentences(strings))

    def _asked(self, questions, texts):
        size, questions = tf.size(questions), documents.decode(questions)
        return self.arrangers[1](
            documents.read(texts, questions, size, self.tokenizer, "multilingual")
        )


def check(rows, batch):
    """The same features, windows and texts of tokens."""
    assert set(rows.features) == set(batch)
    for name, expected in batch.items():
        np.testing.assert_array_equal(rows.features[name], expected, err_msg=name)
    assert rows.examples.numpy().tolist() == [x.example for x in batch.encodings]


@pytest.mark.slow_cases(6)
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", SETTINGS)
def test_features_are_those_of_the_processor(tmp_path, name):
    rng = random.Random(name)
    processor = vocabularies.processor(tmp_path, relation_names=RELATIONS, **SETTINGS[name])
    graph = Graph(processor)
    for _ in range(2):
        size = rng.randrange(1, 4)
        texts = [random_text(rng, 30) for _ in range(size)]
        check(graph(texts, texts, 1), processor(texts))
        questions = [f"{random_text(rng, 2)} a" for _ in range(size)]
        rows = [[random_text(rng, 12) for _ in range(rng.randrange(1, 4))] for _ in range(size)]
        rows = padded_rows(rows, "")
        examples = [
            {"question": question, "documents": up_to_last(row)}
            for question, row in zip(questions, rows, strict=True)
        ]
        check(graph(questions, rows, 2), processor(examples))
        rows = [[[random_text(rng, 4) for _ in range(3)] for _ in range(2)] for _ in range(size)]
        examples = [
            {"question": question, "documents": [{"sentences": x} for x in up_to_last(row)]}
            for question, row in zip(questions, rows, strict=True)
        ]
        check(graph(questions, rows, 3), processor(examples))


def test_bytes_that_are_no_utf8_are_read_as_the_processor_does(tmp_path):
    processor = vocabularies.processor(tmp_path)
    texts = [b"a \xff b", b"a\xe6\x9d b", b"\xed\xa0\x80a. \xc0\x80", b"\xf0\x9f\x98"]
    check(Graph(processor)(texts, texts, 1), processor(texts))


def test_a_question_that_does_not_fit_is_an_error(tmp_path):
    graph = Graph(vocabularies.processor(tmp_path, max_long_len=6))
    with pytest.raises(tf.errors.InvalidArgumentError, match="`question` is too long.*6"):
        graph(["a a a a a a a"], [["b"]], 2)


def test_a_text_that_must_not_be_cut_is_an_error(tmp_path):
    graph = Graph(vocabularies.processor(tmp_path, max_long_len=6, truncation="error"))
    graph(["a"], ["a a a a"], 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="too long and must not be cut"):
        graph(["a"], ["a a a a a"], 1)


@given(
    st.lists(st.lists(st.integers(0, 12), min_size=5, max_size=5), min_size=1, max_size=4),
    st.integers(0, 40),
)
def test_shares_are_those_of_the_processor(sizes, room):
    rooms = [room + number for number in range(len(sizes))]
    found = fair_shares.shares(tf.constant(sizes), tf.constant(rooms)).numpy().tolist()
    assert found == [truncation._shares(*x) for x in zip(sizes, rooms, strict=True)]
