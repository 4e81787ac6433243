"""From a page to windows: what each feature means, and what the release did differently."""

import numpy as np
import pytest

from etcmodel.tasks.nq.config import ANSWER_TYPES
from tests.tasks.nq import raw_examples
from tests.tasks.nq.page_windows import answer_of, one_window
from tests.tasks.nq.raw_examples import NO_ANSWER, annotation, raw_example


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
