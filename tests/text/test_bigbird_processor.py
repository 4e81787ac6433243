"""`BigBirdProcessor`: the tokens of Hugging Face's tokenizer, folders, explanations."""

import json

import numpy as np
import pytest
import sentencepiece

import etcmodel
from tests import vocabularies
from tests.models.bigbird import small
from tests.reference import cases

MODEL = str(cases.resolve("", "vocab/gpt2_sentencepiece.model"))
TEXT = "  The river is long ,  and  old. "


@pytest.fixture(name="processor", scope="module")
def make_processor():
    return etcmodel.BigBirdProcessor(MODEL, max_length=64)


def pieces(text):
    return sentencepiece.SentencePieceProcessor(model_file=MODEL).encode(text)


def special(name):
    return sentencepiece.SentencePieceProcessor(model_file=MODEL).piece_to_id(name)


def test_a_text_is_its_pieces_between_cls_and_sep(processor):
    batch = processor(["The river is long.", TEXT])
    cls, sep = special("[CLS]"), special("[SEP]")
    for row, text in enumerate(["The river is long.", TEXT.strip()]):
        ids = [cls, *pieces(text), sep]
        np.testing.assert_array_equal(batch["input_ids"][row, : len(ids)], ids)
        np.testing.assert_array_equal(batch["attention_mask"][row, : len(ids)], 1)
        np.testing.assert_array_equal(batch["input_ids"][row, len(ids) :], 0)
    assert set(batch) == {"input_ids", "attention_mask"}
    assert (cls, sep) == (65, 66)


def test_a_pair_has_one_separator_in_between_and_types_on_request():
    processor = etcmodel.BigBirdProcessor(MODEL, has_types=True)
    batch = processor(question="Where is it?", documents=["It is in the north."])
    question, text = pieces("Where is it?"), pieces("It is in the north.")
    np.testing.assert_array_equal(batch["input_ids"][0], [65, *question, 66, *text, 66])
    types = [0] * (len(question) + 2) + [1] * (len(text) + 1)
    np.testing.assert_array_equal(batch["token_type_ids"][0], types)


@pytest.mark.parametrize(
    ("of_tokenizer", "types"),
    [
        ({"tokenizer_class": "BertTokenizerFast"}, [[0, 0, 0, 1, 1]]),
        ({"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids"]}, None),
        ({"tokenizer_class": "BigBirdTokenizer"}, None),
    ],
)
def test_the_folder_of_a_model_with_berts_tokenizer_has_its_types(tmp_path, of_tokenizer, types):
    config = small.config(vocab_size=6, sep_token_id=3)
    etcmodel.BigBirdForSequenceClassification(config, num_labels=2).save_pretrained(tmp_path)
    vocabularies.write(tmp_path, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"])
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(of_tokenizer))
    model = etcmodel.from_pretrained(tmp_path)
    batch = model.processor(question="a", documents=["b"])
    assert batch["input_ids"].tolist() == [[2, 4, 3, 5, 3]]
    assert ("token_type_ids" in batch) == (types is not None)
    if types:
        assert batch["token_type_ids"].tolist() == types
    of_types = model(input_ids=[[2, 4, 3, 5, 3]], token_type_ids=types)
    np.testing.assert_array_equal(model(batch), of_types)


def test_it_goes_with_a_model_through_a_folder(processor, tmp_path):
    config = small.config(vocab_size=len(processor.vocabulary), sep_token_id=66)
    model = etcmodel.BigBirdForQuestionAnswering(config)
    model.save_pretrained(tmp_path, processor)
    again = etcmodel.from_pretrained(tmp_path)
    batch = processor(question="Where?", documents=["In the north."])
    np.testing.assert_array_equal(again(batch)["start"], model(batch)["start"])
    (tmp_path / "processor_config.json").unlink()
    of_vocabulary = etcmodel.from_pretrained(tmp_path).processor
    assert isinstance(of_vocabulary, etcmodel.BigBirdProcessor)
    assert of_vocabulary.config.max_length == config.max_position_embeddings
    with pytest.raises(ValueError, match="holds none of tokenizer.json, vocab.json"):
        etcmodel.BigBirdProcessor.from_pretrained(tmp_path / "elsewhere")


def test_it_explains_who_attends_to_whom(processor):
    batch = processor("The river is long and old and deep and cold and long.")
    config = small.config(block_size=2, num_random_blocks=0)  # Of up to 10 tokens all attend.
    explained = processor.explain(batch, config=config)
    length = batch["input_ids"].shape[1]
    assert length > 12
    assert str(explained.why(4, 1)).endswith("the key is in the first block, of 2 tokens.")
    assert str(explained.why(4, length - 1)).endswith("the key is in the last block, of 2 tokens.")
    assert "attends to" in str(explained.why(4, 7))
    assert "blocks 2 and 4, of 2 tokens, are no neighbors" in str(explained.why(4, 8))
    shorter = processor.explain(processor("The river is long."), config=config)
    assert "all attend to all" in str(shorter.why(1, 5))


@pytest.mark.parametrize("is_seeded_always", [False, True])
def test_random_blocks_of_evaluation_are_left_out_and_it_says_so(processor, is_seeded_always):
    batch = processor("The river is long and old and deep and cold and long.")
    config = small.config(is_seeded_always=is_seeded_always)
    told = str(processor.explain(batch, config=config).why(4, 8))
    aside = " (random blocks aside, which differ by layer)" if is_seeded_always else ""
    assert told.endswith(f"blocks 2 and 4, of 2 tokens, are no neighbors{aside}.")


def test_the_explanation_is_the_models_pattern(processor):
    """Pair by pair, with the counts of the attention itself."""
    batch = processor("The river is long and old and deep and cold and long.")
    config = small.config(vocab_size=len(processor.vocabulary))
    length = batch["input_ids"].shape[1]
    (counts, *_) = etcmodel.BigBirdModel(config).pair_counts({}, length)
    explained = processor.explain(batch, config=config)
    for query in range(length):
        for key in range(length):
            is_told = " attends to " in str(explained.why(query, key))
            assert is_told == bool(counts[0, 0, query, key] > 0), (query, key)
