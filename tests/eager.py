"""Fixtures that leave out tracing, which takes most of the time of a short run."""

import pytest
import tensorflow as tf


@pytest.fixture(scope="module")
def eagerly():
    """For a module: of files, lines and signals a graph proves nothing."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def in_graphs():
    """But for one test of such a module."""
    was_eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(False)
    yield
    tf.config.run_functions_eagerly(was_eager)
