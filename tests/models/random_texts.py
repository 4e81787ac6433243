"""Drawn texts, and batches as tensors."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st


def tensors(batch):
    return {key: tf.constant(x, tf.int32) for key, x in batch.items()}


@st.composite
def texts(draw, names, ids):
    """One text, maybe with gaps: dict of int [1, length].

    Args:
        names: of what the text says of each token, 0 or 1, beside its id.
        ids: function of (batch, length, seed): token ids.
    """
    length = draw(st.integers(1, 40))
    bits = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    text = {name: np.array([draw(bits)]) for name in names}
    if "attention_mask" in text:
        text["attention_mask"][0, draw(st.integers(0, length - 1))] = 1
    return {"input_ids": ids(1, length, draw(st.integers(0, 99))), **text}


def changed_rows(states_of, ids, place):
    """Which tokens' states differ once one token of a text is another one: list of int.

    Args:
        states_of: function of int [1, length] to float [1, length, hidden_size].
        ids: int [1, length].
        place: int. Where the token is another one.
    """
    other = np.array(ids)
    other[0, place] = 1 if ids[0, place] != 1 else 2
    before, after = (states_of(tf.constant(x))[0].numpy() for x in (ids, other))
    return np.flatnonzero(np.abs(before - after).max(-1) > 1e-7).tolist()
