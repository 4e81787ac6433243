"""Which texts share a batch: it is padded to its longest, which makes all others as slow as itself.

Sizes are numbers of characters or bytes, or whatever is about proportional to the tokens.
"""

_FACTOR = 2  # So many times as long as the shortest of a batch the longest may be.
_SHORT = 500  # And so much longer: so few cost less than a batch of their own would.


def are_alike(shortest, longest):
    """Whether texts of these sizes, and between them, may share a batch.

    >>> from etcmodel.text import alike
    >>> alike.are_alike(15_000, 30_000), alike.are_alike(3, 300), alike.are_alike(300, 30_000)
    (True, True, False)
    """
    return longest <= _FACTOR * shortest + _SHORT


def parts(sizes, most):
    """Parts texts into batches of texts that are alike, the longest first.

    Args:
        sizes: list of int.
        most: int. Texts in a batch.
    Returns:
        list of lists of indices.

    >>> from etcmodel.text import alike
    >>> alike.parts([300, 40_000, 200, 100, 35_000], most=3)
    [[1, 4], [0, 2, 3]]
    """
    found = []
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        longest = sizes[found[-1][0]] if found else 0
        if found and len(found[-1]) < most and are_alike(sizes[index], longest):
            found[-1].append(index)
        else:
            found.append([index])
    return found
