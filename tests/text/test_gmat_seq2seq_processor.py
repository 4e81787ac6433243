"""Batches for GenBERT over a GMAT: numbers in digits, answers, and the way back."""

import pathlib
import shutil

import numpy as np
import pytest

import etcmodel
from etcmodel.tasks.numerical_reasoning import examples, features
from etcmodel.text import number_pieces, tokenization
from etcmodel.text.gmat_seq2seq_processor import GmatSeq2SeqProcessor
from etcmodel.tools.demos import numerical_reasoning as demo
from tests import vocabularies
from tests.models.gmat import small

WORDS = demo.vocabulary()
QUESTION, PASSAGE = "How many apples did the king have ?", "The king had 407 apples ."
FOUND = "[CLS] how many apples did the king have ? [SEP] the king had 4 ##0 ##7 apples . [SEP]"


@pytest.fixture
def vocab(tmp_path):
    return pathlib.Path(vocabularies.write(tmp_path, WORDS))


def make_model(**changes):
    tokens = {"decoder_start_token_id": WORDS.index("@"), "eos_token_id": WORDS.index("\\")}
    config = small.config(num_hidden_layers=1, vocab_size=len(WORDS))
    config = etcmodel.GmatSeq2SeqConfig.of_encoder(config, **{**tokens, **changes})
    model = etcmodel.GmatForConditionalGeneration(config)
    model.build(None)
    return model


def test_numbers_fall_into_digits_and_characters_are_known(vocab):
    batch = GmatSeq2SeqProcessor(vocab)(question=QUESTION, documents=[PASSAGE], targets="1023")
    assert " ".join(WORDS[x] for x in batch["input_ids"][0]) == FOUND
    assert " ".join(WORDS[x] for x in batch["labels"][0]) == "1 ##0 ##2 ##3 \\"
    assert set(batch) == {"input_ids", "attention_mask", "labels"}
    (encoding,) = batch.encodings
    first, last = encoding.token_span(13, 16, 1)
    assert [WORDS[x] for x in batch["input_ids"][0][first : last + 1]] == ["4", "##0", "##7"]
    assert encoding.text_of(first + 1, last) == "07"


def test_rows_and_labels_are_those_of_the_task(vocab):
    raws = demo.make_examples(split="dev", num_examples=20, seed=0)
    found = [examples.parse_example(raw) for raw in raws]
    config = features.InputConfig(long_seq_length=60, max_answer_length=20)
    tokenizer = tokenization.FullTokenizer(str(vocab))
    rows = [features.make_features(example, config, tokenizer).values for example in found]
    batch = GmatSeq2SeqProcessor(tokenizer, max_length=60, pad_to_multiple_of=60)(
        [{"question": x.question, "documents": [x.passage]} for x in found],
        targets=[x.answer for x in found],
    )
    assert any(encoding.cut for encoding in batch.encodings)
    for name in ("input_ids", "attention_mask"):
        assert batch[name].tolist() == [row[name] for row in rows]
    longest = batch["labels"].shape[1]
    assert batch["labels"].tolist() == [row["labels"][:longest] for row in rows]


@pytest.mark.slow
def test_the_model_has_it_and_takes_it_along(vocab, tmp_path):
    make_model().save_pretrained(tmp_path / "one")
    shutil.copyfile(vocab, tmp_path / "one" / "vocab.txt")
    model = etcmodel.load_pretrained(tmp_path / "one")
    assert isinstance(model.processor, etcmodel.GmatSeq2SeqProcessor)
    assert model.processor.config.max_length == model.config.max_length
    batch = model.processor(question=QUESTION, documents=[PASSAGE], targets="1023")
    loss = model(batch)["loss"].numpy()
    sequences = model.generate(batch, max_length=5)["sequences"].numpy()
    assert sequences[0, 0] == WORDS.index("@")
    model.save_pretrained(tmp_path / "two")
    again = etcmodel.load_pretrained(tmp_path / "two")
    assert again.processor.config == model.processor.config
    fields = {"question": QUESTION, "documents": [PASSAGE]}
    assert again(again.processor([fields], targets=["1023"]))["loss"].numpy() == loss
    told = str(again.processor.explain(batch, config=again))
    assert "##7" in told and "The memory is the model's own" in told


def test_answers_come_back(vocab):
    processor = GmatSeq2SeqProcessor(vocab)
    pieces = ["@", "4", "##0", "##7", "apples", "\\", "king", "[PAD]"]
    ids = np.array([WORDS.index(x) for x in pieces])
    assert processor.decode(ids) == "407 apples"
    assert processor.decode(ids[1:4]) == "407"
    assert processor.decode([ids[0], 10**6, *ids[1:]]) == "407 apples"  # An id of the model alone.
    batch = processor("The king had 12 apples", targets="12")
    assert processor.decode(batch["labels"][0]) == "12"


def test_other_tokens_than_the_models_are_told(vocab, tmp_path):
    make_model(eos_token_id=3).save_pretrained(tmp_path / "one")
    shutil.copyfile(vocab, tmp_path / "one" / "vocab.txt")
    model = etcmodel.load_pretrained(tmp_path / "one")
    with pytest.raises(ValueError, match=r"no processor: .* and the model's `eos_token_id` is 3\."):
        model.processor(PASSAGE)


def test_what_does_not_fit_is_refused(vocab, tmp_path):
    processor = GmatSeq2SeqProcessor(vocab)
    with pytest.raises(ValueError, match="There are 1 examples and 2 `targets`"):
        processor(PASSAGE, targets=["1", "2"])
    with pytest.raises(ValueError, match=r"`targets\[0\]` must not have .*, which ends answers"):
        processor(PASSAGE, targets="1 \\")
    with pytest.raises(ValueError, match=r"`targets\[0\]` must be a str. Received: 3"):
        processor(PASSAGE, targets=[3])
    with pytest.raises(ValueError, match="`stride` must be None: .* Received: 2"):
        GmatSeq2SeqProcessor(vocab, max_length=9, stride=2)
    less = vocabularies.write(tmp_path, [x for x in WORDS if x != "##7"], "less.txt")
    with pytest.raises(ValueError, match="less.txt' lacks the tokens ##7"):
        number_pieces.NumberTokenizer(less)
