"""Pre-training on the documents on topics, and what is learned from its weights."""

import numpy as np
import pytest

from benchmarks import ingredient_runs as runs
from benchmarks import ingredient_topics as topics
from benchmarks.ingredient_runs import SharedGraph, WindowsTask
from etcmodel import training
from etcmodel.models import heads
from etcmodel.models.config import EtcConfig

pytestmark = pytest.mark.slow

SMALL = {**runs.ENCODER, "num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16}
CONFIG = EtcConfig(vocab_size=topics.vocabulary(), **SMALL)


def rng(seed=0):
    return np.random.default_rng(seed)


def windows_task(**options):
    arrays = topics.windows(8, rng(1)), topics.windows(4, rng(2))
    return WindowsTask(CONFIG, *arrays, seed=0, **options)


def first_batch(dataset):
    return next(dataset.as_numpy_iterator())


def test_the_language_model_is_measured_on_the_same_windows_with_or_without_cpc():
    task = windows_task()
    with_sentences = first_batch(task.eval_dataset(4))
    alone = first_batch(task.without_masked_sentences().eval_dataset(4))
    other = first_batch(windows_task(cpc_weight=0.0).without_masked_sentences().eval_dataset(4))
    assert with_sentences["cpc_sentences"].shape == (4, 2) and with_sentences["cpc_mask"].any()
    assert alone["cpc_sentences"].shape == (4, 0)
    for name, x in alone.items():
        np.testing.assert_array_equal(x, other[name], err_msg=name)
    # 15 % of 96 tokens, of which none is in a masked sentence.
    assert set(alone["mlm_mask"].sum(axis=1)) <= {14, 15}
    assert 0 < (alone["long_token_ids"] == topics.MASK_TOKEN_ID).sum() <= alone["mlm_mask"].sum()


def test_training_masks_sentences_and_the_weight_of_cpc_rises():
    task = windows_task(cpc_warmup_steps=4)
    request = training.TrainDataRequest(global_batch_size=8, seed=3, skip_examples=8)
    batch = first_batch(task.train_dataset(request))
    np.testing.assert_allclose(batch["cpc_weight_share"], np.full(8, 0.25))
    for row in range(8):
        for sentence in batch["cpc_sentences"][row][batch["cpc_mask"][row] > 0]:
            inside = batch["sentence_ids"][row] == sentence
            assert (batch["long_token_ids"][row][inside] == topics.MASK_TOKEN_ID).all()
    assert batch["cpc_mask"].sum() >= 8  # 1.6 of 16 sentences, rounded up or down.


@pytest.fixture(scope="module")
def pretraining():
    """A graph that has pre-trained for two steps, and its task."""
    task = windows_task()
    graph = SharedGraph(task, num_steps=2, batch_size=8)
    graph.train(task, seed=0)
    return graph, task


def test_a_graph_trains_anew_each_time(pretraining):
    graph, task = pretraining
    weights = graph.encoder_weights()
    figures = graph.evaluate(task)
    graph.train(task, seed=0)
    for name, x in graph.encoder_weights().items():
        np.testing.assert_allclose(x, weights[name], rtol=1e-5, atol=1e-6, err_msg=name)
    assert graph.evaluate(task) == pytest.approx(figures, rel=1e-4)


def test_without_masked_sentences_there_are_figures_of_the_language_model_alone(pretraining):
    graph, task = pretraining
    with_cpc = graph.evaluate(task, batch_size=4)
    alone = graph.evaluate(task.without_masked_sentences(), batch_size=4)
    assert set(with_cpc) - set(alone) == {"cpc_loss", "cpc_accuracy", "cpc_chance"}
    assert alone["loss"] == pytest.approx(0.8 * alone["mlm_loss"])


def test_a_model_with_a_head_begins_with_the_pretrained_encoder(pretraining):
    weights = pretraining[0].encoder_weights()
    task = training.HeadTask(
        lambda: heads.EtcForMultipleChoice(CONFIG, candidate_token_id=1),
        topics.odd_sentence(8, rng(1)),
    )
    graph = SharedGraph(task, num_steps=1, batch_size=8, learning_rate=1e-9)
    graph.train(task, seed=1, encoder_weights=weights)
    own = graph.encoder_weights()
    assert set(own) == set(weights)
    for name, x in own.items():
        np.testing.assert_allclose(x, weights[name], atol=1e-6, err_msg=name)
    graph.train(task, seed=1)
    assert any(
        np.abs(x - weights[name]).max() > 0.01 for name, x in graph.encoder_weights().items()
    )
