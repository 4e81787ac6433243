"""What tests draw at random is the same whichever tests ran before them."""

import importlib.util
import random
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import Phase, given, settings
from hypothesis import strategies as st


def test_every_test_begins_with_the_same_random_numbers():
    assert random.random() == random.Random(0).random()
    assert np.random.random() == np.random.RandomState(0).random()
    weights = tf_keras.initializers.RandomNormal()([3, 4])
    tf_keras.utils.set_random_seed(0)
    np.testing.assert_array_equal(tf_keras.initializers.RandomNormal()([3, 4]), weights)


@pytest.mark.parametrize("is_graph", [False, True], ids=["eager", "graph"])
def test_a_seed_begins_anew_what_has_drawn_before(is_graph):
    def draw():
        return tf.random.uniform([3])

    draw = tf.function(draw) if is_graph else draw
    found = []
    for _ in range(3):  # A graph draws in each run, and is traced in the first one alone.
        tf_keras.utils.set_random_seed(1)
        found.append([draw().numpy(), draw().numpy()])
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
    assert (found[0][0] != found[0][1]).all()


def test_generated_examples_do_not_depend_on_what_is_imported(tmp_path, monkeypatch):
    number = 987_654_321_123
    (tmp_path / "imported_late.py").write_text(f"NUMBER = {number}\n")
    spec = importlib.util.spec_from_file_location("imported_late", tmp_path / "imported_late.py")
    drawn = []

    @settings(max_examples=60, phases=[Phase.generate])
    @given(st.lists(st.integers(), min_size=50))
    def draw(values):
        drawn.extend(values)

    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "imported_late", module)
    draw()
    assert len(set(drawn)) > 1000 and number not in drawn
