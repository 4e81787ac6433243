"""Invented travels, whose people and places have names of the same parts.

A name alone does not tell what it is: in one document a person, in another a place. The words
around it do. Names have one to three words, of which only the first begins it.
"""

from etcmodel.tools.demos import made_up
from etcmodel.tools.demos.made_up import BUILDING, NAME_PARTS

__all__ = ["MODEL", "make_examples", "texts"]

# A narrow layer needs larger weights to begin with.
MODEL = {"initializer_range": 0.1, "use_pre_activation_order": True}

FORMS = (
    "{PER} sailed from {LOC} to {LOC} .",
    "In {LOC} , {PER} met {PER} again .",
    "{PER} told {PER} of the road to {LOC} .",
    "The walls of {LOC} were older than those of {LOC} .",
    "Nobody but {PER} knew the way .",
    "It had rained for days in {LOC} .",
    "They waited for news .",
)
PARTS = [part for parts in NAME_PARTS[BUILDING] for part in parts]
NUM_SENTENCES = (4, 8)
LONGEST = 3  # Words of a name.


def _make_example(rng, split, index):
    sentences = [_sentence(rng, form) for form in rng.choices(FORMS, k=rng.randint(*NUM_SENTENCES))]
    words, tags = ([[pair[part] for pair in sentence] for sentence in sentences] for part in (0, 1))
    return {"id": f"demo-{split}-{index:06d}", "words": words, "tags": tags}


def _sentence(rng, form):
    """The (word, tag)s of a sentence."""
    pairs = []
    for word in form.split():
        kind = word.strip("{}")
        if kind == word:
            pairs.append((word, "O"))
            continue
        name = rng.sample(PARTS, rng.randint(1, LONGEST))
        pairs += [(part, f"{'I' if place else 'B'}-{kind}") for place, part in enumerate(name)]
    return pairs


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads."""
    return [" ".join(words) for words in example["words"]]
