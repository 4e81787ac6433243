"""Invented pages in Natural Questions' original layout, easy enough for a small model.

A page is about one place. Among paragraphs that say nothing of interest it tells one fact, in a
paragraph or an item of a list, and sometimes a second one of another kind. Questions:
    short: "when did Tarn Hollow open" - the year;
    yes or no: "is Tarn Hollow open today" - the paragraph that says so;
    long: "what happened to Tarn Hollow in the war" - the paragraph alone;
    none: the same questions where the page does not tell.
"""

from typing import NamedTuple

from etcmodel.tools.demos import made_up

__all__ = ["ANSWER_KINDS", "make_examples", "texts"]

NAME_PARTS = (
    """Tarn Alder Bracken Cinder Clover Drift Eider Ember Fallow Frost Gorse Hallow Hazel Heron Ivy
    Juniper Kestrel Lark Linden Maple Marten Nettle Osprey Plover Quarry Raven Reed Rowan Saffron
    Sedge Sorrel Sparrow Spruce Summer Swan Tansy Thistle Thrush Willow Winter""",
    """Hollow Bank Barrow Brook Cliff Combe Cove Crag Croft Dale Dell Fell Ford Gate Glen Grove
    Haven Heath Hill Knoll Marsh Mead Moor Nook Pass Point Pond Quay Ridge Rock Vale""",
)
NAME_PARTS = tuple(part.split() for part in NAME_PARTS)
VALUES = {
    "year": " ".join(str(year) for year in range(1840, 1900)),
    "person": """Ada Anders Bela Boris Clio Dario Dora Edda Emil Flora Greta Hugo Irma Jonas Klara
        Lars Magnus Nora Otto Petra Rhea Selma Thea Viktor""",
    "price": "two three four five six seven eight nine",
}
VALUES = {kind: tuple(text.split()) for kind, text in VALUES.items()}
FILLERS = (
    "visitors often stay for an afternoon .",
    "the path along the river is steep and narrow .",
    "many birds rest in the old trees .",
    "a small café sells tea and cake .",
    "the view from the gate is well known .",
    "in winter the road is closed by snow .",
    "painters liked the light of the place .",
    "a song about it is still sung .",
    "the nearest town has a market .",
    "nobody knows the origin of the name .",
)


class Fact(NamedTuple):
    """A kind of fact: question, sentence with `{v}` for the short answer, where values are from."""

    question: str
    sentence: str
    values: tuple
    answer: str = "NONE"  # Or YES, NO.


FACTS = {
    "opened": Fact("when did {s} open", "it opened to the public in {v} .", VALUES["year"]),
    "founder": Fact("who founded {s}", "it was founded by {v} at great cost .", VALUES["person"]),
    "price": Fact(
        "how much is a ticket for {s}",
        "a ticket costs {v} pounds for adults .",
        VALUES["price"],
    ),
    "yes": Fact("is {s} open today", "it is still open today , every day .", (), "YES"),
    "no": Fact("is {s} open today", "it has been shut for good .", (), "NO"),
    "war": Fact(
        "what happened to {s} in the war", "during the war soldiers slept in its halls .", ()
    ),
}
ANSWER_KINDS = tuple(FACTS)
_SHARE_WITHOUT_ANSWER = 0.25
_SHARE_WITH_SECOND_FACT = 0.25
_NUM_ANNOTATORS = {"train": 1, "dev": 5}
_NOTHING = {"start_token": -1, "end_token": -1, "start_byte": -1, "end_byte": -1}


class _Page:
    """Tokens and candidates of a page while it grows."""

    def __init__(self):
        self.tokens = []
        self.candidates = []
        self._num_bytes = 0

    def add(self, text):
        """Adds tokens that white space separates; returns the index of the first one."""
        first = len(self.tokens)
        for word in text.split():
            end = self._num_bytes + len(word.encode("utf-8"))
            self.tokens.append(
                {
                    "token": word,
                    "start_byte": self._num_bytes,
                    "end_byte": end,
                    "html_token": word.startswith("<"),
                }
            )
            self._num_bytes = end + 1
        return first

    def add_candidate(self, text, *, top_level=True):
        """Adds a candidate; returns its index."""
        first = self.add(text)
        self.candidates.append({**self.span(first, len(self.tokens)), "top_level": top_level})
        return len(self.candidates) - 1

    def add_list(self, items):
        """Adds a list, a candidate with one in it for each item; returns the items' indices."""
        first = self.add("<Ul>")
        whole = {"top_level": True}
        self.candidates.append(whole)
        indices = [self.add_candidate(f"<Li> {item} </Li>", top_level=False) for item in items]
        self.add("</Ul>")
        whole.update(self.span(first, len(self.tokens)))
        return indices

    def span(self, start, end):
        return {
            "start_token": start,
            "end_token": end,
            "start_byte": self.tokens[start]["start_byte"],
            "end_byte": self.tokens[end - 1]["end_byte"],
        }


def _add_facts(rng, page, told):
    """Adds paragraphs and a list; returns the candidate index of each fact in `told`."""
    num_paragraphs = rng.randint(4, 7)
    place_of = dict(zip(told, rng.sample(range(num_paragraphs), len(told)), strict=True))
    in_list = rng.randrange(num_paragraphs)  # The place of the list.
    candidate_of = {}
    for place in range(num_paragraphs):
        here = [fact for fact, its_place in place_of.items() if its_place == place]
        sentences = rng.sample(FILLERS, 2)
        sentences[1:1] = [told[fact] for fact in here]
        if place == in_list:
            indices = page.add_list(sentences)
            candidate_of |= dict.fromkeys(here, indices[1])
        else:
            index = page.add_candidate(f"<P> {' '.join(sentences)} </P>")
            candidate_of |= dict.fromkeys(here, index)
    return candidate_of


def _annotations(rng, page, kind, candidate_index, value, num_annotators):
    """What the annotators say; one in ten finds nothing."""
    annotations = []
    for number in range(num_annotators):
        finds = candidate_index is not None and (num_annotators == 1 or rng.random() < 0.9)
        candidate = page.candidates[candidate_index] if finds else _NOTHING
        long_answer = {name: candidate[name] for name in _NOTHING}
        start, end = long_answer["start_token"], long_answer["end_token"]
        short = [i for i in range(start, end) if finds and page.tokens[i]["token"] == value]
        annotations.append(
            {
                "annotation_id": number,
                "long_answer": {
                    **long_answer,
                    "candidate_index": candidate_index if finds else -1,
                },
                "short_answers": [page.span(i, i + 1) for i in short[:1]],
                "yes_no_answer": FACTS[kind].answer if finds else "NONE",
            }
        )
    return annotations


def _make_example(rng, split, index):
    """One page with its question, in Natural Questions' original layout."""
    subject = " ".join(map(rng.choice, NAME_PARTS))
    kind = rng.choice(ANSWER_KINDS)
    value = rng.choice(FACTS[kind].values or ("",))
    told = {}
    if rng.random() >= _SHARE_WITHOUT_ANSWER:
        told[kind] = FACTS[kind].sentence.format(v=value)
    if rng.random() < _SHARE_WITH_SECOND_FACT:
        others = [k for k in ANSWER_KINDS if FACTS[k].question != FACTS[kind].question]
        other = rng.choice(others)
        told[other] = FACTS[other].sentence.format(v=rng.choice(FACTS[other].values or ("",)))
    page = _Page()
    page.add(f"<H1> {subject} </H1>")
    candidate_index = _add_facts(rng, page, told).get(kind)
    question = FACTS[kind].question.format(s=subject.lower())
    return {
        "example_id": index + 1 if split == "train" else -index - 1,
        "document_title": subject,
        "document_url": f"https://example.org/{subject.replace(' ', '_')}",
        "document_html": " ".join(token["token"] for token in page.tokens),
        "document_tokens": page.tokens,
        "question_text": question,
        "question_tokens": question.split(),
        "long_answer_candidates": page.candidates,
        "annotations": _annotations(
            rng, page, kind, candidate_index, value, _NUM_ANNOTATORS[split]
        ),
    }


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads."""
    words = [token["token"] for token in example["document_tokens"] if not token["html_token"]]
    return [example["question_text"], " ".join(words)]
