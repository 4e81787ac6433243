"""A Longformer with RoBERTa's kind of vocabulary, from raw texts to served labels."""

import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import checkpoints
from etcmodel.models.longformer import (
    LongformerConfig,
    LongformerForMaskedLM,
    LongformerForSequenceClassification,
)
from etcmodel.preprocessing import program
from etcmodel.tasks.classification import predict, preprocess
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from tests.models import etcs
from tests.reference import cases
from tests.tasks import programs

pytestmark = pytest.mark.slow

VOCAB = cases.topic_folder("longformer") / "tokenizer" / "vocab.json"
TEXTS = ["The miller's wife.", "Ein Müller", "It is 1815, and it rains!", "No."]


@pytest.mark.exhaustive
def test_a_pre_trained_folder_becomes_a_served_classifier(tmp_path):
    config = LongformerConfig(
        vocab_size=2000,
        **etcs.sizes(intermediate_size=8),
        attention_window=4,
        max_position_embeddings=34,
        type_vocab_size=1,
    )
    tokenizer = ByteLevelTokenizer.of_file(str(VOCAB))
    pretrained = tmp_path / "pretrained"
    etcmodel.save_pretrained(LongformerForMaskedLM(config), pretrained, tokenizer)
    raws = [{"id": str(n), "text": x, "label": "ab"[n % 2]} for n, x in enumerate(TEXTS)]
    raw_file = tmp_path / "train.jsonl"
    raw_file.write_text("".join(f"{json.dumps(raw)}\n" for raw in raws), encoding="utf-8")
    options = preprocess.PreprocessOptions(
        input_pattern=str(raw_file),
        output_prefix=str(tmp_path / "train"),
        vocab_file=str(pretrained / "vocab.json"),
        long_seq_length=32,
        global_seq_length=8,
        num_shards=1,
        strict=True,
    )
    list(program.run(options, preprocess.load_parts))
    programs.fine_tune(
        "classification",
        output_dir=tmp_path / "run",
        model_config_file=pretrained / "config.json",
        init_checkpoint=pretrained,
        vocab_file=pretrained / "vocab.json",
        train_data=tmp_path / "train-*.tfrecord",
        train_batch_size=4,
        num_train_epochs=1,
    )
    programs.fine_tune("classification", run_mode="export", output_dir=tmp_path / "run")
    predictor = predict.ClassificationPredictor(str(tmp_path / "run" / "export"))
    assert isinstance(predictor.tokenizer, ByteLevelTokenizer)
    found = [told["probabilities"]["a"] for told in predictor.predict(raws)]
    model = LongformerForSequenceClassification(config)
    checkpoints.initialize(model, str(tmp_path / "run"))
    for text, probability in zip(TEXTS, found, strict=True):
        ids = tokenizer.encode(text).ids
        (example,) = predictor.make_features(predictor.parse_example({"text": text}))
        assert example["token_ids"][: len(ids)] == ids
        assert sum(example["example_ids"]) == len(ids)
        expected = tf.nn.softmax(model(np.array([ids])))[0, 0]
        assert probability == pytest.approx(float(expected), abs=1e-5)
