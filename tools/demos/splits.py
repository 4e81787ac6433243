"""Made-up data: the same seed gives the same examples; and the relations that they tell."""

import random

__all__ = ["example_maker", "parse_relations"]

_SPLITS = ("train", "dev")


def example_maker(make_example):
    """A data set's `make_examples`.

    Args:
        make_example: function of a `random.Random`, the split and the example's number to the
            example.
    Returns:
        function of keywords `split` ("train" or "dev"), `num_examples` and `seed` to the list of
        the first examples of the split for the seed.
    """

    def make_examples(*, split, num_examples, seed):
        if split not in _SPLITS:
            raise ValueError(f"`split` must be train or dev. Received: {split=}")
        rng = random.Random(f"{seed} {split}")
        return [make_example(rng, split, index) for index in range(num_examples)]

    return make_examples


def parse_relations(kind, table):
    """Relations from blocks of lines, between which a line is empty.

    Args:
        kind: `NamedTuple` of the first line's words and then of each further line, a field each.
        table: str. Alternatives of a line stand between slashes.
    Returns:
        list of `kind`.
    """
    blocks = (block.split("\n") for block in table.strip().split("\n\n"))
    return [
        kind(*first.split(), *(tuple(line.split(" / ")) for line in lines))
        for first, *lines in blocks
    ]
