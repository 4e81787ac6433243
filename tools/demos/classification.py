"""Invented reports on parcels, whose label only sentences far apart decide together.

A report begins with the color of the parcel's seal, and ends, more than 512 word pieces later, with
the order for that day: every parcel passes, or none, or those with a red seal. Between them are
walks of people from place to place, which tell nothing. The label is "pass" or "hold", in turn.
Whatever the seal is, both are as frequent: a reader of the first 512 pieces can only guess, and a
reader of the last sentences alone is right for about four reports of five.
"""

from etcmodel.tools.demos import made_up
from etcmodel.tools.demos.made_up import BUILDING, NAME_PARTS, PERSON

__all__ = ["LABELS", "MODEL", "make_examples", "texts"]

# A narrow layer needs larger weights to begin with.
MODEL = {"initializer_range": 0.1, "use_pre_activation_order": True}

LABELS = ("hold", "pass")
SEALS = (
    "The parcel had a {seal} seal.",
    "Its wax was {seal}.",
    "A {seal} ribbon was tied around it.",
)
ORDERS = {
    "all": ("The gates were open to every parcel.", "No parcel was refused."),
    "none": ("The gates were shut to any parcel.", "Nothing at all was let through."),
    "red": ("Only red parcels were let through.", "The guards wanted red."),
}
FILLERS = (
    "{person} walked from {place} to {other}.",
    "{person} met {friend} at {place}.",
    "The road from {place} to {other} was long.",
    "{person} and {friend} rested near {place}.",
    "It rained on {person} at {other}.",
)
SEAL_SHARE = 0.75  # Of the reports that the order "red" fits: those with it.
NUM_FIRST_FILLERS = (0, 2)  # Before the seal.
NUM_FILLERS = (57, 60)  # Between the seal and the order: more than 512 word pieces.
NUM_LAST_FILLERS = (0, 2)


def _filler(rng):
    names = [" ".join(map(rng.choice, NAME_PARTS[kind])) for kind in (PERSON, PERSON, BUILDING)]
    person, friend, place = names
    other = " ".join(map(rng.choice, NAME_PARTS[BUILDING]))
    return rng.choice(FILLERS).format(person=person, friend=friend, place=place, other=other)


def _fillers(rng, least_and_most):
    return [_filler(rng) for _ in range(rng.randint(*least_and_most))]


def _make_example(rng, split, index):
    seal, label = rng.choice(("red", "blue")), LABELS[index % len(LABELS)]
    order = "all" if label == "pass" else "none"
    if (seal == "red") == (label == "pass") and rng.random() < SEAL_SHARE:
        order = "red"
    sentences = [
        *_fillers(rng, NUM_FIRST_FILLERS),
        *(form.format(seal=seal) for form in rng.sample(SEALS, len(SEALS))),
        *_fillers(rng, NUM_FILLERS),
        *rng.sample(ORDERS[order], len(ORDERS[order])),
        *_fillers(rng, NUM_LAST_FILLERS),
    ]
    return {
        "id": f"demo-{split}-{index:06d}",
        "text": " ".join(sentences),
        "label": label,
    }


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads."""
    return [example["text"]]
