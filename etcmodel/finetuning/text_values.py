"""Values of string features for decoding."""

import numpy as np

__all__ = ["text_of"]


def text_of(value):
    """The str of a string feature, which is bytes in an evaluation and str at prediction.

    >>> from etcmodel import finetuning
    >>> finetuning.text_of(b"caf\\xc3\\xa9"), finetuning.text_of("caf\\xe9")
    ('café', 'café')
    """
    value = np.ravel(value)[0]
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
