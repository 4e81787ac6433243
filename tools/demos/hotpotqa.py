"""Invented questions in HotpotQA's distractor layout, easy enough for a small model.

Each example is a little world of its own: buildings and persons with made-up names and a paragraph
of facts each, which hold there alone, so that nothing can be learned by heart. A question needs two
paragraphs; the others tell the same relations, some of similar names.
"""

import itertools
from typing import NamedTuple

from etcmodel.tasks.hotpotqa.config import MARKS
from etcmodel.tools.demos import made_up
from etcmodel.tools.demos.made_up import BUILDING, NAME_PARTS, PERSON

__all__ = ["ADDED_TOKENS", "make_examples", "split_of", "texts"]

ADDED_TOKENS = MARKS

PRONOUNS = {BUILDING: ("It",), PERSON: ("She", "He")}

# As many values as paragraphs, at least: no two paragraphs of an example agree by chance.
VALUES = {
    "year": " ".join(str(year) for year in range(1840, 1900)),
    "country": "Avaria Belmark Corsend Dalmora Estovia Farland Gravonia Ilmaria Jutra Kaldor",
    "kind": "castle lighthouse library museum theatre mill tower chapel school station palace",
    "material": "granite marble brick sandstone oak slate basalt cedar pine limestone clay steel",
    "color": "red blue green yellow purple pink gray black white crimson turquoise scarlet brown",
    "instrument": "flute violin cello harp trumpet banjo piano clarinet guitar organ bassoon tuba",
}
VALUES = {kind: text.split() for kind, text in VALUES.items()}


class Relation(NamedTuple):
    """What can be said and asked of one kind of entity; `{s}` is its subject, `{v}` the value."""

    subject: str  # Kind of entity.
    value: str  # Key of `VALUES`; for a link, the kind of entity that it leads to.
    statements: tuple[str, ...]  # The first one's predicate also asks "Which …, A or B?".
    questions: tuple[str, ...]
    pairings: tuple[str, ...]  # Yes-or-no questions about two; for a link, names for its value.


ATTRIBUTES = made_up.parse_relations(
    Relation,
    """
building kind
{s} is a {v}. / {s} serves as a {v}.
What kind of building is {s}? / What does {s} serve as?
Do {a} and {b} both serve as a {v}? / Do {a} and {b} serve as the same kind of building?

building material
{s} is made of {v}. / {s} was built from {v}.
What is {s} made of? / Which material was {s} built from?
Are {a} and {b} both made of {v}? / Are {a} and {b} made of the same material?

building color
{s} has a {v} roof. / The roof of {s} is {v}.
What color is the roof of {s}? / Which color of roof does {s} have?
Do {a} and {b} both have a {v} roof? / Do {a} and {b} have a roof of the same color?

building year
{s} opened in {v}. / The opening year of {s} is {v}.
In which year did {s} open? / What is the opening year of {s}?
Did {a} and {b} both open in {v}? / Did {a} and {b} open in the same year?

building country
{s} lies in {v}. / {s} stands in {v}.
In which country does {s} lie? / Which country does {s} stand in?
Do {a} and {b} both lie in {v}? / Do {a} and {b} lie in the same country?

person instrument
{s} plays the {v}. / The instrument of {s} is the {v}.
Which instrument does {s} play? / What is the instrument of {s}?
Do {a} and {b} both play the {v}? / Do {a} and {b} play the same instrument?

person year
{s} was born in {v}. / The birth year of {s} is {v}.
In which year was {s} born? / What is the birth year of {s}?
Were {a} and {b} both born in {v}? / Were {a} and {b} born in the same year?

person country
{s} comes from {v}. / {s} grew up in {v}.
Which country does {s} come from? / In which country did {s} grow up?
Do {a} and {b} both come from {v}? / Do {a} and {b} come from the same country?
""",
)
LINKS = made_up.parse_relations(
    Relation,
    """
building person
{s} was designed by {v}. / The designer of {s} was {v}.
Who designed {s}? / Who was the designer of {s}?
the designer of {s} / the person who designed {s}

building building
{s} faces {v}. / The view from {s} is of {v}.
Which building does {s} face? / Which building is in the view from {s}?
the building that {s} faces / the building in the view from {s}

person building
{s} lives at {v}. / The home of {s} is {v}.
In which building does {s} live? / Which building is the home of {s}?
the building in which {s} lives / the home of {s}

person person
{s} was taught by {v}. / The teacher of {s} was {v}.
Who taught {s}? / Who was the teacher of {s}?
the teacher of {s} / the person who taught {s}
""",
)
RELATIONS = ATTRIBUTES + LINKS

split_of = made_up.split_by_name(itertools.chain(*NAME_PARTS.values()))


class Entity(NamedTuple):
    """A building or person with a paragraph of its own; its facts are in reading order."""

    name: str
    facts: dict[Relation, str]


class Case(NamedTuple):
    """A question with the entities that answer it and those that are there to mislead."""

    question: str
    answer: str
    supports: list[tuple[Entity, Relation]]
    decoys: list[Entity]


class Scene:
    """Draws what one example is made of; nothing is drawn twice, not even a part of a name."""

    def __init__(self, rng, split):
        self.rng = rng
        self.split = split
        self.drawn = set()

    def name(self, kind, *, like=None):
        """A new full name of the split; it shares a part with `like` if given, else with none."""
        while True:
            parts = [self.rng.choice(choices) for choices in NAME_PARTS[kind]]
            new = parts
            if like:
                kept = self.rng.randrange(len(parts))
                parts[kept] = like.split()[kept]
                new = parts[:kept] + parts[kept + 1 :]
            name = " ".join(parts)
            if self.drawn.isdisjoint(new) and split_of(name) == self.split:
                self.drawn.update(parts)
                return name

    def value(self, relation):
        """A new value for `relation`: the name of a new entity if it is a link."""
        if relation.value in NAME_PARTS:
            return self.name(relation.value)
        value = self.rng.choice([v for v in VALUES[relation.value] if v not in self.drawn])
        self.drawn.add(value)
        return value

    def entity(self, name, relation, value):
        """An entity with the given fact among one to three others, in any order."""
        others = [r for r in RELATIONS if r.subject == relation.subject and r != relation]
        chosen = self.rng.sample(others, self.rng.choices((1, 2, 3), weights=(6, 3, 1))[0])
        facts = [(relation, value), *((other, self.value(other)) for other in chosen)]
        self.rng.shuffle(facts)
        return Entity(name, dict(facts))

    def similar(self, name):
        """`name`, for a decoy to share a part with, in one case of five, else None."""
        return name if self.rng.random() < 0.2 else None

    def decoy(self, name, relation):
        """Another entity, of a similar name if `name` is given, with a new value of `relation`."""
        return self.entity(self.name(relation.subject, like=name), relation, self.value(relation))


def _bridge_case(scene):
    """Asks for a fact about an entity which the question names only by its link to another."""
    link = scene.rng.choice(LINKS)
    asked = scene.rng.choice([r for r in RELATIONS if r.subject == link.value and r != link])
    start, end, answer = scene.name(link.subject), scene.name(link.value), scene.value(asked)
    supports = [(scene.entity(start, link, end), link), (scene.entity(end, asked, answer), asked)]
    decoys = []
    if scene.rng.random() < 0.2:  # Another whole chain: being linked to is not enough to know.
        decoy = scene.decoy(scene.similar(end), asked)
        other_start = scene.name(link.subject, like=scene.similar(start))
        decoys += [decoy, scene.entity(other_start, link, decoy.name)]
    described = scene.rng.choice(link.pairings).format(s=start)
    question = scene.rng.choice(asked.questions).format(s=described)
    return Case(question, answer, supports, decoys)


def _compare(scene, asked, values):
    """Two entities with these values of a relation, and another one that has the first, too."""
    names = [scene.name(asked.subject) for _ in values]
    supports = [(scene.entity(n, asked, v), asked) for n, v in zip(names, values, strict=True)]
    other = scene.name(asked.subject, like=scene.similar(scene.rng.choice(names)))
    return names, supports, [scene.entity(other, asked, values[0])]


def _choice_case(scene):
    """Asks which of two entities has a value that only one of them has."""
    asked = scene.rng.choice(ATTRIBUTES)
    values = [scene.value(asked), scene.value(asked)]
    names, supports, decoys = _compare(scene, asked, values)
    a, b = scene.rng.sample(names, 2)
    which = "Who" if asked.subject == PERSON else "Which"
    predicate = asked.statements[0].removeprefix("{s} ").removesuffix(".").format(v=values[0])
    forms = (f"{which} {predicate}, {a} or {b}?", f"{which} of {a} and {b} {predicate}?")
    return Case(scene.rng.choice(forms), names[0], supports, decoys)


def _yes_or_no_case(scene):
    """Asks whether two entities have the same value."""
    asked = scene.rng.choice(ATTRIBUTES)
    values = [scene.value(asked), scene.value(asked)]
    answer = scene.rng.choice(("yes", "no"))
    names, supports, decoys = _compare(scene, asked, values if answer == "no" else values[:1] * 2)
    a, b = scene.rng.sample(names, 2)
    question = scene.rng.choice(asked.pairings).format(a=a, b=b, v=values[0])
    return Case(question, answer, supports, decoys)


def _sentences(rng, entity, *, pronouns):
    """One sentence a fact; with `pronouns`, later ones may begin with a pronoun for the entity."""
    pronoun = rng.choice(PRONOUNS[next(iter(entity.facts)).subject])
    for position, (relation, value) in enumerate(entity.facts.items()):
        statement = rng.choice(relation.statements)
        short = pronouns and position > 0 and statement.startswith("{s}") and rng.random() < 0.5
        yield statement.format(s=pronoun if short else entity.name, v=value)


def _make_example(rng, split, index):
    """One question with its six to ten paragraphs, in HotpotQA's layout."""
    scene = Scene(rng, split)
    make_case = rng.choices((_bridge_case, _choice_case, _yes_or_no_case), weights=(11, 7, 2))[0]
    case = make_case(scene)
    entities = [entity for entity, _ in case.supports] + case.decoys
    num_paragraphs = rng.choices(range(6, 11), weights=(5, 4, 3, 2, 1))[0]
    while len(entities) < num_paragraphs:
        entity, relation = rng.choice(case.supports)
        entities.append(scene.decoy(scene.similar(entity.name), relation))
    rng.shuffle(entities)
    pronouns = all(entity.name != case.answer for entity, _ in case.supports)  # Else say the name.
    context = [[e.name, list(_sentences(rng, e, pronouns=pronouns))] for e in entities]
    return {
        "_id": f"demo-{split}-{index:06d}",
        "question": case.question,
        "answer": case.answer,
        "supporting_facts": [
            [entity.name, list(entity.facts).index(relation)] for entity, relation in case.supports
        ],
        "context": context,
        "type": "bridge" if make_case is _bridge_case else "comparison",
        "level": "easy" if num_paragraphs < 8 else "medium" if num_paragraphs < 9 else "hard",
    }


# The two splits share no full name.
make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads or is to say."""
    paragraphs = ([title, *sentences] for title, sentences in example["context"])
    return [example["question"], example["answer"], *itertools.chain.from_iterable(paragraphs)]
