"""Made-up passages with numbers, and questions that need them (Gupta and Berant 2020, A.1).

As in the generator of Geva, Gupta and Berant 2020 (arXiv:2004.04487, section 4.2), sentences fill
in templates of a container, a verb, numbers, attributes and entities; a world keeps how much each
container has; questions are on its last state, and those remain whose answer is a number that the
passage does not have. Templates, words and code are our own.
"""

import collections
import itertools
import re
import string
from typing import NamedTuple

from etcmodel.tools.demos import made_up

__all__ = ["Question", "World", "all_texts", "make_examples", "model_config", "texts", "vocabulary"]

SENTENCES, LARGEST = 5, 10_000
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "@", "\\")
# How often a passage takes of its own few words, so that its sentences belong together.
REUSE = 0.999
OWNERS = (
    *("the farmer", "the baker", "the miller", "the captain", "the merchant", "the teacher"),
    *("the king", "the queen", "the sailor", "the painter", "the smith", "the weaver"),
)
PLACES = ("the village", "the harbor", "the valley", "the castle", "the market", "the forest")
ADJECTIVES = ("red", "green", "old", "new", "small", "large", "wooden", "foreign")
# Entities with the least and the greatest share of the largest number.
ENTITIES = {
    "apples": (0.0, 1.0),
    "coins": (0.1, 1.0),
    "barrels": (0.0, 0.1),
    "books": (0.0, 0.5),
    "horses": (0.0, 0.1),
    "ships": (0.0, 0.05),
    "soldiers": (0.1, 1.0),
    "tools": (0.0, 0.5),
}
# {a}, {b}: owners; {p}: a place; {n} {x}, {m} {y}: numbers of things.
OBSERVE = (
    "{a} had {n} {x} .",
    "{a} had {n} {x} and {m} {y} .",
    "There were {n} {x} in {p} .",
    "{p} had {n} {x} and {m} {y} .",
)
GAIN = (
    "{a} bought {n} {x} .",
    "{a} found {n} {x} and {m} {y} in {p} .",
    "{a} received {n} more {x} .",
    "{n} {x} came to {p} .",
)
LOSE = ("{a} lost {n} of the {x} .", "{a} sold {n} {x} in {p} .")
TRANSFER = ("{a} gave {n} {x} to {b} .", "{b} took {n} {x} from {a} .")
# With how often they are asked, of a hundred.
QUESTIONS = {
    "difference": ("How many more {x} than {y} did {a} have ?", 63),
    "complement": ("How many {x} of {a} were not {j} ?", 17),
    "total": ("How many {x} did {a} have ?", 11),
    "sum": ("How many {x} did {a} and {b} have together ?", 9),
}


class Thing(NamedTuple):
    """What is counted: an entity with an adjective, or '' for none."""

    adjective: str
    entity: str

    def __str__(self):
        return f"{self.adjective} {self.entity}".strip()


class Question(NamedTuple):
    """A question: str, int and str."""

    text: str
    answer: int
    kind: str


class World:
    """What everyone has, sentence by sentence.

    Attributes:
        numbers: set of int. Those of the sentences.

    Args:
        rng: `random.Random`.
        largest: int. Numbers are below it.
    """

    def __init__(self, rng, largest):
        self.numbers = set()
        self._rng, self._largest = rng, largest
        self._counts = collections.defaultdict(collections.Counter)
        self._own = {
            pool: rng.sample(pool, count)
            for pool, count in ((OWNERS, 2), (PLACES, 1), (ADJECTIVES, 2), (tuple(ENTITIES), 2))
        }

    def sentence(self):
        """Adds a sentence and changes the world accordingly: str."""
        kinds = [OBSERVE, GAIN] if self._counts else [OBSERVE]
        kinds += [LOSE, TRANSFER] if self._pairs(OWNERS) else []
        kind = self._rng.choice(kinds)
        told = self._changed if kind in (LOSE, TRANSFER) else self._added
        text = told(self._rng.choice(kind))
        return text[0].upper() + text[1:]

    def question(self):
        """A `Question` on what everyone has now; None if the kind that was drawn has none."""
        shares = [share for _, share in QUESTIONS.values()]
        (kind,) = self._rng.choices(list(QUESTIONS), shares)
        found = [x for x in getattr(self, f"_{kind}s")() if x[0] > 0]
        if not found:
            return None
        (answer, words), (template, _) = self._rng.choice(found), QUESTIONS[kind]
        return Question(template.format(**words), answer, kind)

    def _pick(self, pool):
        return self._rng.choice(self._own[pool] if self._rng.random() < REUSE else pool)

    def _thing(self):
        adjective = self._rng.choice(("", self._pick(ADJECTIVES)))
        return Thing(adjective, self._pick(tuple(ENTITIES)))

    def _number(self, thing):
        least, most = (int(share * self._largest) for share in ENTITIES[thing.entity])
        return self._rng.randrange(max(1, least), max(2, most))

    def _added(self, template):
        """The text of a template by which an owner, or a place without one, has more."""
        owner, place = self._pick(OWNERS), self._pick(PLACES)
        things = {"x": self._thing()}
        while things.get("y", things["x"]) == things["x"]:
            things["y"] = self._thing()
        words = {"a": owner, "p": place, **things}
        container = owner if "{a}" in template else place
        for name, number in (("x", "n"), ("y", "m")):
            if f"{{{name}}}" in template:
                words[number] = self._number(things[name])
                self._counts[container][things[name]] += words[number]
                self.numbers.add(words[number])
        return template.format(**words)

    def _changed(self, template):
        """The text of a template by which an owner has less, and maybe another one more."""
        owner, thing = self._rng.choice(self._pairs(OWNERS))
        number = self._rng.randint(1, self._counts[owner][thing])
        other = self._pick(OWNERS)
        while other == owner:
            other = self._pick(OWNERS)
        self._counts[owner][thing] -= number
        if "{b}" in template:
            self._counts[other][thing] += number
        self.numbers.add(number)
        return template.format(a=owner, b=other, n=number, x=thing, p=self._pick(PLACES))

    def _pairs(self, owners):
        """(owner, thing) of all that these have."""
        return [
            (owner, thing)
            for owner, counts in self._counts.items()
            for thing, count in counts.items()
            if owner in owners and count
        ]

    def _all_of(self, owner, entity):
        """How many of an entity an owner has, whatever the adjective."""
        return sum(n for thing, n in self._counts[owner].items() if thing.entity == entity)

    def _has(self, owner, thing):
        """As a question means it: without an adjective all of the entity count."""
        found = self._counts[owner][thing]
        return found if thing.adjective else self._all_of(owner, thing.entity)

    def _asked(self):
        """(owner, things) of what one can ask for: also the entities without an adjective."""
        for owner, counts in list(self._counts.items()):
            whole = [Thing("", thing.entity) for thing in counts]
            yield owner, list(dict.fromkeys([*counts, *whole]))

    def _differences(self):
        return [
            (self._has(owner, x) - self._has(owner, y), {"a": owner, "x": x, "y": y})
            for owner, things in self._asked()
            for x, y in itertools.permutations(things, 2)
        ]

    def _complements(self):
        return [
            (
                self._all_of(owner, thing.entity) - self._counts[owner][thing],
                {"a": owner, "x": thing.entity, "j": thing.adjective},
            )
            for owner, things in self._asked()
            for thing in things
            if thing.adjective
        ]

    def _totals(self):
        return [
            (self._has(owner, x), {"a": owner, "x": x})
            for owner, things in self._asked()
            for x in things
        ]

    def _sums(self):
        return [
            (self._has(a, x) + self._has(b, x), {"a": a, "b": b, "x": x})
            for (a, things), (b, others) in itertools.combinations(self._asked(), 2)
            for x in things
            if x in others
        ]


def all_texts():
    """Every text of which passages and questions are made: list of str."""
    templates = [*OBSERVE, *GAIN, *LOSE, *TRANSFER, *(text for text, _ in QUESTIONS.values())]
    return [*templates, *OWNERS, *PLACES, *ADJECTIVES, *ENTITIES]


def _make_example(rng, split, index, *, sentences=SENTENCES, largest=LARGEST):
    """A question.

    Args:
        sentences: int. Of a passage.
        largest: int, at least 2. Numbers are below it.
    Returns:
        dict with `id`, `question`, `passage`, `answer` and `kind`: "difference", "complement",
        "total" or "sum".
    """
    while True:
        world = World(rng, largest)
        passage = " ".join(world.sentence() for _ in range(sentences))
        question = world.question()
        if question is not None and question.answer not in world.numbers:
            return {
                "id": f"{split}-{index}",
                "question": question.text,
                "passage": passage,
                "answer": str(question.answer),
                "kind": question.kind,
            }


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """The texts of an example, of which its vocabulary must have all pieces: list of str."""
    return [example["question"], example["passage"], example["answer"]]


def vocabulary(*, sentences=SENTENCES, largest=LARGEST):
    """The pieces: list of str. Special ones, digits, letters, then all words there are."""
    del sentences, largest
    characters = string.digits + string.ascii_lowercase
    words = set(re.findall(r"\w+", " ".join(all_texts()).lower()))
    inner = [f"##{x}" for x in characters]
    return [*_SPECIAL, *".,?", *characters, *inner, *sorted(words - set(characters))]


def model_config(*, sentences=SENTENCES, largest=LARGEST):
    """A GMAT for a CPU, with the chunks of two to a text, and the memory, of the paper's: dict."""
    del sentences, largest
    return {
        "model_type": "gmat",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "chunk_size": 70,
        "num_memory_tokens": 30,
        "num_position_quotients": 0,
        # BERT's are 12 times wider: a narrow layer needs larger weights to begin with.
        "initializer_range": 0.1,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
