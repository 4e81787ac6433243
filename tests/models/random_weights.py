"""Weights of tiny models that are not their initial ones, the same in each process."""

import numpy as np
import tensorflow as tf


def randomize(made):
    """Gives all weights of a built model the same spread, around 1 for scales, otherwise 0."""
    rng = np.random.default_rng(0)
    for weight in made.weights:
        is_scale = weight.name.endswith("gamma:0")
        weight.assign(is_scale + rng.normal(scale=0.3, size=weight.shape))


def spread(made, seed=0):
    """Likewise, with less spread for scales and biases."""
    rng = np.random.default_rng(seed)
    for weight in made.weights:
        is_matrix = len(weight.shape) == 2
        center = 1.0 if "gamma" in weight.name else 0.0
        weight.assign(rng.normal(center, 0.3 if is_matrix else 0.1, weight.shape))


def by_number(made, scale=0.3):
    """Gives the trainable weights of a built model random ones by their numbers; returns it."""
    for number, weight in enumerate(made.trainable_variables):
        random = np.random.default_rng(number)
        weight.assign(random.normal(scale=scale, size=weight.shape))
    return made


def built(made, fill=randomize, **options):
    """Builds a model for any inputs, gives it its weights, and returns it."""
    with tf.name_scope(made.name):
        made.build(None)
    fill(made, **options)
    return made
