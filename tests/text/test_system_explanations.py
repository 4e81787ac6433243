"""Explanations for GMAT, LongT5 and PEGASUS-X: chunks, blocks, and what is global."""

import itertools
import pathlib

import numpy as np
import pytest

from etcmodel.models.gmat import GmatConfig
from etcmodel.models.longt5 import LongT5Config
from etcmodel.models.pegasus_x import PegasusXConfig
from etcmodel.text.gmat_processor import GmatProcessor
from etcmodel.text.seq2seq_processor import Seq2SeqProcessor
from tests import vocabularies

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "is", "the", "river", "long", "."]
VOCAB = pathlib.Path(__file__).parents[1] / "fixtures" / "sentence_pieces" / "spiece.model"
TEXT = "Rain fell on the stone bridge."


@pytest.fixture
def gmat(tmp_path):
    vocab = vocabularies.write(tmp_path, WORDS)
    return lambda **settings: GmatProcessor(vocab, **settings)


QUESTION = {"question": "Is the", "documents": ["The river.", "Long"]}


def test_of_gmat_a_table_tells_chunks_and_the_memory(gmat):
    processor = gmat()
    config = GmatConfig(chunk_size=4, num_memory_tokens=3)
    told = processor.explain(processor([QUESTION, "Long."]), config=config)
    lines = str(told).splitlines()
    assert lines[:2] == [
        "example 0, window 0: row 0",
        "The memory is the model's own, 3 vectors: every token attends to it, and it attends to "
        "all.",
    ]
    assert lines[2].split() == ["place", "token", "from", "chunk"]
    assert [line.split()[1] for line in lines[3:]] == [
        *("[CLS]", "is", "the", "[SEP]", "the", "river", ".", "long", "[SEP]")
    ]
    assert [line.split()[-1] for line in lines[3:]] == [*"000011112"]
    assert told.why(4, 7) == "4 'the' attends to 7 'long': both are in chunk 1, of 4 tokens."
    assert told.why(0, 7) == (
        "0 '[CLS]' does not attend to 7 'long': chunks 0 and 1, of 4 tokens; what it needs "
        "goes through the memory."
    )
    second = processor.explain(processor([QUESTION, "Long."]), example=1, config=config)
    assert second.why(0, 8) == "0 '[CLS]' does not attend to 8 '<pad>': padding."


def test_of_gmat_the_memory_may_be_the_questions_or_none(gmat):
    processor = gmat(question_memory=5)
    batch = processor(QUESTION)
    assert "the first tokens of the question, 'is the'" in processor.explain(batch).global_reason
    config = GmatConfig(chunk_size=4, num_memory_tokens=0)
    told = gmat().explain(gmat()(QUESTION), config=config)
    assert told.global_reason == "There is no memory: no token attends beyond its chunk."
    assert told.why(0, 5).endswith("and there is no memory.")


def longt5(**changes):
    sizes = {
        "local_radius": 2,
        "global_block_size": 3,
        "encoder_attention_type": "transient-global",
    }
    return LongT5Config(**{**sizes, **changes})


def test_of_longt5_tokens_see_a_window_and_sums_of_full_blocks():
    processor = Seq2SeqProcessor(VOCAB)
    batch = processor([TEXT, "Rain"])
    size = int(batch["attention_mask"][0].sum())
    told = processor.explain(batch, config=longt5())
    blocks = [line.split()[-1] for line in str(told).splitlines()[3:]]
    assert blocks == [str(min(place // 3, size // 3 - 1)) for place in range(size)]
    assert f"Each of {size // 3} full blocks of 3 tokens" in told.global_reason
    for query, key in itertools.product(range(size), repeat=2):
        sees = f"{key} " in told.why(query, key).partition(" attends to ")[2]
        assert sees == (abs(query - key) <= 2)
    assert told.why(0, size - 1).endswith(
        f"but it attends to block {blocks[-1]}, whose sum has it."
    )
    short = processor.explain(batch, example=1, config=longt5(global_block_size=50))
    assert short.global_reason == "Nothing is global: no block of 50 tokens is full."
    local = processor.explain(batch, config=longt5(encoder_attention_type="local"))
    assert local.global_reason == "Nothing is global: the attention is local."
    assert local.why(0, 5).endswith("beyond the radius of 2.")


@pytest.mark.parametrize("staggered", [True, False])
def test_of_pegasus_x_tokens_see_their_block_of_each_layer(staggered):
    processor = Seq2SeqProcessor(VOCAB, id_offset=103)
    batch = processor(TEXT)
    size = batch["input_ids"].shape[1]
    config = PegasusXConfig(block_size=4, num_global_tokens=7, stagger_local_blocks=staggered)
    told = processor.explain(batch, config=config)
    assert "7 global tokens of its own" in str(told).splitlines()[1]
    for query, key in itertools.product(range(size), repeat=2):
        in_some_layer = query // 4 == key // 4
        if staggered:
            in_some_layer |= (query + 2) // 4 == (key + 2) // 4
        assert (" does not attend to " not in told.why(query, key)) == in_some_layer


def test_tokens_are_the_pieces_of_the_text():
    processor = Seq2SeqProcessor(VOCAB, extra_ids=100)
    batch = processor("<extra_id_0> rain")
    lines = str(processor.explain(batch, config=longt5())).splitlines()[3:]
    assert lines[0].split()[1] == "<extra_id_0>" and lines[-1].split()[1] == "</s>"
    text = "".join(line.split()[1] for line in lines[1:-1]).replace("\u2581", " ")
    assert text.strip() == "rain"
    assert np.asarray(batch["input_ids"]).shape[1] == len(lines)


def test_what_is_not_there_is_named():
    processor = Seq2SeqProcessor(VOCAB)
    batch = processor(TEXT)
    with pytest.raises(ValueError, match="The batch has 1 texts, counted from 0, and no 1"):
        processor.explain(batch, example=1, config=longt5())
    with pytest.raises(ValueError, match="`config` must be that of a LongT5 or PEGASUS-X"):
        processor.explain(batch, config=GmatConfig())
    with pytest.raises(ValueError, match="`query` must be a place in a row of .* Received: 99"):
        processor.explain(batch, config=longt5()).why(99, 0)
