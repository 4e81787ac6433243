"""A seeded generator of what files should not hold: JSON of odd values, and damaged bytes."""

import copy
import json
import math

DEEP = 150
ODD_VALUES = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    -(2**70),
    10**400,
    0.5,
    -0.0,
    1e308,
    math.inf,
    math.nan,
    *("", " ", "\x00", "\ud800", "é\u2028\ufeff", "123"),
    "word " * 300,
    [],
    {},
    [[]],
    [None],
    [1, "a"],
    [[1, 2], ["a"]],
    {"": 0},
    {"title": [], "sentences": None},
)
ODD_BYTES = (
    b"\xff",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b'"',
    b"\\",
    b"\n",
    b"]",
    b"}",
    b"[" * 5000,
    b'{"a":' * 5000,
    b"9" * 5000,
    b"NaN",
    b"-Infinity",
    b"1e999",
    b",",
    b" " * 5000,
)


def mutated(random, value):
    """A copy of a JSON value in which one to three places hold something else.

    Args:
        random: `random.Random`.
        value: JSON-like value.
    """
    value = json.loads(json.dumps(value))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if places:
            _change(random, *random.choice(places))
    return value


def _places(value):
    """(container, key) of every value within."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _change(random, container, key):
    kind = random.randrange(8)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, list):
        container.insert(key, container[key])
    elif kind == 2:
        container[key] = [container[key]]
    elif kind == 3:
        container[key] = str(container[key])
    elif kind == 4:
        container[key] = deep(random.choice((container[key], 0)))
    elif kind == 5 and isinstance(container[key], int | float):
        container[key] += random.choice((-1, 1, 100, 0.5))
    else:
        container[key] = copy.deepcopy(random.choice(ODD_VALUES))


def deep(value, depth=DEEP):
    """The value within that many lists."""
    for _ in range(depth):
        value = [value]
    return value


def damaged(random, content):
    """A copy of bytes that is cut, or in which some are others, missing, or there twice."""
    kind, place = random.randrange(7), random.randrange(len(content) + 1)
    other = random.randrange(len(content) + 1)
    first, last = sorted((place, other))
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:first] + content[last:]
    if kind == 2:
        return content[:last] + content[first:]
    if kind == 3:
        return content[:place] + bytes([random.randrange(256)]) + content[place + 1 :]
    if kind == 4:
        return content[:place] + random.randbytes(random.randrange(1, 40)) + content[place:]
    if kind == 5:
        return random.choice((b"", b"{}", b"[]", b"null", b"\xff\xfe" + content, content[::-1]))
    return content[:place] + random.choice(ODD_BYTES) + content[place:]
