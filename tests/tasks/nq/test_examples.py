"""From a page to windows: what each feature means, and what the release did differently."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.models import tokenization
from etcmodel.tasks.nq import examples
from etcmodel.tasks.nq.config import ANSWER_TYPES, NqInputConfig
from tests.tasks.nq import raw_examples
from tests.tasks.nq.raw_examples import NO_ANSWER, annotation, raw_example

SETTINGS = {
    "long_seq_length": 40,
    "global_seq_length": 16,
    "stride": 8,
    "question_len": 8,
    "is_training": False,
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(raw_examples.vocabulary()) + "\n")
    return tokenization.FullTokenizer(str(path))


@pytest.fixture(scope="module")
def convert(tokenizer):
    """A function of a raw example and settings to a `ConvertedPage`."""
    word_ids = examples.make_word_tokenizer(tokenizer)

    def converted(raw, **changes):
        config = NqInputConfig.for_tokenizer(tokenizer, **{**SETTINGS, **changes})
        return examples.make_windows(examples.parse_example(raw), config, word_ids)

    return converted


def one_window(converted):
    (window,) = converted.windows
    return window


def answer_of(window):
    return {
        name: window[name][0]
        for name in ("la_start", "la_end", "sa_start", "sa_end", "answer_type", "la_global")
    }


def tokens_of(window, tokenizer):
    return tokenizer.convert_ids_to_tokens([i for i in window["token_ids"] if i])


class TestOneWindow:
    def test_holds_cls_question_and_the_words_of_top_level_candidates(self, convert, tokenizer):
        window = one_window(convert(raw_example()))
        page = "html it opened in may . /html html html red roof /html html blue /html /html"
        expected = f"[CLS] {raw_examples.QUESTION} [SEP] {page} html old /html [SEP]"
        tags = {"[unused97]": "html", "[unused98]": "/html"}
        tokens = [tags.get(token, token) for token in tokens_of(window, tokenizer)]
        assert tokens == expected.split()
        assert [pos for pos in window["token_pos"] if pos >= 0] == [*range(3, 22)]

    def test_links_each_token_to_its_global_token(self, convert):
        window = one_window(convert(raw_example()))
        # CLS, six question tokens, SEP; three candidates; the last SEP and padding are unlinked.
        expected = [*range(8), *[8] * 7, *[9] * 9, *[10] * 3] + [-1] * 13
        assert window["sentence_ids"] == expected
        assert window["global_token_ids"] == [101, *[35] * 7, *[1] * 3, *[0] * 5]
        assert window["global_candidate_ids"][8:11] == [0, 1, 4]
        assert np.flatnonzero(window["global_breakpoints"]).tolist() == [10]
        assert np.flatnonzero(window["long_breakpoints"]).tolist() == [27]

    def test_labels_the_ends_of_both_answers(self, convert):
        window = one_window(convert(raw_example()))
        assert answer_of(window) == {
            "la_start": 8,
            "la_end": 14,
            "sa_start": 11,
            "sa_end": 12,
            "answer_type": ANSWER_TYPES["short"],
            "la_global": 8,
        }

    def test_short_answers_become_one_span_from_the_first_to_the_last(self, convert):
        note = annotation(short_answers=((7, 8), (5, 6)))
        window = one_window(convert(raw_example(annotations=[note])))
        assert (window["sa_start"], window["sa_end"]) == ([10], [12])

    def test_a_nested_answer_links_to_the_candidate_around_it(self, convert):
        note = annotation((15, 18), ((16, 17),), candidate_index=3)
        window = one_window(convert(raw_example(annotations=[note])))
        assert answer_of(window)["la_global"] == 9

    @pytest.mark.parametrize(
        ("note", "expected"),
        [
            (annotation(short_answers=(), yes_no="YES"), "yes"),
            (annotation(short_answers=(), yes_no="NO"), "no"),
            (annotation(short_answers=()), "long"),
            (NO_ANSWER, "none"),
        ],
    )
    def test_answer_types(self, convert, note, expected):
        window = one_window(convert(raw_example(annotations=[note])))
        assert window["answer_type"] == [ANSWER_TYPES[expected]]

    @pytest.mark.parametrize("release_compatible", [False, True])
    @pytest.mark.parametrize("yes_no", ["yes", "no"])
    def test_yes_and_no_come_before_short_answers_which_stay_the_short_span(
        self, convert, yes_no, release_compatible
    ):
        note = annotation(short_answers=((6, 8),), yes_no=yes_no.upper())
        raw = raw_example(annotations=[note])
        answer = answer_of(one_window(convert(raw, release_compatible=release_compatible)))
        assert answer["answer_type"] == ANSWER_TYPES[yes_no]
        assert (answer["sa_start"], answer["sa_end"]) == (11, 12)

    @pytest.mark.parametrize(
        ("short_answers", "expected"),
        [
            (((7, 9), (5, 6)), (12, 10)),
            (((5, 6), (7, 9)), (10, 13)),
            (((6, 7), (4, 5), (7, 8)), (11, 12)),
            (((4, 9), (5, 6)), (9, 10)),
        ],
    )
    def test_in_the_release_the_short_span_goes_from_the_first_to_the_last_listed(
        self, convert, short_answers, expected
    ):
        raw = raw_example(annotations=[annotation(short_answers=short_answers)])
        released = one_window(convert(raw, release_compatible=True))
        assert (released["sa_start"][0], released["sa_end"][0]) == expected
        starts, ends = zip(*short_answers, strict=True)
        window = one_window(convert(raw))  # Word 3 is the token 8.
        assert (window["sa_start"][0], window["sa_end"][0]) == (min(starts) + 5, max(ends) + 4)

    def test_candidates_may_come_in_any_order(self, convert):
        raw = raw_example()
        order = [4, 1, 3, 0, 2]
        boxes = raw["long_answer_candidates"]
        note = annotation(candidate_index=order.index(0))
        shuffled = {"long_answer_candidates": [boxes[i] for i in order], "annotations": [note]}
        window, expected = one_window(convert({**raw, **shuffled})), one_window(convert(raw))
        renamed = ("candidate_ids", "global_candidate_ids")
        for name in renamed:
            expected[name] = [i if i < 0 else order.index(i) for i in expected[name]]
        assert window == expected
        released = one_window(convert({**raw, **shuffled}, release_compatible=True))
        assert [pos for pos in released["token_pos"] if pos >= 0] == [
            *range(19, 22),
            *range(10, 19),
            *range(3, 10),
        ]
        assert (released["la_start"], released["la_end"]) == ([20], [26])
        assert released["global_token_pos_start"][8:11] == [19, 10, 3]
        assert released["global_token_pos_end"][8:11] == [21, 18, 9]

    def test_a_page_without_annotations_has_answer_type_minus_one(self, convert):
        window = one_window(convert(raw_example(annotations=[])))
        expected = {**dict.fromkeys(answer_of(window), 0), "answer_type": -1}
        assert answer_of(window) == expected

    def test_the_long_answer_can_take_the_place_of_a_missing_short_one(self, convert):
        raw = raw_example(annotations=[annotation(short_answers=())])
        window = one_window(convert(raw, predict_la_when_no_sa=True))
        assert (window["sa_start"], window["sa_end"]) == (window["la_start"], window["la_end"])

    def test_without_tags_the_answer_keeps_its_first_and_last_word(self, convert):
        raw = raw_example(annotations=[annotation(short_answers=())])
        window = one_window(convert(raw, include_html_tokens=False))
        assert answer_of(window) | {"la_start": 8, "la_end": 12, "answer_type": 3} == answer_of(
            window
        )
        released = one_window(convert(raw, include_html_tokens=False, release_compatible=True))
        assert set(answer_of(released).values()) == {0}

    def test_words_cut_into_pieces_keep_their_place(self, convert):
        raw = raw_example(document_text=raw_examples.TEXT.replace("red", "reds"))
        raw["document_text"] = raw["document_text"].replace("opened", "inin")  # Unknown: one token.
        window = one_window(convert(raw))
        assert [window["token_pos"].count(word) for word in (5, 12, 13)] == [1, 2, 1]

    @pytest.mark.parametrize("release_compatible", [False, True])
    def test_a_long_question_is_cut_in_the_input_alone(
        self, convert, tokenizer, release_compatible
    ):
        settings = {"question_len": 2, "release_compatible": release_compatible}
        window = one_window(convert(raw_example(), **settings))
        question = raw_examples.QUESTION.split()
        assert tokenizer.convert_ids_to_tokens(window["question_ids"]) == question
        assert tokens_of(window, tokenizer)[:4] == ["[CLS]", *question[:2], "[SEP]"]
        assert window["token_pos"][:5] == [-1, -1, -1, -1, 3]
        assert window["global_token_ids"][:5] == [101, 35, 35, 35, 1]
        assert window["sentence_ids"][:5] == [0, 1, 2, 3, 4]

    def test_a_longer_question_kept_whole_leaves_less_room(self, convert):
        sizes = {"long_seq_length": 26, "stride": 4}
        cut, whole = (convert(raw_example(), **sizes, question_len=n) for n in (2, 6))
        assert [len(converted.windows) for converted in (cut, whole)] == [1, 2]

    def test_candidates_without_room_have_no_global_token_and_are_counted(self, convert):
        converted = convert(raw_example(), global_seq_length=11, question_len=8)
        assert converted.num_left_out == 0
        cut = convert(raw_example(), global_seq_length=10, question_len=6)
        assert cut.num_left_out == 1
        assert one_window(cut)["sentence_ids"][24:28] == [-1] * 4


class TestFixedBlocks:
    def test_every_block_of_long_tokens_has_a_global_token(self, convert):
        blocks = {"fixed_blocks": True, "fixed_block_size": 5}
        window = one_window(convert(raw_example(), **blocks))
        assert window["sentence_ids"] == [i // 5 for i in range(28)] + [-1] * 12
        assert window["global_token_ids"] == [1] * 6 + [0] * 10
        assert len(window["global_type_id"]) == 16
        released = one_window(convert(raw_example(), **blocks, release_compatible=True))
        assert len(released["global_type_id"]) != 16


class TestWindows:
    def test_overlap_and_cover_the_page(self, convert):
        windows = convert(raw_example(), long_seq_length=21).windows
        positions = [[pos for pos in window["token_pos"] if pos >= 0] for window in windows]
        assert positions == [[*range(3, 15)], [*range(11, 22)]]

    @given(st.integers(1, 30), st.integers(13, 60))
    @settings(derandomize=True, deadline=None, max_examples=60)
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

    def test_an_answer_outside_the_window_is_labelled_as_the_cls_token(self, convert):
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


class TestErrors:
    def test_a_page_without_candidates_is_refused(self, convert):
        raw = raw_example(long_answer_candidates=[], annotations=[NO_ANSWER])
        with pytest.raises(ValueError, match="example 17: the page has no token in a top-level"):
            convert(raw)

    def test_a_question_without_tokens_is_refused(self, convert):
        with pytest.raises(ValueError, match=r"17: field `question_text`: '\\u200b' has no tokens"):
            convert(raw_example(question_text="\u200b"))

    def test_training_needs_annotations(self, convert):
        with pytest.raises(ValueError, match="example 17: field `annotations` is empty"):
            convert(raw_example(annotations=[]), is_training=True)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"stride": 0}, "`stride` must be at least 1"),
            ({"long_seq_length": 11}, "`long_seq_length` must leave room"),
            ({"global_seq_length": 10}, "`global_seq_length` must leave room"),
            ({"fixed_blocks": True, "fixed_block_size": 2}, "at least 20, the number of blocks"),
            ({"include_unknown_rate": -0.1}, "`include_unknown_rate` must not be negative"),
            ({"global_token_types": (0, 1)}, "`global_token_types` must be three"),
        ],
    )
    def test_settings_out_of_range_are_named(self, changes, message):
        with pytest.raises(ValueError, match=message):
            NqInputConfig(**{**SETTINGS, **changes})

    def test_a_vocabulary_without_special_tokens_is_named(self, tmp_path):
        path = tmp_path / "vocab.txt"
        path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n")
        with pytest.raises(ValueError, match=r"lacks the tokens \[unused102\], \[unused103\]"):
            NqInputConfig.for_tokenizer(tokenization.FullTokenizer(str(path)))
        config = dataclasses.replace(NqInputConfig(), html_end_token_id=4)
        with pytest.raises(ValueError, match="`cls_token_id` must be an id of the vocabulary"):
            config.check_vocabulary(tokenization.FullTokenizer(str(path)))
