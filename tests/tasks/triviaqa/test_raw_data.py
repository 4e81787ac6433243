"""From the raw file to typed questions, and what is refused."""

import json
import pathlib
import tarfile

import pytest

from etcmodel.tasks.triviaqa import examples
from tests.tasks.triviaqa.questions import raw_question

REAL_FILES = pathlib.Path(__file__).parents[4] / "shared" / "real" / "triviaqa_sample.tgz"


@pytest.mark.skipif(not REAL_FILES.exists(), reason="The true files are not there.")
def test_the_true_files_are_read_with_their_documents_in_which_the_answers_are(tmp_path):
    with tarfile.open(REAL_FILES) as packed:
        packed.extractall(tmp_path, filter="data")
    ids = {}
    for path in sorted((tmp_path / "qa").glob("*.json")):
        read = list(examples.read_examples(str(path)))
        ids[path.name] = [example.example_id for example in read]
        for example in read:
            texts = [examples.read_document(x, str(tmp_path / "evidence")) for x in example.pages]
            found = [text[a:b] for text in texts
                     for a, b in examples.find_answers(text, example.answers)]  # fmt: skip
            assert found and {*map(examples.normalize_answer, found)} <= {*example.answers}
    assert ids == {
        "web-dev.json": ["tc_2", "tc_33"],
        "web-train.json": ["tc_1", "tc_3", "tc_5"],
        "wikipedia-dev.json": ["tc_33", "tc_40"],
        "wikipedia-train.json": ["tc_3", "tc_8", "tc_9", "tc_10"],
    }


def test_a_question_has_the_documents_of_both_lists():
    raw = raw_question(wikipedia=["A.txt"], web=["1/1_2.txt"], answers=["red king", "the Red_King"])
    raw["SearchResults"].append({"Text": "It was red.", "DocPartOfVerifiedEval": True})
    raw["Answer"]["HumanAnswers"] = ["a king!"]
    assert examples.parse_example(raw) == examples.TriviaQaExample(
        example_id="q_1",
        question="who was it",
        pages=(
            examples.Page("wikipedia", "A.txt"),
            examples.Page("web", "1/1_2.txt"),
            examples.Page("web", "SearchResults[1]", "It was red.", True),
        ),
        answers=("red king", "king"),
    )


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ({}, "`SearchResults[1].Filename` must be the name of a file. Received: None"),
        ({"Filename": ""}, "`SearchResults[1].Filename` must be the name of a file. Received: ''"),
        ({"Filename": 3}, "`SearchResults[1].Filename` must be the name of a file. Received: 3"),
        (
            {"Filename": "\ud83d"},
            "`SearchResults[1].Filename` must be the name of a file. Received: '\\ud83d'",
        ),
        ({"Text": 3}, "`SearchResults[1].Text` must be a string. Received: 3"),
        (
            {"Text": "a", "DocPartOfVerifiedEval": "true"},
            "`SearchResults[1].DocPartOfVerifiedEval` must be true or false. Received: 'true'",
        ),
    ],
)
def test_a_malformed_page_costs_itself_alone(page, problem):
    raw = raw_question(web=["a.txt"])
    raw["SearchResults"].append(page)
    example = examples.parse_example(raw)
    assert [x.problem for x in example.pages] == ["", f"field {problem}"]
    assert list(example.keys(by_document=True)) == ["q_1--a.txt"]


@pytest.mark.parametrize("flag", ["true", 1, 0.0])
def test_whether_it_is_verified_is_true_or_false(flag):
    with pytest.raises(ValueError, match="`QuestionPartOfVerifiedEval` must be true or false"):
        examples.parse_example(raw_question() | {"QuestionPartOfVerifiedEval": flag})
    for known in (True, False, None):
        example = examples.parse_example(raw_question() | {"QuestionPartOfVerifiedEval": known})
        assert example.is_verified is bool(known)


def test_lists_and_answers_may_be_missing():
    example = examples.parse_example({"QuestionId": "q", "Question": "who", "EntityPages": None})
    assert example == examples.TriviaQaExample("q", "who", ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('"Data"', "expected a JSON array or JSON objects"),
        ('{"Domain": "Web"\n}', "expected a JSON object with an array `Data`, found none"),
        ('{"Data": [{}', "the file ends within the array"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=f"a.json: .*{message}"):
        list(examples.read_questions(str(path)))


def test_the_official_layout_is_streamed_whatever_the_order_of_its_members(tmp_path):
    path = tmp_path / "a.json"
    questions = [raw_question(1), raw_question(2)]
    path.write_text(
        json.dumps({"Other": {"Data": [1]}, "Data": questions, "VerifiedEval": False}),
        encoding="utf-8",
    )
    assert list(examples.read_questions(str(path))) == [
        {"place": "element 0", "question": questions[0]},
        {"place": "element 1", "question": questions[1]},
    ]
