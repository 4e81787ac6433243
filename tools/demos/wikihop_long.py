"""Invented lives in WikiHop's layout: long inputs whose parts only their structure brings together.

Each question asks where one thing in a person's life took place, such as "Where did Ilse Korrin
marry?". The candidates are places. Some thirty sentences in a dozen documents tell, of one or
several of them, that it was there; rule out all of these but the answer; and mention places, or
nothing, to no purpose:
    "The bride met Ilse Korrin at Tarn Bank."  "Later papers rule out Tarn Bank."
    "Ilse Korrin drew a map of Dusk Hollow."   "There is a fair at Dusk Bank every year."
No mention decides alone: what is said at each of a place's mentions, far apart, must come together
at its candidate. Places of one question share their words ("Tarn Bank", "Tarn Hollow", "Dusk
Bank"): only both words together tell whose mention it is. Which sentences tell and which rule out
can be learned without comparing them with the question, as all that tell anything answer it.
"""

import itertools

from etcmodel.tools.demos import made_up
from etcmodel.tools.demos.made_up import BUILDING, NAME_PARTS, PERSON

__all__ = ["make_examples", "split_of", "texts"]

# What can be asked, and how it is told.
RELATIONS = {
    "Where was {s} born?": (
        "{s} was born at {v}.",
        "{v} is the birthplace of {s}.",
        "The cradle of {s} stood at {v}.",
    ),
    "Where did {s} die?": (
        "{s} died at {v}.",
        "The grave of {s} is at {v}.",
        "{v} is where {s} was buried.",
    ),
    "Where was {s} educated?": (
        "{s} was a pupil at {v}.",
        "{v} had a school for {s}.",
        "{s} learned to read at {v}.",
    ),
    "Where did {s} work?": (
        "{s} worked at {v}.",
        "{v} had a workshop of {s}.",
        "{s} earned good wages at {v}.",
    ),
    "Where did {s} live?": (
        "{s} lived at {v}.",
        "{v} was the home of {s}.",
        "{s} owned a house at {v}.",
    ),
    "Where did {s} marry?": (
        "{s} married at {v}.",
        "{v} saw the wedding of {s}.",
        "The bride met {s} at {v}.",
    ),
}
MISLEADING = (
    "{s} often spoke of {v}.",
    "{v} was never seen by {s}.",
    "{s} drew a map of {v}.",
    "{v} sent letters to {s}.",
    "{s} sold wool to {v}.",
    "The coach of {s} passed {v}.",
)
RULING_OUT = (
    "Later papers rule out {v}.",
    "It cannot have been at {v}.",
    "Nothing of this is true of {v}.",
    "The parish of {v} denies it.",
)
REMARKS = (
    "There is a fair at {v} every year.",
    "{v} lies by a river.",
    "The road to {v} is narrow.",
    "Few maps show {v}.",
)
FILLERS = (
    "The winters were long and cold.",
    "Nobody knows the reason for this.",
    "Letters from that time are lost.",
    "It was a year of much rain.",
    "Bread was dear in those days.",
)
TOLD_SHARE = 0.3  # Of the wrong candidates: told, and ruled out elsewhere.
RULED_OUT_SHARE = 0.2  # Of the others that are wrong.
NUM_CANDIDATES = (6, 9)  # Least and most.
NUM_MENTIONS = (2, 3)  # Of each candidate, in as many sentences.
NUM_FILLERS = (4, 8)
SENTENCES_A_DOCUMENT = (2, 3)

# Names of one question are made of so many first and second words. Few of the possible names are
# of the dev split, so that it needs more words.
_NUM_PARTS = {"train": 5, "dev": 12}
split_of = made_up.split_by_name(itertools.chain(*NAME_PARTS.values()))


def _person(rng, split):
    while True:
        name = " ".join(map(rng.choice, NAME_PARTS[PERSON]))
        if split_of(name) == split:
            return name


def _places(rng, split, count):
    """Different names of the split, made of few words."""
    names = []
    while len(names) < count:
        firsts, seconds = (rng.sample(half, _NUM_PARTS[split]) for half in NAME_PARTS[BUILDING])
        names = [f"{a} {b}" for a in firsts for b in seconds if split_of(f"{a} {b}") == split]
    return rng.sample(names, count)


def _sentences(rng, subject, asked, places):
    """The sentences of one example in random order; the first of the places is the answer."""
    sentences = []
    for place in places:
        is_answer = place == places[0]
        is_told = is_answer or rng.random() < TOLD_SHARE
        is_ruled_out = not is_answer and (is_told or rng.random() < RULED_OUT_SHARE)
        forms = [rng.choice(RELATIONS[asked] if is_told else MISLEADING)]
        forms += [rng.choice(RULING_OUT)] if is_ruled_out else []
        # The number of mentions tells nothing.
        forms += rng.sample(REMARKS, rng.randint(*NUM_MENTIONS) - len(forms))
        sentences += [form.format(s=subject, v=place) for form in forms]
    sentences += [rng.choice(FILLERS) for _ in range(rng.randint(*NUM_FILLERS))]
    rng.shuffle(sentences)
    return sentences


def _documents(rng, sentences):
    documents = []
    while sentences:
        size = rng.randint(*SENTENCES_A_DOCUMENT)
        documents.append(" ".join(sentences[:size]))
        sentences = sentences[size:]
    return documents


def _make_example(rng, split, index):
    subject = _person(rng, split)
    places = _places(rng, split, rng.randint(*NUM_CANDIDATES))
    asked = rng.choice(sorted(RELATIONS))
    return {
        "id": f"demo-{split}-{index:06d}",
        "query": asked.format(s=subject),
        "answer": places[0],
        "candidates": sorted(places),
        "supports": _documents(rng, _sentences(rng, subject, asked, places)),
    }


# The two splits share no full name.
make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads."""
    return [example["query"], *example["candidates"], *example["supports"]]
