"""The processor of an authors' folder feeds the model what its checkpoint was trained with."""

import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import writing
from etcmodel.models import encoders
from etcmodel.pretrain import config as pretrain_config
from etcmodel.pretrain import features as pretrain_examples
from etcmodel.tasks.hotpotqa import examples as hotpotqa_examples_examples
from etcmodel.tasks.hotpotqa import features as hotpotqa_examples
from etcmodel.tasks.hotpotqa.config import HotpotQAInputConfig
from etcmodel.text.sentence_splitting import sentence_splitter
from tests.checkpoints import berts
from tests.models import etcs
from tests.tasks.hotpotqa.raw_examples import raw_example

TEXT = "The song sings of the rose. What is red?"
WORDS = ["what", "is", "red", "green", "blue", "the", "a", "rose", "song", "sings", "of"]
WORDS += ["it", "and", "one", "two", "?", ".", ","]
VOCAB = ["[PAD]", *(f"[unused{i}]" for i in range(5)), "[UNK]", "[CLS]", "[SEP]", *WORDS]
CLS = VOCAB.index("[CLS]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """As a checkpoint of the authors is unpacked: `etc_config.json`, `model.ckpt.*`, vocabulary."""
    folder = tmp_path_factory.mktemp("released")
    config = etcmodel.EtcConfig(
        vocab_size=len(VOCAB),
        **etcs.sizes(intermediate_size=16),
        local_radius=4,
        initializer_range=0.5,
    )
    model = encoders.build_encoder(config)
    values = {name: v.numpy() for name, v in checkpoints.release_names(model).items()}
    writing.write(values, str(folder), "released", config=config)
    (folder / "vocab.txt").write_text("\n".join(VOCAB), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return etcmodel.from_pretrained(folder)


def test_a_text_is_fed_as_in_pre_training(model):
    settings = {"whole_token": False, "special_tokens": False}
    batch = model.processor(TEXT, settings=settings)
    lengths = {"long_seq_length": 11, "global_seq_length": 2}
    (features,) = pretrain_examples.make_windows(
        [{"text": TEXT}],
        pretrain_config.PretrainInputConfig(min_sentences=1, **lengths),
        model.processor.tokenizer,
        sentence_splitter("simple"),
    ).features
    assert batch["token_ids"].tolist() == [features["long_token_ids"]]
    assert batch["links"].tolist() == [features["sentence_ids"]]
    assert batch["global_token_ids"].tolist() == [features["global_token_ids"]] == [[1, 1]]
    # What the release's model adds where it is given no segments.
    assert batch["segment_ids"].tolist() == [[1] * 11]
    assert batch["global_segment_ids"].tolist() == [[0, 0]]
    arguments = model.structure(batch)
    outputs = model(**arguments)
    del arguments["segment_ids"], arguments["global_segment_ids"]
    for output, released in zip(outputs, model(**arguments), strict=True):
        np.testing.assert_array_equal(output, released)


def test_a_question_and_a_text_are_one_segment_after_a_global_cls(model):
    batch = model.processor(question="What is red?", text=TEXT)
    assert batch["segment_ids"].tolist() == [[1] * 18]
    assert batch["global_token_ids"].tolist() == [[CLS, 1, 1, 1]]
    assert batch["global_segment_ids"].tolist() == [[0] * 4]


def test_hotpotqa_is_fed_as_its_task_does(model):
    raw = raw_example()
    documents = [{"title": title, "sentences": texts} for title, texts in raw["context"]]
    processor = etcmodel.EtcProcessor(
        model.processor.tokenizer,
        question_globals="tokens",
        separators=False,
        global_token_id=1,
        global_tokens={"question": "[unused2]", "document": "[unused4]"},
        segment_id=1,
        segments={"question": 3, "title": 2},
    )
    batch = processor(question=raw["question"], documents=documents)
    lengths = {"long_seq_length": None, "global_seq_length": None, "is_training": False}
    config = HotpotQAInputConfig.for_tokenizer(processor.tokenizer, **lengths)
    example = hotpotqa_examples_examples.parse_example(raw)
    features = hotpotqa_examples.make_features(example, config, processor.tokenizer).features
    for name, task_name in {
        "token_ids": "long_token_ids",
        "segment_ids": "long_token_type_ids",
        "global_token_ids": "global_token_ids",
        "global_segment_ids": "global_token_type_ids",
    }.items():
        assert batch[name].tolist() == [features[task_name]], name
    # The task links the CLS token to nothing, the processor to the global CLS token.
    assert batch["links"][0, 0] == 0
    assert batch["links"][0, 1:].tolist() == features["long_sentence_ids"][1:]


def test_the_settings_are_kept_with_the_model(model, tmp_path):
    model.save_pretrained(tmp_path / "model")
    entries = json.loads((tmp_path / "model" / "processor_config.json").read_text())
    assert (entries["global_token_id"], entries["segment_id"]) == (1, 1)
    loaded = etcmodel.from_pretrained(tmp_path / "model")
    assert loaded.processor.config == model.processor.config


def test_a_bert_keeps_its_own_segments(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "river"]
    processor = etcmodel.from_pretrained(berts.write_folder(tmp_path / "bert", words)).processor
    assert (processor.config.global_token_id, processor.config.segment_id) == (None, None)
    batch = processor(question="the", text="river")
    assert batch["segment_ids"].tolist() == [[0, 0, 0, 1, 1]]


def test_an_id_that_the_vocabulary_lacks_is_refused(folder):
    line = r"`global_token_id` must be an id of the vocabulary '.*vocab.txt'. Received: 99$"
    with pytest.raises(ValueError, match=line):
        etcmodel.EtcProcessor(str(folder / "vocab.txt"), global_token_id=99)
    with pytest.raises(ValueError, match="`segment_id` must be an int of at least 0"):
        etcmodel.EtcProcessor(str(folder / "vocab.txt"), segment_id=-1)


def test_the_model_reads_the_batch(model):
    batch = model.processor([TEXT, "A rose."])
    assert np.isfinite(model.embed(batch)).all()
    assert tf.reduce_max(batch["links"]) < batch["global_token_ids"].shape[1]
