"""What holds for the raw files of every task: layouts, damage, ids and fields, and their records.

A new task gets a row in `TASKS`. What is of one data set alone is among its own tests.
"""

import gzip
import json
from collections.abc import Callable
from typing import NamedTuple

import pyarrow
import pyarrow.parquet
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
from tests.tasks.nq.raw_examples import annotation
from tests.tasks.openkp import pages
from tests.tasks.squad import small as squad_raw
from tests.tasks.summarization import raw_documents
from tests.tasks.triviaqa import questions
from tests.tasks.wikihop import raw_examples as wikihop_raw

TEXTS, DOCUMENTS = raw_texts.input_config(), raw_documents.input_config()
WORDS = token_config.TokenClassificationFeatureOptions()


class Task(NamedTuple):
    """How a task's raw examples are read.

    Attributes:
        parse: function of a raw example, which must have what training needs.
        raw: dict. A good one.
        id_field: str.
        needed: tuple of str. The other fields that it must have.
        wrong: dict of messages to the changes of the good one that are told so.
        read: function of a path: iterable of examples; None: as of another row.
        has_default_id: bool. Whether the place is an id.
        counted: str. What its examples are called.
    """

    parse: Callable
    raw: dict
    id_field: str
    needed: tuple
    wrong: dict
    read: Callable | None
    has_default_id: bool = False
    counted: str = "examples"


def with_labels(module):
    return lambda raw: module.parse_example(raw, needs_labels=True)


TASKS = {
    "hotpotqa": Task(
        with_labels(hotpotqa),
        hotpotqa_raw.raw_example(),
        "_id",
        ("question", "context", "answer", "supporting_facts"),
        {
            "'q1': field `question` must not be empty": {"question": " "},
            "'q1': field `question` must be a string. Received: None": {"question": None},
            "'q1': field `context` must be a list of pairs": {"context": [["one"]]},
            r"`context\[0\]` must have a list of sentences": {"context": [["one", "text"]]},
            "`context` must have lists `title`, `sentences`": {"context": {"title": ["a"]}},
            r"`supporting_facts\[0\]` must be a title": {"supporting_facts": [["one", -1]]},
            "'q1': field `answer` must be a string. Received: 3": {"answer": 3},
        },
        hotpotqa.read_examples,
    ),
    "wikihop": Task(
        with_labels(wikihop),
        wikihop_raw.raw_example(),
        "id",
        ("query", "candidates", "supports", "answer"),
        {
            "'w1': field `query` must be a string": {"query": None},
            "'w1': field `answer` must be a string. Received: 3": {"answer": 3},
            "'w1': field `candidates` must be a list of strings": {"candidates": "avaria"},
            "'w1': field `candidates` must not be empty": {"candidates": []},
            "'w1': field `supports` must be a list of strings": {"supports": ["a", 1]},
        },
        wikihop.read_examples,
    ),
    "nq": Task(
        nq.parse_example,
        nq_raw.raw_example(),
        "example_id",
        ("question_text", "document_text", "long_answer_candidates"),
        {
            "must be a 64-bit integer. Received: '9": {"example_id": 2**63},
            "must be a 64-bit integer. Received: '17a'": {"example_id": "17a"},
            "`example_id` must be a string or a whole": {"example_id": float("inf")},
            "example 17: field `question_text` must not be empty": {"question_text": "  "},
            "example 17: the page is empty": {"document_text": ""},
            "field `document_text` must be a string": {"document_text": 3},
            "`document_tokens` has no 'html_token'": {"document_tokens": [{"token": "a"}]},
            "strings as tokens": {"document_tokens": [{"token": 1, "html_token": True}]},
            "long_answer_candidates` must be a list": {"long_answer_candidates": None},
            r"long_answer_candidates\[0\]` lies outside the page of 22 tokens": {
                "long_answer_candidates": [{"start_token": 20, "end_token": 23}]
            },
            r"annotations\[0\]` lies outside the page": {"annotations": [annotation((3, 30))]},
            r"annotations\[0\]` lies outside the page.": {
                "annotations": [annotation(short_answers=((7, 23),))]
            },
            r"annotations\[0\].short_answers` must have its `start_token` before": {
                "annotations": [annotation(short_answers=((7, 7),))]
            },
            r"annotations\[0\].long_answer` must have both `start_token` and `end_token`": {
                "annotations": [annotation((-1, 5), ())]
            },
            "candidate_index` must be -1 or the index of one of the 5 candidates": {
                "annotations": [annotation(candidate_index=5)]
            },
            "yes_no_answer` must be in": {"annotations": [annotation(yes_no="MAYBE")]},
            "long_answer` must be an object": {"annotations": [{"short_answers": []}]},
        },
        nq.read_examples,
    ),
    "triviaqa": Task(
        with_labels(triviaqa),
        questions.raw_question(wikipedia=["a"], web=["b"]),
        "QuestionId",
        ("Question", "Answer"),
        {
            "example 'q_1': field `Question` must be a string": {"Question": None},
            "field `Question` must not be empty": {"Question": " "},
            "field `EntityPages` must be a list of objects": {"EntityPages": {}},
            "field `Answer` must be an object": {"Answer": "red"},
            "field `Answer` must have `NormalizedAliases`": {"Answer": {"Value": "red"}},
            "must have `NormalizedAliases`": {"Answer": {"NormalizedAliases": ["the"]}},
            "`NormalizedAliases` must be a list of strings": {"Answer": {"NormalizedAliases": [3]}},
        },
        triviaqa.read_examples,
    ),
    "squad": Task(
        with_labels(squad),
        squad_raw.raw_question("The red king, a king.", "red king", "king"),
        "id",
        ("question", "context", "answers"),
        {
            "'q': .*field `context` must not be empty": {"context": " "},
            "'q': .*field `question` must be a string": {"question": 3},
            "'q': .*half of a surrogate pair": {"context": "\ud800 king"},
            "'q': .*field `answers` is missing, and training needs it": {"answers": None},
            "'q': .*field `answers` must be": {"answers": "king"},
            "'q': .*field `text` is missing": {"answers": [{"answer_start": 4}]},
            "`text` must not be empty": {"answers": [{"text": " ", "answer_start": 3}]},
            "`answer_start` must be where .* 'king'; .*''. R.*None": {
                "answers": [{"text": "king"}]
            },
            "`answer_start` must be where the context has the answer 'king'; there it has 'red '": {
                "answers": [{"text": "king", "answer_start": 4}]
            },
            "`answer_start` must be": {"answers": [{"text": "The", "answer_start": -21}]},
            "`answers` must be empty where `is_impossible` is true": {"is_impossible": True},
            "`is_impossible` must be true or false": {"is_impossible": "no"},
        },
        squad.read_examples,
        counted="questions",
    ),
    "openkp": Task(
        openkp.parse_example,
        pages.page("a red rose"),
        "url",
        ("text",),
        {
            "page 'http://example.org/1': field `text` must be a string": {"text": 3},
            "page 'http://example.org/1': the page is empty": {"text": " \n\u00a0"},
            "field `KeyPhrases` must be a list of lists of words": {"KeyPhrases": ["red"]},
            "`KeyPhrases` must be a list of lists of words": {"KeyPhrases": [[1]]},
        },
        openkp.read_examples,
        counted="pages",
    ),
    "openkp cleaning": Task(
        lambda raw: input_validate_and_dedup.validated(raw)[0],
        pages.page("a red rose", key_phrases=(["red"],)),
        "url",
        ("text", "VDOM", "KeyPhrases"),
        {},
        None,
    ),
    "majority_tagging": Task(
        with_labels(majority_tagging),
        {"id": "a", "tokens": [1, 2, 2], "tags": [2, 2, 2]},
        "id",
        ("tokens", "tags"),
        {
            "example 'a': field `tokens` must not be empty": {"tokens": []},
            "field `tokens` must be a list of integers": {"tokens": [1, "2"]},
            "field `tokens` must hold numbers from 1 on": {"tokens": [0, 1, 1]},
            "field `tags` must have as many numbers as `tokens`, 3": {"tags": [1, 1]},
            "field `tags` must hold numbers from 1 on": {"tags": [1, 1, -2]},
        },
        majority_tagging.read_examples,
    ),
    "numerical_reasoning": Task(
        with_labels(numerical_reasoning),
        {"id": "a", "question": "how many ?", "passage": "4 apples", "answer": 4},
        "id",
        ("question", "passage", "answer"),
        {
            "example 'a': field `question` must not be empty": {"question": " "},
            "field `passage` must be a string": {"passage": None},
            "field `answer` must be a label: a string, a whole number": {"answer": [1]},
            "field `answer` must not be empty": {"answer": ""},
        },
        numerical_reasoning.read_examples,
    ),
    "classification": Task(
        lambda raw: classification.parse_example(raw, TEXTS, needs_labels=True),
        {"id": "a", "text": "it", "label": "good"},
        "id",
        ("text", "label"),
        {
            "example 'a': field `text` must not be empty": {"text": " "},
            "field `label` must be a label": {"label": 1.5},
        },
        classification.example_reader(TEXTS),
        has_default_id=True,
    ),
    "token_classification": Task(
        lambda raw: token_classification.parse_example(raw, WORDS, needs_tags=True),
        {"id": "7", "words": ["it", "is"], "tags": ["O", "B-IS"]},
        "id",
        ("words", "tags"),
        {
            "'7': .*`words` must be a list of strings, or of lists": {"words": "a b"},
            "`words` must be a list of strings, or of lists": {"words": ["a", ["b"]]},
            "'7': .*`words` must not be empty": {"words": [], "tags": []},
            "`words` must not be empty": {"words": [["a"], []], "tags": [["O"], []]},
            "`words` must not be empt": {"words": ["a", " "]},
            r"`tags` must .* Words: \[2\]; tags: \[1\]": {"tags": ["O"]},
            r"Words: \[1, 1\]; tags: \[2\]": {"words": [["a"], ["b"]], "tags": [["O", "O"]]},
            "half of a surrogate pair": {"words": ["\ud800", "a"]},
        },
        token_classification.example_reader(WORDS),
        has_default_id=True,
    ),
    "coreference": Task(
        lambda raw: coreference.parse_example(raw, needs_clusters=True),
        {"doc_key": "a", "sentences": [["a", "b"], ["c"]], "clusters": [[[0, 0], [2, 2]]]},
        "doc_key",
        ("sentences", "clusters"),
        {
            "'a': field `sentences` .*must have words": {"sentences": []},
            "field `sentences` .*must be a list of lists of strings": {"sentences": ["a b"]},
            "'a': field `speakers` .*must have a speaker for each word": {"speakers": [["x"]]},
            r"`clusters` .*must (be a list of lists of \[first, last word\]|have)": {
                "clusters": [[0, 1]]
            },
            r"must have \[first, last word\] of one sentence, .* 0 to 2": {"clusters": [[[1, 2]]]},
            ".* counted from 0 to 2": {"clusters": [[[2, 3]]]},
        },
        coreference.example_reader(),
        has_default_id=True,
        counted="documents",
    ),
    "summarization": Task(
        lambda raw: summarization.parse_example(raw, DOCUMENTS),
        {"article_id": "a1", "article_text": ["rain ."], "abstract_text": ["<S> rain . </S>"]},
        "article_id",
        ("article_text", "abstract_text"),
        {
            "'a1': field `article_text` must not be empty": {"article_text": []},
            "`article_text` must be a string, or a list of strings": {"article_text": ["a", 3]},
            "`abstract_text` must not be empty": {"abstract_text": ["<S> </S>"]},
            "`abstract_text` has half of a surrogate pair": {"abstract_text": ["\ud83d"]},
        },
        summarization.example_reader(DOCUMENTS),
        has_default_id=True,
    ),
}
READ = [name for name, task in TASKS.items() if task.read]


def id_in(example):
    if isinstance(example, dict):
        return example["url"]
    return getattr(example, "url", None) or example.example_id


@pytest.mark.parametrize("name", TASKS)
class TestIdsAndFields:
    def test_a_whole_number_is_an_id_as_its_digits(self, name):
        task, wanted = TASKS[name], 7 if name == "nq" else "7"
        for value in (7, "7"):
            assert id_in(task.parse({**task.raw, task.id_field: value})) == wanted

    @pytest.mark.parametrize("value", [True, 7.0, ["7"], {"id": 7}])
    def test_other_values_are_no_ids(self, name, value):
        task = TASKS[name]
        message = f"'s field `{task.id_field}` must be a string or a whole number. Received: "
        with pytest.raises(ValueError, match=message):
            task.parse({**task.raw, task.id_field: value})

    @pytest.mark.parametrize("value", [None, "", " "])
    def test_null_is_a_missing_id(self, name, value):
        task = TASKS[name]
        without = {key: x for key, x in task.raw.items() if key != task.id_field}
        if task.has_default_id:
            assert task.parse({**without, task.id_field: value}) == task.parse(without)
            return
        for one in ({**without, task.id_field: value}, without):
            with pytest.raises(ValueError, match=f" has no field `{task.id_field}`.*. Its fields:"):
                task.parse(one)

    def test_half_a_surrogate_pair_in_an_id_is_named_in_a_line_that_can_be_printed(self, name):
        task = TASKS[name]
        with pytest.raises(ValueError) as error_info:
            task.parse({**task.raw, task.id_field: "a\ud800"})
        message = str(error_info.value)
        assert f"field `{task.id_field}` has half of a surrogate pair" in message
        assert message.isprintable() and "'a\\ud800'" in message

    def test_a_field_that_is_missing_is_named_beside_those_that_are_there(self, name):
        task = TASKS[name]
        assert task.parse(task.raw)
        for field in task.needed:
            renamed = {("renamed" if x == field else x): y for x, y in task.raw.items()}
            with pytest.raises(ValueError) as error_info:
                task.parse(renamed)
            message = str(error_info.value)
            assert " is missing" in message and f"Its fields: {sorted(renamed)}" in message

    def test_what_is_no_object_is_refused(self, name):
        for value in ([1], "text", 3, None):
            with pytest.raises(ValueError, match="must be a JSON object"):
                TASKS[name].parse(value)


@pytest.mark.parametrize(
    ("name", "message"), [(name, x) for name, task in TASKS.items() for x in task.wrong]
)
def test_a_field_with_a_value_that_cannot_be_is_named(name, message):
    task = TASKS[name]
    with pytest.raises(ValueError, match=message):
        task.parse({**task.raw, **task.wrong[message]})


def test_the_first_of_two_ids_that_is_given_is_taken():
    raw = {**hotpotqa_raw.raw_example(), "id": 5}
    assert hotpotqa.parse_example(raw).example_id == "q1"
    assert hotpotqa.parse_example({**raw, "_id": None}).example_id == "5"
    assert nq.parse_example({**nq_raw.raw_example(example_id=None), "id": "-3"}).example_id == -3
    assert id_of({"a": None, "b": 2**70}, "a", "b") == str(2**70)


# Files.


def two(name):
    task = TASKS[name]
    return [{**task.raw, task.id_field: x} for x in ("1", "2")]


def lines(raws):
    return "".join(f"{json.dumps(raw)}\n" for raw in raws).encode()


LAYOUTS = {
    "an array": lambda raws: json.dumps(raws).encode(),
    "an indented array": lambda raws: b"\n\n " + json.dumps(raws, indent=1).encode(),
    "lines with a byte order mark": lambda raws: b"\xef\xbb\xbf" + lines(raws),
    "packed lines": lambda raws: gzip.compress(lines(raws)),
    "a bad line": lambda raws: b'{"id": "cut\n'.join(lines([raw]) for raw in raws),
    "a line that is no UTF-8": lambda raws: b'{"id": "\xff"}\n'.join(lines([x]) for x in raws),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("file", ["a.json", "a.JSONL", "a.jsonl.gz"])
def test_examples_are_the_same_in_every_layout(tmp_path, name, layout, file, caplog):
    """Whatever the name promises; a bad line costs that line."""
    raws, plain, path = two(name), tmp_path / "plain.jsonl", tmp_path / file
    plain.write_bytes(lines(raws))
    expected = list(TASKS[name].read(str(plain)))
    assert len(expected) == len(raws) == 2
    path.write_bytes(LAYOUTS[layout](raws))
    assert list(TASKS[name].read(str(path))) == expected
    if "a bad line" not in layout and "UTF-8" not in layout:
        assert not caplog.messages
        return
    told, count = caplog.messages
    assert told.startswith(f"skipped {path}: ") and "2: " in told
    assert ("malformed JSON" if layout == "a bad line" else "invalid UTF-8 at character 9") in told
    assert count == f"{path}: 1 of 3 {TASKS[name].counted} skipped"


# HotpotQA's own layout has lists of text and lists, which no column holds.
@pytest.mark.parametrize("name", [x for x in READ if x != "hotpotqa"])
def test_examples_may_be_rows_of_parquet(tmp_path, name):
    read, raws = TASKS[name].read, two(name)
    (tmp_path / "a.jsonl").write_bytes(lines(raws))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(raws), tmp_path / "a.parquet")
    assert list(read(str(tmp_path / "a.parquet"))) == list(read(str(tmp_path / "a.jsonl")))


DAMAGE = {
    "nothing": (b"", "the file holds no "),
    "an empty array": (b"[]", "the file holds no "),
    "a string": (b'"text"', "expected a JSON "),
    "a missing colon": (b'[{"id": "a",\n "name" 3}]', r"malformed JSON at (line 2, )?column 9"),
    "more than an array": (b"[] x", "malformed JSON at line 1, column 4"),
    "no objects": (b"[1, 2]", "none of the 2 .* can be used, the first: .*must be a JSON object"),
    "a line of no UTF-8": (b'[{"id":\n"\xff\xfe"}]', "(line 2: )?invalid UTF-8 at character [29]"),
    "half a pack": (gzip.compress(b"[1]" * 99)[:-9], "broken gzip file"),
    "the beginning of a pack": (gzip.compress(b"[1]" * 99)[:15], "broken gzip file"),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_of_no_use_is_refused_with_the_place(tmp_path, name, damage):
    content, message = DAMAGE[damage]
    path = tmp_path / ("a.json.gz" if "pack" in damage else "a.json")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{path.name}: (.*: )?{message}"):
        list(TASKS[name].read(str(path)))


@pytest.mark.parametrize("name", READ)
def test_an_array_that_breaks_off_is_an_error_after_its_examples(tmp_path, name):
    path = tmp_path / "cut.json"
    path.write_text(json.dumps(two(name) * 2)[:-5], encoding="utf-8")
    reader = iter(TASKS[name].read(str(path)))
    assert id_in(next(reader)) in (1, "1")
    with pytest.raises(ValueError, match=r"cut\.json: .*(malformed JSON|the file ends)"):
        list(reader)
