"""Invented voyages of a queen, a king, a crew and a ship to a port, each with many names.

No name is used twice in a document, so equal words tell nothing; what a name is of does not depend
on the document.
"""

from etcmodel.tools.demos import made_up

__all__ = ["MODEL", "make_examples", "texts"]

# A narrow layer needs larger weights to begin with.
MODEL = {"initializer_range": 0.1, "use_pre_activation_order": True}

NAMES = (
    ("she", "her", "Mara", "the queen", "the old lady", "the lady of the isles", "Mara Vale"),
    ("he", "him", "Tobin", "the king", "the young lord", "the lord of the hills", "Tobin Rook"),
    ("it", "that", "Petrel", "the ship", "the grey boat", "the boat of the north", "the brig"),
    ("they", "them", "sailors", "the crew", "the tired men", "the men of the watch", "the hands"),
    ("there", "Gorse", "the port", "the white town", "the town of the two towers", "the quay"),
)
FORMS = (
    "{} left before noon .",
    "In the rain {} passed {} .",
    "Nobody had seen {} for days .",
    "{} waited near the mill for {} .",
    "The road to the harbor was long .",
    "At dusk {} found {} behind the walls .",
    "A gull followed {} .",
)
NUM_SENTENCES = (7, 10)


def _make_example(rng, split, index):
    left = {thing: rng.sample(names, len(names)) for thing, names in enumerate(NAMES)}
    sentences, spans, before = [], {}, 0
    for form in rng.choices(FORMS, k=rng.randint(*NUM_SENTENCES)):
        words = []
        things = rng.sample([thing for thing, names in left.items() if names], 2)
        for part in form.split():
            if part == "{}":
                thing, first = things.pop(), before + len(words)
                words += left[thing].pop().split()
                spans.setdefault(thing, []).append([first, before + len(words) - 1])
            else:
                words.append(part)
        sentences.append(words)
        before += len(words)
    return {
        "doc_key": f"demo-{split}-{index:06d}",
        "sentences": sentences,
        "speakers": [["-"] * len(words) for words in sentences],
        "clusters": [found for found in spans.values() if len(found) > 1],
    }


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads."""
    return [" ".join(words) for words in example["sentences"]]
