"""What programs print of an error."""

import pytest
import tensorflow as tf

from etcmodel.training import error_line


def test_an_assertion_in_a_data_set_that_a_graph_reads_says_its_own_words():
    def check(value):
        found = ["`ids` must be below 3. Received:", value, "of", "a file [1]"]
        with tf.control_dependencies([tf.debugging.Assert(value < 3, found)]):
            return tf.identity(value)

    values = iter(tf.data.Dataset.range(2, 5).map(check))
    total = tf.function(lambda: sum(next(values) for _ in range(2)))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        total()
    assert len(str(caught.value).splitlines()) > 1
    assert error_line(caught.value) == "`ids` must be below 3. Received: 3 of a file [1]"


def test_other_errors_are_told_as_they_are():
    assert error_line(ValueError("no [such] file")) == "no [such] file"
    assert error_line(tf.errors.NotFoundError(None, None, "x: not found")) == "x: not found"


def test_what_a_loaded_model_says_is_told_without_the_place_in_its_graph(tmp_path):
    """A model that was loaded has no stack traces, and TensorFlow says so in a line of its own."""
    module = tf.Module()
    features = {"ids": tf.io.FixedLenFeature([1], tf.int64)}
    signature = [tf.TensorSpec([None], tf.string)]
    module.parse = tf.function(lambda x: tf.io.parse_example(x, features), signature)
    tf.saved_model.save(module, str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.saved_model.load(str(tmp_path)).parse(tf.constant(["abc"]))
    assert "<stack traces unavailable>" in caught.value.message
    assert error_line(caught.value) == "Could not parse example input, value: 'abc'"
