"""Pruning, scores and loss, against slow twins that go through spans one by one."""

from unittest import mock

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.tasks.coreference import model
from tests.models.longt5 import models as longt5

WORDS, WIDTH = 7, 4


def greedy(scores, is_span):
    """Spans one by one, the best first, unless one that was kept is crossed."""
    spans = [(x, x + width) for x in range(WORDS) for width in range(WIDTH) if is_span[x, width]]
    kept = []
    for start, end in sorted(spans, key=lambda span: -scores[span[0], span[1] - span[0]]):
        if not any(x < start <= y < end or start < x <= end < y for x, y in kept):
            kept.append((start, end))
    return set(kept)


@hypothesis.given(st.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=20)
def test_pruning_keeps_what_going_through_spans_one_by_one_keeps(seed):
    random = np.random.default_rng(seed)
    # Few different values, so that some are equal.
    scores = random.integers(-3, 9, [2, WORDS, WIDTH]).astype(np.float32)
    is_span = (random.random(scores.shape) < 0.8) & np.less.outer(
        np.arange(WORDS), WORDS - np.arange(WIDTH)
    )
    kept = model.without_crossing(tf.constant(scores), tf.constant(is_span)).numpy()
    for row in range(2):
        found = {(int(x), int(x + width)) for x, width in np.argwhere(kept[row])}
        assert found == greedy(scores[row], is_span[row])


SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "local_radius": 2}
HEAD = {"max_span_width": 3, "max_top_antecedents": 2, "ffnn_size": 6, "feature_size": 3}


def batch():
    """Two documents: of five words, the second of two tokens, in two sentences; and of one."""
    return {
        "token_ids": [[2, 7, 8, 9, 10, 11, 12, 3], [2, 7, 3, 0, 0, 0, 0, 0]],
        "segment_ids": [[0] * 8, [0] * 8],
        "example_ids": [[1] * 8, [1, 1, 1, 0, 0, 0, 0, 0]],
        "links": [[0, 1, 1, 1, 1, 2, 2, 0], [0, 1, 0, -1, -1, -1, -1, -1]],
        "global_token_ids": [[4, 4, 4], [4, 4, 0]],
        "global_segment_ids": [[0] * 3, [0] * 3],
        "global_example_ids": [[1, 1, 1], [1, 1, 0]],
        "word_ids": [[-1, 0, 1, 1, 2, 3, 4, -1], [-1, 0, -1, -1, -1, -1, -1, -1]],
        "speaker_ids": [[0, 1, 1, 1, 1, 2, 2, 0], [0] * 8],
        "genres": [[3], [0]],
    }


def make(**options):
    made = model.CoreferenceModel(
        etcmodel.EtcConfig(20, relative_vocab_size=12, relative_pos_max_distance=2, **SIZES),
        **{**HEAD, "dropout": 0.0, **options},
    )
    made.build()
    random = np.random.default_rng(0)
    made.set_weights([random.normal(0, 0.5, x.shape) for x in made.get_weights()])
    return made


class Twin:
    """The first document of the batch by the paper's equations, a span or a pair at a time."""

    words = ((1, 1), (2, 3), (4, 4), (5, 5), (6, 6))  # First and last token.
    sentences, speakers, genre = (0, 0, 0, 1, 1), (1, 1, 1, 2, 2), 3

    def __init__(self, made, hidden):
        self.made, self.hidden = made, hidden

    def weights(self, *names):
        return np.concatenate([getattr(self.made, name).kernel.numpy() for name in names])

    def layer(self, x, name, *parts):
        """A dense layer on what is concatenated, whose kernel is in parts."""
        return x @ self.weights(name, *parts) + getattr(self.made, name).bias.numpy()

    def vector(self, start, end):
        first, last = self.words[start][0], self.words[end][1]
        inside = self.hidden[first : last + 1]
        shares = np.exp(self.layer(inside, "head_word"))
        head = (shares * inside).sum(0) / shares.sum()
        width = self.weights("width_embedding")[end - start]
        return np.concatenate([self.hidden[first], self.hidden[self.words[end][1]], width, head])

    def mention_score(self, start, end):
        x = self.vector(start, end)
        x = np.concatenate([x[:16], x[19:], x[16:19]])
        parts = ("mention_start", "mention_end", "mention_heads", "mention_width")
        hidden = np.maximum(self.layer(x, *parts), 0)
        prior = self.weights("width_prior")[end - start]
        return (self.layer(hidden, "mention_score") + prior)[0]

    def features(self, spans, i, j):
        is_same = self.speakers[spans[i][0]] == self.speakers[spans[j][0]]
        rows = (("speaker", int(is_same)), ("genre", self.genre), ("distance", i - j))
        return np.concatenate([self.weights(f"{name}_embedding")[row] for name, row in rows])

    def pair_score(self, x, y, features):
        parts = ("pair_span", "pair_antecedent", "pair_product", "pair_features")
        hidden = np.maximum(self.layer(np.concatenate([x, y, x * y, features]), *parts), 0)
        return self.layer(hidden, "pair_score")[0]

    def scores(self, spans):
        """dict of (span, antecedent) to score, of the two best antecedents by the cheap score."""
        vectors = [self.vector(*span) for span in spans]
        coarse = {
            (i, j): self.mention_score(*spans[i])
            + self.mention_score(*spans[j])
            + vectors[i] @ self.weights("coarse") @ vectors[j]
            + self.weights("distance_prior")[i - j, 0]
            for i in range(len(spans))
            for j in range(i)
        }
        kept = [
            (i, j)
            for i in range(len(spans))
            for j in sorted(range(i), key=lambda j, i=i: -coarse[i, j])[:2]
        ]
        scores = None
        for depth in range(self.made.coref_depth):
            if depth:
                vectors = [self.refined(vectors, scores, i) for i in range(len(spans))]
            scores = {
                (i, j): coarse[i, j]
                + self.pair_score(vectors[i], vectors[j], self.features(spans, i, j))
                for i, j in kept
            }
        return scores

    def refined(self, vectors, scores, i):
        others = [j for k, j in scores if k == i]
        shares = np.exp([0.0, *(scores[i, j] for j in others)])
        found = np.stack([vectors[i], *(vectors[j] for j in others)])
        mean = (shares / shares.sum()) @ found
        gate = 1 / (1 + np.exp(-self.layer(np.concatenate([vectors[i], mean]), "gate")))
        return gate * mean + (1 - gate) * vectors[i]


@pytest.fixture(scope="module")
def run():
    """(model, its outputs, hidden states) for the batch."""
    made, features = make(coref_depth=3, top_span_ratio=0.6), batch()
    features = {name: tf.constant(x) for name, x in features.items()}
    hidden = made._encode(features, False).numpy().astype(np.float64)
    return made, {name: x.numpy() for name, x in made(features).items()}, hidden


def test_scores_are_those_of_the_equations_said_one_pair_at_a_time(run):
    made, found, hidden = run
    twin = Twin(made, hidden[0])
    spans = [(x, y) for x in range(5) for y in range(x, min(x + 3, 5))]
    spans = [(x, y) for x, y in spans if twin.sentences[x] == twin.sentences[y]]
    scores = np.full([WORDS, WIDTH], -np.inf)
    for x, y in spans:
        scores[x, y - x] = twin.mention_score(x, y)
    # 0.6 × 5 words: the best 3 of those that do not cross.
    kept = greedy(scores, np.isfinite(scores))
    kept = sorted(sorted(kept, key=lambda span: -scores[span[0], span[1] - span[0]])[:3])
    assert list(zip(found["starts"][0], found["ends"][0], strict=True)) == [*kept, (-1, -1)]
    wanted = twin.scores(kept)
    told = {
        (i, int(j)): score
        for i in range(len(kept))
        for j, score in zip(found["antecedents"][0, i], found["scores"][0, i], strict=True)
        if score > -1e8
    }
    assert told.keys() == wanted.keys()
    assert [told[pair] for pair in wanted] == pytest.approx(list(wanted.values()), abs=1e-4)


def test_a_document_of_one_word_has_one_span_and_no_antecedent(run):
    _, found, _ = run
    assert found["starts"][1].tolist() == found["ends"][1].tolist() == [0, -1, -1, -1]
    assert (found["scores"][1] < -1e8).all()


def test_the_loss_is_that_of_the_right_antecedents_of_each_span():
    outputs = {
        "starts": [[0, 2, 4, 5, -1]],
        "ends": [[0, 3, 4, 6, -1]],
        "antecedents": [[[0, 0], [0, 1], [1, 0], [2, 1], [0, 0]]],
        "scores": [[[-1e9] * 2, [0.5, -1e9], [2.0, -1.0], [0.3, 0.2], [-1e9] * 2]],
    }
    labels = {  # Of the spans: (0, 0), (4, 4); (2, 3), (5, 6). The mention (1, 1) is no span.
        "mention_starts": [[0, 4, 2, 5, 1, -1]],
        "mention_ends": [[0, 4, 3, 6, 1, -1]],
        "mention_clusters": [[0, 0, 1, 1, 1, -1]],
    }
    e = np.exp
    wanted = -np.log([1 / (1 + e(0.5)), e(-1) / (1 + e(2) + e(-1)), e(0.2) / (1 + e(0.3) + e(0.2))])
    found = model.loss(
        {name: tf.constant(x) for name, x in outputs.items()},
        {name: tf.constant(x) for name, x in labels.items()},
    )
    assert found["loss"].numpy() == pytest.approx(wanted.sum(), rel=1e-5)


def test_skipping_padding_and_longer_rows_change_nothing(run):
    made, found, _ = run
    features = {name: tf.constant(x) for name, x in batch().items()}
    fill = {"links": -1, "word_ids": -1}
    longer = {
        name: tf.pad(x, [[0, 0], [0, 24]], constant_values=fill.get(name, 0))
        if x.shape[1] == 8
        else x
        for name, x in features.items()
    }
    whole = made(longer)
    made.skip_padding = True
    with mock.patch.object(model, "without_crossing", wraps=model.without_crossing) as pruned:
        again = made(longer)
    made.skip_padding = False
    assert pruned.call_args.args[0].shape[1] <= 8  # No span of padding is scored.
    assert {name: x.shape for name, x in again.items()} == {
        name: x.shape for name, x in whole.items()
    }
    for name in ("starts", "ends"):
        assert (again[name].numpy()[:, :4] == found[name]).all()
    is_pair = found["scores"] > -1e8
    assert again["scores"].numpy()[:, :4][is_pair] == pytest.approx(
        found["scores"][is_pair], abs=1e-4
    )


def test_a_system_that_classifies_no_tokens_is_refused_by_name():
    with pytest.raises(
        ValueError, match="Coreference is resolved by models of .* Received: 'longt5'"
    ):
        model.CoreferenceModel(longt5.config())
