"""Heads against NumPy, and heads whose variables are another layer's own."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.checkpoints import release_names
from etcmodel.layers import heads

HIDDEN = np.random.default_rng(0).normal(size=[2, 4, 3]).astype(np.float32)
ALLOWED = np.array([[True, True, False, True], [False, False, True, True]])


def test_logits_of_tokens_are_a_dense_layer_s():
    head = heads.TokenLogits(2)
    logits = head(HIDDEN)
    head.set_weights([np.arange(6.0).reshape(2, 3), np.array([0.5, -1.0])])
    expected = HIDDEN @ np.arange(6.0).reshape(2, 3).T + [0.5, -1.0]
    assert logits.shape == (2, 4, 2)
    np.testing.assert_allclose(head(HIDDEN), expected, atol=1e-5)
    np.testing.assert_allclose(head(HIDDEN[:, 0]), expected[:, 0], atol=1e-5)


def test_ends_are_named_and_stand_where_they_may():
    head = heads.SpanLogits(("begin", "end"))
    free, bound = head(HIDDEN), head(HIDDEN, allowed=ALLOWED)
    assert list(free) == ["begin", "end"]
    both = HIDDEN @ head.kernel.numpy().T + head.bias.numpy()
    for number, end in enumerate(free):
        np.testing.assert_allclose(free[end], both[:, :, number], atol=1e-6)
        np.testing.assert_allclose(
            bound[end], np.where(ALLOWED, both[:, :, number], -1e9), atol=1e-6
        )


@pytest.mark.parametrize("head_class", [heads.TokenLogits, heads.SpanLogits])
def test_a_head_without_outputs_is_refused(head_class):
    with pytest.raises(ValueError, match="`num_outputs` must be at least 1. Received: 0"):
        head_class(() if head_class is heads.SpanLogits else 0)


class Owner(tf_keras.Model):
    """A task's model as the release's checkpoints have it."""

    def __init__(self):
        super().__init__(name="task")
        self.head = heads.TokenLogits(2, dtype="float32")
        self.other = heads.TokenLogits(1, name="other")

    def build(self, input_shape=None):
        self.head.build_in(self, "answer_output_", 3)
        self.built = True

    def call(self, hidden):
        return self.head(hidden), self.other(hidden)


def test_a_head_may_have_variables_of_its_owner_by_the_release_s_names(tmp_path):
    model = Owner()
    model.build()
    logits, _ = model(HIDDEN)
    names = release_names(model)
    assert list(names) == [
        "answer_output_weights",
        "answer_output_bias",
        "other/weights",
        "other/bias",
    ]
    own = {variable.name for variable in model.weights if "/" not in variable.name}
    assert own == {"answer_output_weights:0", "answer_output_bias:0"}
    assert not model.head.weights and len(model.weights) == 4
    expected = HIDDEN @ names["answer_output_weights"].numpy().T
    np.testing.assert_allclose(logits, expected, atol=1e-6)
    # In object checkpoints they are where the owner's variables are.
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "ckpt"))
    keys = {key for key, _ in tf.train.list_variables(path)}
    assert "model/answer_output_weights/.ATTRIBUTES/VARIABLE_VALUE" in keys
    assert not any("model/head/" in key for key in keys)


def test_a_float32_head_takes_hidden_states_of_less_precision():
    head = heads.TokenLogits(2, dtype="float32")
    assert head(tf.cast(HIDDEN, tf.bfloat16)).dtype == tf.float32


def test_the_best_positions_come_with_their_scores():
    scores = np.array([[0.1, 3.0, 2.0], [5.0, -1.0, 4.0]], np.float32)
    values, positions = heads.top_positions(scores, num_top=2)
    np.testing.assert_array_equal(positions, [[1, 2], [0, 2]])
    np.testing.assert_array_equal(values, np.array([[3.0, 2.0], [5.0, 4.0]], np.float32))
    assert heads.top_positions(scores)[1].shape == (2, 3)  # No more than there are.


def test_the_best_tags_come_with_their_probabilities():
    logits = np.log(np.array([[[1.0, 2.0, 1.0], [6.0, 2.0, 2.0]]], np.float32))
    tags, probs = heads.best_tags(logits)
    np.testing.assert_array_equal(tags, [[1, 0]])
    np.testing.assert_allclose(probs, [[0.5, 0.6]], rtol=1e-6)


def test_a_masked_language_model_s_head_and_its_checkpoints_are_model_garden_s(tmp_path):
    masked_lm = pytest.importorskip("official.nlp.modeling.layers.masked_lm")
    table = tf.Variable(np.random.default_rng(1).normal(size=[7, 5]).astype(np.float32))
    positions = tf.constant([[3, 0, 0], [1, 2, 3]])
    own = heads.make_masked_lm(table, 3, activation="relu", initializer_range=0.5)
    theirs = masked_lm.MaskedLM(table, activation="relu", name="mlm")
    theirs(HIDDEN, positions)
    assert [x.name for x in own.weights] == [x.name for x in theirs.weights]
    theirs.set_weights([np.random.default_rng(2).normal(size=x.shape) for x in theirs.weights])
    path = tf.train.Checkpoint(head=theirs).write(str(tmp_path / "ckpt"))
    tf.train.Checkpoint(head=own).read(path).assert_consumed()
    np.testing.assert_allclose(own(HIDDEN, positions), theirs(HIDDEN, positions), atol=1e-5)
