"""Answers to HotpotQA's questions that need no model, which models are compared with."""

from etcmodel.tasks.hotpotqa import metrics

__all__ = ["BASELINES"]


def _predictions(facts=lambda example: (), answer=lambda example: ""):
    """The function that predicts what the functions of one example give."""

    def predict(test):
        return {
            "answer": {x.example_id: answer(x) for x in test},
            "sp": {x.example_id: list(facts(x)) for x in test},
        }

    return predict


def _first_sentences(example):
    return ([x.title, 0] for x in example.paragraphs)


def _of_named_paragraphs(example):
    """The first sentences of paragraphs that the question names; of all where it names none."""
    named = [x for x in example.paragraphs if _is_named(example, x)]
    return ([x.title, 0] for x in named or example.paragraphs)


def _of_likest_paragraphs(example):
    """The first sentences of the two paragraphs with most of the question's words."""
    return ([x.title, 0] for x in _by_likeness(example, example.paragraphs)[:2])


def _likest_other_title(example):
    """The title of the paragraph that is likest the question, of those that it does not name."""
    others = [x for x in example.paragraphs if not _is_named(example, x)]
    return _name(_by_likeness(example, others or example.paragraphs)[0])


def _name(paragraph):
    return paragraph.title.partition(" (")[0]


def _is_named(example, paragraph):
    return _name(paragraph).lower() in example.question.lower()


def _by_likeness(example, paragraphs):
    """The paragraphs by how many of the question's words they have, those with most first."""
    words = set(metrics.normalize_answer(example.question).split())

    def common(paragraph):
        text = " ".join([paragraph.title, *paragraph.sentences])
        return len(words & set(metrics.normalize_answer(text).split()))

    return sorted(paragraphs, key=common, reverse=True)


# What needs no model: functions from the examples to predictions in the official format.
BASELINES = {
    "every first sentence": _predictions(_first_sentences),
    "first sentences of paragraphs that the question names": _predictions(_of_named_paragraphs),
    "first sentences of the two paragraphs likest the question": _predictions(
        _of_likest_paragraphs
    ),
    "title of the likest paragraph that the question does not name": _predictions(
        answer=_likest_other_title
    ),
}
