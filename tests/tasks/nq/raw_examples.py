"""An invented page for the tests of Natural Questions, a vocabulary and a prediction for it."""

from etcmodel.tasks.nq import examples

QUESTION = "when did the mill open ?"
# Candidates: <P> 3 to 9, <Ul> 10 to 18 with two <Li> in it, <P> 19 to 21.
TEXT = (
    "<H1> mill </H1> <P> it opened in may . </P> "
    "<Ul> <Li> red roof </Li> <Li> blue </Li> </Ul> <P> old </P>"
)
HEAD = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def vocabulary():
    words = {*QUESTION.split(), *(word for word in TEXT.split() if not word.startswith("<"))}
    return [*HEAD, *sorted(words), "##s"]


def span(start, end, *in_bytes):
    tokens = {"start_token": start, "end_token": end}
    return {**tokens, **dict(zip(("start_byte", "end_byte"), in_bytes, strict=bool(in_bytes)))}


def annotation(long_answer=(3, 10), short_answers=((6, 8),), yes_no="NONE", candidate_index=0):
    """By default the first paragraph, and in it `in may`."""
    return {
        "long_answer": {**span(*long_answer), "candidate_index": candidate_index},
        "short_answers": [span(*short) for short in short_answers],
        "yes_no_answer": yes_no,
    }


NO_ANSWER = annotation((-1, -1), (), candidate_index=-1)


def raw_example(**fields):
    """A JSON object in the simplified layout; `fields` replace its own."""
    candidates = [(3, 10, True), (10, 19, True), (11, 15, False), (15, 18, False), (19, 22, True)]
    return {
        "example_id": 17,
        "document_text": TEXT,
        "question_text": QUESTION,
        "long_answer_candidates": [
            {**span(start, end), "top_level": top_level} for start, end, top_level in candidates
        ],
        "annotations": [annotation()],
        **fields,
    }


def original_layout(raw):
    """The same page as the original files have it."""
    tokens = [
        {"token": word, "html_token": word.startswith("<")}
        for word in raw["document_text"].split(" ")
    ]
    return {
        **{name: value for name, value in raw.items() if name != "document_text"},
        "document_tokens": tokens,
        "document_html": raw["document_text"],
    }


def gold_of(*annotations):
    return {17: examples.annotations_of({"example_id": 17, "annotations": list(annotations)})}


def prediction(long_answer=(3, 10), short_answers=((6, 8),), yes_no="NONE", **fields):
    return {
        "example_id": 17,
        "long_answer": span(*long_answer),
        "long_answer_score": 1.0,
        "short_answers": [span(*short) for short in short_answers],
        "short_answers_score": 2.0,
        "yes_no_answer": yes_no,
        **fields,
    }
