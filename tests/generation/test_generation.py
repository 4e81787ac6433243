"""Generation: filters and rules against slow twins, beams against all sequences, seeds."""

import collections

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel.generation import GenerationSettings, beam_search, sample
from etcmodel.generation import sampling as filters
from etcmodel.generation import settings as generation_settings
from etcmodel.models.seq2seq import generating
from tests.models.longt5 import models

pytestmark = pytest.mark.usefixtures("eagerly")  # But for what is told of graphs.


def plain_filtered(logits, temperature, top_k, top_p, least=1):
    """One row, token by token."""
    logits = logits / np.float32(temperature)
    kept = np.ones(len(logits), bool)
    if top_k:
        kept &= logits >= np.sort(logits)[-min(max(top_k, least), len(logits))]
    if top_p < 1:
        probs = np.where(kept, np.exp(logits - logits.max()), 0)
        probs /= probs.sum()
        total = 0.0
        for place, token in enumerate(np.argsort(-probs, kind="stable")):
            kept[token] &= total < top_p or place < least
            total += probs[token]
    return np.where(kept, logits, -np.inf)


@hypothesis.settings(max_examples=30)
@hypothesis.given(
    st.integers(0, 2**31),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(0, 12),
    st.sampled_from([0.2, 0.55, 0.9, 1.0]),
)
def test_filters(seed, temperature, top_k, top_p):
    logits = np.random.default_rng(seed).normal(size=(3, 10)).astype(np.float32)
    found = filters.filtered(tf.constant(logits), temperature, top_k, top_p)
    wanted = [plain_filtered(row, temperature, top_k, top_p) for row in logits]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def plain_banned(tokens, size):
    """Tokens after which an n-gram would be there twice."""
    grams = {tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)}
    last = tuple(tokens[len(tokens) - size + 1 :]) if size > 1 else ()
    return {gram[-1] for gram in grams if gram[:-1] == last}


@hypothesis.settings(max_examples=30)
@hypothesis.given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(1, 4))
def test_no_ngram_comes_twice(tokens, size):
    sequences = tf.constant([tokens + [0] * (9 - len(tokens))] * 2)
    settings = GenerationSettings(max_length=9, no_repeat_ngram_size=size)
    scores = generation_settings.processed(tf.zeros([2, 4]), sequences, len(tokens), settings, 3)
    banned = {int(token) for token in np.flatnonzero(np.isinf(scores[1]))}
    assert banned == (plain_banned(tokens, size) if len(tokens) >= size else set())


def penalized(scores, tokens, penalty):
    """Token by token."""
    return [
        x if token not in tokens else x * penalty if x < 0 else x / penalty
        for token, x in enumerate(scores)
    ]


@hypothesis.settings(max_examples=30)
@hypothesis.given(
    st.lists(st.integers(0, 4), min_size=1, max_size=6),
    st.sampled_from([0.5, 1.3, 4.0]),
    st.integers(0, 2**31),
)
def test_tokens_that_occurred_are_penalized_once_each(tokens, penalty, seed):
    scores = np.random.default_rng(seed).normal(size=(2, 6)).astype("float32")
    sequences = tf.constant([tokens + [5] * (7 - len(tokens)), [5] * 7])
    settings = GenerationSettings(max_length=7, repetition_penalty=penalty)
    found = generation_settings.processed(scores, sequences, len(tokens), settings, 1).numpy()
    np.testing.assert_allclose(found[0], penalized(scores[0], tokens, penalty), rtol=1e-6)
    np.testing.assert_allclose(found[1], penalized(scores[1], [5], penalty), rtol=1e-6)


def completes(tokens, word):
    """Whether the word's last token would complete it."""
    if len(word) == 1:
        return True
    return len(tokens) >= len(word) and tokens[1 - len(word) :] == word[:-1]


@hypothesis.settings(max_examples=30)
@hypothesis.given(
    st.lists(st.integers(0, 2), min_size=1, max_size=6),
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_no_bad_word_is_completed(tokens, words):
    sequences = tf.constant([tokens + [0] * (7 - len(tokens))] * 2)
    words = tuple(map(tuple, words))
    settings = GenerationSettings(max_length=7, bad_words_ids=(*words, (3,)))
    scores = generation_settings.processed(tf.zeros([2, 5]), sequences, len(tokens), settings, 3)
    banned = {int(token) for token in np.flatnonzero(np.isinf(scores[1]))}
    assert banned == {word[-1] for word in words if completes(tokens, list(word))}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("num_beams", [1, 3])
def test_generated_sequences_have_no_bad_words(num_beams):
    def sequences(**settings):
        found = MODEL.generate(IDS, max_length=8, num_beams=num_beams, **settings)
        return found["sequences"].numpy().tolist()

    first = sequences()
    word = first[0][3:5]
    found = sequences(bad_words_ids=[word, [first[1][2]]])
    assert all(word != row[i : i + 2] for row in found for i in range(2, 7))
    assert all(first[1][2] not in row[1:] for row in found)
    penalized_rows = sequences(repetition_penalty=100.0)
    assert penalized_rows != first
    for row in penalized_rows:
        real = [token for token in row[1:] if token]
        assert len(set(real)) == len(real)


MODEL = models.model(encoder_attention_type="local", num_layers=1, scale_decoder_outputs=False)
IDS = models.ids(2, 9)


def test_as_many_beams_as_there_are_tokens_find_the_best_sequence():
    size = models.VOCAB_SIZE
    found = MODEL.generate(IDS[:1], max_length=3, num_beams=size, early_stopping="never")
    decoder_ids = np.stack([np.zeros(size, np.int32), np.arange(size, dtype=np.int32)], 1)
    ids = tf.constant(np.repeat(IDS[:1], size, 0))
    logits = MODEL(ids, decoder_input_ids=decoder_ids)["logits"]
    log_probs = tf.nn.log_softmax(logits).numpy()
    first, second = log_probs[0, 0], log_probs[:, 1]
    scores = {
        (0, one, two): (first[one] + second[one, two]) / 2
        for one in range(size)
        for two in range(size)
        if one != 1
    }
    scores[0, 1, 0] = first[1]  # The end token at once; then padding.
    best = max(scores, key=scores.get)
    assert (*found["sequences"][0].numpy().tolist(), 0)[:3] == best
    assert float(found["sequences_scores"][0]) == pytest.approx(scores[best], abs=1e-4)


@pytest.mark.exhaustive
def test_rows_do_not_depend_on_their_neighbors():
    for settings in ({}, {"num_beams": 3}, {"do_sample": True, "seed": 4}):
        both = MODEL.generate(IDS, max_length=7, **settings)["sequences"][0].numpy()
        alone = MODEL.generate(IDS[:1], max_length=7, **settings)["sequences"][0].numpy()
        assert both[: len(alone)].tolist() == alone.tolist(), settings
        assert not both[len(alone) :].any()


def test_samples_are_those_of_their_seed_and_as_frequent_as_they_are_probable():
    logits = tf.constant([[0.0, -50.0, 1.0, 2.0]] * 4000)

    def draw(seed):
        settings = GenerationSettings(max_length=2, do_sample=True, seed=seed)
        step = lambda ids, cache: (logits, cache)  # noqa: E731
        outputs = sample(step, (), 4000, settings, start=0, eos=1, pad=0)
        return outputs["sequences"][:, 1].numpy()

    assert (draw(1) == draw(1)).all() and (draw(1) != draw(2)).any()
    shares = np.bincount(draw(1), minlength=4) / 4000
    np.testing.assert_allclose(shares, tf.nn.softmax(logits)[0], atol=0.03)


# Beams, drawn or the best, against a twin of Hugging Face's rules, sequence by sequence.

LOGITS = np.random.default_rng(3).normal(size=(5, 5), scale=0.8).astype(np.float32)
RULES = {"max_length": 5, "num_beams": 2, "length_penalty": 0.7}


def plain_beams(ends, draws=None, temperature=1.0, top_k=0, top_p=1.0):
    """The best sequence that ends, without padding, and its score; `LOGITS` are by last token."""
    beams, per_beam = RULES["num_beams"], 1 + len(ends)
    running, finished = [(0.0, (0,))], []
    for length in range(1, RULES["max_length"]):
        found = []
        for total, tokens in running:
            row = LOGITS[tokens[-1]] - np.log(np.exp(LOGITS[tokens[-1]]).sum())
            if draws is not None:
                row = plain_filtered(row, temperature, top_k, top_p, least=per_beam)
            found += [(total + x, (*tokens, token)) for token, x in enumerate(row)]
        if draws is not None:
            probs = np.exp([x for x, _ in found])
            number = min(per_beam * beams, np.count_nonzero(probs))
            places = draws.choice(len(found), number, replace=False, p=probs / probs.sum())
            found = [found[x] for x in places]
        found = sorted(found, reverse=True)[: per_beam * beams]
        is_end = [x[-1] in ends or length + 1 == RULES["max_length"] for _, x in found]
        new = [x for x, end in zip(found[:beams], is_end, strict=False) if end]
        finished += [(total / length ** RULES["length_penalty"], x) for total, x in new]
        finished = sorted(finished, reverse=True)[:beams]
        running = [x for x, end in zip(found, is_end, strict=True) if not end][:beams]
        best = running[0][0] / length ** RULES["length_penalty"] if running else -np.inf
        if len(finished) == beams and best <= finished[-1][0]:
            break
    return finished[0][1], finished[0][0]


class Rows(tuple):
    def of_rows(self, rows):
        del rows
        return self


def beams(number, ends, **options):
    settings = GenerationSettings(**RULES, **options)
    step = lambda ids, cache: (tf.gather(LOGITS, ids), cache)  # noqa: E731
    found = beam_search(step, Rows(), number, settings, start=0, eos=ends, pad=-1)
    rows = [tuple(x for x in row if x >= 0) for row in found["sequences"].numpy().tolist()]
    return rows, found["sequences_scores"].numpy()


@pytest.mark.parametrize("ends", [(1,), (1, 3), (4, 2, 1)])
def test_beams_end_at_any_of_several_tokens(ends):
    (row,), (score,) = beams(1, ends)
    assert row == plain_beams(ends)[0]
    assert score == pytest.approx(plain_beams(ends)[1], abs=1e-5)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("ends", "options"),
    [
        ((1, 3), {"top_k": 4, "temperature": 1.3}),
        ((1,), {"top_k": 0}),
        ((1,), {"top_k": 0, "top_p": 0.9}),
    ],
)
def test_sampling_with_beams_draws_as_often_as_a_slow_twin(ends, options):
    number, draws = 3000, np.random.default_rng(0)
    wanted = [plain_beams(ends, draws, **options) for _ in range(number)]
    rows, scores = beams(number, ends, do_sample=True, seed=5, **options)
    score_of = dict(wanted)
    shares = [collections.Counter(x) for x in ([x for x, _ in wanted], rows)]
    for row in {*rows, *score_of}:
        one, other = (x[row] / number for x in shares)
        assert abs(one - other) < 5 * np.sqrt((one + other) / number), row
    for row, score in zip(rows, scores, strict=True):
        assert row not in score_of or score == pytest.approx(score_of[row], abs=1e-4)
    again, _ = beams(number, ends, do_sample=True, seed=5, **options)
    assert again == rows and beams(number, ends, do_sample=True, seed=6, **options)[0] != rows


SEARCHES = [
    (sample, {}),
    (sample, {"do_sample": True, "top_p": 0.9}),
    (beam_search, {"num_beams": 3}),
    (beam_search, {"num_beams": 2, "do_sample": True}),
]


def test_greedy_search_ends_at_any_token_but_not_before_its_least_length():
    step = lambda ids, cache: (tf.one_hot((ids + 1) % 6, 6), cache)  # noqa: E731  It counts.

    def found(**options):
        settings = GenerationSettings(max_length=6, **options)
        return sample(step, (), 1, settings, start=0, eos=(3, 4), pad=9)["sequences"].numpy()[0]

    assert found().tolist() == [0, 1, 2, 3, 9, 9]
    assert found(min_length=5).tolist() == [0, 1, 2, 0, 1, 2]
    assert found(bad_words_ids=((3,), (2,))).tolist() == [0, 1, 0, 1, 0, 1]  # No end is banned.


def test_of_several_forced_tokens_the_first_that_is_free_is_taken():
    def scores(length, **forced):
        settings = GenerationSettings(max_length=4, **forced)
        return generation_settings.processed(tf.ones([1, 5]), tf.zeros([1, 4], "int32"), length,
                                             settings, 1).numpy()[0].tolist()  # fmt: skip

    both = {"forced_bos_token_id": (4, 2), "forced_eos_token_id": (1, 3)}
    banned = -np.inf
    assert scores(1, **both) == [banned, banned, 0, banned, 0]
    assert scores(2, **both) == [1] * 5
    assert scores(3, **both) == [banned, 0, banned, 0, banned]
    step = lambda ids, cache: (tf.gather(LOGITS, ids), cache)  # noqa: E731
    for search, more in ((sample, {}), (beam_search, {"num_beams": 3})):
        settings = GenerationSettings(max_length=4, min_length=4, **both, **more)
        cache = Rows() if more else ()
        (row,) = search(step, cache, 1, settings, start=0, eos=(1, 3), pad=9)["sequences"].numpy()
        assert row[1] in (4, 2) and row[3] in (1, 3), row


@pytest.mark.slow
@pytest.mark.usefixtures("in_graphs")
def test_all_seeds_share_a_graph_and_draw_what_they_draw_without_one(monkeypatch):
    traced, search = [], generating.search
    monkeypatch.setattr(generating, "search", lambda *given: traced.append(1) or search(*given))
    options = {"do_sample": True, "temperature": 3.0, "max_length": 6}
    found = {
        seed: MODEL.generate(IDS, seed=seed, **options)["sequences"] for seed in (0, 1, -2, 2**30)
    }
    assert len(traced) == 1
    for seed, sequences in found.items():
        settings = MODEL.generation_settings(seed=seed, **options)
        wanted = search(MODEL, tf.constant(IDS), None, {}, settings)["sequences"]
        np.testing.assert_array_equal(sequences, wanted)
    assert len({sequences.numpy().tobytes() for sequences in found.values()}) == len(found)
    np.testing.assert_array_equal(MODEL.generate(IDS, **options)["sequences"], found[0])
    assert len(traced) == 1


@pytest.mark.usefixtures("in_graphs")
def test_a_model_of_nan_generates_nothing():
    model = models.model(encoder_attention_type="local", num_layers=1)
    assert len(model.generate(IDS, max_length=4)["sequences"]) == len(IDS)
    for variable in model.weights:
        variable.assign(tf.fill(variable.shape, np.nan))
    with pytest.raises(ValueError, match="^The scores of a generated token are not") as error:
        model.generate(IDS, max_length=4)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("in_graphs")
@pytest.mark.parametrize("search, options", SEARCHES)
def test_tokens_without_a_score_are_refused(search, options):
    # Whatever the ids would be: the argmax of NaN is 0, which is often that of padding.
    settings = GenerationSettings(max_length=4, min_length=3, **options)
    cache = Rows() if search is beam_search else ()

    def run(logits):
        step = lambda ids, cache: (tf.gather(logits, ids), cache)  # noqa: E731
        return search(step, cache, 2, settings, start=0, eos=1, pad=9)["sequences"]

    in_graph = tf.function(run, [tf.TensorSpec(LOGITS.shape)], autograph=False)
    has_graph = not settings.do_sample  # The check is the same.
    assert run(LOGITS).shape == [2, 4]
    assert not has_graph or in_graph(LOGITS).shape == [2, 4]
    for value in (np.nan, np.inf):
        # One is enough, since no token can be compared with it; -infinity only if all are.
        one = LOGITS.copy()
        one[:, 3] = value
        for logits in (one, np.full_like(LOGITS, value), np.full_like(LOGITS, -np.inf)):
            with pytest.raises(ValueError, match="scores of a generated token are not finite num"):
                run(logits)
            if has_graph:
                with pytest.raises(tf.errors.InvalidArgumentError, match="are not finite numbers"):
                    in_graph(logits)


@pytest.mark.parametrize(
    "search, options", [SEARCHES[0], (beam_search, {"num_beams": 2, "early_stopping": True})]
)
def test_what_follows_the_end_of_an_input_needs_no_score(search, options):
    """Input 0 has two ends at once, all that is searched for, and is NaN from then on."""
    settings = GenerationSettings(max_length=4, **options)
    beams = settings.num_beams
    logits = np.full([2, 4, 6], -9.0, np.float32)
    logits[0, 0, 1] = logits[1, 0, 2] = logits[1, 2, 3] = logits[1, 3, 4] = 9.0
    logits[0, 0, 5] = 8.0

    def step(ids, cache):
        is_late = tf.cast(ids > 0, tf.float32)[:, tf.newaxis]
        rows = tf.repeat([0, 1], beams)
        found = tf.gather_nd(logits, tf.stack([rows, tf.minimum(ids, 3)], axis=1))
        nan = tf.where(rows[:, tf.newaxis] == 0, np.nan, 0.0)
        return tf.where(is_late * tf.ones_like(found) > 0, found + nan, found), cache

    cache = Rows() if search is beam_search else ()
    found = search(step, cache, 2, settings, start=0, eos=(1, 5), pad=0)["sequences"]
    assert found[0].numpy()[:2].tolist() == [0, 1] and found[1].numpy().tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"max_length": 1}, "`max_length` must be at least 2"),
        ({"num_beams": 0}, "`num_beams` must be at least 1"),
        ({"max_length": 5, "min_length": 6}, "`min_length` must be at most `max_length`.* 6, 5"),
        ({"early_stopping": "soon"}, "`early_stopping` must be"),
        ({"temperature": 0.0}, "`temperature` must be above 0"),
        ({"top_p": 0.0}, "`top_p` above 0"),
        ({"num_return_sequences": 2}, "must be at most `num_beams`"),
        (
            {"do_sample": True, "num_beams": 2, "num_return_sequences": 3},
            "`num_return_sequences` must be at most `num_beams`",
        ),
        ({"temperature": float("nan")}, "`temperature` must be a finite number. Received: nan"),
        ({"length_penalty": float("nan")}, "`length_penalty` must be a finite number"),
        ({"length_penalty": float("inf")}, "`length_penalty` must be a finite number"),
        ({"top_p": float("nan")}, "`top_p` must be a finite number"),
        ({"max_length": float("nan")}, "`max_length` must be at least 2. Received: nan"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        GenerationSettings(**settings)
