"""Invented questions in TriviaQA's layout, each with two documents, easy enough for a small model.

One document tells five things of a person, each of another kind, among sentences that tell
nothing; the question asks for one of them. The other is about a building, and has no answer. An
answer has several spellings, of which the document has one.
"""

import json

from etcmodel.tools.demos import made_up
from etcmodel.tools.demos.hotpotqa import VALUES
from etcmodel.tools.demos.made_up import BUILDING, NAME_PARTS, PERSON

__all__ = [
    "FACTS",
    "MODEL",
    "document",
    "files",
    "make_examples",
    "name_of",
    "texts",
    "to_text",
]

# A narrow layer needs larger weights to begin with.
MODEL = {"initializer_range": 0.1, "use_pre_activation_order": True}

# Question and sentence of each kind of `VALUES`.
FACTS = {
    "instrument": ("Which instrument did {s} play?", "{s} played the {v} every day."),
    "country": ("Which country was {s} from?", "{s} came from {v} as a child."),
    "color": ("Which color did {s} like?", "{s} liked {v} most of all."),
    "material": ("Which material did {s} trade in?", "{s} traded in {v} for long."),
    "year": ("In which year did {s} leave home?", "{s} left home in {v} at dawn."),
}
FILLERS = (
    "The road to {place} was long.",
    "It rained at {place} for a week.",
    "Nobody came from {place}.",
    "There is a fair at {place}.",
)
NUM_FILLERS = (2, 4)


def name_of(rng, kind):
    """The name of a building or a person: str."""
    return " ".join(map(rng.choice, NAME_PARTS[kind]))


def document(rng, sentences):
    """A text of these sentences, in any order among others that tell nothing: str."""
    fillers = [
        rng.choice(FILLERS).format(place=name_of(rng, BUILDING))
        for _ in range(rng.randint(*NUM_FILLERS))
    ]
    found = [*sentences, *fillers]
    rng.shuffle(found)
    half = len(found) // 2
    return f"{' '.join(found[:half])}\n\n{' '.join(found[half:])}"


def _page(rng, name, sentences):
    text = document(rng, sentences)
    filename = f"{name.replace(' ', '_')}.txt"
    return {"DocSource": "Demo", "Filename": filename, "Title": name, "Text": text}


def _make_example(rng, split, index):
    """A question; unlike in the files, its pages have their `Text`."""
    person, building, asked = name_of(rng, PERSON), name_of(rng, BUILDING), rng.choice([*FACTS])
    values = {kind: rng.choice(VALUES[kind]) for kind in FACTS}
    told = [form.format(s=person, v=values[kind]) for kind, (_, form) in FACTS.items()]
    pages = [
        _page(rng, f"{person} {split} {index}", told),
        _page(rng, f"{building} {split} {index}", [f"{building} stood empty."]),
    ]
    rng.shuffle(pages)
    value = values[asked].capitalize()
    return {
        "Answer": {
            "Aliases": [value, f"The {value}", f"{value}."],
            "NormalizedAliases": [value.lower()],
            "NormalizedValue": value.lower(),
            "Type": "FreeForm",
            "Value": value,
        },
        "EntityPages": pages,
        "Question": FACTS[asked][0].format(s=person),
        "QuestionId": f"demo_{split}_{index}",
        "QuestionSource": "demo",
    }


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads."""
    return [example["Question"], *(page["Text"] for page in example["EntityPages"])]


def files(examples):
    """dict of the name of each evidence file to its text."""
    return {
        f"evidence/wikipedia/{page['Filename']}": page["Text"]
        for example in examples
        for page in example["EntityPages"]
    }


def to_text(examples):
    """The JSON of examples without the texts, one a line."""
    lines = []
    for example in examples:
        pages = [
            {name: value for name, value in page.items() if name != "Text"}
            for page in example["EntityPages"]
        ]
        lines.append(json.dumps({**example, "EntityPages": pages}))
    others = '"Domain": "Wikipedia", "VerifiedEval": false, "Version": 1.0'
    return '{"Data": [\n' + ",\n".join(lines) + f"\n], {others}}}\n"
