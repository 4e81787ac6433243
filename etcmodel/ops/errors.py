"""Errors of one readable line. This module does not need TensorFlow."""


def fail(message):
    """Raises a ValueError with only this message."""
    raise one_line(message)


def one_line(message):
    """Returns a ValueError with only this message.

    The attributes keep Keras from adding all arguments of the call to the message, and AutoGraph
    from adding the stack of the call.
    """
    error = ValueError(message)
    error._keras_call_info_injected = error.ag_pass_through = True
    return error
