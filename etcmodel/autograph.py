"""AutoGraph, which the library's own functions can do without."""


def without_autograph(function):
    """Decorator: AutoGraph leaves the function, and the functions that it calls, as they are.

    Converting takes up to half of the time of a first call. Users' layers within the function are
    converted all the same. Where there are none, `tf.autograph.experimental.do_not_convert` also
    leaves the bodies of loops and conditions as they are.
    """
    function.autograph_info__ = None  # What AutoGraph itself writes on what it made.
    return function
