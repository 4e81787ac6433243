"""Drawn texts, and batches as tensors."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

__all__ = ["tensors", "texts"]


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
