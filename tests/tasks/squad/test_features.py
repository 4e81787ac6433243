"""Windows as BERT makes them: their places, labels, and the window with the most context."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import etcmodel
from etcmodel import options
from etcmodel.finetuning.spans import WINDOW_PLACES as PLACES
from etcmodel.tasks.squad import examples, features
from etcmodel.tasks.squad.config import SquadConfig
from etcmodel.text import vocabulary_files
from tests import vocabularies
from tests.reference import cases
from tests.tasks.squad import small

BYTES = cases.topic_folder("longformer") / "tokenizer" / "vocab.json"
WORDS = st.lists(st.sampled_from(["the", "red", "muddy", "King.", "It", ","]), min_size=1)


tokenizer = vocabularies.fixture(small.WORDS.split())


def spans_of_bert(num_tokens, room, stride):
    """(first token, number of tokens) of the windows, by the loop of `run_squad.py`."""
    found, start = [], 0
    while start < num_tokens:
        length = min(num_tokens - start, room)
        found.append((start, length))
        if start + length == num_tokens:
            break
        start += min(length, stride)
    return found


def best_of_bert(windows, token):
    """The window with the most context of a token, by the loop of `run_squad.py`."""
    scores = [
        min(token - start, start + length - 1 - token) + 0.01 * length
        if start <= token < start + length
        else -1
        for start, length in windows
    ]
    return scores.index(max(scores))


def windows_of(raw, tokenizer, **fields):
    config = small.input_config(**fields)
    example = examples.parse_example(raw, config.is_training)
    return features.make_features(example, config, config.make_processor(tokenizer))[0]


@hypothesis.given(WORDS, st.integers(1, 12), st.integers(1, 2))
@hypothesis.settings(max_examples=60)
def test_windows_are_those_of_bert_or_of_roberta(tokenizer, words, stride, separators):
    raw = small.raw_question(" ".join(words))
    given = {"doc_stride": stride, "question_separators": separators}
    found = windows_of(raw, tokenizer, **given, is_training=False)
    pieces = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(raw["context"]))
    wanted = spans_of_bert(len(pieces), 16 - 5 - separators, stride)
    assert len(found) == len(wanted)
    head = tokenizer.convert_tokens_to_ids(["[CLS]", "who", "was", "it", *["[SEP]"] * separators])
    for number, (window, (start, length)) in enumerate(zip(found, wanted, strict=True)):
        ids = [*head, *pieces[start : start + length], 3]
        assert window["token_ids"][: len(ids)] == ids and not any(window["token_ids"][len(ids) :])
        is_best = [best_of_bert(wanted, start + x) == number for x in range(length)]
        assert window["max_context"][len(head) : len(head) + length] == [int(x) for x in is_best]
        # The characters of each token are those of the context.
        (text,), (first,) = window["text"], window["text_start"]
        assert raw["context"][first : first + len(text)] == text
        places = zip(window["token_starts"], window["token_ends"], strict=True)
        shown = [text[a:b].lower() for a, b in places if a >= 0]
        told = tokenizer.convert_ids_to_tokens(pieces[start : start + length])
        assert shown == [piece.removeprefix("##") for piece in told]
    assert sum(map(sum, (x["max_context"] for x in found))) == len(pieces)


@hypothesis.given(WORDS, st.integers(1, 10), st.data())
@hypothesis.settings(max_examples=60)
def test_an_answer_is_labeled_in_each_window_that_has_all_of_it(tokenizer, words, stride, data):
    context = " ".join(words)
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, min(first + 2, len(words) - 1)))
    start = len(" ".join([*words[:first], ""]))
    answer = " ".join(words[first : last + 1])
    raw = {**small.raw_question(context), "answers": [{"text": answer, "answer_start": start}]}
    labeled, plain = (
        windows_of(raw, tokenizer, doc_stride=stride, is_training=train) for train in (True, False)
    )
    count = 0
    for labels, window in zip(labeled, plain, strict=True):
        ((begin,), (end,)) = (np.flatnonzero(labels[f"labels/{x}"]) for x in ("starts", "ends"))
        shift = window["text_start"][0]
        is_whole = shift <= start and start + len(answer) <= shift + len(window["text"][0])
        assert (begin > 0) == (end > 0) == is_whole
        count += is_whole
        if is_whole:
            place = slice(window["token_starts"][begin], window["token_ends"][end])
            assert window["text"][0][place] == answer
    assert count or stride > 10 - len(tokenizer.tokenize(answer))


def test_a_question_without_an_answer_has_the_first_token_everywhere(tokenizer):
    for window in windows_of(small.raw_question("the red king . " * 9), tokenizer):
        for end in ("starts", "ends"):
            assert window[f"labels/{end}"] == [1] + [0] * 15


def test_every_annotator_s_answer_is_right(tokenizer):
    (window,) = windows_of(small.raw_question("the red king.", "red", "the red"), tokenizer)
    assert np.flatnonzero(window["labels/starts"]).tolist() == [5, 6]
    assert np.flatnonzero(window["labels/ends"]).tolist() == [6]


def test_a_long_question_is_cut_and_the_windows_have_the_room(tokenizer):
    raw = small.raw_question("the red king . " * 3, question="who was muddy king of it")
    config = small.input_config(max_query_length=3, is_training=False)
    example = examples.parse_example(raw)
    found, is_cut = features.make_features(example, config, config.make_processor(tokenizer))
    tokens = tokenizer.convert_ids_to_tokens(found[0]["token_ids"])
    assert is_cut and tokens[:5] == ["[CLS]", "who", "was", "mud", "[SEP]"]
    assert [window["text_start"][0] for window in found] == [0, 15]


def test_a_context_must_have_room_and_tokens(tokenizer):
    with pytest.raises(ValueError, match=r"'q': .*room for the context. Raise --long_seq_length"):
        windows_of(small.raw_question(), tokenizer, long_seq_length=6, is_training=False)
    with pytest.raises(ValueError, match="'q': the context has no character that the vocabulary"):
        windows_of(small.raw_question("\u200b"), tokenizer, is_training=False)


def test_tokens_of_bytes_have_the_answer_without_the_space_before_it():
    tokenizer = vocabulary_files.open_tokenizer(str(BYTES), None)
    raw = small.raw_question("It was Müller's wife.", "Müller", question="Who?")
    labeled, plain = (
        windows_of(raw, tokenizer, long_seq_length=48, is_training=train)[0]
        for train in (True, False)
    )
    ((start,), (end,)) = (np.flatnonzero(labeled[f"labels/{x}"]) for x in ("starts", "ends"))
    place = slice(plain["token_starts"][start], plain["token_ends"][end])
    assert plain["text"][0][place].strip() == "Müller"


SPACED = " It was red.  Mud!\nThe King. "


@pytest.mark.parametrize(("splitter", "is_as_it_is"), [("whole", True), ("multilingual", False)])
def test_a_whole_context_has_the_tokens_of_a_models_own_processor(splitter, is_as_it_is):
    tokenizer = vocabulary_files.open_tokenizer(str(BYTES), None)
    own = etcmodel.LongformerProcessor(tokenizer)
    ids = own(question="Who?", documents=[SPACED])["input_ids"][0].tolist()
    raw = small.raw_question(SPACED, question="Who?")
    given = {"long_seq_length": 64, "question_separators": 2, "is_training": False}
    (found,) = windows_of(raw, tokenizer, **given, sentence_splitter=splitter)
    is_equal = found["token_ids"][: len(ids)] == ids and sum(found["example_ids"]) == len(ids)
    assert is_equal == is_as_it_is
    shown = [found["text"][0][a:b].strip() for a, b in zip(*map(found.get, PLACES), strict=True)]
    assert "".join(shown) == SPACED.replace(" ", "").replace("\n", "")


def test_records_that_do_not_name_a_splitter_were_split_as_before():
    kept = options.from_kept(SquadConfig, {})
    assert kept["sentence_splitter"] == "multilingual"
    assert kept["question_separators"] == 1


def test_what_preprocessing_counts(tokenizer):
    factory = features.ConverterFactory(
        vocab_file=tokenizer.source_file, spm_model_file="", do_lower_case=True, fields={}
    )
    config = small.input_config(version_2_with_negative=True, doc_stride=10)
    processor = config.make_processor(tokenizer)
    context = "the red king . it was muddy king"
    counts = [
        factory.convert({"place": "x", "question": raw}, config, processor).counts
        for raw in (
            small.raw_question(context),
            small.raw_question(context, "red"),
            # Token 10 is the first of the second window.
            small.raw_question(f"{context} {context}", "king the"),
            small.raw_question(f"the {context} it", "king it"),
        )
    ]
    of = ("windows_without_answer", "questions_without_answer", "answers_in_no_window")
    assert [tuple(x[name] for name in of) for x in counts] == [
        *((1, 1, 0), (0, 0, 0), (1, 0, 0), (2, 0, 1))
    ]
    first = {"place": "x", "question": small.raw_question(context)}
    with pytest.raises(ValueError, match="'q': .*empty, and --version_2_with_negative=false"):
        factory.convert(first, small.input_config(version_2_with_negative=False), processor)
