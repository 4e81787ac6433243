"""Tiny PEGASUS-Xs with random weights."""

import numpy as np
import tensorflow as tf

from etcmodel.models.pegasus_x import PegasusXConfig, PegasusXForConditionalGeneration

VOCAB_SIZE = 30


def config(**changes):
    entries = {
        "vocab_size": VOCAB_SIZE,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 20,
        "num_global_tokens": 3,
        "block_size": 4,
        "dropout": 0.0,
    }
    return PegasusXConfig(**{**entries, **changes})


def model(seed=0, policy=None, model_class=PegasusXForConditionalGeneration, **changes):
    """A built model, whose weights depend on the seed alone."""
    made = model_class(config(**changes), dtype=policy)
    with tf.name_scope(made.name):
        made.build(None)
    rng = np.random.default_rng(seed)
    for variable in made.weights:
        is_matrix = len(variable.shape) == 2
        center = 1.0 if "gamma" in variable.name else 0.0
        variable.assign(rng.normal(center, 0.3 if is_matrix else 0.1, variable.shape))
    return made


def ids(batch, length, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(2, VOCAB_SIZE, (batch, length)).astype(np.int32)
