"""Data sets without tuning are the same, and so are those that are made of them."""

import tensorflow as tf

from etcmodel.autotuning import without_autotuning


def test_the_elements_are_the_same_and_nothing_is_tuned():
    dataset = tf.data.Dataset.range(7).map(lambda x: x * x, tf.data.AUTOTUNE).batch(2)
    made = without_autotuning(dataset)
    assert [x.tolist() for x in made.as_numpy_iterator()] == [[0, 1], [4, 9], [16, 25], [36]]
    assert made.options().autotune.enabled is False
    assert made.take(2).prefetch(1).options().autotune.enabled is False


def test_other_options_stay():
    options = tf.data.Options()
    options.deterministic, options.autotune.enabled = False, True
    made = without_autotuning(tf.data.Dataset.range(3).with_options(options))
    assert made.options().deterministic is False and made.options().autotune.enabled is False
