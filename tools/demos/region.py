"""Invented regions, described in plain English, and questions about them.

A region has towns, rivers and people with made-up names. Its documents state facts about them, one
sentence a fact, in paragraphs with other sentences in between. The facts hold there alone, so that
nothing can be learned by heart. A question names what it is about; its answer is a span of the
sentence that states it. Where that sentence says "it" or "she", the sentence before it has the
name, and is evidence, too.
"""

import itertools
import re
import string
from typing import NamedTuple

from etcmodel.text import word_vocabulary
from etcmodel.tools.demos import made_up

__all__ = ["content", "document_of", "make_examples", "split_of", "vocabulary"]

TOWN, RIVER, PERSON = "town", "river", made_up.PERSON

# Names have a first and a second part. Those of towns and rivers are joined to one word.
_PARTS = {
    TOWN: (
        """Sel Am Thorn Bram Cald Dun Eld Fern Garn Hal Ket Lam Mor Nor Os Pen Quar Ren Stan Tor Ul
        Wen Yar Ash Bel Crom Dray Egre Finch Glas Horn Ith Kel Lin Mel Nant Ock Pell Rud Skel Tam
        Wax Wyn Zel""",
        """wick bury ham ford ton stead worth mere combe ley thorpe gate dale holt field minster
        bourne cliffe""",
    ),
    RIVER: (
        """Or Tav Is Bren Lud Cas Ner Sal Thal Ved Ald Bur Cor Dar Esk Fal Gar Hod Irv Jor Kar Lyd
        Mav Nid Olt Piv Rav Sev Tren Usk Var Wer""",
        "ren el ter na mont ow ire ock ane une ava iss",
    ),
}
_PARTS = {kind: [part.split() for part in parts] for kind, parts in _PARTS.items()}
_PARTS[PERSON] = made_up.NAME_PARTS[PERSON]
_SPACES = {TOWN: "", RIVER: "", PERSON: " "}
_MEN = """Anders Bela Boris Bruno Dario Elias Emil Falk Gunnar Hanno Hugo Imre Ivo Jarl Jonas Knut
    Lars Leif Magnus Nils Otto Quentin Rafe Soren Viktor Yorick Zeno"""
_MEN = frozenset(_MEN.split())
# Some names are of these letters instead, so that a model learns names that are spelled, too.
_ONSETS, _VOWELS, _CODAS = "bcdfghklmnprstvwz", "aeiou", "dklmnrst"
_SPELLED = 0.15
_PRONOUNS, _REMARKED = 0.9, 0.2  # How often, where they can be.

_VALUES = {
    "product": """cheese / blue pottery / woolen cloth / honey cakes / smoked trout / church bells /
        apple wine / silver spoons / leather boots / black bread / glass beads / paper lanterns /
        pear brandy / straw hats / copper kettles / white linen / walnut tables / onion soup /
        clocks / violins / candles / ginger biscuits / carved doors / wool blankets / mustard""",
    "job": """baker / weaver / doctor / printer / painter / carpenter / clockmaker / teacher /
        miller / botanist / sailor / lawyer / poet / mason / surveyor / judge / tailor / potter /
        gardener / chemist / blacksmith / librarian / composer / locksmith""",
    "source": """Gray Hills / Red Hills / Black Forest / Salt Marshes / Windy Moor / Long Woods /
        Silver Mountains / White Cliffs / Copper Hills / Stony Ridge / Misty Heath / Green Downs /
        Iron Mountains / Quiet Moor / Eagle Rocks / Foggy Fen / Bare Ridge / Cold Plateau""",
    "fish": "trout / salmon / pike / eels / perch / carp / barbel / sturgeon / tench / bream",
}
_VALUES = {kind: " ".join(text.split()).split(" / ") for kind, text in _VALUES.items()}
_NUMBERS = {"year": "{v}", "meters": "{v} meters", "miles": "{v} miles"}
_RANGES = {"year": (1100, 1950), "meters": (20, 400), "miles": (12, 300)}


class Relation(NamedTuple):
    """What can be stated and asked of one kind of entity; `{s}` is its subject, `{v}` the value."""

    subject: str  # Kind of entity.
    value: str  # Kind of entity or value.
    statements: tuple[str, ...]
    questions: tuple[str, ...]


_RELATIONS = made_up.parse_relations(
    Relation,
    """
town river
{s} lies on the {v}. / {s} grew up on both banks of the {v}. / The {v} flows past {s}.
Which river flows past {s}? / On which river does {s} lie?

town person
{s} was founded by {v}. / {s} owes its foundation to {v}. / The founder of {s} was {v}.
Who founded {s}? / Who was the founder of {s}?

town person
{s} chose {v} as its mayor. / {s} has had {v} as its mayor for years. / The mayor of {s} is {v}.
Who is the mayor of {s}? / Who became mayor of {s}?

town person
The bridge of {s} was built by {v}. / {s} owes its bridge to {v}. / {v} built the bridge of {s}.
Who built the bridge of {s}? / By whom was the bridge of {s} built?

town meters
The bridge of {s} is {v} long. / {s} has a bridge of {v}. / The length of the bridge of {s} is {v}.
How long is the bridge of {s}? / What is the length of the bridge of {s}?

town year
{s} received its charter in {v}. / In {v} the king gave {s} a charter. / {s} got its charter in {v}.
When did {s} receive its charter? / In which year was {s} given a charter?

town product
{s} is known for its {v}. / Many travelers come to {s} for its {v}. / {s} is proud of its {v}.
What is {s} known for? / What do travelers come to {s} for?

river source
The {s} rises in the {v}. / The springs of the {s} are in the {v}.
Where does the {s} rise? / Where are the springs of the {s}?

river miles
The {s} is {v} long. / From its springs to the sea the {s} runs for {v}.
How long is the {s}? / What is the length of the {s}?

river fish
The {s} is full of {v}. / Anglers on the {s} hope for {v}.
Which fish live in the {s}? / What do anglers hope for on the {s}?

person town
{s} was born in {v}. / {s} came into the world in {v}. / The birthplace of {s} is {v}.
Where was {s} born? / What is the birthplace of {s}?

person job
{s} worked as a {v}. / For a living {s} was a {v}. / {s} started out as a {v}.
What was the profession of {s}? / What did {s} work as?

person person
{s} learned everything from {v}. / The teacher of {s} was {v}. / {v} was the teacher of {s}.
Who taught {s}? / Who was the teacher of {s}?

person year
{s} died in {v}. / {s} lived until {v}. / The grave of {s} bears the year {v}.
When did {s} die? / In which year did {s} die?
""",
)

_REMARKS = """
The market is held on the first day of each week. / Few visitors stay for more than a night. /
In winter the roads are often closed by snow. / The old walls are still standing. /
There is a small museum beside the church. / On summer evenings there is music in the square. /
The town hall burned down and was built again. / A path leads down to the water. /
Much has been written about it, and not all of it is true. / The view is best in the morning. /
Boats can be hired near the mill. / In spring the meadows are often under water. /
Older people still speak the dialect of the valley. / Nobody knows how the story began. /
Letters from that time are kept in the archive. / A street bears the name to this day. /
The portrait in the town hall shows a serious face. / The house can be visited in summer.
"""
_REMARKS = " ".join(_REMARKS.split()).split(" / ")
_OPENINGS = (
    "This is a short account of the valley and of those who live there.",
    "The following notes were made on a walk from the hills down to the sea.",
    "Hardly any part of the country is as little known as this one.",
    "What is told here was collected in the archives and inns of the region.",
)


def split_of(name):
    """The split that may use a name, whatever the seed: dev for about one in eight."""
    return "dev" if sum(map(ord, name)) % 8 == 0 else "train"


class _Fact(NamedTuple):
    subject: str
    relation: Relation
    value: str


class _Scene:
    """Draws what one region is made of. No name or value is drawn twice."""

    def __init__(self, rng, split):
        self._rng, self._split, self._drawn = rng, split, set()

    def name(self, kind):
        """A new name of the split."""
        return self._new(lambda: self._candidate(kind))

    def value(self, kind):
        """A new value that is no entity."""
        if kind in _NUMBERS:
            return self._new(lambda: _NUMBERS[kind].format(v=self._rng.randint(*_RANGES[kind])))
        return self._new(lambda: self._rng.choice(_VALUES[kind]))

    def _candidate(self, kind):
        while True:
            parts = [self._rng.choice(choices) for choices in _PARTS[kind]]
            if self._rng.random() < _SPELLED:
                parts = [self._spelled(part) for part in parts]
            if split_of(name := _SPACES[kind].join(parts)) == self._split:
                return name

    def _spelled(self, part):
        letters = (_ONSETS, _VOWELS, _CODAS) if part.islower() else (_ONSETS, _VOWELS) * 2
        word = "".join(map(self._rng.choice, letters))
        return word if part.islower() else word.capitalize()

    def _new(self, draw):
        while (drawn := draw()) in self._drawn:
            pass
        self._drawn.add(drawn)
        return drawn


def _facts(rng, split, num_towns, num_people):
    """The facts of a region, by entity: list of lists of `_Fact`."""
    scene = _Scene(rng, split)
    numbers = {TOWN: num_towns, RIVER: 1 + num_towns // 2, PERSON: num_people}
    entities = {kind: [scene.name(kind) for _ in range(n)] for kind, n in numbers.items()}

    def value(subject, kind):
        if kind in entities:
            return rng.choice([x for x in entities[kind] if x != subject])
        return scene.value(kind)

    found = []
    for kind, subjects in entities.items():
        relations = [x for x in _RELATIONS if x.subject == kind]
        for subject in subjects:
            stated = rng.sample(relations, rng.randint(2, min(len(relations), 5)))
            found.append([_Fact(subject, x, value(subject, x.value)) for x in stated])
    return found


class _Sentence(NamedTuple):
    text: str
    fact: _Fact | None = None
    is_named: bool = True  # False: the sentence before it has the name.


def _paragraph(rng, facts):
    """The sentences about one entity: list of `_Sentence`."""
    sentences, begins_with_name = [], False
    for fact in facts:
        subject, relation, value = fact
        statement = rng.choice(relation.statements)
        named = "The {s} " if relation.subject == RIVER else "{s} "
        is_about = statement.startswith(named)
        is_short = is_about and begins_with_name and rng.random() < _PRONOUNS
        if is_short:
            statement = f"{_pronoun(fact)} {statement.removeprefix(named)}"
        sentences.append(_Sentence(statement.format(s=subject, v=value), fact, not is_short))
        begins_with_name = is_about and not is_short
        if rng.random() < _REMARKED:
            sentences.append(_Sentence(rng.choice(_REMARKS)))
            begins_with_name = False
    return sentences


def _pronoun(fact):
    if fact.relation.subject != PERSON:
        return "It"
    return "He" if fact.subject.split()[0] in _MEN else "She"


def _documents(rng, facts):
    """(texts, places): one or two documents; of each fact its evidence, (document, start, end)."""
    paragraphs = [_paragraph(rng, group) for group in facts]
    rng.shuffle(paragraphs)
    half = rng.choice([len(paragraphs), len(paragraphs) // 2])
    texts, places = rng.sample(_OPENINGS, 1 if half == len(paragraphs) else 2), {}
    for number, paragraph in enumerate(paragraphs):
        document, before = int(number >= half), None
        for sentence in paragraph:
            texts[document] += " " if before else "\n\n"
            start = len(texts[document])
            texts[document] += sentence.text
            place = (document, start, start + len(sentence.text))
            places[sentence.fact] = [place] if sentence.is_named else [before, place]
            before = place
    return texts, places


def _make_example(rng, split, index, *, num_towns=5, num_people=6):
    """A question with its documents. The splits share no name.

    Args:
        num_towns, num_people: int, at least 2. The size of a region; there is a river for two
            towns, and one more. By default the documents have 250 to 600 words together.
    Returns:
        dict, as a processor reads it, with `id`, `question` and `documents`, one or two texts.
        `extra` has `answer`, a dict of `text`, `start` and `end` as
        `text.targets.answer_targets` takes it; `evidence`, a list of one or two such places of
        sentences, the last of which has the answer; and `names`, a list of all names.
    """
    facts = _facts(rng, split, num_towns, num_people)
    documents, places = _documents(rng, facts)
    fact = rng.choice([fact for group in facts for fact in group])
    document, *sentence = places[fact][-1]
    start = documents[document].index(fact.value, *sentence)
    return {
        "id": f"region-{split}-{index:06d}",
        "question": rng.choice(fact.relation.questions).format(s=fact.subject),
        "documents": documents,
        "extra": {
            "answer": _named(document, start, start + len(fact.value)),
            "evidence": [_named(*place) for place in places[fact]],
            "names": [group[0].subject for group in facts],
        },
    }


make_examples = made_up.example_maker(_make_example)


def _named(document, start, end):
    return {"text": f"documents[{document}].text", "start": start, "end": end}


def content(example, place):
    """The characters of a place, such as the answer's: str."""
    return example["documents"][document_of(place)][place["start"] : place["end"]]


def document_of(place):
    """The number of a place's document: int."""
    return int(re.search(r"\d+", place["text"])[0])


def vocabulary():
    """Word pieces: list of str.

    Names of towns and rivers are two pieces, numbers pieces of two digits. What is no piece is
    spelled, letter by letter.
    """
    texts = [
        text for relation in _RELATIONS for text in (*relation.statements, *relation.questions)
    ]
    texts = [text.format(s="", v="") for text in (*texts, *_NUMBERS.values())]
    texts += [*_REMARKS, *_OPENINGS, *itertools.chain(*_VALUES.values()), "it he she"]
    texts += [" ".join(parts) for parts in _PARTS[PERSON]]
    pieces = word_vocabulary.build_vocabulary(texts)
    for kind in (TOWN, RIVER):
        firsts, seconds = _PARTS[kind]
        pieces += [*(part.lower() for part in firsts), *(f"##{part}" for part in seconds)]
    numbers = ["".join(pair) for pair in itertools.product(string.digits, repeat=2)]
    return list(dict.fromkeys([*pieces, *numbers, *(f"##{number}" for number in numbers)]))
