"""What the programs make of a ModernBERT: classifier, span reader, masked windows."""

import numpy as np
import pytest

import etcmodel
from etcmodel.models import sequence_classifiers, span_readers
from etcmodel.pretrain import model as pretrain_model
from tests.models.modernbert import small
from tests.models.random_weights import randomize
from tests.reference import cases

TOKENIZER = str(cases.topic_folder("modernbert") / "tokenizer" / "tokenizer.json")


def config(**changes):
    return small.config(vocab_size=1439, pad_token_id=1429, **changes)


def batch_of(examples):
    batch = etcmodel.EtcProcessor(TOKENIZER)(examples)
    rows = etcmodel.ModernBertProcessor(TOKENIZER)(
        [{**x, "documents": [x["documents"][0]]} if "documents" in x else x for x in examples]
    )
    np.testing.assert_array_equal(batch["token_ids"], rows["input_ids"])
    return dict(batch), rows


@pytest.mark.parametrize("skip_padding", [False, True])
def test_texts_are_classified(skip_padding):
    batch, rows = batch_of([{"text": "Emma is a novel."}, {"text": "Good."}])
    model = sequence_classifiers.make_sequence_classifier(
        config(classifier_pooling="mean", skip_padding=skip_padding),
        num_labels=3,
        problem_type="single_label_classification",
        pooling="first",
        skip_padding=skip_padding,
    )
    randomize(model)
    plain = etcmodel.ModernBertForSequenceClassification(model.encoder, num_labels=3)
    plain.set_weights(model.get_weights())
    np.testing.assert_allclose(model(batch), plain(rows), atol=1e-5)


def test_answers_are_found():
    examples = [
        {"question": "Who wrote Emma?", "documents": ["Emma is by Jane Austen."]},
        {"question": "Who?", "documents": ["Jane."]},
    ]
    batch, rows = batch_of(examples)
    model = span_readers.make_span_reader(config())
    randomize(model)
    plain = etcmodel.ModernBertForQuestionAnswering(model.encoder)
    plain.set_weights(model.get_weights())
    for end, logits in model(batch).items():
        np.testing.assert_allclose(logits, plain(rows)[end], atol=1e-5)


def test_masked_words_of_windows_are_predicted():
    model = pretrain_model.make_text_model(config())
    randomize(model)
    ids = small.ids(7, 2)
    features = {
        "long_token_ids": ids,
        "sentence_ids": np.array([[0] * 7, [0] * 4 + [-1] * 3]),
        "mlm_positions": np.array([[1, 4], [2, 0]]),
        "mlm_labels": np.array([[5, 6], [7, 0]]),
    }
    outputs = model({x: y.astype(np.int32) for x, y in features.items()})
    plain = pretrain_model.plain_masked_lm(model)
    assert type(plain) is etcmodel.ModernBertForMaskedLM
    is_token = features["sentence_ids"] >= 0
    logits = plain(np.where(is_token, ids, 1429), attention_mask=is_token.astype(np.int32))
    wanted = np.take_along_axis(logits.numpy(), features["mlm_positions"][..., np.newaxis], 1)
    np.testing.assert_array_equal(outputs["mlm_token_ids"], wanted.argmax(-1))
