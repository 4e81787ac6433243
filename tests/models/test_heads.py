"""Models with heads: what they compute, learn, and refuse."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.layers.heads import MASKED_LOGIT
from etcmodel.models import encoders, heads, pooling
from etcmodel.models.heads import losses
from etcmodel.models.longformer.modeling import LongformerHead
from tests.models import head_cases
from tests.models.longformer import small as longformers

every_head = pytest.mark.parametrize("name", head_cases.CASES)
made = functools.cache(head_cases.make)  # For what only reads.


@functools.cache
def encoder():
    return encoders.build_encoder(head_cases.config())


@pytest.fixture(autouse=True)
def seed():
    tf_keras.utils.set_random_seed(0)


def assert_same(actual, expected):
    tf.nest.map_structure(np.testing.assert_array_equal, actual, expected)


def learned(name, epochs=20):
    """The history of a fit."""
    model = head_cases.make(name)
    model.compile(tf_keras.optimizers.Adam(1e-2))
    features, labels = head_cases.data(name)
    history = model.fit(features, labels, epochs=epochs, batch_size=32, verbose=0).history
    test_features, test_labels = head_cases.data(name, seed=1)
    scores = model.evaluate(test_features, test_labels, verbose=0, return_dict=True)
    return history, scores


def check_learned(name):
    *_, metric, guessing = head_cases.CASES[name]
    history, scores = learned(name)
    assert history["loss"][-1] < 0.6 * history["loss"][0]
    assert scores[metric] > 0.9 > guessing + 0.15
    return scores


@pytest.mark.slow
def test_a_classifier_learns_its_toy():
    check_learned("sequence")


def test_a_step_of_training_is_traced_once(monkeypatch):
    traced = []
    step = heads.HeadModel.train_step
    monkeypatch.setattr(heads.HeadModel, "train_step", lambda *x: traced.append(x) or step(*x))
    model = head_cases.make("token")
    model.compile(tf_keras.optimizers.SGD())
    model.fit(*head_cases.data("token", 4), batch_size=2, epochs=2, verbose=0)
    assert len(traced) == 1


@pytest.mark.slow_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(head_cases.CASES) - {"sequence"}))
def test_every_head_learns_its_toy(name):
    scores = check_learned(name)
    if name == "question":
        assert scores["end_accuracy"] > 0.9 and scores["evidence_accuracy"] > 0.9


@pytest.mark.quick_cases(2)
@every_head
def test_outputs_are_float32_logits_of_the_shapes_that_labels_have(name):
    model = made(name)
    features, labels = head_cases.data(name, 3)
    outputs = model(features)
    for head_loss, logits, of_output in zip(
        *map(tf.nest.flatten, (model.default_loss(), outputs, labels)), strict=True
    ):
        assert logits.dtype == tf.float32
        assert np.isfinite(head_loss(of_output, logits))
    batches = [model({key: x[i : i + 1] for key, x in features.items()}) for i in range(3)]
    joined = tf.nest.map_structure(lambda *x: np.concatenate(x), *batches)
    close = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5)  # noqa: E731
    tf.nest.map_structure(close, joined, outputs)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ["sequence", "question", "choices"])
def test_the_functional_model_gives_the_same(name):
    model = made(name)
    features, _ = head_cases.data(name, 2)
    expected = model(features)
    functional = model.functional()
    assert set(functional.input) == set(features)
    assert_same(functional(features), expected)
    assert {id(v) for v in functional.weights} == {id(v) for v in model.weights}


@pytest.mark.quick_cases(2)
@every_head
def test_a_model_comes_again_from_its_config(name):
    model = made(name)
    twin = type(model).from_config(model.get_config())
    assert twin.settings() == model.settings() and twin.encoder.config == model.encoder.config
    assert [v.name for v in twin.weights] == [v.name for v in model.weights]
    twin.set_weights(model.get_weights())
    features, _ = head_cases.data(name, 2)
    assert_same(twin(features), model(features))


@pytest.mark.quick_cases(2)
@every_head
def test_features_are_given_by_name_as_to_an_encoder(name):
    model, (features, labels) = made(name), head_cases.data(name, 2)
    expected = model(features)
    batch = {**features, "labels": labels} if not isinstance(labels, dict) else features
    assert_same(model(**batch), expected)
    assert_same(model(**batch, training=False), expected)
    ids = features["token_ids"]
    rest = {key: x for key, x in features.items() if key != "token_ids"}
    assert_same(model(ids, **rest), expected)
    assert_same(model({"token_ids": ids}, **rest), expected)
    assert model.config is model.encoder.config


@pytest.mark.parametrize("how", ["by name", "among the features"])
@pytest.mark.parametrize(
    ("wish", "function"),
    [("output_attentions", "attention"), ("output_hidden_states", "hidden_states")],
)
def test_what_an_encoder_does_not_return_is_told_with_its_system(wish, function, how):
    model = head_cases.make("sequence")
    instead = f"`etcmodel.inspection.{function}` shows it."
    line = f"The system 'etc' has no `{wish}`: leave it out. {instead}"
    with pytest.raises(ValueError) as raised:
        if how == "by name":
            model([[1, 2]], **{wish: True})
        else:
            model({"token_ids": [[1, 2]], wish: True})
    assert str(raised.value) == line


def test_an_encoder_that_is_given_is_the_models_own():
    model = heads.EtcForSequenceClassification(encoder())
    other = heads.EtcForTokenClassification(encoder())
    assert model.encoder is other.encoder is encoder()
    ids = head_cases.data("sequence", 2)[0]["token_ids"]
    np.testing.assert_array_equal(model.embed(ids), encoder().embed(ids))


class TestPooling:
    IDS = np.array([[7, 8, 9, 10, 11], [7, 8, 0, 0, 0]])
    LINKS = np.array([[0, 0, 1, 1, -1], [0, 0, -1, -1, -1]])

    def outputs(self, pooled_as, **features):
        features = {"token_ids": self.IDS, "links": self.LINKS, **features}
        hidden = encoder()(**encoder().structure(features))
        return encoder().embed(features, pooled_as).numpy(), *(x.numpy() for x in hidden)

    def test_the_mean_is_of_real_tokens(self):
        vectors, hidden, _ = self.outputs("mean")
        np.testing.assert_allclose(vectors[0], hidden[0].mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(vectors[1], hidden[1, :2].mean(axis=0), atol=1e-6)

    def test_the_first_tokens(self):
        for pooled_as, number in (("first", 0), ("first_global", 1)):
            vectors, *hidden = self.outputs(pooled_as)
            np.testing.assert_array_equal(vectors, hidden[number][:, 0])

    def test_sentences_are_the_means_of_linked_tokens(self):
        vectors, hidden, _ = self.outputs("sentence")
        expected = [[hidden[0, :2].mean(0), hidden[0, 2:4].mean(0)], [hidden[1, :2].mean(0)] * 2]
        np.testing.assert_allclose(vectors[0], expected[0], atol=1e-6)
        np.testing.assert_allclose(vectors[1, 0], expected[1][0], atol=1e-6)
        np.testing.assert_array_equal(vectors[1, 1], np.zeros(16))

    def test_normalized_vectors_have_length_1(self):
        vectors = encoder().embed(self.IDS, normalize=True)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-5)

    @pytest.mark.parametrize(
        "pooled_as, features, message",
        [
            ("median", {}, r"`pooling` must be one of \['mean', .*Received: 'median'"),
            ("mean", {"example_ids": [[1, 1, 2, 2, 0]] * 2}, "`example_ids` .*one example a row"),
        ],
    )
    def test_what_cannot_be_is_refused(self, pooled_as, features, message):
        with pytest.raises(ValueError, match=message):
            self.outputs(pooled_as, **features)

    def test_there_must_be_a_global_token_for_the_first_one(self):
        model = encoders.build_encoder(head_cases.config(global_block_length=0))
        with pytest.raises(ValueError, match="'first_global' needs a global token"):
            model.embed(self.IDS, "first_global")


class TestLosses:
    LOGITS = np.random.default_rng(0).normal(size=[2, 3, 4]).astype(np.float32)
    LABELS = np.array([[0, 3, -1], [-1, -1, 2]])

    def test_sparse_cross_entropy_is_a_mean_of_labeled_tokens_and_then_of_examples(self):
        log_probs = self.LOGITS - np.log(np.exp(self.LOGITS).sum(-1, keepdims=True))
        first = -(log_probs[0, 0, 0] + log_probs[0, 1, 3]) / 2
        expected = (first - log_probs[1, 2, 2]) / 2
        found = losses.SparseCrossentropy()(self.LABELS, self.LOGITS)
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_binary_cross_entropy_likewise(self):
        logits, labels = self.LOGITS[:, :, 0], np.array([[1, 0, -1], [-1, -1, -1]])
        softplus = np.log1p(np.exp(logits))
        expected = (softplus[0, 0] - logits[0, 0] + softplus[0, 1]) / 2 / 2
        found = losses.BinaryCrossentropy()(labels, logits)
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_accuracies_count_labeled_tokens_alone(self):
        metric = losses.SparseAccuracy()
        metric.update_state(self.LABELS, self.LOGITS)
        found = self.LOGITS.argmax(-1)
        known = self.LABELS >= 0
        np.testing.assert_allclose(metric.result(), (found == self.LABELS)[known].mean())
        metric.reset_state()
        metric.update_state(self.LABELS, self.LOGITS, sample_weight=[1.0, 0.0])
        np.testing.assert_allclose(metric.result(), (found == self.LABELS)[0, :2].mean())

    @pytest.mark.parametrize("rows", [1, 2])  # Of a single one, weights were taken for examples'.
    @pytest.mark.parametrize("make", [losses.SparseAccuracy, losses.Perplexity])
    def test_tokens_may_have_weights_of_their_own(self, make, rows):
        labels, logits = self.LABELS[:rows], self.LOGITS[:rows]
        weights = np.random.default_rng(1).uniform(size=labels.shape).astype(np.float32)
        metric = make()
        metric.update_state(labels, logits, sample_weight=weights)
        known = np.where(labels >= 0, weights, 0)
        if make is losses.SparseAccuracy:
            expected = np.average(logits.argmax(-1) == labels, weights=known)
        else:
            log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            places = np.maximum(labels, 0)[..., np.newaxis]
            given = np.take_along_axis(log_probs, places, axis=-1)[..., 0]
            expected = np.exp(-np.average(given, weights=known))
        np.testing.assert_allclose(metric.result(), expected, rtol=1e-5)
        metric.reset_state()
        by_example = np.arange(1, rows + 1, dtype=np.float32)
        metric.update_state(labels, logits, sample_weight=by_example)
        expected = metric.result().numpy()
        metric.reset_state()
        metric.update_state(labels, logits, sample_weight=by_example[:, np.newaxis])
        np.testing.assert_allclose(metric.result(), expected)

    def test_examples_may_have_weights_in_a_column_as_keras_gives_them(self):
        logits, labels = self.LOGITS[:, 0], np.array([0] * len(self.LOGITS))
        weights = np.arange(1, len(labels) + 1, dtype=np.float32)
        expected = np.average(logits.argmax(-1) == labels, weights=weights)
        for given in (weights, weights[:, np.newaxis]):
            metric = losses.SparseAccuracy()
            metric.update_state(labels, logits, sample_weight=given)
            np.testing.assert_allclose(metric.result(), expected, rtol=1e-6)

    @pytest.mark.parametrize("label", [-2, 4])
    def test_labels_that_there_are_not_are_refused(self, label):
        with pytest.raises(ValueError, match=f"`labels` must be at least -1 and below 4.*{label}"):
            losses.SparseCrossentropy()(np.full([2, 3], label), self.LOGITS)


def test_the_best_span_is_that_of_a_search():
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=[2, 5, 9]).astype(np.float32)
    best = heads.best_spans({"start": start, "end": end}, max_length=3)
    for i in range(5):
        spans = [(start[i, s] + end[i, e], s, e) for s in range(9) for e in range(s, min(s + 3, 9))]
        score, first, last = max(spans)
        assert (best["start"][i], best["end"][i]) == (first, last)
        np.testing.assert_allclose(best["score"][i], score, rtol=1e-6)


def test_padding_is_no_answer_no_sentence_and_no_phrase():
    ids = np.array([[7, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0]])
    answers = made("question")(ids)
    assert np.all(answers["start"][0, 5:] == MASKED_LOGIT) and answers["end"][0, 4] > MASKED_LOGIT
    assert list(answers["evidence"][0] == MASKED_LOGIT) == [False, False, True]
    logits = made("phrases")(ids)[0]
    assert [list(np.flatnonzero(row > -5000)) for row in logits] == [
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3],
        [0, 1, 2],
    ]


def test_words_are_those_of_word_ids():
    features = {
        "token_ids": np.array([[7, 8, 9, 10, 11, 0]]),
        "word_ids": np.array([[-1, 0, 0, 1, 2, -1]]),
    }
    logits = made("phrases")(features)[0]
    assert [int((row > -5000).sum()) for row in logits.numpy()] == [3, 2, 1]


def test_vectors_are_of_the_encoder_whatever_else_the_head_looks_at():
    features, _ = head_cases.data("masked", 2)
    model = made("masked")
    expected = model.encoder.embed(features["token_ids"], normalize=True)
    np.testing.assert_array_equal(model.embed(features, normalize=True), expected)


@pytest.mark.parametrize("name", ["choices", "candidates", "masked"])
def test_labels_among_the_features_are_not_looked_at(name):
    features, labels = head_cases.data(name, 2)
    model = made(name)
    np.testing.assert_array_equal(model({**features, "labels/logits": labels}), model(features))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: heads.EtcForTokenClassification("bert"), "`encoder` must be an encoder or the co"),
        (
            lambda: heads.EtcForSequenceClassification(head_cases.config(), pooling="sentence"),
            "`pooling` must be one of",
        ),
        (
            lambda: heads.EtcForSequenceClassification(head_cases.config(), num_labels=0),
            "`num_labels` must be at least 1. Received: 0",
        ),
        (
            lambda: heads.EtcForTokenClassification(
                head_cases.config(), relation_names=("a", "b", "c")
            ),
            "A table of 12 labels",
        ),
        (
            lambda: heads.EtcForQuestionAnswering(head_cases.config(), answer_types=["yes", "no"]),
            r"`answer_types` must be different names, 'span' among .*Received: \['yes', 'no'\]",
        ),
        (
            lambda: heads.EtcForQuestionAnswering(head_cases.config(), answer_types="span"),
            "`answer_types` must be .*Received: 'span'",
        ),
        (
            lambda: heads.EtcForQuestionAnswering(
                head_cases.config(), answer_types=("span", "span")
            ),
            "`answer_types` must be different names",
        ),
        (
            lambda: heads.head_class("span"),
            "There is no head of `head_type` 'span'; the known .* Import yours first",
        ),
        (
            lambda: made("choices")(np.ones([2, 5], int)),
            r"`token_ids` must have shape \[batch, num_choices, ...\]",
        ),
        (
            lambda: head_cases.make("sentence", global_block_length=0)(np.ones([2, 5], int)),
            "Sentences are scored by their global tokens",
        ),
        (
            lambda: made("masked")(
                {"token_ids": np.ones([2, 5], int), "masked_positions": [[0], [5]]}
            ),
            "`masked_positions` must be at least 0 and below the number of long .* from 0 to 5",
        ),
        (
            lambda: made("phrases")(
                {"token_ids": np.ones([2, 3], int), "word_ids": [[0, 1, 3], [0, 1, 2]]}
            ),
            "`word_ids` must be at least -1 and below the number of long .* from 0 to 3",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_all_heads_have_a_case():
    known = {x for x in heads.head_classes().values() if x.__module__.startswith("etcmodel.")}
    known = {x for x in known if issubclass(x, heads.HeadModel)}
    assert {case[0] for case in head_cases.CASES.values()} == known
    assert pooling.POOLINGS[-1] == "sentence"


def test_a_head_has_a_type_that_no_other_has(monkeypatch):
    monkeypatch.setattr(heads.base, "_HEADS", heads.head_classes())
    named = {"head_type": "own", "__module__": "cells"}
    own, anew = (type("Own", (heads.EtcForSentenceSelection,), named) for _ in range(2))
    heads.register_head(own)
    assert heads.register_head(anew) is heads.head_class("own") is anew  # A cell run again.
    with pytest.raises(ValueError, match="^There is another head of `head_type` 'own'.$"):
        heads.register_head(type("Other", (heads.EtcForSentenceSelection,), named))
    with pytest.raises(ValueError, match="^Nameless needs a `head_type`, a name in files.$"):
        heads.register_head(type("Nameless", (heads.HeadModel,), {}))


def test_the_first_argument_of_a_head_has_the_name_that_files_have(monkeypatch):
    monkeypatch.setattr(heads.base, "_HEADS", heads.head_classes())

    def by_another_name(self, config, **kwargs):
        heads.EtcForSentenceSelection.__init__(self, config, **kwargs)

    def by_any(self, *args, **kwargs):
        heads.EtcForSentenceSelection.__init__(self, *args, **kwargs)

    own = [
        type("Own", (heads.EtcForSentenceSelection,), {"head_type": "own", "__init__": made})
        for made in (by_another_name, by_any, lambda self: None)
    ]
    with pytest.raises(ValueError, match="^The first argument of Own must be .* `encoder`.*`conf"):
        heads.register_head(own[0])
    with pytest.raises(ValueError, match="must be called `encoder`.*Received: no argument$"):
        heads.register_head(own[2])
    assert heads.register_head(own[1]) is heads.head_class("own")


@pytest.mark.parametrize(
    ("base", "config"),
    [(heads.HeadModel, head_cases.config()), (LongformerHead, longformers.config())],
)
def test_a_head_that_says_not_what_it_computes_is_refused(base, config):
    class Headless(base):
        head_type = "headless"

        def make_head(self):
            pass

        def default_loss(self):
            pass

    with pytest.raises(TypeError, match="abstract class Headless .* abstract method '?head'?"):
        Headless(config)
