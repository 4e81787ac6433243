"""Windows and dilations of a config: one number, or one per layer."""

__all__ = ["as_tuples", "by_layer", "dilations", "on_last_heads", "radii", "rising"]


def as_tuples(value):
    """Returns the value with lists turned into tuples."""
    return tuple(map(as_tuples, value)) if isinstance(value, (list, tuple)) else value


def by_layer(name, value, num_layers):
    """Returns a tuple with one entry per layer.

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
    """Number of tokens attended to on each side, by layer: tuple of int.

    Args:
        attention_window: int, even, or tuple of them.
        num_layers: int.
    Raises:
        ValueError: if a window is not an even number.
    """
    windows = by_layer("attention_window", attention_window, num_layers)
    for window in windows:
        if type(window) is not int or window < 2 or window % 2:
            raise ValueError(
                "`attention_window` must be even, at least 2, and one number or one for each of "
                f"{num_layers} layers. Received: {attention_window}"
            )
    return tuple(window // 2 for window in windows)


def dilations(attention_dilation, num_layers, num_heads):
    """Distances between the tokens attended to: tuple by layer of int or of tuple of int by head.

    Args:
        attention_dilation: int, or tuple by layer of int or of tuple of int by head.
        num_layers, num_heads: int.
    Raises:
        ValueError: if a number is below 1, or there are more or fewer than layers or heads.
    """
    found = by_layer("attention_dilation", attention_dilation, num_layers)
    for dilation in found:
        by_head = dilation if isinstance(dilation, tuple) else (dilation,) * num_heads
        is_right = all(type(x) is int and x >= 1 for x in by_head)
        if not is_right or len(by_head) != num_heads:
            raise ValueError(
                "`attention_dilation` must be at least 1: one number, or one for each of "
                f"{num_layers} layers, or there one for each of {num_heads} heads. Received: "
                f"{attention_dilation}"
            )
    return found


def on_last_heads(dilations, num_heads, num_dilated=2):
    """Applies dilations by layer to the last heads alone; the others have no gaps: a tuple.

    Args:
        dilations: sequence of int, by layer.
        num_heads: int.
        num_dilated: int. Heads with gaps.
    """
    rest = (1,) * (num_heads - num_dilated)
    return tuple(rest + (x,) * num_dilated if x > 1 else 1 for x in dilations)


def rising(bottom, top, num_layers):
    """Windows that double from the lowest to the highest layer: a tuple.

    Each size has equally many layers; if they do not divide evenly, the upper sizes have one more.

    Args:
        bottom: int.
        top: int. `bottom` times a power of 2.
        num_layers: int, at least the number of sizes.
    """
    sizes = [bottom]
    while sizes[-1] < top:
        sizes.append(2 * sizes[-1])
    each, rest = divmod(num_layers, len(sizes))
    counts = [each + (number >= len(sizes) - rest) for number in range(len(sizes))]
    return tuple(x for x, count in zip(sizes, counts, strict=True) for _ in range(count))
