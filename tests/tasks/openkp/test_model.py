"""The OpenKP model: words, n-grams, visual features, the best places."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.tasks.openkp import config as openkp_config
from etcmodel.tasks.openkp import examples, features, model
from etcmodel.tasks.openkp.config import VisualConfig
from tests.models import etcs
from tests.tasks.openkp.pages import page

VOCAB_SIZE, LONG, GLOBAL = 40, 16, 5


etc_config = functools.partial(
    etcs.config,
    vocab_size=VOCAB_SIZE,
    intermediate_size=16,
    local_radius=3,
    relative_pos_max_distance=3,
    relative_vocab_size=10,
)


def make_model(visual_config=None, **options):
    tf_keras.utils.set_random_seed(3)
    made = model.OpenKpModel(etc_config(), visual_config=visual_config, kp_max_length=3, **options)
    made.build()
    rng = np.random.default_rng(0)
    for variable in made.variables:  # Biases too.
        variable.assign(variable + rng.normal(scale=0.3, size=variable.shape))
    return made


def features_of(pages, **fields):
    """A batch; every word of n letters has n // 3 + 1 tokens."""
    config = openkp_config.OpenKpInputConfig(
        long_seq_length=LONG, global_seq_length=GLOBAL, is_training=False, **fields
    )

    def tokenize_word(word):
        return [ord(char) % VOCAB_SIZE for char in word[::3]]

    made = [
        features.make_features(examples.parse_example(raw), config, tokenize_word).features
        for raw in pages
    ]
    return {name: tf.constant([features[name] for features in made]) for name in made[0]}


PAGES = [page("a red rose", "in gardens"), page("roses grow", "near", "some houses today", "too")]


def test_a_batch_equals_its_pages_one_by_one():
    made = make_model()
    together = made(features_of(PAGES))
    for row, raw in enumerate(PAGES):
        alone = made(features_of([raw]))
        np.testing.assert_allclose(
            together["ngram_logits"][row], alone["ngram_logits"][0], atol=1e-4
        )


def test_padding_changes_no_logit():
    made = make_model()
    features = features_of(PAGES[:1])
    expected = made(features)["ngram_logits"]
    is_long = {name: name.startswith("long") for name in features}
    padded = {
        name: tf.pad(value, [[0, 0], [0, 3 if is_long[name] else 2]])
        for name, value in features.items()
    }
    actual = made(padded)["ngram_logits"]
    np.testing.assert_allclose(actual[:, :, :LONG], expected, atol=1e-4)
    assert np.all(actual[:, :, LONG:] < -5000)


@pytest.mark.exhaustive
def test_xla_equals_eager():
    made = make_model()
    features = features_of(PAGES)
    eager = made(features)
    graph = tf.function(made, jit_compile=True)(features)
    np.testing.assert_allclose(graph["ngram_logits"], eager["ngram_logits"], atol=1e-4)
    np.testing.assert_array_equal(graph["top_start_idx"], eager["top_start_idx"])


def test_the_best_ngrams_are_of_the_page():
    outputs = make_model(max_position_predictions=20)(features_of(PAGES))
    logits = outputs["ngram_logits"].numpy()
    num_real = 5 + 4 + 3  # N-grams of 1, 2 and 3 of the 5 words of the first page.
    assert np.all(outputs["top_phrase_len"][0, :num_real] > 0)
    assert not np.any(outputs["top_phrase_len"][0, num_real:])
    for start, length, logit in zip(
        outputs["top_start_idx"][0, :num_real],
        outputs["top_phrase_len"][0, :num_real],
        outputs["top_logits"][0, :num_real],
        strict=True,
    ):
        assert start + length <= 5
        assert logits[0, length - 1, start] == logit
    assert np.all(np.diff(outputs["top_logits"][0]) <= 0)


def test_an_ngram_logit_depends_on_its_own_words_alone_given_the_encoder():
    made = make_model()
    words = np.random.default_rng(1).normal(size=[1, LONG, 8]).astype(np.float32)
    changed = words.copy()
    changed[0, 4, 0] += 1.0
    mask = tf.ones([1, made.kp_max_length, LONG], tf.bool)
    before, after = (made.scorer(tf.constant(x), mask)[0].numpy() for x in (words, changed))
    for size in (1, 2, 3):
        moved = np.flatnonzero(np.abs(before - after)[size - 1] > 1e-6)
        assert list(moved) == list(range(4 - size + 1, 5))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("use_in_long", [False, True])
@pytest.mark.parametrize("use_in_global", [False, True])
def test_visual_features_matter_where_they_are_used(use_in_long, use_in_global):
    config = VisualConfig(use_in_long=use_in_long, use_in_global=use_in_global)
    made = make_model(config)
    features = features_of(PAGES[:1])
    bold = {**features, "global_bold_indicator": 1 - features["global_bold_indicator"]}
    same = np.allclose(made(features)["ngram_logits"], made(bold)["ngram_logits"], atol=1e-5)
    assert same == (not (use_in_long or use_in_global))


def test_fixed_blocks_work_without_visual_features():
    made = make_model(VisualConfig(use_in_long=False, use_in_global=False))
    outputs = made(features_of(PAGES, fixed_block_len=4))
    assert np.all(np.isfinite(outputs["ngram_logits"]))


def test_logits_are_float32_in_mixed_precision():
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        mixed = make_model()
        outputs = mixed(features_of(PAGES))
        assert mixed.ngram_convs[0].compute_dtype == "bfloat16"
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    assert outputs["ngram_logits"].dtype == tf.float32
    expected = make_model()(features_of(PAGES))["ngram_logits"]
    real = expected > -5000
    np.testing.assert_allclose(outputs["ngram_logits"][real], expected[real], atol=0.3)


def test_words_are_remembered():
    calls = []

    class Tokenizer:
        def tokenize(self, word):
            calls.append(word)
            return [word]

        def convert_tokens_to_ids(self, tokens):
            return [len(token) for token in tokens]

    tokenize_word = features.word_tokenizer(Tokenizer())
    assert [tokenize_word(word) for word in ("red", "rose", "red")] == [[3], [4], [3]]
    assert calls == ["red", "rose"]
