"""Tiny models whose generation is exported, and how an export is compared with its model."""

import functools

import numpy as np
import tensorflow as tf

from etcmodel import serving
from tests.models.gmat import genbert
from tests.models.led import models as leds
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs

MAKERS = {
    "gmat": functools.partial(genbert.model, num_hidden_layers=1),
    "led": functools.partial(leds.model, encoder_layers=1, decoder_layers=1, attention_window=4),
    "longt5": functools.partial(longt5s.model, num_layers=1, scale_decoder_outputs=False),
    "pegasus_x": functools.partial(pegasus_xs.model, encoder_layers=1, decoder_layers=1),
}
CALLS = (
    {"num_beams": 1, "max_length": 6, "min_length": 5, "length_penalty": 2.0},
    {"num_beams": 2, "max_length": 9, "min_length": 4, "length_penalty": 0.5},
    {"num_beams": 5, "max_length": 12, "min_length": 0, "length_penalty": -1.0},
)
IDS = {"input_ids": leds.ids(3, 13), "attention_mask": np.ones((3, 13), np.int32)}
IDS["attention_mask"][1, 7:] = 0
GLOBAL = {"global_attention_mask": np.eye(1, 13, dtype=np.int32).repeat(3, 0)}


def constants(inputs):
    return {name: tf.constant(x) for name, x in inputs.items()}


def exported(model, folder, **settings):
    """The signatures of a model's export."""
    path = serving.export_generation(model, str(folder / "1"), **settings)
    return tf.saved_model.load(path).signatures


def assert_same(found, wanted):
    np.testing.assert_array_equal(found["sequences"], wanted["sequences"])
    scores = wanted.get("sequences_scores", np.zeros(len(wanted["sequences"])))
    # Sums of log probabilities may be in the hundreds, of which 1e-5 is less than a rounding.
    np.testing.assert_allclose(found["sequences_scores"], scores, rtol=1e-6, atol=1e-5)
