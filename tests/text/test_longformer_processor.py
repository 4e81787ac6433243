"""Batches for Longformer: the reference's tokens, what is global and why, and answers."""

import json

import numpy as np
import pytest

import etcmodel
from etcmodel.text.answers import best_answer
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from etcmodel.text.longformer_processor import LongformerProcessor
from tests import vocabularies
from tests.models import text_cases
from tests.models.longformer import small
from tests.reference import cases

FOLDER = cases.topic_folder("longformer") / "tokenizer"
CASES = json.loads((FOLDER / "tokens.json").read_text(encoding="utf-8"))
QUESTION = "Who wrote Emma?"
DOCUMENTS = ["Emma is a novel.\n\nIt was read widely.", "Jane Austen wrote it."]
BOS, PAD, EOS = 0, 1, 2


@pytest.fixture(scope="module")
def tokenizer():
    return ByteLevelTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def processor(tokenizer):
    return LongformerProcessor(tokenizer)


def bare(tokenizer, text):
    return tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))


def test_texts_and_pairs_have_the_tokens_of_the_reference(processor):
    for case in CASES["single"]:
        if case["text"].strip():
            batch = processor(case["text"])
            assert batch["input_ids"].tolist() == [case["ids"]], case["text"]
            offsets = batch.encodings[0].offsets[1:-1].tolist()
            assert offsets == case["offsets"][1:-1], case["text"]
    for pair in CASES["pairs"]:
        if pair["a"].strip() and pair["b"].strip():
            batch = processor(question=pair["a"], documents=[pair["b"]])
            assert batch["input_ids"].tolist() == [pair["ids"]]


def test_a_question_is_global_and_padding_is_nothing(processor, tokenizer):
    batch = processor([{"question": QUESTION, "documents": DOCUMENTS}, "Emma."])
    question, *documents = (bare(tokenizer, text) for text in (QUESTION, *DOCUMENTS))
    row = [BOS, *question, EOS, EOS, *documents[0], *documents[1], EOS]
    short = [BOS, *bare(tokenizer, "Emma."), EOS]
    padding = len(row) - len(short)
    assert batch["input_ids"].tolist() == [row, [*short, *[PAD] * padding]]
    assert batch["attention_mask"].tolist() == [[1] * len(row), [1] * len(short) + [0] * padding]
    num_global = 1 + len(question)
    assert batch["global_attention_mask"].tolist() == [
        [1] * num_global + [0] * (len(row) - num_global),
        [1] + [0] * (len(row) - 1),
    ]


@pytest.mark.parametrize("kind, number", [("first", 1), ("none", 0)])
def test_other_choices_of_global_tokens(tokenizer, kind, number):
    processor = LongformerProcessor(tokenizer, global_tokens=kind)
    batch = processor(question=QUESTION, documents=DOCUMENTS)
    assert batch["global_attention_mask"].sum() == number
    assert batch["global_attention_mask"][0, :number].all()


def test_what_is_global_may_be_left_to_the_model(processor):
    left = LongformerProcessor(processor, global_tokens="model")
    one, other = (x(question=QUESTION, documents=DOCUMENTS) for x in (left, processor))
    assert set(one) == {"input_ids", "attention_mask"}
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])
    with pytest.raises(ValueError, match="`global_tokens` is 'model'"):
        left.explain(one)


OF_BERT = {"tokenizer_class": "BertTokenizer"}


@pytest.mark.parametrize(
    ("of_tokenizer", "num_types", "ids", "types"),
    [
        (OF_BERT, 2, [2, 4, 3, 5, 3], [0, 0, 0, 1, 1]),
        (OF_BERT, 1, [2, 4, 3, 5, 3], None),
        ({"tokenizer_class": "PreTrainedTokenizerFast"}, 2, [2, 4, 3, 3, 5, 3], None),
    ],
)
def test_a_longformer_with_berts_tokenizer_has_pairs_as_bert(
    tmp_path, of_tokenizer, num_types, ids, types
):
    sizes = {"vocab_size": 6, "type_vocab_size": num_types, "attention_window": 4}
    config = small.config(**sizes, bos_token_id=2, sep_token_id=3, eos_token_id=3)
    etcmodel.LongformerForSequenceClassification(config, num_labels=2).save_pretrained(tmp_path)
    vocabularies.write(tmp_path, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"])
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(of_tokenizer))
    processor = etcmodel.from_pretrained(tmp_path).processor
    processor.save_pretrained(tmp_path / "saved")
    again = LongformerProcessor.from_pretrained(tmp_path / "saved", global_tokens="question")
    for made in (processor, again):
        batch = made(question="a", documents=["b"])
        assert batch["input_ids"].tolist() == [ids]
        assert ("token_type_ids" in batch) == (types is not None)
        if types:
            assert batch["token_type_ids"].tolist() == [types]
    assert batch["global_attention_mask"].tolist() == [[1, 1] + [0] * (len(ids) - 2)]


def test_long_documents_are_read_in_windows_each_with_the_question(tokenizer):
    processor = LongformerProcessor(tokenizer, max_length=24, stride=5)
    question, text = bare(tokenizer, "Who?"), "Jane Austen wrote Emma. " * 6
    batch = processor(question="Who?", documents=[text])
    assert len(batch.windows(0)) > 2 and batch["input_ids"].shape[1] <= 24
    seen = set()
    for encoding in batch.windows(0):
        row = batch["input_ids"][encoding.row].tolist()
        assert row[: len(question) + 3] == [BOS, *question, EOS, EOS]
        assert batch["global_attention_mask"][encoding.row].sum() == 1 + len(question)
        seen |= set(encoding.pieces.tolist())
    assert seen == {-1, *range(len(question) + len(bare(tokenizer, text)))}


def test_a_document_is_cut_at_its_end_and_the_question_never(tokenizer):
    processor = LongformerProcessor(tokenizer, max_length=16)
    batch = processor(question=QUESTION, documents=["Jane Austen wrote Emma. " * 6])
    (encoding,) = batch.encodings
    assert len(encoding.token_ids) == 16 and encoding.cut.num_tokens > 0
    question = bare(tokenizer, QUESTION)
    assert encoding.token_ids[: len(question) + 1].tolist() == [BOS, *question]
    with pytest.raises(ValueError, match="`max_length`|`max_long_len`"):
        processor(question=QUESTION * 9, documents=["It."])


def test_what_does_not_fit_names_the_setting(tokenizer):
    processor = LongformerProcessor(tokenizer, max_length=1)
    with pytest.raises(ValueError, match="need `max_length` to be at least 2. Received: 1"):
        processor("Emma")
    with pytest.raises(ValueError, match="`stride` must be below `max_length` 4"):
        LongformerProcessor(tokenizer, max_length=4, stride=4)


def test_tells_what_is_global_and_who_sees_whom(processor):
    batch = processor(question="Who?", documents=["Jane."])
    config = etcmodel.LongformerConfig(attention_window=4, num_hidden_layers=2)
    told = processor.explain(batch, config=config)
    size = len(batch.encodings[0].token_ids)
    table = str(told).splitlines()
    assert table[0] == "example 0, window 0: row 0"
    assert table[1].split() == ["place", "token", "from", "global"]
    assert table[2].split() == ["0", "<s>", "the", "first", "token"]
    assert "examples[0].question[0:" in table[3] and table[3].endswith("of the question")
    assert len(table) == 2 + size and not table[-1].endswith("question")
    last = size - 1
    expected = f"0 '<s>' attends to {last} '</s>': the query is global, the first token."
    assert told.why(0, last) == expected
    assert "the key is global, of the question" in told.why(last, 1)
    assert "1 places apart, within half the window, 2." in told.why(last - 1, last)
    num_global = int(batch["global_attention_mask"].sum())
    assert last - num_global > 2
    assert f"does not attend to {last} '</s>': " in told.why(num_global, last)
    assert told.why(num_global, last).endswith("places apart, beyond half the window, 2.")
    with pytest.raises(ValueError, match="`key` must be a place in a row of"):
        told.why(0, size)
    with pytest.raises(ValueError, match="no window 1"):
        processor.explain(batch, window=1)


def test_the_model_for_questions_takes_it_and_answers_are_found(tokenizer):
    processor = LongformerProcessor(tokenizer, max_length=32, stride=8)
    config = text_cases.longformer_config(processor, max_position_embeddings=64)
    model = etcmodel.LongformerForQuestionAnswering(config)
    batch = processor(question=QUESTION, documents=DOCUMENTS)
    outputs = model(batch)
    plain = {name: batch[name] for name in ("input_ids", "attention_mask")}
    np.testing.assert_allclose(outputs["start"], model(plain)["start"], atol=1e-6)
    begin = np.zeros(batch.long_shape)
    end = begin.copy()
    first, last = batch.encodings[-1].token_span(0, 11, text=2)
    begin[batch.encodings[-1].row, first] = end[batch.encodings[-1].row, last] = 9
    answer = best_answer(batch, begin, end)
    assert answer.content == "Jane Austen" and (answer.text, answer.start, answer.end) == (2, 0, 11)


def test_saves_and_reads_it(tmp_path, tokenizer):
    processor = LongformerProcessor(tokenizer, max_length=20, stride=4, global_tokens="first")
    processor.save_pretrained(tmp_path)
    loaded = LongformerProcessor.from_pretrained(tmp_path)
    assert loaded.config == processor.config
    fields = {"question": QUESTION, "documents": DOCUMENTS}
    expected, found = processor(**fields), loaded(**fields)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize(
    "example, message",
    [
        (3, r"`examples\[0\]` must be a text or a dict"),
        ({"question": "Who?"}, "must have `text` or `documents`"),
        ({"text": "A", "documents": ["B"]}, "must have `text` or `documents`"),
        ({"documents": "A"}, "`documents` must be a list of str"),
        ({"text": "A", "title": "B"}, "Received: .'text', 'title'."),
    ],
)
def test_what_is_no_example_is_refused(processor, example, message):
    with pytest.raises(ValueError, match=message):
        processor([example])
