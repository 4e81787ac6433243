"""What every program does first, before it imports TensorFlow."""

import os

from etcmodel import program_end, quiet


def begin():
    """Prepares the process of a program: its end at signals, its messages, its Keras.

    TensorFlow imports Keras 3 as `tf.keras`, which takes a second or two, unless a variable tells
    it to take Keras 2, which this library needs anyway. The user may have set it, and processes
    that this one starts inherit it.
    """
    program_end.end_at_once_on_signals()
    quiet.quiet_tensorflow()
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
