"""Made-up data: parts of names, relations, and examples that a seed decides."""

import random

__all__ = ["BUILDING", "NAME_PARTS", "PERSON", "example_maker", "parse_relations", "split_by_name"]

BUILDING, PERSON = "building", "person"

# First and second parts of names. No part is in two lists, or a word of the sentences below.
NAME_PARTS = {
    BUILDING: (
        """Tarn Alder Bracken Cinder Clover Drift Dusk Eider Ember Fallow Fen Frost Gale Gorse Grim
        Hallow Harrow Hazel Heather Heron Ivy Juniper Kestrel Lark Laurel Linden Maple Marten Merrow
        Mist Moss Nettle Osprey Pebble Plover Quarry Quill Raven Reed Rime Rowan Rush Saffron Sedge
        Skylark Sorrel Sparrow Spruce Star Storm Summer Swan Tansy Thistle Thrush Willow""",
        """Hollow Bank Barrow Beck Bend Bluff Brae Brink Brook Burn Chase Cliff Combe Copse Corner
        Cove Crag Crest Croft Cross Dale Dell Dene Edge Fell Field Firth Fold Ford Gate Glade Glen
        Grove Haven Heath Hill Holm Hurst Isle Knoll Ledge Marsh Mead Moor Ness Nook Orchard Pass
        Point Pond Quay Reach Ridge Rise Rock Scar Shore Slope Spring Strand Vale Weir Wold""",
    ),
    PERSON: (
        """Ilse Ada Alma Anders Bela Boris Bruno Carla Celia Clio Dario Dora Edda Elias Emil Falk
        Flora Freya Gerda Greta Gunnar Hanno Hedda Hugo Imre Irma Ivo Jarl Jonas Juno Kaia Klara
        Knut Lars Leif Linnea Magnus Marta Mira Nils Nora Odile Otto Petra Pia Quentin Rafe Rhea
        Selma Soren Thea Tilda Ulla Ursel Vesna Viktor Wanda Wilma Xenia Yara Yorick Zelda Zeno""",
        """Korrin Abelin Arkin Ashby Belling Bexley Brask Calder Corvin Dorne Draxel Dunmore Egmont
        Ellery Elwick Farrow Fenwick Frayne Gadd Garrod Harker Hesk Holt Ibsley Ingram Jardin Jessop
        Joran Kelso Kemble Kestrin Lomax Lorimer Marrick Mostyn Nesbit Norling Orrin Osgood Pascoe
        Pellow Pryor Quist Radley Rask Renshaw Selwyn Stavin Stroud Tarrow Trask Ulven Upton Varga
        Vickers Voss Wardle Wexley Winslow Yardin Yelland Zander Zoller""",
    ),
}
NAME_PARTS = {kind: [part.split() for part in parts] for kind, parts in NAME_PARTS.items()}

_SPLITS = ("train", "dev")


def example_maker(make_example):
    """A data set's `make_examples`.

    Args:
        make_example: function of a `random.Random`, the split, the example's number and the data
            set's settings to the example.
    Returns:
        function of keywords `split` ("train" or "dev"), `num_examples`, `seed` and the settings to
        the list of the first examples of the split for the seed.
    """

    def make_examples(*, split, num_examples, seed, **settings):
        if split not in _SPLITS:
            raise ValueError(f"`split` must be train or dev. Received: {split=}")
        rng = random.Random(f"{seed} {split}")
        return [make_example(rng, split, index, **settings) for index in range(num_examples)]

    make_examples.__doc__ = make_example.__doc__
    return make_examples


def split_by_name(halves):
    """A function of a full name to the split that may use it, whatever the seed.

    Args:
        halves: iterable of lists of the words that names are made of.
    Returns:
        function of a str to "dev", for one name in eight, or "train".
    """
    ranks = {part: rank for half in halves for rank, part in enumerate(half)}
    return lambda name: _SPLITS[sum(ranks[part] for part in name.split()) % 8 == 0]


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
