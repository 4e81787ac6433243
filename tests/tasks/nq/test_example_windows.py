"""Windows of long pages of Natural Questions, and which of them are kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tasks.nq import examples, features
from etcmodel.tasks.nq.config import ANSWER_TYPES, NqInputConfig
from tests import vocabularies
from tests.tasks.nq import raw_examples
from tests.tasks.nq.page_windows import answer_of, one_window
from tests.tasks.nq.raw_examples import NO_ANSWER, annotation, raw_example


class TestWindows:
    def test_overlap_and_cover_the_page(self, convert):
        windows = convert(raw_example(), long_seq_length=21).windows
        positions = [[pos for pos in window["token_pos"] if pos >= 0] for window in windows]
        assert positions == [[*range(3, 15)], [*range(11, 22)]]

    @given(st.integers(1, 30), st.integers(13, 60))
    @settings(max_examples=60)
    def test_any_stride_shows_every_token(self, convert, stride, length):
        windows = convert(raw_example(), stride=stride, long_seq_length=length).windows
        shown = {pos for window in windows for pos in window["token_pos"] if pos >= 0}
        assert shown == {*range(3, 22)}
        assert all(len(window["token_ids"]) == length for window in windows)
        assert all(max(window["token_pos"]) >= 0 for window in windows)

    def test_the_release_ends_with_a_window_of_no_page_where_the_stride_is_too_large(self, convert):
        page = {
            "document_text": "it opened in may . </P>",
            "question_text": "when did the",
            "long_answer_candidates": [raw_examples.span(0, 6)],
            "annotations": [],
        }
        sizes = {"long_seq_length": 11, "stride": 9, "question_len": 4, "global_seq_length": 8}
        first, second = convert(raw_example(**page), **sizes).windows
        assert first["token_pos"][5:10] == [*range(5)] and second["token_pos"][5:7] == [5, -1]
        first, second = convert(raw_example(**page), **sizes, release_compatible=True).windows
        assert first["token_pos"][5:10] == [*range(5)]
        assert set(second["token_pos"]) == {-1}
        assert second["sentence_ids"] == [0, 1, 2, 3, *[4] * 7]
        assert second["global_breakpoints"] == [0, 0, 0, 0, 1, 0, 0, 0]
        assert second["global_token_ids"] == [101, 35, 35, 35, 35, 0, 0, 0]
        assert first["sentence_ids"][4:] == [4, *[5] * 5, 6]
        assert np.flatnonzero(first["global_breakpoints"]).tolist() == [6]

    def test_an_answer_outside_the_window_is_labeled_as_the_cls_token(self, convert):
        first, second = convert(raw_example(), long_seq_length=21).windows
        assert answer_of(first)["answer_type"] == ANSWER_TYPES["short"]
        assert set(answer_of(second).values()) == {0}

    def test_yes_and_no_need_the_text_that_says_so(self, convert):
        raw = raw_example(annotations=[annotation(short_answers=(), yes_no="YES")])
        windows = convert(raw, long_seq_length=21).windows
        assert [window["answer_type"] for window in windows] == [[1], [0]]
        released = convert(raw, long_seq_length=21, release_compatible=True).windows
        assert [window["answer_type"] for window in released] == [[1], [1]]

    def test_a_short_answer_beside_yes_shows_it_as_well(self, convert):
        note = annotation((10, 19), ((13, 14),), "YES", candidate_index=1)
        raw = raw_example(annotations=[note])
        sizes = {"long_seq_length": 12, "stride": 3}  # Of the long answer's words a third.
        windows = convert(raw, **sizes).windows
        shown = [{pos for pos in window["token_pos"] if pos >= 0} for window in windows]
        types = [window["answer_type"][0] for window in windows]
        assert types == [int(bool(words & {10, 13, 18})) for words in shown] and 0 in types

    def test_the_long_answer_alone_makes_a_window_an_example_of_a_long_answer(self, convert):
        note = annotation((10, 19), ((16, 17),), candidate_index=1)
        raw = raw_example(annotations=[note])
        first, second = convert(raw, long_seq_length=21).windows
        assert (first["la_start"], first["sa_start"], first["answer_type"]) == ([15], [0], [3])
        assert (second["la_end"], second["answer_type"]) == ([15], [4])
        assert (first["la_global"], second["la_global"]) == ([9], [8])
        released = convert(raw, long_seq_length=21, release_compatible=True).windows
        assert [window["answer_type"] for window in released] == [[0], [4]]
        assert [window["la_global"] for window in released] == [[9], [0]]

    def test_the_padding_token_is_not_attended_to_unless_as_in_the_release(self, convert):
        released = one_window(convert(raw_example(), release_compatible=True))
        assert np.flatnonzero(released["global_breakpoints"]).tolist() == [11]
        assert released["sentence_ids"][27:] == [11] * 13


class TestSampling:
    def test_windows_without_an_answer_are_left_out_at_the_rate(self, convert):
        sizes = {"is_training": True, "long_seq_length": 21}
        assert len(convert(raw_example(), **sizes, include_unknown_rate=1.0).windows) == 2
        converted = convert(raw_example(), **sizes, include_unknown_rate=0.0)
        assert (len(converted.windows), converted.num_unknown) == (1, 1)

    def test_pages_without_an_answer_have_a_rate_of_their_own(self, convert):
        raw = raw_example(annotations=[NO_ANSWER])
        rates = {"is_training": True, "include_unknown_rate": 0.0}
        assert not convert(raw, **rates).windows
        assert convert(raw, **rates, include_unknown_rate_for_unanswerable=1.0).windows
        assert convert(raw, is_training=True, include_unknown_rate=0.25).windows  # Four times it.

    def test_the_share_is_right_and_depends_on_the_seed_alone(self, convert):
        raws = [raw_example(example_id=i, annotations=[NO_ANSWER]) for i in range(400)]

        def kept(seed):
            changes = {"is_training": True, "include_unknown_rate": 0.1, "seed": seed}
            return [bool(convert(raw, **changes).windows) for raw in raws]

        assert 120 < sum(kept(0)) < 200  # Of 400, 0.4 are to be kept.
        assert kept(0) == kept(0) != kept(1)

    def test_everything_is_kept_for_inference(self, convert):
        raw = raw_example(annotations=[NO_ANSWER])
        assert len(convert(raw, long_seq_length=21, include_unknown_rate=0.0).windows) == 2


# Words of one, two and three tokens.
PIECES = {"in": 1, "ins": 2, "inses": 3}


@pytest.fixture(scope="module")
def convert_pieces(tmp_path_factory):
    """As `convert`, with a vocabulary that cuts the words of `PIECES`."""
    pieces = [*raw_examples.HEAD, "in", "##s", "##es"]
    tokenizer = vocabularies.tokenizer(tmp_path_factory.mktemp("vocab"), pieces)
    word_ids = features.make_word_tokenizer(tokenizer)

    def converted(words, note, **changes):
        raw = raw_example(
            document_text=" ".join(words),
            question_text="in",
            long_answer_candidates=[raw_examples.span(0, len(words))],
            annotations=[note],
        )
        config = NqInputConfig.for_tokenizer(
            tokenizer, global_seq_length=16, is_training=False, **changes
        )
        return features.make_windows(examples.parse_example(raw), config, word_ids).windows

    return converted


class TestWordsAcrossTheBorder:
    """CLS, a question of one token and SEP are before the page, SEP is after it."""

    sizes = {"long_seq_length": 8, "stride": 3, "question_len": 1}
    released = {**sizes, "release_compatible": True}

    def test_in_the_release_the_part_in_the_window_is_the_end(self, convert_pieces):
        words = ["in", "in", "inses", "in"]  # in in in|##s ##es in: windows 0-3 and 3-5.
        note = annotation((0, 4), ((1, 3),))
        first, second = convert_pieces(words, note, **self.released)
        assert first["token_pos"][3:7] == [0, 1, 2, 2] and second["token_pos"][3:6] == [2, 2, 3]
        assert (first["sa_start"], first["sa_end"]) == ([4], [6])
        assert (second["sa_start"], second["sa_end"]) == ([0], [4])
        note = annotation((0, 4), ((2, 4),))
        first, second = convert_pieces(words, note, **self.released)
        assert (first["sa_start"], first["sa_end"]) == ([5], [0])
        assert (second["sa_start"], second["sa_end"]) == ([3], [5])

    def test_by_default_an_end_is_a_words_own_first_or_last_token(self, convert_pieces):
        words = ["in", "in", "inses", "in"]
        first, second = convert_pieces(words, annotation((0, 4), ((1, 3),)), **self.sizes)
        assert (first["sa_start"], first["sa_end"]) == ([4], [0])
        assert (second["sa_start"], second["sa_end"]) == ([0], [4])
        first, second = convert_pieces(words, annotation((0, 4), ((2, 4),)), **self.sizes)
        assert (first["sa_start"], first["sa_end"]) == ([5], [0])
        assert (second["sa_start"], second["sa_end"]) == ([0], [5])

    @given(
        st.lists(st.sampled_from(sorted(PIECES)), min_size=1, max_size=8),
        st.tuples(st.integers(0, 7), st.integers(0, 7)),
        st.integers(6, 12),
        st.integers(1, 5),
    )
    @settings(max_examples=150)
    def test_every_window_equals_a_slow_search(self, convert_pieces, words, ends, length, stride):
        start, last = sorted(end % len(words) for end in ends)
        note = annotation((start, last + 1), (), candidate_index=-1)
        sizes = {**self.sizes, "long_seq_length": length, "stride": stride}
        pos = [i for i, word in enumerate(words) for _ in range(PIECES[word])]
        for release_compatible in (False, True):
            windows = convert_pieces(words, note, **sizes, release_compatible=release_compatible)
            step = stride if release_compatible else min(stride, length - 4)
            for number, window in enumerate(windows):
                begin = number * step
                shown = range(begin, min(begin + length - 4, len(pos)))
                firsts = [i for i in shown if pos[i] == start]
                lasts = [i for i in shown if pos[i] == last]
                if not release_compatible:
                    firsts = [i for i in firsts if i == 0 or pos[i - 1] != start]
                    lasts = [i for i in lasts if i + 1 == len(pos) or pos[i + 1] != last]
                expected = (
                    [3 + firsts[0] - begin if firsts else 0],
                    [3 + lasts[-1] - begin if lasts else 0],
                )
                assert (window["la_start"], window["la_end"]) == expected
