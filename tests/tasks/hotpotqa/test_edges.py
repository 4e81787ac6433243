"""Edges of equal words and of titles, against a slow twin on raw words."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import etcmodel
from etcmodel.tasks.hotpotqa import examples
from etcmodel.tasks.hotpotqa import features as hotpotqa_features
from etcmodel.tasks.hotpotqa.config import HotpotQAInputConfig
from tests import page, vocabularies
from tests.checkpoints import pretrained
from tests.tasks.hotpotqa.raw_examples import raw_example

WORDS = ["red", "rose", "song", "blue", "green"]
VOCABULARY = [
    *("[PAD]", "[unused0]", "[unused1]", "[unused2]", "[unused3]", "[unused4]"),
    *("[UNK]", "[CLS]", "?", ".", "(", ")", "##s", *WORDS),
]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
paragraphs = st.lists(
    st.tuples(texts, st.lists(texts, min_size=1, max_size=2)), min_size=1, max_size=5
)


tokenizer = vocabularies.fixture(VOCABULARY)


def features_of(tokenizer, question, context, num_word_edges=200):
    config = HotpotQAInputConfig.for_tokenizer(
        tokenizer,
        long_seq_length=None,
        global_seq_length=None,
        is_training=False,
        num_word_edges=num_word_edges,
    )
    raw = raw_example(question=question, context=context)
    return hotpotqa_features.make_features(examples.parse_example(raw), config, tokenizer)


def pairs(features, name):
    """Set of the pairs of a feature, which holds each once and pads with -1."""
    firsts, seconds = features[name][::2], features[name][1::2]
    found = [pair for pair in zip(firsts, seconds, strict=True) if pair != (-1, -1)]
    assert len(set(found)) == len(found) and all(min(pair) >= 0 for pair in found)
    return set(found)


def slow_edges(question, context):
    """(edges of equal words, edges of titles), where each word is one token."""
    tokens = itertools.count(1 + len(question))
    own = []  # (global token, paragraph's token, words, whether it is a title).
    for title, sentences in context:
        paragraph = next(tokens)
        own += [
            (next(tokens), paragraph, words, number == 0)
            for number, words in enumerate([title, *sentences])
        ]
    same, titles = set(), set()
    for place, word in enumerate(question, 1):
        having = {paragraph for _, paragraph, words, _ in own if word in words}
        if len(having) <= max(2, len(context) / 2):
            same |= {(token, place) for token, _, words, _ in own if word in words}
    for _, paragraph, title, is_title in own:
        if is_title:
            size = len(title)
            for token, other, words, _ in own:
                if other != paragraph and any(
                    words[i : i + size] == title for i in range(len(words))
                ):
                    titles.add((token, paragraph))
            for start in range(len(question) - size + 1):
                if question[start : start + size] == title:
                    titles |= {(1 + start + i, paragraph) for i in range(size)}
    return same, titles


class TestEdges:
    @given(question=texts, context=paragraphs)
    def test_both_kinds_are_those_of_a_slow_search(self, tokenizer, question, context):
        raw = [
            [" ".join(title), [" ".join(words) for words in sentences]]
            for title, sentences in context
        ]
        features = features_of(tokenizer, " ".join(question), raw).features
        found = pairs(features, "same_word_edges"), pairs(features, "title_edges")
        assert found == slow_edges(question, context)

    def test_words_count_as_a_whole_in_any_case_and_marks_do_not(self, tokenizer):
        features = features_of(tokenizer, "roses red ?", [["blue", ["Rose ?", "Roses ."]]]).features
        # The tokens of "roses" are 1 and 2; the paragraph's are itself, its title, its sentences.
        assert pairs(features, "same_word_edges") == {(8, 1), (8, 2)}

    def test_titles_count_without_what_is_in_parentheses_at_their_end(self, tokenizer):
        context = [["red rose (song)", ["blue ."]], ["green", ["a red rose .", "rose red ."]]]
        features = features_of(tokenizer, "red rose blue ?", context).features
        assert pairs(features, "title_edges") == {(10, 5), (1, 5), (2, 5)}

    def test_what_has_no_room_is_left_out_and_counted(self, tokenizer):
        context = [["blue", ["red .", "rose ."]]]
        everything = features_of(tokenizer, "red rose ?", context)
        assert len(pairs(everything.features, "same_word_edges")) == 2
        cut = features_of(tokenizer, "red rose ?", context, num_word_edges=1)
        assert pairs(cut.features, "same_word_edges") == {(6, 1)}
        assert cut.num_left_out - everything.num_left_out == 1

    def test_a_question_that_was_cut_leaves_no_room_for_what_it_would_join(self, tokenizer):
        config = HotpotQAInputConfig.for_tokenizer(
            tokenizer,
            long_seq_length=4,
            global_seq_length=9,
            is_training=False,
            num_word_edges=4,
            release_compatible=True,
        )
        raw = raw_example(question="red blue rose song", context=[["rose", ["song ."]]])
        features = hotpotqa_features.make_features(
            examples.parse_example(raw), config, tokenizer
        ).features
        assert features["same_word_edges"] == features["title_edges"] == [-1] * 8

    def test_there_are_none_unless_asked_for(self, tokenizer):
        features = features_of(tokenizer, "red ?", [["blue", ["red ."]]], 0).features
        assert not {"same_word_edges", "title_edges"} & set(features)

    @pytest.mark.parametrize(
        "tokens",
        [["ro", "##se", "Red", "?"], ["▁ro", "se", "▁", "Red", "?"], ["▁rose", "▁Red", "?"]],
    )
    def test_words_of_word_pieces_and_of_sentence_pieces(self, tokens):
        words = hotpotqa_features.text_piece(tokens, 4, 3, is_title=False).words
        assert [word for word, _ in words if word.isalnum()] == ["rose", "red"]


def test_a_bert_is_lifted_as_the_page_tells_and_looks_along_edges_to_begin_with(tmp_path):
    bert, _ = pretrained.bert_folder(tmp_path / "bert")
    page.run_python("hotpotqa.md", "my_bert", tmp_path / "work", bert)
    etc_model = etcmodel.from_pretrained(str(tmp_path / "work" / "start"))
    biases = {v.name: v.numpy() for v in etc_model.weights if "relative_bias_table" in v.name}
    size_per_head = etc_model.config.hidden_size / etc_model.config.num_attention_heads
    assert biases
    for name, bias in biases.items():
        logits = bias[:, 0] / size_per_head**0.5
        np.testing.assert_allclose(logits[26], 2.0, rtol=1e-6)  # Linked tokens.
        expected = [1.0] * 25 + [2.0, 3.0, 3.0, 3.0] if "global_qkv" in name else [0.0] * 29
        np.testing.assert_allclose([*logits[:25], *logits[28:]], expected, rtol=1e-6)
