"""Invented questions in WikiHop's layout, easy enough for a small model.

Each question asks for a property of a made-up thing, such as "country Ember Mill". A document leads
from the thing to another, and that one's document tells the property:
    "Ember Mill belongs to Tarn Hollow. …"  "Tarn Hollow lies in Avaria. …"
The other candidates are mentioned as often, in sentences that tell something else ("Osprey Gate
trades with Belmark."), and now and then in one that tells the property of another thing: so most
questions are answered by knowing which sentences tell, the others only by following the names.
"""

from typing import NamedTuple

from etcmodel.tasks.wikihop.config import MARKS
from etcmodel.tools.demos import made_up

__all__ = ["ADDED_TOKENS", "make_examples", "split_of", "texts"]

ADDED_TOKENS = MARKS
# First and second parts of names.
NAME_PARTS = (
    """Tarn Alder Bracken Cinder Clover Drift Dusk Eider Ember Fallow Frost Gale Gorse Hallow Harrow
    Hazel Heron Ivy Juniper Kestrel Lark Laurel Linden Maple Marten Mist Moss Nettle Osprey Pebble
    Plover Quarry Quill Raven Reed Rowan Rush Saffron Sedge Sorrel Sparrow Spruce""",
    """Hollow Bank Barrow Beck Bluff Brook Burn Chase Cliff Combe Corner Cove Crag Croft Dale Dell
    Edge Fell Ford Gate Glade Glen Grove Haven Heath Hill Holm Knoll Ledge Mill Moor Nook Pond Quay
    Ridge Rock Scar Shore Slope Strand Vale Weir""",
)
NAME_PARTS = tuple(part.split() for part in NAME_PARTS)
LINKS = ("{s} belongs to {o}.", "{s} is a part of {o}.", "{s} was left to {o}.")
REMARKS = ("It is old.", "It is well known.", "Few people go there.", "It has a long history.")
HARD_SHARE = 0.1  # Of the wrong candidates: told of another thing.


class Property(NamedTuple):
    """A relation: its values, and sentences that state it or only mention a value."""

    name: str
    values: list
    telling: tuple
    misleading: tuple


def _property(name, values, telling, misleading):
    return Property(name, values.split(", "), telling, misleading)


PROPERTIES = (
    _property(
        "country",
        "Avaria, Belmark, Corsend, Dalmora, Estovia, Farland, Gravonia, Ilmaria, Jutra",
        ("{s} lies in {v}.", "{s} is found in {v}."),
        ("{s} trades with {v}.", "{s} is often taken for {v}.", "{s} sells wool to {v}."),
    ),
    _property(
        "material_used",
        "granite, marble, brick, sandstone, oak, slate, basalt, cedar, limestone",
        ("{s} is made of {v}.", "{s} was built from {v}."),
        ("{s} was once a store of {v}.", "{s} smells of {v}.", "{s} has a shop for {v}."),
    ),
    _property(
        "founded_by",
        "Ilse Korrin, Anders Holt, Clara Voss, Emil Farrow, Greta Lomax, Hugo Pryor, Mira Selwyn, "
        "Otto Wardle, Thea Stroud",
        ("{s} was founded by {v}.", "{v} was the founder of {s}."),
        ("{s} was painted by {v}.", "{v} once slept at {s}.", "{s} has a street named after {v}."),
    ),
)

split_of = made_up.split_by_name(NAME_PARTS)


def _names(rng, split, count):
    """Different full names of the split."""
    names = set()
    while len(names) < count:
        name = " ".join(map(rng.choice, NAME_PARTS))
        if split_of(name) == split:
            names.add(name)
    return rng.sample(sorted(names), count)


def _document(rng, sentence):
    """A sentence among up to two remarks, which come after it."""
    return " ".join([sentence, *rng.sample(REMARKS, rng.randrange(3))])


def _make_example(rng, split, index):
    asked = rng.choice(PROPERTIES)
    answer, *others = rng.sample(asked.values, rng.randint(4, 8))
    subject, owner, *names = _names(rng, split, 2 + len(others))
    sentences = [
        rng.choice(LINKS).format(s=subject, o=owner),
        rng.choice(asked.telling).format(s=owner, v=answer),
    ]
    for name, value in zip(names, others, strict=True):
        statements = asked.telling if rng.random() < HARD_SHARE else asked.misleading
        sentences.append(rng.choice(statements).format(s=name, v=value))
    rng.shuffle(sentences)
    return {
        "id": f"demo-{split}-{index:06d}",
        "query": f"{asked.name} {subject.lower()}",
        "answer": answer.lower(),
        "candidates": sorted(value.lower() for value in (answer, *others)),
        "supports": [_document(rng, sentence) for sentence in sentences],
    }


# The two splits share no full name.
make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads."""
    return [example["query"], *example["candidates"], *example["supports"]]
