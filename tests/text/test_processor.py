"""The processor: from what a user has to a batch, and back."""

import logging

import numpy as np
import pytest
from absl import logging as absl_logging

from etcmodel.text.processor import EtcProcessor
from tests.text.processors import CLS, SEP, ids, lists


def test_a_text_has_a_global_token_for_the_whole_and_for_each_sentence(processor):
    batch = processor("It rains. Stay in!")
    assert lists(batch) == {
        "token_ids": [ids("[CLS] it rains . stay in ! [SEP]")],
        "segment_ids": [[0] * 8],
        "global_token_ids": [[CLS] * 3],
        "global_segment_ids": [[0] * 3],
        "links": [[0, 1, 1, 1, 2, 2, 2, 0]],
        "example_ids": [[1] * 8],
        "global_example_ids": [[1] * 3],
    }
    assert {array.dtype for array in batch.values()} == {np.dtype("int32")}
    (encoding,) = batch.encodings
    assert encoding.tokens == ["[CLS]", "it", "rains", ".", "stay", "in", "!", "[SEP]"]
    assert encoding.offsets.tolist() == [
        *[[-1, -1], [0, 2], [3, 8], [8, 9]],
        *[[10, 14], [15, 17], [17, 18], [-1, -1]],
    ]


def test_texts_are_padded_to_the_longest(processor):
    batch = processor(["It rains. Stay in!", "Rains"])
    assert lists(batch)["token_ids"][1] == [CLS, *ids("rains"), SEP, 0, 0, 0, 0, 0]
    assert lists(batch)["links"][1] == [0, 1, 0, -1, -1, -1, -1, -1]
    assert lists(batch)["example_ids"][1] == [1, 1, 1, 0, 0, 0, 0, 0]
    assert lists(batch)["global_token_ids"] == [[CLS] * 3, [CLS, CLS, 0]]
    assert lists(batch)["global_example_ids"] == [[1] * 3, [1, 1, 0]]


def test_a_batch_is_padded_to_fixed_lengths_or_multiples(processor):
    fixed = {"max_long_len": 12, "max_global_len": 6, "pad_to": "max"}
    assert processor("Rains", settings=fixed)["token_ids"].shape == (1, 12)
    assert processor("Rains", settings=fixed)["global_token_ids"].shape == (1, 6)
    shapes = {x.shape for x in processor("Rains", settings={"pad_to_multiple_of": 8}).values()}
    assert shapes == {(1, 8)}


def test_the_question_comes_first_and_documents_hold_their_sentences(vocab):
    processor = EtcProcessor(vocab, relation_names=("part_of", "has_part"))
    batch = processor(question="Who?", documents=["A. B.", {"title": "C", "text": "Stays"}])
    assert lists(batch) == {
        "token_ids": [ids("[CLS] who ? [SEP] a . b . c stay ##s [SEP]")],
        "segment_ids": [[0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]],
        # The whole, the question, document 0, A., B., document 1, C, Stays.
        "global_token_ids": [[CLS] * 8],
        "global_segment_ids": [[0] * 8],
        "links": [[0, 1, 1, 0, 3, 3, 4, 4, 6, 7, 7, 0]],
        "example_ids": [[1] * 12],
        "global_example_ids": [[1] * 8],
        "edges/part_of": [[[3, 2], [4, 2], [6, 5], [7, 5]]],
        "edges/has_part": [[[2, 3], [2, 4], [5, 6], [5, 7]]],
    }


def test_the_questions_tokens_may_be_global_tokens_as_in_the_tasks(vocab):
    processor = EtcProcessor(
        vocab,
        question_globals="tokens",
        global_tokens={"sentence": "[unused0]", "whole": "[unused1]"},
        global_segments={"sentence": 2, "question": 1},
    )
    batch = processor(question="Who?", text="A. B.")
    assert batch["global_token_ids"].tolist() == [ids("[unused1] who ? [unused0] [unused0]")]
    assert batch["global_segment_ids"].tolist() == [[0, 1, 1, 2, 2]]
    assert batch["links"].tolist() == [[0, 1, 2, 0, 3, 3, 4, 4, 0]]


def test_special_tokens_the_global_whole_and_positions_are_a_matter_of_settings(vocab):
    processor = EtcProcessor(vocab, special_tokens=False, whole_token=False, position_ids=True)
    batch = processor(["A b. C", "A"])
    assert batch["token_ids"].tolist() == [ids("a b . c"), [*ids("a"), 0, 0, 0]]
    assert batch["links"].tolist() == [[0, 0, 0, 1], [0, -1, -1, -1]]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 3], [0, 0, 0, 0]]
    assert batch["global_position_ids"].tolist() == [[0, 1], [0, 0]]


def test_cells_of_a_table_are_related_by_row_column_and_header(vocab):
    processor = EtcProcessor(vocab, relation_names=("row", "column", "header"))
    batch = processor(table={"header": ["A", "B"], "rows": [["C", "it"], ["in", None]]})
    # 0 the whole, 1 the table, 2 A, 3 B, 4 C, 5 it, 6 in.
    assert batch["links"].tolist() == [[0, 2, 3, 4, 5, 6, 0]]
    named = {
        name: {tuple(x) for x in batch[f"edges/{name}"][0].tolist()}
        for name in processor.config.relation_names
    }
    assert named["row"] - {(-1, -1)} == {(2, 3), (3, 2), (4, 5), (5, 4)}
    assert named["column"] == {(2, 4), (2, 6), (4, 2), (4, 6), (6, 2), (6, 4), (3, 5), (5, 3)}
    assert named["header"] - {(-1, -1)} == {(4, 2), (6, 2), (5, 3)}


def test_edges_of_a_graph_and_mentions_of_a_page_are_padded_by_minus_one(vocab):
    processor = EtcProcessor(vocab, relation_names=("knows", "mentions", "link"))
    batch = processor(
        [
            {"nodes": {"x": "A", "y": "B"}, "edges": [["y", "x", "knows"]]},
            {"html": "<p>Emma <a href='#t'>wrote it</a>.<p id=t>It"},
        ]
    )
    assert batch["edges/knows"].tolist() == [[[2, 1]], [[-1, -1]]]
    assert batch["links/mentions"].tolist() == [[[-1, -1]] * 2, [[2, 2], [3, 2]]]
    assert batch["edges/link"].tolist() == [[[-1, -1]], [[1, 2]]]
    assert batch.relation_names == ("knows", "mentions", "link")


LONG = "A b. C a b. Emma. It rains."  # 3, 4, 2 and 3 tokens.


@pytest.mark.parametrize(
    ("changes", "kept", "cut"),
    [
        ({}, "a b . c a", "b. Emma. It rains."),
        ({"truncation": "blocks"}, "a b .", "C a b. Emma. It rains."),
        ({"give_way": "start"}, [".", "it", "rains", ".", "emma", "."], None),
    ],
)
def test_truncation_never_touches_the_question_and_tells_what_is_cut(processor, changes, kept, cut):
    size = len(kept) if isinstance(kept, list) else 5
    settings_ = {"max_long_len": 5 + size, **changes}
    batch = processor(question="Who?", text=LONG, settings=settings_)
    (encoding,) = batch.encodings
    assert encoding.tokens[:4] == ["[CLS]", "who", "?", "[SEP]"]
    if cut is None:
        assert encoding.tokens[4:-1] == ["b", *[".", "emma", ".", "it", "rains", "."]][-size:]
        return
    assert " ".join(encoding.tokens[4:-1]) == kept
    ((text, start, end),) = encoding.cut.spans
    assert encoding.document.texts[text][start:end] == cut
    assert encoding.cut.num_tokens == 12 - len(kept.split())


def test_what_is_cut_is_logged_in_one_line(processor, caplog):
    absl_logging.get_absl_logger().propagate = True
    with caplog.at_level(logging.WARNING, logger="absl"):
        processor([LONG, "A", LONG], settings={"max_long_len": 7})
    assert [x.getMessage() for x in caplog.records] == [
        "Cut: 2 of 3 examples; 14 of 25 tokens, 4 of 9 blocks of text."
    ]


def test_what_is_cut_of_many_batches_is_logged_in_one_line(processor, caplog):
    absl_logging.get_absl_logger().propagate = True
    settings_ = {"max_long_len": 7}
    told = "Cut: 2 of 3 examples; 14 of 25 tokens, 4 of 9 blocks of text."
    with caplog.at_level(logging.WARNING, logger="absl"):
        assert len([*processor.batches([LONG, "A", LONG], 1, settings_)]) == 3
        assert caplog.messages == [told]
        next(processor.batches(["A", LONG], 1, settings_))
        assert caplog.messages == [told]
        batches = processor.batches([LONG, "A", LONG], 1, settings_)
        next(batches)
        batches.close()  # Of what was read by then.
    assert caplog.messages[1:] == ["Cut: 1 of 1 examples; 7 of 12 tokens, 2 of 4 blocks of text."]


def test_a_limit_of_global_tokens_leaves_out_blocks_with_their_text(processor):
    (encoding,) = processor(LONG, settings={"max_global_len": 3}).encodings
    assert encoding.tokens[1:-1] == ["a", "b", ".", "c", "a", "b", "."]
    assert (encoding.cut.num_tokens, encoding.cut.num_blocks) == (5, 2)


def test_windows_repeat_the_question_and_a_stride_of_the_text(processor):
    settings_ = {"max_long_len": 11, "stride": 2}
    batch = processor([{"question": "Who?", "text": LONG}, "A"], settings=settings_)
    first, second, third, other = batch.encodings
    assert [(x.example, x.window) for x in batch.encodings] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert first.tokens == ["[CLS]", "who", "?", "[SEP]", "a", "b", ".", "c", "a", "b", "[SEP]"]
    assert " ".join(second.tokens) == "[CLS] who ? [SEP] a b . emma . it [SEP]"
    assert third.tokens == ["[CLS]", "who", "?", "[SEP]", ".", "it", "rains", ".", "[SEP]"]
    assert [x.first_new for x in (first, second, third)] == [4, 6, 6]
    assert not first.cut and other.tokens == ["[CLS]", "a", "[SEP]"]
    assert batch.windows(0) == [first, second, third]


def test_several_examples_share_a_row(vocab):
    processor = EtcProcessor(
        vocab, pack=True, max_long_len=10, max_global_len=6, relation_names=("part_of",)
    )
    batch = processor([{"documents": ["A b"]}, "A b c a b c", {"documents": ["C"]}])
    assert batch["token_ids"].tolist() == [
        [*ids("[CLS] a b [SEP] [CLS] c [SEP]"), 0],
        ids("[CLS] a b c a b c [SEP]"),
    ]
    assert batch["example_ids"].tolist() == [[1, 1, 1, 1, 2, 2, 2, 0], [1] * 8]
    assert batch["links"].tolist() == [[0, 2, 2, 0, 3, 5, 3, -1], [0, 1, 1, 1, 1, 1, 1, 0]]
    assert batch["global_example_ids"].tolist() == [[1, 1, 1, 2, 2, 2], [1, 1, 0, 0, 0, 0]]
    assert batch["edges/part_of"].tolist() == [[[2, 1], [5, 4]], [[-1, -1], [-1, -1]]]
    assert [(x.row, x.place, x.number) for x in batch.encodings] == [
        (0, 0, 1),
        (1, 0, 1),
        (0, 4, 2),
    ]


def test_answers_go_from_characters_to_tokens_and_back(processor):
    text = "Emma stays in. It rains."
    batch = processor(question="Who?", text=text)
    (encoding,) = batch.encodings
    start = text.index("stays")
    assert encoding.token_span(start, start + len("stays in"), text=1) == (5, 7)
    assert encoding.char_span(5, 7) == (1, start, start + 8)
    assert encoding.text_of(5, 7) == "stays in"
    assert encoding.text_of(6, 6) == "s"
    assert encoding.token_span(start + 1, start + 2, text=1) == (5, 5)
    assert encoding.token_span(4, 5, text=1) is None  # White space.
    assert encoding.char_span(1, 5) is None  # Question and text.
    assert encoding.char_span(0, 1) is None and encoding.text_of(7, 99) == ""


def test_an_answer_that_is_cut_has_no_span_but_in_the_window_that_has_all_of_it(processor):
    batch = processor(LONG, settings={"max_long_len": 7, "stride": 2})
    start = LONG.index("Emma.")
    spans = [x.token_span(start, start + 5) for x in batch.encodings]
    found = [x.text_of(*span) for x, span in zip(batch.encodings, spans, strict=True) if span]
    assert found == ["Emma."]


def test_places_of_a_packed_row_are_those_of_the_row(processor):
    settings_ = {"pack": True, "max_long_len": 20, "max_global_len": 9}
    second = processor(["A b", "Emma stays"], settings=settings_).encodings[1]
    assert second.token_span(5, 10) == (6, 7)
    assert second.text_of(6, 7) == "stays" and second.char_span(1, 2) is None


def test_decoding_leaves_special_tokens_out(processor):
    row = processor(["Emma stays in!", "A"])["token_ids"][0]
    assert processor.decode(row) == "emma stays in !"
    assert processor.decode(row, keep_special_tokens=True) == "[CLS] emma stays in ! [SEP]"
    with pytest.raises(ValueError, match=r"`ids\[1\]` must be at least 0. Received: -100"):
        processor.decode([1, -100])


def test_ids_that_only_the_model_has_are_left_out(processor):
    row = processor(["Emma stays in!"])["token_ids"][0].tolist()
    assert processor.decode([20, *row, 31, 10**6]) == "emma stays in !"
