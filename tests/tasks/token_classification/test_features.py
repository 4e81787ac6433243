"""The token that stands for each word, in every window, and what becomes of the rest."""

import itertools
import json

import hypothesis
import hypothesis.strategies as st
import numpy as np

from etcmodel.tasks.token_classification import examples, features
from etcmodel.text import vocabulary_files
from tests import vocabularies
from tests.reference import cases
from tests.tasks.token_classification import small

BYTES = cases.topic_folder("longformer") / "tokenizer" / "vocab.json"

WORDS = st.lists(
    st.lists(st.sampled_from([*small.NAMES, "anna", "ann's", "x", "lives.", "in"]), min_size=1),
    min_size=1,
    max_size=4,
)


tokenizer = vocabularies.fixture(small.VOCAB)


def tagged(words):
    """The words with tags in turn."""
    tags = itertools.cycle(small.LABELS)
    return examples.TaggedText("e", tuple(map(tuple, words)), tuple(
        tuple(next(tags) for _ in sentence) for sentence in words
    ))  # fmt: skip


def twin(example, tokenizer):
    """(token id, number of the word that it is the first of) of all tokens, word by word."""
    number = itertools.count()
    for sentence in example.words:
        for word in sentence:
            pieces = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word))
            of_word = next(number)
            yield from zip(pieces, [of_word] + [-1] * (len(pieces) - 1), strict=True)


@hypothesis.given(WORDS)
@hypothesis.settings(max_examples=60)
def test_the_first_token_of_each_word_has_its_tag(tokenizer, words):
    example, config = tagged(words), small.input_config(long_seq_length=256, global_seq_length=16)
    (found,), cut = features.make_features(example, config, config.make_processor(tokenizer))
    wanted = [(2, -1), *twin(example, tokenizer), (3, -1)]
    pairs = list(zip(found["token_ids"], found["word_ids"], strict=True))
    assert pairs[: len(wanted)] == wanted and set(pairs[len(wanted) :]) <= {(0, -1)}
    tags = list(itertools.chain(*example.tags))
    assert found["labels"] == [
        -1 if word < 0 else small.LABELS.index(tags[word]) for word in found["word_ids"]
    ]
    assert json.loads(found["words"][0]) == words and not cut


@hypothesis.given(WORDS, st.integers(0, 4))
@hypothesis.settings(max_examples=40)
def test_windows_together_have_every_word(tokenizer, words, stride):
    example = tagged(words)
    config = small.input_config(long_seq_length=10, stride=stride)
    windows, cut = features.make_features(example, config, config.make_processor(tokenizer))
    count = sum(map(len, words))
    assert [bool(window["words"][0]) for window in windows] == [True, *[False] * (len(windows) - 1)]
    found = np.concatenate([window["word_ids"] for window in windows])
    assert {*found[found >= 0]} == {*range(count)} and not cut
    # The token of a word is the same in each window.
    whole = [pair for pair in twin(example, tokenizer) if pair[1] >= 0]
    for window in windows:
        for pair in zip(window["token_ids"], window["word_ids"], strict=True):
            assert pair[1] < 0 or pair == whole[pair[1]]


def test_what_does_not_fit_is_cut(tokenizer):
    config = small.input_config(long_seq_length=6)
    example = tagged([["ann", "bob", "rio", "ada", "in", "now"]])
    (only,), cut = features.make_features(example, config, config.make_processor(tokenizer))
    assert only["word_ids"] == [-1, 0, 1, 2, 3, -1] and cut.num_tokens == 2


def test_byte_level_tokens_begin_with_the_space_before_their_word():
    tokenizer = vocabulary_files.open_tokenizer(str(BYTES), None)
    config = small.input_config()
    example = tagged([["The", "miller's", "wife"], ["Müller", "rains", "!"]])
    (found,), _ = features.make_features(example, config, config.make_processor(tokenizer))
    ids = [found["token_ids"][found["word_ids"].index(x)] for x in range(6)]
    of_word = iter(range(6))
    for sentence in example.words:
        whole = tokenizer.tokenize(" ".join(sentence))
        for place, word in enumerate(sentence):
            pieces = tokenizer.tokenize(f" {word}" if place else word)
            begin = next(piece for piece in pieces if piece != "Ġ")  # The space alone.
            assert ids[next(of_word)] == tokenizer.vocab[begin] and begin in whole


def test_an_unknown_tag_is_not_learned_and_counted(tokenizer):
    config = small.input_config(labels=("O", "B-PER"))
    example = examples.TaggedText("e", ("ann", "rio", "."), ("B-PER", "B-LOC", "O"))
    (found,), _ = features.make_features(example, config, config.make_processor(tokenizer))
    assert found["labels"][:5] == [-1, 1, -1, 0, -1] and "B-LOC" in found["tags"][0]
    factory = features.ConverterFactory(
        vocab_file=tokenizer.source_file, spm_model_file="", do_lower_case=True, fields={}
    )
    row = {"id": "e", "fields": {"words": ["ann", "rio"], "tags": ["B-PER", "B-LOC"]}}
    converted = factory.convert(row, config, config.make_processor(tokenizer))
    assert converted.counts["words_with_unknown_tags"] == 1
