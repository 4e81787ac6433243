"""The Python of the pages of the systems, docs, as it stands there.

The folders that the pages name hold small models here, with files as those of the real ones.
"""

import contextlib
import io
import pathlib
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.models.seq2seq.generation_config import GenerationConfig
from etcmodel.tools import (
    attention_subjects,
    memory_subjects,
    sequence_subjects,
    transient_subjects,
)
from tests import page
from tests.checkpoints import berts, longformers
from tests.models.bigbird import small as bigbirds
from tests.models.led import models as leds
from tests.models.longt5 import models as longt5s
from tests.models.modernbert import small as modernberts
from tests.models.pegasus_x import models as pegasus_xs
from tests.reference import cases

PAGES = {  # By the number of their blocks.
    "systems.md#etc": 1,
    "systems.md#modernbert": 2,
    "systems.md#bigbird": 1,
    "longformer.md": 3,
    "gmat.md#gmat": 3,
    "summarization.md#led": 1,
    "summarization.md#longt5": 5,
    "summarization.md#pegasus-x": 1,
}
WITH_PICTURES = ["systems.md", "gmat.md", "summarization.md#longt5", "summarization.md#pegasus-x"]
TOKENIZER = cases.topic_folder("longformer") / "tokenizer"
MODERNBERT = cases.topic_folder("modernbert") / "tokenizer"
SENTENCE_PIECES = str(cases.resolve("", "vocab/gpt2_sentencepiece.model"))
PIECES = pathlib.Path(__file__).parents[1] / "fixtures" / "sentence_pieces"
VOCAB_SIZE = 2000
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "river", "is", "long", "a", "."]
GENERATION = {"num_beams": 4, "length_penalty": 2.0, "max_length": 12}


def arrays():
    """What the pages suppose to be there: ids, masks and labels of a batch."""
    ids = leds.ids(2, 11)
    labels = leds.ids(2, 4, seed=1)
    labels[0, -1] = -100
    return {"input_ids": ids, "mask": np.ones_like(ids), "ids": ids, "labels": labels}


class Page:
    """The blocks of a page, run one after the other with the same names, in a folder."""

    def __init__(self, name, folder, **names):
        self.folder, self.names = folder, names
        self._blocks = page.code_and_output(name)

    def __len__(self):
        return len(self._blocks)

    def run(self, number):
        """What the block printed, after what the page shows of it has been compared."""
        code, shown = self._blocks[number]
        with page.working_in(self.folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self.names)  # The library's own page.
        assert not shown or printed.getvalue() == shown
        return printed.getvalue()


def add_tokenizer(folder):
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(TOKENIZER / name, folder / name)


def test_the_number_of_blocks_is_known():
    assert {name: len(page.blocks(name)) for name in PAGES} == PAGES
    names = ("etc", "bigbird", "modernbert")
    parts = [x for name in names for x in page.blocks(f"systems.md#{name}")]
    assert page.blocks("systems.md") == parts


def test_etc(tmp_path):
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(WORDS))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"vocab_size": len(WORDS), "intermediate_size": 8}
    made = etcmodel.EtcModel(etcmodel.EtcConfig(**sizes))
    made.embed([[4, 5]])  # Which builds it.
    processor = etcmodel.EtcProcessor(str(vocab), max_long_len=16, max_global_len=4)
    etcmodel.save_pretrained(made, tmp_path / "etc_base_2x_pretrain", processor)
    run = Page("systems.md#etc", tmp_path)
    run.run(0)
    num_long, num_global = (run.names[f"{side}_output"].shape[1] for side in ("long", "global"))
    assert num_long > 8 and num_global >= 2  # A global token for each of the two sentences.
    assert run.names["vectors"].shape == [2, 8]
    assert len(set(run.names["vectors"].numpy().ravel())) == 16


def test_longformer(tmp_path):
    made = longformers.masked_lm(vocab_size=VOCAB_SIZE, max_position_embeddings=66)
    add_tokenizer(longformers.write(tmp_path / "longformer-base-4096", made))
    run = Page("longformer.md", tmp_path)
    assert not run.run(0)
    model, batch = run.names["model"], run.names["batch"]
    assert sorted(batch) == ["attention_mask", "input_ids"] and len(batch["input_ids"]) == 2
    assert np.isfinite(model(batch)).all()
    told = run.run(1)
    assert "the first token" in told and "of the question" in told
    processor, batch = run.names["processor"], run.names["batch"]
    assert (processor.config.max_length, processor.config.stride) == (4096, 256)
    assert batch["global_attention_mask"].sum() > 3
    model.save_pretrained(tmp_path / "saved", processor)
    loaded = etcmodel.from_pretrained(tmp_path / "saved")
    assert loaded.processor.config == processor.config


def test_modernbert(tmp_path):
    folder = tmp_path / "ModernBERT-base"
    config = modernberts.config(vocab_size=1439, pad_token_id=1429, cls_token_id=1427)
    etcmodel.ModernBertForMaskedLM(config).save_pretrained(folder)
    shutil.copyfile(MODERNBERT / "tokenizer.json", folder / "tokenizer.json")
    run = Page("systems.md#modernbert", tmp_path)
    run.run(0)
    logits, mask = run.names["logits"].numpy(), run.names["batch"]["attention_mask"]
    wanted = etcmodel.from_pretrained(folder)(run.names["batch"]).numpy()
    assert (mask == 0).any() and run.names["model"].config.skip_padding
    np.testing.assert_allclose(logits[mask > 0], wanted[mask > 0], atol=1e-5)
    run.run(1)
    batch, structure = run.names["batch"], run.names["encoder"].structure(run.names["batch"])
    assert run.names["logits"].shape == [1, 2] and batch["links"].max() > 0
    assert (structure["global_token_ids"].numpy() == 1427).all()


def test_bigbird(tmp_path):
    processor = etcmodel.BigBirdProcessor(SENTENCE_PIECES, max_length=64)
    config = bigbirds.config(vocab_size=len(processor.vocabulary), sep_token_id=66)
    made = etcmodel.BigBirdForPreTraining(config)
    made.save_pretrained(tmp_path / "bigbird-roberta-base", processor)
    run = Page("systems.md#bigbird", tmp_path)
    assert "BigBirdForPreTraining" in run.run(0)
    model, batch = run.names["model"], run.names["batch"]
    assert model.config.pattern_by_length
    assert len(batch["input_ids"]) == 2
    assert np.isfinite(model(batch)["prediction_logits"]).all()


@pytest.mark.slow
def test_led(tmp_path):
    made = leds.model(vocab_size=VOCAB_SIZE, max_decoder_position_embeddings=128)
    made.save_pretrained(tmp_path / "led-base-16384")
    add_tokenizer(tmp_path / "led-base-16384")
    run = Page("summarization.md#led", tmp_path, labels=arrays()["labels"][:1])
    run.run(0)
    assert run.names["outputs"]["loss"] > 0
    sequences = run.names["found"]["sequences"]
    assert sequences.shape[0] == 1 and 2 <= sequences.shape[1] <= 128
    model, batch = run.names["model"], run.names["batch"]
    assert model.config.global_positions == (0,)
    again = etcmodel.from_pretrained(tmp_path / "mine")
    np.testing.assert_array_equal(again(**batch)["logits"], model(**batch)["logits"])


@pytest.mark.slow
def test_pegasus_x(tmp_path):
    pegasus_xs.model().save_pretrained(tmp_path / "pegasus-x-base")
    run = Page("summarization.md#pegasus-x", tmp_path, **arrays())
    run.run(0)
    assert run.names["outputs"]["loss"] > 0 and run.names["found"]["sequences"].shape[0] == 2
    again = etcmodel.load_pretrained(tmp_path / "mine")
    outputs = again(arrays()["ids"], attention_mask=arrays()["mask"], labels=arrays()["labels"])
    np.testing.assert_array_equal(outputs["logits"], run.names["outputs"]["logits"])


@pytest.mark.slow
def test_gmat_and_its_heads(tmp_path):
    berts.write_folder(tmp_path / "bert-base-uncased", WORDS)
    ids = arrays()["ids"] % len(WORDS)
    labels = (ids > 4).astype(np.int32)
    names = {**arrays(), "ids": ids, "input_ids": ids, "labels": labels}
    run = Page("gmat.md#gmat", tmp_path, **names)
    run.run(0)
    assert run.names["memory"].shape == (2, 64, berts.HIDDEN)
    model = run.names["model"]
    assert model.config.chunk_size == 1024
    # All of the text is in one chunk, whichever.
    np.testing.assert_array_equal(model(ids)[0], run.names["hidden"])
    run.names["lifted"] = model
    run.run(1)
    assert run.names["model"](ids).shape == (2, 11, 5)


@pytest.mark.slow  # The preset has 41 million weights.
def test_character_models(tmp_path):
    ids = np.random.default_rng(0).integers(0, 256, (1, 33))
    run = Page("longformer.md", tmp_path, ids=ids)
    run.run(2)
    assert run.names["logits"].shape == (1, 33, 256)
    longer = run.names["longer"]
    assert longer.config.attention_window == 1024
    # No character is further away than the lowest window, of 32.
    np.testing.assert_allclose(longer(ids), run.names["logits"], atol=1e-4)
    assert run.names["phase_config"](run.names["PRESETS"]["small"], 2) is not None


@pytest.mark.slow  # Of a BERT's size.
@pytest.mark.exhaustive
def test_a_decoder_of_the_same_weights(tmp_path):
    run = Page("gmat.md#gmat", tmp_path)
    ids = arrays()["ids"][:1]
    run.names |= {"input_ids": ids, "attention_mask": np.ones_like(ids), "labels": ids[:, :4]}
    run.run(2)
    assert run.names["loss"] > 0
    assert run.names["sequences"][0, 0] == 1030 and run.names["sequences"].shape[1] <= 20


@pytest.mark.exhaustive
def test_longt5_and_its_saved_model(tmp_path):
    made = longt5s.model(vocab_size=190)
    made.generation_config = GenerationConfig(GENERATION)
    made.save_pretrained(tmp_path / "long-t5-tglobal-base")
    pieces = "spiece.model"
    shutil.copyfile(PIECES / pieces, tmp_path / "long-t5-tglobal-base" / pieces)
    run = Page("summarization.md#longt5", tmp_path, **arrays())
    for number in range(len(run)):
        run.run(number)
        if number == 1:
            assert run.names["loss"] > 0 and run.names["batch"]["labels"][0, -1] == 1
            assert isinstance(run.names["summary"], str)
            ids = arrays()["ids"]
            run.names["batch"] = {"input_ids": ids, "attention_mask": arrays()["mask"]}
    assert run.names["outputs"]["loss"] > 0
    assert run.names["model"].generation_config.entries.items() >= GENERATION.items()
    expected = run.names["model"].generate(
        run.names["batch"], max_length=64, min_length=0, num_beams=8, length_penalty=2.0
    )
    np.testing.assert_array_equal(run.names["found"]["sequences"], expected["sequences"])
    assert isinstance(run.names["tf"].constant(1), tf.Tensor)


@pytest.mark.parametrize("name", WITH_PICTURES)
def test_the_pictures_that_the_commands_draw_are_known(name):
    text = page.read(name)
    of_others = (memory_subjects, sequence_subjects, transient_subjects)
    known = {name for module in (attention_subjects, *of_others) for name in module.EXAMPLES}
    commands = re.findall(r"^python -m etcmodel\.tools\.draw_attention (.*)$", text, re.MULTILINE)
    assert commands
    for flags in commands:
        given = dict(re.findall(r"--(\w+)=(\S+)", flags))
        assert set(given) == {"example", "output"}
        assert given["example"] in known
