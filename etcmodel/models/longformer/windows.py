"""Windows of a config, which are one number or one a layer."""

__all__ = ["as_tuples", "by_layer", "radii"]


def as_tuples(value):
    """The value, lists in it as tuples."""
    return tuple(map(as_tuples, value)) if isinstance(value, (list, tuple)) else value


def by_layer(name, value, num_layers):
    """tuple of as many entries as there are layers.

    Args:
        name: str. The config's entry, for the error.
        value: one number, or a tuple.
        num_layers: int.
    Raises:
        ValueError: if it is a tuple of another length.
    """
    if not isinstance(value, tuple):
        return (value,) * num_layers
    if len(value) != num_layers:
        raise ValueError(
            f"`{name}` must be one number, or one entry for each of {num_layers} layers. Received: "
            f"{value}"
        )
    return value


def radii(attention_window, num_layers):
    """Tokens visible on each side, by layer: tuple of int.

    Args:
        attention_window: int, even, or tuple of them.
        num_layers: int.
    Raises:
        ValueError: if a window is no even number.
    """
    windows = by_layer("attention_window", attention_window, num_layers)
    for window in windows:
        if type(window) is not int or window < 2 or window % 2:
            raise ValueError(
                "`attention_window` must be even, at least 2, and one number or one for each of "
                f"{num_layers} layers. Received: {attention_window}"
            )
    return tuple(window // 2 for window in windows)
