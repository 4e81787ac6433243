"""From pages to features: the layout, the fixed faults, the errors, a true page."""

import itertools
import json
import pathlib

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from etcmodel.tasks.openkp import config as openkp_config
from etcmodel.tasks.openkp import examples, features, input_validate_and_dedup
from etcmodel.tasks.openkp.config import FLOAT_FEATURES
from etcmodel.text import tokenization
from tests import vocabularies
from tests.tasks.openkp.pages import element, page

ROOT = pathlib.Path(__file__).resolve().parents[3]
REAL_FILE = ROOT.parent / "shared" / "real" / "openkp_1.jsonl"
BERT_VOCAB = ROOT.parent / "shared" / "reference" / "vocab" / "bert_uncased_vocab.txt"

ODD_WORDS = ["", "a", "B", "a\u00a0b", "\t", "\u3000c", "cat"]

PIECES = "[PAD] [g] [UNK] a red rose green bush ##es in the garden con ##cat cat"


tokenizer = vocabularies.fixture(PIECES.split())


@pytest.fixture(scope="module")
def tokenize_word(tokenizer):
    return features.word_tokenizer(tokenizer)


def convert(tokenize_word, raw, **fields):
    fields = {"long_seq_length": 12, "global_seq_length": 4, "url_max_code_points": 24, **fields}
    config = openkp_config.OpenKpInputConfig(**fields)
    return features.make_features(examples.parse_example(raw), config, tokenize_word)


def labels(converted):
    features = converted.features
    columns = zip(features["label_start_idx"], features["label_phrase_len"], strict=True)
    return [label for label in columns if label != (-1, -1)]


class TestAccents:
    """The same words may be written in the normal forms C and D of Unicode."""

    TEXT, PHRASE = "a Rose\u0301 garden", ["ROSÉ", "garden"]

    def test_a_key_phrase_is_found_in_either_form(self, tokenize_word):
        raw = page(self.TEXT, "rosé garden", key_phrases=[self.PHRASE, ["Rose\u0301", "garden"]])
        converted = convert(tokenize_word, raw)
        assert labels(converted) == [(1, 2)] and converted.num_phrases_not_found == 0
        firsts = converted.features["long_word_first_occurrence"]
        assert firsts[:5] == [0, 1, 2, 1, 2] and firsts[12:16] == [0, 1, 2, 1]
        compatible = convert(tokenize_word, raw, release_compatible=True)
        assert sorted(labels(compatible)) == [(1, 2), (3, 2)]

    def test_cleaning_keeps_it(self):
        assert input_validate_and_dedup.is_whole_words(self.TEXT, self.PHRASE) == (
            True,
            ["ROSÉ garden"],
        )
        assert not input_validate_and_dedup.is_whole_words(self.TEXT, ["rose", "garden"])[0]


class TestFeatures:
    def test_layout_of_a_page(self, tokenizer, tokenize_word):
        raw = page("A Red rose", "garden bushes", key_phrases=[["red", "rose"], ["bushes"]])
        converted = convert(tokenize_word, raw, long_seq_length=8)
        features = converted.features
        assert tokenizer.convert_ids_to_tokens(features["long_token_ids"]) == (
            ["a", "red", "rose", "garden", "bush", "##es", "[PAD]", "[PAD]"]
        )
        assert features["long_input_mask"] == [1, 1, 1, 1, 1, 1, 0, 0]
        assert features["long_word_idx"] == [0, 1, 2, 3, 4, 4, 0, 0]
        assert features["long_vdom_idx"] == [0, 0, 0, 1, 1, 1, 0, 0]
        assert features["long_word_input_mask"] == [1, 1, 1, 1, 1, 0, 0, 0]
        assert features["global_token_ids"] == [1, 1, 1, 1]
        assert features["global_input_mask"] == [1, 1, 0, 0]
        assert features["global_font_ids"] == [13, 13, 0, 0]
        assert labels(converted) == [(1, 2), (4, 1)]
        assert "".join(map(chr, features["url_code_points"][:20])) == raw["url"]
        assert features["url_code_points"][20:] == [-1] * 4
        assert (converted.num_long_tokens, converted.num_global_tokens) == (6, 2)

    def test_first_occurrences_ignore_case_and_go_on_in_the_padding(self, tokenize_word):
        raw = page("red rose", "Red Rose red")
        features = convert(tokenize_word, raw, long_seq_length=7, kp_max_length=2).features
        assert features["long_word_first_occurrence"] == (
            [0, 1, 0, 1, 0, 5, 6] + [0, 1, 0, 1, 4, 5, 6]
        )

    def test_fixed_blocks_need_no_vdom_and_have_no_visual_features(self, tokenize_word):
        raw = page("a red rose in the garden", VDOM="nonsense")
        features = convert(tokenize_word, raw, fixed_block_len=4).features
        assert features["long_vdom_idx"][:6] == [0, 0, 0, 0, 1, 1]
        assert features["global_input_mask"] == [1, 1, 0, 0]
        assert not set(FLOAT_FEATURES) & set(features)

    def test_a_page_is_cut_where_the_global_input_is_full(self, tokenize_word):
        raw = page("red rose", "in", "the", "garden", "bush")
        converted = convert(tokenize_word, raw, global_seq_length=3)
        assert sum(converted.features["long_word_input_mask"]) == 4
        assert converted.num_words_left_out == 2

    def test_counts_phrases_that_are_not_in_the_input(self, tokenize_word):
        raw = page("red rose in the garden", key_phrases=[["garden"], ["red"], ["moon"]])
        converted = convert(tokenize_word, raw, long_seq_length=3)
        assert labels(converted) == [(0, 1)]
        assert converted.num_phrases_not_found == 2

    def test_inference_drops_nothing(self, tokenize_word):
        for key_phrases in ([["moon"]], []):
            raw = page("a red rose", key_phrases=key_phrases)
            assert labels(convert(tokenize_word, raw, is_training=False)) == []

    def test_training_drops_a_page_without_a_phrase_in_the_input(self, tokenize_word):
        converted = convert(tokenize_word, page("a red rose", key_phrases=[["moon"]]))
        assert converted.features is None
        assert converted.drop_reason == "no_key_phrase_in_input"


class TestWords:
    """A blank separates words and nothing else does; empty words count."""

    def test_tokens_masks_and_labels_of_a_page_with_odd_spaces(self, tokenizer, tokenize_word):
        raw = page(
            "Red\u00a0rose ", "garden", key_phrases=[["red\u00a0rose", "", "garden"], ["rose"]]
        )
        for compatible in (False, True):
            fields = {"fixed_block_len": 2} if compatible else {}
            converted = convert(tokenize_word, raw, release_compatible=compatible, **fields)
            features = converted.features
            assert tokenizer.convert_ids_to_tokens(features["long_token_ids"][:4]) == (
                ["red", "rose", "garden", "[PAD]"]
            )
            assert features["long_word_idx"][:4] == [0, 0, 2, 0]
            assert features["long_vdom_idx"][:4] == [0, 0, 1, 0]
            assert features["long_word_input_mask"][:4] == [1, 1, 1, 0]
            # The release finds letters within words, in blocks.
            assert labels(converted) == ([(0, 3), (0, 1)] if compatible else [(0, 3)])

    def test_words_without_tokens_take_no_room_of_the_tokens(self, tokenize_word):
        raw = page("a    rose in", key_phrases=[["rose"]])
        fields = {"long_seq_length": 6, "global_seq_length": 1, "fixed_block_len": 2}
        features = convert(tokenize_word, raw, **fields).features
        assert features["long_word_idx"] == [0, 4, 0, 0, 0, 0]
        assert features["long_word_input_mask"] == [1, 1, 1, 1, 1, 0]
        features = convert(tokenize_word, raw, long_seq_length=5).features
        assert features["long_word_input_mask"] == [1, 1, 1, 1, 1]

    def test_an_element_of_an_empty_word_has_its_global_token(self, tokenize_word):
        elements = [element("a", 0), {**element("", 1), "end_idx": 2}, element("rose", 2)]
        raw = page("a  rose", VDOM=json.dumps(elements), key_phrases=[["rose"]])
        features = convert(tokenize_word, raw).features
        assert features["global_input_mask"] == [1, 1, 1, 0]
        assert features["long_vdom_idx"][:2] == [0, 2]
        assert features["long_word_idx"][:2] == [0, 2]

    @given(words=st.lists(st.sampled_from(ODD_WORDS), min_size=1, max_size=9), data=st.data())
    @settings(max_examples=200)
    def test_matches_slow_reference(self, words, data):
        assume("".join(words).strip())
        start = data.draw(st.integers(0, len(words) - 1))
        label = words[start : start + data.draw(st.integers(1, 3))]
        assume(" ".join(label))
        cuts = sorted({0, len(words), *data.draw(st.sets(st.integers(1, len(words))))})
        texts = [" ".join(words[a:b]) for a, b in itertools.pairwise(cuts)]
        elements = [
            {**element("", begin), "text": text, "end_idx": end}
            for text, (begin, end) in zip(texts, itertools.pairwise(cuts), strict=True)
        ]
        raw = page(*texts, VDOM=json.dumps(elements), key_phrases=[label])

        def tokenize_word(word):  # A token for each letter, none for white space.
            return [ord(char) for char in word if not char.isspace()]

        features = convert(
            tokenize_word, raw, long_seq_length=40, global_seq_length=10, kp_max_length=3
        ).features
        tokens = [(word, i) for i, word in enumerate(words) for _ in tokenize_word(word)]
        assert features["long_word_idx"][: len(tokens)] == [i for _, i in tokens]
        assert features["long_word_input_mask"] == [1] * len(words) + [0] * (40 - len(words))
        assert sum(features["global_input_mask"]) == len(texts)
        lowered = [word.lower() for word in words]
        size = len(label)
        first = next(
            i for i in range(len(words)) if lowered[i : i + size] == [w.lower() for w in label]
        )
        assert features["label_start_idx"][0] == first
        assert features["label_phrase_len"][0] == size


BLOCKS = {"fixed_block_len": 4}
MANY = [["moon"], ["garden"], ["red"], ["rose"], ["a"]]
# The page, options, and labels or why it is dropped: here, and in the release.
FAULTS = {
    "a phrase may cross elements": (
        page("a red", "rose"),
        {},
        ([(1, 2)], "no_key_phrase_in_input"),
    ),
    "blocks find whole words": (
        page("concat cat", key_phrases=[["cat"]]),
        BLOCKS,
        ([(1, 1)], [(0, 1)]),
    ),
    "labels of blocks end at the last token": (
        page("red rose ", key_phrases=[["rose", ""], ["red"]]),
        BLOCKS,
        ([(1, 2), (0, 1)], [(0, 1)]),
    ),
    "of many key phrases three are kept": (
        page("a red rose garden", key_phrases=MANY),
        {},
        ([(3, 1), (1, 1), (2, 1)], "too_many_key_phrases"),
    ),
    "no label is too long": (
        page("a red rose", key_phrases=[["a", "red", "rose"], ["a"]]),
        {"kp_max_length": 2},
        ([(0, 1)], [(0, 1), (0, 3)]),
    ),
    **{
        f"phrases that are not there, {fields}": (
            page("a red rose", key_phrases=[["moon"]]),
            fields,
            ("no_key_phrase_in_input",) * 2,
        )
        for fields in ({}, {"fixed_block_len": 2})
    },
}


class TestFixedFaults:
    """Each with the release's behavior beside it."""

    @pytest.mark.parametrize("name", FAULTS)
    def test_labels_or_why_the_page_is_dropped(self, tokenize_word, name):
        raw, fields, expected = FAULTS[name]
        for compatible, found in zip((False, True), expected, strict=True):
            converted = convert(tokenize_word, raw, release_compatible=compatible, **fields)
            assert (converted.drop_reason or labels(converted)) == found
            if raw["text"].endswith(" "):
                assert converted.features["long_word_input_mask"][:4] == [1, 1, 1, 0]

    @pytest.mark.parametrize(("compatible", "place"), [(False, 0), (True, 3)])
    def test_occurrences_may_cross_elements(self, tokenize_word, compatible, place):
        raw = page("red", "rose in red rose", key_phrases=[["rose"]])
        features = convert(
            tokenize_word, raw, kp_max_length=2, release_compatible=compatible
        ).features
        assert features["long_word_first_occurrence"][12 + 3] == place

    @pytest.mark.parametrize("fields", [{}, {"fixed_block_len": 2}])
    @pytest.mark.parametrize("num_words", [5, 6])
    def test_more_words_than_long_tokens_are_a_parse_failure_of_the_release(
        self, tokenize_word, num_words, fields
    ):
        raw = page("red" + " " * (num_words - 1) + "rose", key_phrases=[["red"]])
        fields = {"long_seq_length": 5, **fields}
        assert sum(convert(tokenize_word, raw, **fields).features["long_word_input_mask"]) == 5
        if num_words > 5:
            with pytest.raises(ValueError, match="6 words fit into the input, more than long_seq"):
                convert(tokenize_word, raw, release_compatible=True, **fields)
        else:
            convert(tokenize_word, raw, release_compatible=True, **fields)

    @pytest.mark.parametrize(("compatible", "num_places"), [(False, 60), (True, 0)])
    def test_fixed_blocks_have_first_occurrences(self, tokenize_word, compatible, num_places):
        raw = page("a red rose")
        features = convert(
            tokenize_word, raw, fixed_block_len=4, release_compatible=compatible
        ).features
        assert len(features["long_word_first_occurrence"]) == num_places

    @pytest.mark.parametrize(("compatible", "num_words"), [(False, 5), (True, 2)])
    def test_an_element_is_cut_where_the_long_input_is_full(
        self, tokenize_word, compatible, num_words
    ):
        raw = page("red rose", "in the garden a bush")
        converted = convert(tokenize_word, raw, long_seq_length=5, release_compatible=compatible)
        assert sum(converted.features["long_word_input_mask"]) == num_words

    @pytest.mark.parametrize("block_len", [None, 2])
    def test_no_key_phrases_drop_a_page_in_the_release_unless_blocks_are_fixed(
        self, tokenize_word, block_len
    ):
        raw = page("a red rose", key_phrases=[])
        converted = convert(tokenize_word, raw, fixed_block_len=block_len, release_compatible=True)
        if block_len:
            assert labels(converted) == []
        else:
            assert converted.drop_reason == "no_key_phrase_in_input"
        with pytest.raises(ValueError, match="has no key phrases to train on"):
            convert(tokenize_word, raw, fixed_block_len=block_len)

    @pytest.mark.parametrize("compatible", [False, True])
    def test_training_needs_labels(self, tokenize_word, compatible):
        raw = page("a red rose", KeyPhrases=None)
        if compatible:
            assert labels(convert(tokenize_word, raw, release_compatible=True)) == []
        else:
            with pytest.raises(ValueError, match="has no key phrases .*--is_training=false"):
                convert(tokenize_word, raw)


class TestErrors:
    def test_a_malformed_vdom_names_the_page(self, tokenize_word):
        with pytest.raises(ValueError, match="page 'http://example.org/1': field `VDOM` is malfo"):
            convert(tokenize_word, page("a red rose", VDOM="[{"))

    def test_a_url_that_does_not_fit(self, tokenize_word):
        with pytest.raises(ValueError, match="has 20 characters, more than url_max_code_points=9"):
            convert(tokenize_word, page("a red rose"), url_max_code_points=9)


@pytest.mark.skipif(not REAL_FILE.exists(), reason="the true page is not here")
def test_a_true_page():
    (example,) = examples.read_examples(REAL_FILE)
    tokenize_word = features.word_tokenizer(tokenization.FullTokenizer(str(BERT_VOCAB)))
    config = openkp_config.OpenKpInputConfig()
    converted = features.make_features(example, config, tokenize_word)
    found = [" ".join(example.words[start : start + length]) for start, length in labels(converted)]
    assert found == ["Doctor Appointment", "Web Application"]
    assert converted.num_words_left_out == 0
    assert converted.num_global_tokens == 69
