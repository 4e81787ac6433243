"""The models of both encoders on the features of records, and their loss."""

import math

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import heads, processed_batches, span_readers
from etcmodel.models.bigbird import BigBirdConfig
from etcmodel.models.gmat import GmatConfig
from etcmodel.models.longformer.config import LongformerConfig
from etcmodel.models.longformer.modeling import LongformerForQuestionAnswering
from etcmodel.models.modeling import EtcConfig
from etcmodel.tasks.triviaqa import examples, features
from tests.models import etcs
from tests.tasks.triviaqa.questions import VOCAB, input_config, raw_question, tokenizer

SIZES = {"vocab_size": len(VOCAB), **etcs.sizes(intermediate_size=8)}
CONFIGS = {
    "etc": EtcConfig(**SIZES, local_radius=4, relative_pos_max_distance=2, relative_vocab_size=8),
    "longformer": LongformerConfig(**SIZES, attention_window=4, max_position_embeddings=40),
    "gmat": GmatConfig(**SIZES, chunk_size=6, num_memory_tokens=2),
    "big_bird": BigBirdConfig(**SIZES, block_size=2, num_random_blocks=1, pattern_by_length=True),
}
FOR_DECODING = {"question_id", "document", "text"}


def batch(tmp_path, *texts, **fields):
    """Features of texts, a record each, without their strings."""
    settings = input_config(**fields)
    processor = settings.make_processor(tokenizer(tmp_path))
    raw = raw_question(SearchResults=[{"Text": text} for text in texts])
    made = features.make_features(examples.parse_example(raw), settings, processor).windows
    names = set(made[0]) - FOR_DECODING
    return {name: tf.constant([features[name] for features in made]) for name in names}


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_and_features_for_others_change_nothing(tmp_path, name):
    made = span_readers.make_span_reader(CONFIGS[name])
    texts = ("It was the red king.", "A red king of mud, it was.")
    short, long = (
        made(batch(tmp_path, *texts, long_seq_length=long, global_seq_length=8, is_training=train))
        for long, train in ((16, True), (24, False))
    )
    for end in ("start", "end"):
        is_text = processed_batches.is_text(batch(tmp_path, *texts)).numpy()
        np.testing.assert_allclose(
            short[end].numpy()[is_text], long[end].numpy()[:, :16][is_text], atol=1e-5
        )


@pytest.mark.parametrize("name", CONFIGS)
def test_facts_are_tagged_beside_the_ends_of_answers(tmp_path, name):
    given = batch(tmp_path, "It was the red king.", "mud", long_seq_length=24)
    plain = span_readers.make_span_reader(CONFIGS[name])
    made, skipping = (
        span_readers.make_span_reader(CONFIGS[name], tags_facts=True, skip_padding=skips)
        for skips in (False, True)
    )
    skipping.set_weights(made.get_weights())
    by_name = {x.name: x for x in made.weights}
    for weight in plain.weights:
        weight.assign(by_name[weight.name])
    told, wanted = made(given), plain(given)
    is_token = given["example_ids"].numpy() > 0
    for found in (told, skipping(given)):
        assert found["facts"].shape == (*is_token.shape, 2)
        for output in ("start", "end", "facts"):
            expected = told[output] if output == "facts" else wanted[output]
            np.testing.assert_allclose(found[output][is_token], expected[is_token], atol=1e-5)
    tags = np.zeros(is_token.shape, np.int32)
    with tf.GradientTape() as tape:
        loss = span_readers.facts_loss(made(given), {**given, "labels/facts": tags})
    assert any(np.any(x) for x in tape.gradient(loss, made.facts.weights))


def test_etc_is_the_head_model_itself(tmp_path):
    made = span_readers.make_span_reader(CONFIGS["etc"])
    plain = heads.EtcForQuestionAnswering(made.encoder, answer_types=(), evidence=False)
    plain.set_weights(made.get_weights())
    features = batch(tmp_path, "It was the red king.")
    expected = plain({name: x for name, x in features.items() if "labels" not in name})
    found = made(features)
    assert set(found) == {"start", "end"}
    np.testing.assert_allclose(found["end"], expected["end"])


def test_longformer_has_the_question_global(tmp_path):
    made = span_readers.make_span_reader(CONFIGS["longformer"])
    plain = LongformerForQuestionAnswering(made.encoder)
    plain.set_weights(made.get_weights())
    features = batch(tmp_path, "It was the red king.")
    is_token = features["example_ids"].numpy()
    expected = plain(
        {
            "input_ids": np.where(
                is_token, features["token_ids"], plain.encoder.config.pad_token_id
            ),
            "attention_mask": is_token,
            "token_type_ids": features["segment_ids"].numpy(),
            "global_attention_mask": [[1, 1, 1, 1] + [0] * 12],  # [CLS] who was it
        }
    )
    found = made(features)
    np.testing.assert_allclose(found["start"], expected["start"], atol=1e-6)


def slow_loss(logits, is_right, is_text):
    """-log of the probability of any right position, among those of the text."""
    total = sum(math.exp(x) for x, allowed in zip(logits, is_text, strict=True) if allowed)
    right = sum(math.exp(x) for x, y in zip(logits, is_right, strict=True) if y)
    return -math.log(right / total) if right else 0.0


def test_the_loss_is_that_of_any_answer_on_the_document_alone(tmp_path):
    features = batch(tmp_path, "A red king, the red king.", "The red king was red.")
    assert features["labels/starts"].numpy().sum(axis=1).tolist() == [2, 1]
    nothing = {name: tf.zeros_like(features[name][:1]) for name in features if "/" in name}
    features = {name: tf.concat([x, nothing.get(name, x[:1])], 0) for name, x in features.items()}
    random = np.random.default_rng(0)
    outputs = {name: random.normal(0, 2, [3, 16]).astype(np.float32) for name in ("start", "end")}
    found = span_readers.loss(outputs, features)
    is_text = np.zeros([3, 16], bool)
    is_text[0, 5:13] = is_text[1, 5:11] = is_text[2, 5:13] = True
    slow = {
        end: np.mean(
            [
                slow_loss(*rows)
                for rows in zip(
                    outputs[end], features[f"labels/{end}s"].numpy(), is_text, strict=True
                )
            ]
        )
        for end in outputs
    }
    assert float(found["start_loss"]) == pytest.approx(slow["start"], rel=1e-5)
    assert float(found["end_loss"]) == pytest.approx(slow["end"], rel=1e-5)
    assert float(found["loss"]) == pytest.approx((slow["start"] + slow["end"]) / 2, rel=1e-5)


def test_a_batch_without_answers_has_a_gradient_of_zero(tmp_path):
    features = batch(tmp_path, "the red king.")
    features |= {name: tf.zeros_like(features[name]) for name in features if "/" in name}
    logits = tf.Variable(tf.random.stateless_normal([1, 16], [1, 2]))
    with tf.GradientTape() as tape:
        total = span_readers.loss({"start": logits, "end": logits}, features)["loss"]
    assert float(total) == 0.0
    np.testing.assert_array_equal(tape.gradient(total, logits), np.zeros([1, 16]))
