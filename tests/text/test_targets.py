"""Targets of training: labels, and the places of answers."""

import numpy as np
import pytest

from etcmodel.text.targets import answer_targets, label_targets
from tests.text import processors

WORDS = ["emma", "is", "a", "novel", "by", "jane", "austen", ".", "who", "?"]
TEXT = "Emma is a novel by  Jane Austen. Emma."
JANE = {"start": 20, "end": 31}


processor = processors.fixture([*WORDS], max_long_len=20, max_global_len=12)


def example(answer, **fields):
    return {"question": "Who?", **(fields or {"text": TEXT}), "extra": {"answer": answer}}


def test_an_answer_goes_to_its_tokens_and_none_to_the_first_one(processor):
    documents = [{"title": "Emma", "text": TEXT}, "Jane."]
    batch = processor(
        [
            example(JANE),
            example(None),
            example({**JANE, "text": "documents[0].text"}, documents=documents),
            example({"start": 0, "end": 4, "text": "documents[1].text"}, documents=documents),
            example({"start": 21, "end": 22}),  # Within "Jane".
        ]
    )
    targets = answer_targets(batch)
    assert {x.dtype for x in targets.values()} == {np.dtype(np.int32)}
    found = []
    for encoding, first, last in zip(
        batch.encodings, targets["start"], targets["end"], strict=True
    ):
        found.append(encoding.text_of(first, last) or (int(first), int(last)))
    assert found == ["Jane Austen", (0, 0), "Jane Austen", "Jane", "Jane"]


def test_windows_without_the_whole_answer_have_none(processor):
    batch = processor(example(JANE), settings={"max_long_len": 10, "stride": 2})
    targets = answer_targets(batch)
    found = [x.text_of(*span) for x, *span in zip(batch.encodings, *targets.values(), strict=True)]
    assert len(found) >= 3 and found.count("Jane Austen") >= 1
    for encoding, text, start in zip(batch.encodings, found, targets["start"], strict=True):
        has_answer = {"jane", "austen"} <= set(encoding.tokens)
        assert text == ("Jane Austen" if has_answer else "")
        assert has_answer or start == 0


def test_labels_are_numbers_of_any_shape(processor):
    labels = [True, [1, 0]], [3, [0, 1]]
    batch = processor(
        [{"text": TEXT, "extra": {"one": one, "many": many}} for one, many in labels],
        settings={"max_long_len": 10, "stride": 0},
    )
    windows = [len(batch.windows(number)) for number in range(2)]
    assert windows[0] > 1
    assert label_targets(batch, "one").tolist() == [1] * windows[0] + [3] * windows[1]
    assert label_targets(batch, "many").shape == (sum(windows), 2)
    assert label_targets(batch, "many").dtype == np.int32


@pytest.mark.parametrize(
    "answer, line",
    [
        ("Jane", r"`answer` of Example 0 of the batch must be None or a dict of .* 'Jane'"),
        ({"start": 3}, r"must be None or a dict of \('start', 'end', 'text'\)"),
        ({"start": 5, "end": 5}, "must have 0 <= start < end <= 38, the length of its text"),
        ({"start": 5, "end": 39}, "0 <= start < end <= 38, .* Received: start=5, end=39"),
        ({**JANE, "text": "title"}, r"is in no text 'title'. There are: \['example.text'\]"),
    ],
)
def test_an_answer_that_is_none_is_named(processor, answer, line):
    with pytest.raises(ValueError, match=line):
        answer_targets(processor(example(answer)))


def test_missing_fields_words_and_packed_rows_are_refused(processor):
    batch = processor({"text": TEXT, "id": "e7", "extra": {"kind": "book"}})
    with pytest.raises(ValueError, match=r"Example 'e7' has no `extra\['label'\]`. It has: \['ki"):
        label_targets(batch, "label")
    with pytest.raises(ValueError, match=r"`extra\['kind'\]` must hold numbers.*: \['book'\]"):
        label_targets(batch, "kind")
    for value in (2**31, -(2**31) - 1, 2**63):  # They would wrap around.
        batch = processor({"text": TEXT, "extra": {"price": value}})
        with pytest.raises(ValueError, match=rf"`extra\['price'\]` holds whole .*: \[{value}\]"):
            label_targets(batch, "price")
    batch = processor([{"text": TEXT, "extra": {"price": x}} for x in (2**31 - 1, -(2**31))])
    assert label_targets(batch, "price").tolist() == [2**31 - 1, -(2**31)]
    batch = processor({"text": TEXT, "extra": {"price": 2.0**31}})
    assert label_targets(batch, "price").tolist() == [2.0**31]
    packed = processor(
        [example(None, text="A."), example(None, text="B.")], settings={"pack": True}
    )
    assert len(packed["token_ids"]) == 1
    with pytest.raises(ValueError, match="rows of this batch hold several examples"):
        answer_targets(packed)
