"""Heads on LongT5's encoder: what they compute, their names in files, and their way to texts.

What holds for others, too, is in `test_text_heads`.
"""

import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.checkpoints import hugging_face
from etcmodel.models import sequence_classifiers
from etcmodel.models.longt5 import (
    LongT5EncoderModel,
    LongT5ForSequenceClassification,
    LongT5ForTokenClassification,
)
from tests.models.longt5 import models
from tests.text import pieces_as_json

PIECES = pathlib.Path(__file__).parents[2] / "fixtures" / "sentence_pieces" / "spiece.model"
IDS = models.ids(2, 7)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", [LongT5ForSequenceClassification, LongT5ForTokenClassification])
def test_a_new_head_reads_the_encoder_of_a_whole_models_folder(kind, tmp_path):
    models.model().save_pretrained(tmp_path / "whole")
    model = kind.from_pretrained(tmp_path / "whole", num_labels=3)
    mask = np.array([[1] * 7, [1] * 4 + [0] * 3])
    inputs = {"input_ids": IDS, "attention_mask": mask}
    encoder = etcmodel.from_pretrained(tmp_path / "whole", as_class=LongT5EncoderModel)
    hidden = encoder(**inputs)["last_hidden_state"].numpy()
    if kind is LongT5ForTokenClassification:
        expected = hidden @ model.logits.weights[0].numpy().T
    else:
        vectors = np.stack(
            [row[: sum(real)].mean(0) for row, real in zip(hidden, mask, strict=True)]
        )
        kernel, *_ = model.classifier_dense.get_weights()
        expected = np.tanh(vectors @ kernel) @ model.logits.weights[0].numpy().T
    outputs = model(**inputs, output_hidden_states=True)
    np.testing.assert_allclose(outputs["logits"], expected, atol=1e-5)
    assert len(outputs["hidden_states"]) == model.config.num_layers + 1
    # And back: the encoder of a head's folder.
    model.save_pretrained(tmp_path / "head")
    again = LongT5EncoderModel.from_pretrained(tmp_path / "head")
    np.testing.assert_array_equal(again(**inputs)["last_hidden_state"], hidden)


def test_names_in_files_are_those_of_t5s_heads():
    found = {}
    for kind, head in (
        (LongT5ForTokenClassification, ["classifier"]),
        (
            LongT5ForSequenceClassification,
            ["classification_head.dense", "classification_head.out_proj"],
        ),
    ):
        names = set(hugging_face.values(kind(models.config())))
        found[kind] = {name for name in names if name.startswith("transformer.")}
        assert names - found[kind] == {f"{x}.{y}" for x in head for y in ("weight", "bias")}
    encoder = LongT5EncoderModel(models.config())
    encoder.build(None)
    inner = {f"transformer.{name}" for name in hugging_face.values(encoder)}
    assert list(found.values()) == [inner, inner]


def test_another_systems_head_is_refused(tmp_path):
    models.model().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="Wanted: LongformerForTokenClassification"):
        etcmodel.LongformerForTokenClassification.from_pretrained(tmp_path)


@pytest.fixture
def folder(tmp_path):
    """A LongT5 as Hugging Face has it: weights, and a SentencePiece model without a start token."""
    models.model(vocab_size=200).save_pretrained(tmp_path / "longt5")
    shutil.copyfile(PIECES, tmp_path / "longt5" / "spiece.model")
    return tmp_path / "longt5"


@pytest.mark.slow
def test_it_learns_from_texts(folder, tmp_path):
    model = LongT5ForSequenceClassification.from_pretrained(folder, labels=["dry", "wet"])
    rows = [f"{text},{label}\n" for text, label in (("Rain fell.", "wet"), ("stone", "dry")) * 2]
    (tmp_path / "rows.csv").write_text("".join(["text,label\n", *rows]))
    model.compile(run_eagerly=True)
    model.optimizer.learning_rate = 0.05
    model.fit(str(tmp_path / "rows.csv"), epochs=5, verbose=0)
    texts = ["Rain fell.", "stone"]
    for given in (texts, [{"text": text} for text in texts]):
        assert model.predict(given, as_labels=True, verbose=0) == ["wet", "dry"]
    with pytest.raises(ValueError, match="must have one text. Received: .*question.*text"):
        model.predict([{"question": "Why?", "text": "Rain fell."}], verbose=0)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("file", ["spiece.model", "tokenizer.json"])
def test_the_programs_classifier_reads_what_the_model_reads(file, folder):
    """Batches of `EtcProcessor` begin with a token that T5's texts do not have."""
    if file == "tokenizer.json":
        (folder / "spiece.model").unlink()
        pieces_as_json.write(PIECES, folder / file, extra_ids=100)
    model = etcmodel.from_pretrained(folder)
    made = sequence_classifiers.make_sequence_classifier(
        model.config,
        num_labels=2,
        problem_type="single_label_classification",
        pooling="mean",
        skip_padding=True,
    )
    plain = LongT5ForSequenceClassification(made.encoder, num_labels=2)
    plain.set_weights(made.get_weights())
    texts = ["Rain fell on the stone bridge.", "river"]
    batch = etcmodel.EtcProcessor(str(folder / file))(texts)
    found = made({name: tf.constant(x) for name, x in batch.items()})
    np.testing.assert_allclose(found, plain(dict(model.processor(texts))), atol=1e-5)
