"""Losses that are means over a batch's labels are those of the whole batch, in parts as well."""

import types

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models.heads import losses
from etcmodel.pretrain.task import PretrainTask
from etcmodel.tasks.majority_tagging.task import MajorityTask
from etcmodel.tasks.numerical_reasoning.task import NumericalTask
from etcmodel.tasks.summarization.task import SummarizationTask
from etcmodel.tasks.token_classification.task import TokenClassificationTask
from etcmodel.tasks.wikihop.task import WikiHopTask
from etcmodel.training import HeadTask, trainer

RANDOM = np.random.default_rng(0)
NUMBERS = (1, 2, 6, 4)  # Of labels in each row.
NUM_LABELS = 3


def labels(ignored):
    found = RANDOM.integers(NUM_LABELS, size=[len(NUMBERS), 6])
    return np.where(np.arange(6) < np.reshape(NUMBERS, [-1, 1]), found, ignored)


def of_tokens(ignored):
    return lambda: ({"labels": labels(ignored)}, {"logits": RANDOM.normal(size=[4, 6, NUM_LABELS])})


def of_windows():
    given = labels(-1)
    features = {"mlm_labels": given, "mlm_mask": given >= 0}
    return features, {
        "mlm_loss": RANDOM.uniform(size=[4, 6]) * np.reshape(NUMBERS, [4, 1]),
        "mlm_token_ids": given * 0,
    }


def of_candidates():
    features = {"is_real_example": np.array([1, 1, 0, 1]), "label_id": np.array([0, 1, 2, 0])}
    features["global_token_ids"] = np.ones([4, NUM_LABELS], np.int64)
    return features, {"logits": RANDOM.normal(size=[4, NUM_LABELS]), "answer_ids": np.zeros(4, int)}


def of_head():
    features, outputs = of_tokens(-100)()
    return {"labels/logits": features["labels"]}, outputs


# For each task: what makes features and outputs, and what its loss needs of it.
CONFIG = {"label_smoothing": 0.1, "use_cpc": False, "mlm_weight": 0.5, "cpc_weight": 0.0}
CONFIG["gather_negatives"] = True
CASES = {
    TokenClassificationTask: of_tokens(-1),
    MajorityTask: of_tokens(-1),
    NumericalTask: of_tokens(-100),
    SummarizationTask: of_tokens(-100),
    PretrainTask: of_windows,
    WikiHopTask: of_candidates,
    HeadTask: of_head,
}


@pytest.mark.parametrize("task_class", CASES, ids=lambda x: x.__name__)
@pytest.mark.parametrize("num_parts", [2, 4])
def test_the_mean_of_parts_is_that_of_the_batch(task_class, num_parts):
    features, outputs = CASES[task_class]()
    cast = {"f": tf.float32, "i": tf.int32, "b": tf.int32}
    batch = {name: tf.cast(x, cast[x.dtype.kind]) for name, x in {**features, **outputs}.items()}
    task = types.SimpleNamespace(
        config=types.SimpleNamespace(**CONFIG), _losses=losses.MeanCrossentropy()
    )
    parts = [trainer.part_of(batch, part, num_parts) for part in range(num_parts)]

    def loss(batch):
        of_class = vars(task_class).get("loss")
        if isinstance(of_class, staticmethod):
            return of_class(batch, batch)
        return of_class(task, batch, batch)

    weights = tf.stack([task_class.loss_weight(task, part) for part in parts])
    shares = trainer.shares_of_parts(
        tf.cast(weights, tf.float32), tf.distribute.get_replica_context()
    )
    of_parts = [loss(part) for part in parts]
    for name, whole in loss(batch).items():
        found = [share * part[name] for share, part in zip(shares, of_parts, strict=True)]
        np.testing.assert_allclose(np.mean(found), whole, rtol=1e-5)
    plain = np.mean([part["loss"] for part in of_parts])
    assert abs(plain - loss(batch)["loss"]) > 1e-3


@pytest.mark.parametrize("num_parts", [2, 4])
def test_each_output_of_a_head_has_the_mean_over_its_own_positions(num_parts):
    # Of these, 9 and 7 are beyond the length; where none is known, a part has no weight.
    features = {"labels/start": [0, 9, -1, 3], "labels/end": [7, 9, 5, 4]}
    features["input_ids"] = np.ones([4, 6], np.int32)
    batch = {name: tf.constant(x, tf.int32) for name, x in features.items()}
    for end in ("start", "end"):
        batch[end] = tf.constant(RANDOM.normal(size=[4, 6]), tf.float32)
    of_ends = {end: losses.PositionCrossentropy() for end in ("start", "end")}
    task = types.SimpleNamespace(_losses=of_ends, model_features=None)
    parts = [trainer.part_of(batch, part, num_parts) for part in range(num_parts)]
    weights = [HeadTask.loss_weight(task, part) for part in parts]
    counts = {2: {"start": [1, 2], "end": [0, 2]}, 4: {"start": [1, 0, 1, 1], "end": [0, 0, 1, 1]}}
    found = {end: [int(x[f"{end}_loss"]) for x in weights] for end in of_ends}
    assert found == counts[num_parts]
    scale = tf.Variable(1.0)

    def loss(features):
        outputs = {end: scale * features[end] for end in of_ends}
        return HeadTask.loss(task, outputs, features)

    def mean(num_parts, shares=None):
        return trainer.mean_gradients(
            loss, [scale], batch, num_parts=num_parts, seed=[0, 0], shares=shares
        )

    replica = tf.distribute.get_replica_context()
    shares = tf.nest.map_structure(
        lambda *x: trainer.shares_of_parts(tf.cast(tf.stack(x), tf.float32), replica), *weights
    )
    (whole,), losses_of_whole = mean(1)
    (in_parts,), losses_of_parts = mean(num_parts, shares)
    np.testing.assert_allclose(in_parts, whole, rtol=1e-5)
    for name, x in losses_of_whole.items():
        np.testing.assert_allclose(losses_of_parts[name], x, rtol=1e-5)
    assert abs(mean(num_parts)[0][0] - whole) > 1e-3


def test_where_every_example_counts_the_same_nothing_is_counted():
    task = types.SimpleNamespace(config=types.SimpleNamespace(use_cpc=True), _losses={})
    assert PretrainTask.loss_weight(task, {}) is None and HeadTask.loss_weight(task, {}) is None


class OwnLoss(losses.MeanCrossentropy):
    """A mean over labels, with its own way to count them."""

    def num_terms(self, y_true):
        return super().num_terms(y_true) * 2


class Uncounted(losses.PositionCrossentropy):
    num_terms = None


@pytest.mark.parametrize(
    ("loss", "counts"), [(OwnLoss(), [4, 2]), (losses.PositionCrossentropy(), [2, 1])]
)
def test_losses_of_other_classes_count_in_their_own_way(loss, counts):
    labels = [[1, 2, -100], [3, -100, -100]]
    features = {"labels/one": tf.constant(labels), "labels/other": tf.constant([0, 1])}
    task = types.SimpleNamespace(_losses={"one": loss, "other": Uncounted()})
    if isinstance(loss, losses.PositionCrossentropy):
        features["labels/one"] = tf.constant([1, 2])
        features["input_ids"] = tf.ones([2, 2], tf.int32)
        counts = [1, 0]
    parts = [trainer.part_of(features, part, 2) for part in range(2)]
    weights = [HeadTask.loss_weight(task, part) for part in parts]
    assert [int(x["one_loss"]) for x in weights] == counts
    assert [int(x["other_loss"]) for x in weights] == [1, 1]


def test_what_is_added_to_the_loss_counts_alike_in_all_parts():
    scale = tf.Variable(2.0)
    batch = {"x": tf.constant([1.0, 3.0, 5.0, 7.0])}

    def loss(features):
        one = scale * tf.reduce_mean(features["x"])
        return {"loss": one + 10 * scale**2, "one": one}

    def mean(**options):
        (gradient,), found = trainer.mean_gradients(loss, [scale], batch, seed=[0, 0], **options)
        return float(gradient), {name: float(x) for name, x in found.items()}

    shares = {"one": tf.constant([0.5, 1.5])}
    assert mean(num_parts=1) == (44.0, {"loss": 48.0, "one": 8.0})
    # Parts' means are 2 and 6: (0.5 * 2 + 1.5 * 6) / 2 is 5.
    assert mean(num_parts=2, shares=shares) == (45.0, {"loss": 50.0, "one": 10.0})
    with pytest.raises(ValueError, match="has a weight of 'two', which its `loss` does not return"):
        mean(num_parts=2, shares={**shares, "two": shares["one"]})
