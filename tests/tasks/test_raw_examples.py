"""Ids and missing fields of raw examples, which all tasks take and refuse alike."""

import pytest

from etcmodel.preprocessing.json_fields import id_of
from etcmodel.tasks.classification import examples as classification
from etcmodel.tasks.coreference import examples as coreference
from etcmodel.tasks.hotpotqa import examples as hotpotqa
from etcmodel.tasks.majority_tagging import examples as majority_tagging
from etcmodel.tasks.nq import examples as nq
from etcmodel.tasks.numerical_reasoning import examples as numerical_reasoning
from etcmodel.tasks.openkp import examples as openkp
from etcmodel.tasks.openkp import input_validate_and_dedup
from etcmodel.tasks.squad import examples as squad
from etcmodel.tasks.summarization import examples as summarization
from etcmodel.tasks.token_classification import config as token_config
from etcmodel.tasks.token_classification import examples as token_classification
from etcmodel.tasks.triviaqa import examples as triviaqa
from etcmodel.tasks.wikihop import examples as wikihop
from tests.tasks.classification import raw_texts
from tests.tasks.hotpotqa import raw_examples as hotpotqa_raw
from tests.tasks.nq import raw_examples as nq_raw
from tests.tasks.openkp import pages
from tests.tasks.summarization import raw_documents
from tests.tasks.triviaqa import questions
from tests.tasks.wikihop import raw_examples as wikihop_raw


def parse_text(raw):
    return classification.parse_example(raw, raw_texts.input_config(), needs_labels=True)


def parse_document(raw):
    return summarization.parse_example(raw, raw_documents.input_config())


def parse_words(raw):
    options = token_config.TokenClassificationFeatureOptions()
    return token_classification.parse_example(raw, options, needs_tags=True)


def parse_clusters(raw):
    return coreference.parse_example(raw, needs_clusters=True)


def with_labels(module):
    return lambda raw: module.parse_example(raw, needs_labels=True)


# By task: what reads a raw example; one that is good; the field of its id; the others it needs.
TASKS = {
    "hotpotqa": (
        with_labels(hotpotqa),
        hotpotqa_raw.raw_example(),
        "_id",
        ("question", "context", "answer", "supporting_facts"),
    ),
    "wikihop": (
        with_labels(wikihop),
        wikihop_raw.raw_example(),
        "id",
        ("query", "candidates", "supports", "answer"),
    ),
    "nq": (
        nq.parse_example,
        nq_raw.raw_example(),
        "example_id",
        ("question_text", "document_text", "long_answer_candidates"),
    ),
    "triviaqa": (
        with_labels(triviaqa),
        questions.raw_question(),
        "QuestionId",
        ("Question", "Answer"),
    ),
    "squad": (
        with_labels(squad),
        {
            "id": "a",
            "question": "who?",
            "context": "the king",
            "answers": [{"text": "king", "answer_start": 4}],
        },
        "id",
        ("question", "context", "answers"),
    ),
    "openkp": (openkp.parse_example, pages.page("a red rose"), "url", ("text",)),
    "openkp cleaning": (
        lambda raw: input_validate_and_dedup.validated(raw)[0],
        {**pages.page("a red rose", key_phrases=(["red"],))},
        "url",
        ("text", "VDOM", "KeyPhrases"),
    ),
    "majority_tagging": (
        with_labels(majority_tagging),
        {"id": "a", "tokens": [1, 2, 2], "tags": [2, 2, 2]},
        "id",
        ("tokens", "tags"),
    ),
    "numerical_reasoning": (
        with_labels(numerical_reasoning),
        {"id": "a", "question": "how many ?", "passage": "4 apples", "answer": 4},
        "id",
        ("question", "passage", "answer"),
    ),
    "classification": (
        parse_text,
        {"id": "a", "text": "it", "label": "good"},
        "id",
        ("text", "label"),
    ),
    "token_classification": (
        parse_words,
        {"id": "a", "words": ["it", "is"], "tags": ["O", "B-IS"]},
        "id",
        ("words", "tags"),
    ),
    "coreference": (
        parse_clusters,
        {"doc_key": "a", "sentences": [["it", "is"], ["it"]], "clusters": [[[0, 0], [2, 2]]]},
        "doc_key",
        ("sentences", "clusters"),
    ),
    "summarization": (
        parse_document,
        {"id": "a", "document": "it is", "summary": "it"},
        "id",
        ("document", "summary"),
    ),
}
HAVE_DEFAULT = ("classification", "coreference", "summarization", "token_classification")


def id_in(example):
    if isinstance(example, dict):
        return example["url"]
    return getattr(example, "url", None) or example.example_id


@pytest.mark.parametrize("task", TASKS)
class TestEveryTask:
    def test_a_whole_number_is_an_id_as_its_digits(self, task):
        parse, raw, field, _ = TASKS[task]
        wanted = 7 if task == "nq" else "7"
        assert id_in(parse({**raw, field: 7})) == id_in(parse({**raw, field: "7"})) == wanted

    @pytest.mark.parametrize("value", [True, 7.0, ["7"], {"id": 7}])
    def test_other_values_are_no_ids(self, task, value):
        parse, raw, field, _ = TASKS[task]
        message = f"'s field `{field}` must be a string or a whole number. Received: "
        with pytest.raises(ValueError, match=message):
            parse({**raw, field: value})

    @pytest.mark.parametrize("value", [None, "", " "])
    def test_null_is_a_missing_id(self, task, value):
        parse, raw, field, _ = TASKS[task]
        without = {name: value for name, value in raw.items() if name != field}
        if task in HAVE_DEFAULT:
            assert parse({**raw, field: value}) == parse(without)
            return
        for one in ({**raw, field: value}, without):
            with pytest.raises(ValueError, match=f" has no field `{field}`.*. Its fields: "):
                parse(one)

    def test_half_a_surrogate_pair_in_an_id_is_named_in_a_line_that_can_be_printed(self, task):
        parse, raw, field, _ = TASKS[task]
        with pytest.raises(ValueError) as error_info:
            parse({**raw, field: "a\ud800"})
        message = str(error_info.value)
        assert f"field `{field}` has half of a surrogate pair" in message
        assert message.isprintable() and "'a\\ud800'" in message

    def test_a_field_that_is_missing_is_named_beside_those_that_are_there(self, task):
        parse, raw, _, needed = TASKS[task]
        assert parse(raw)
        for name in needed:
            renamed = {("renamed" if x == name else x): value for x, value in raw.items()}
            with pytest.raises(ValueError) as error_info:
                parse(renamed)
            message = str(error_info.value)
            assert " is missing" in message and f"Its fields: {sorted(renamed)}" in message


def test_the_first_of_two_ids_that_is_given_is_taken():
    raw = {**hotpotqa_raw.raw_example(), "id": 5}
    assert hotpotqa.parse_example(raw).example_id == "q1"
    assert hotpotqa.parse_example({**raw, "_id": None}).example_id == "5"
    assert nq.parse_example({**nq_raw.raw_example(example_id=None), "id": "-3"}).example_id == -3
    assert id_of({"a": None, "b": 2**70}, "a", "b") == str(2**70)
