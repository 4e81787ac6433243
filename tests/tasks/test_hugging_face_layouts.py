"""What Hugging Face `datasets` makes of a data set gives the examples and features of its files.

Each `as_datasets_…` does by hand what the loading scripts there do; a list of objects becomes an
object of lists.
"""

import json
import pathlib

import pytest

from etcmodel.tasks.hotpotqa import config as hotpotqa_config
from etcmodel.tasks.hotpotqa import examples as hotpotqa_examples
from etcmodel.tasks.hotpotqa import features as hotpotqa
from etcmodel.tasks.nq import examples as nq_examples
from etcmodel.tasks.nq import features as nq
from etcmodel.tasks.nq.config import NqInputConfig
from etcmodel.tasks.triviaqa import examples as triviaqa_examples
from etcmodel.tasks.triviaqa import features as triviaqa
from etcmodel.tasks.wikihop import config as wikihop_config
from etcmodel.tasks.wikihop import examples as wikihop_examples
from etcmodel.tasks.wikihop import features as wikihop
from etcmodel.text.word_vocabulary import build_vocabulary
from tests import vocabularies
from tests.tasks.hotpotqa import raw_examples as hotpotqa_raw
from tests.tasks.nq import raw_examples as nq_raw
from tests.tasks.nq.page_windows import SETTINGS as NQ_SETTINGS
from tests.tasks.triviaqa import questions
from tests.tasks.wikihop import raw_examples as wikihop_raw

REAL = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "real"


def lists(objects, *names):
    return {name: [x[name] for x in objects] for name in names}


def as_datasets_nq(raw):
    """Of the simplified layout, whose tokens have no bytes."""
    span = ("start_token", "end_token", "start_byte", "end_byte")
    words = raw["document_text"].split(" ")
    notes = raw["annotations"]

    def in_bytes(*spans):
        return [{"start_byte": -1, "end_byte": -1, "top_level": True, **x} for x in spans]

    return {
        "id": str(raw["example_id"]),
        "document": {
            "title": "a page",
            "url": "http://example.org",
            "html": raw["document_text"],
            "tokens": {
                "token": words,
                "is_html": [word[:1] == "<" and word[-1:] == ">" for word in words],
                "start_byte": [0] * len(words),
                "end_byte": [0] * len(words),
            },
        },
        "question": {"text": raw["question_text"], "tokens": raw["question_text"].split()},
        "long_answer_candidates": lists(
            in_bytes(*raw["long_answer_candidates"]), *span, "top_level"
        ),
        "annotations": {
            "id": [str(2**63 + index) for index, _ in enumerate(notes)],
            "long_answer": [x for note in notes for x in in_bytes(note["long_answer"])],
            "short_answers": [
                {**lists(in_bytes(*note["short_answers"]), *span), "text": note["short_answers"]}
                for note in notes
            ],
            "yes_no_answer": [
                {"NONE": -1, "NO": 0, "YES": 1}[note["yes_no_answer"]] for note in notes
            ],
        },
    }


NQ_ANNOTATIONS = [
    [nq_raw.annotation()],
    [nq_raw.annotation(short_answers=((7, 8), (6, 7))), nq_raw.NO_ANSWER],
    [nq_raw.annotation(short_answers=(), yes_no="YES")],
    [nq_raw.annotation(short_answers=(), yes_no="NO")],
    [nq_raw.annotation((3, 10, 30, 99), ((6, 8, 60, 80),))],
    [],
]


class TestNq:
    def test_a_page_of_no_annotation_and_one_of_lists_of_objects(self):
        raw = nq_raw.raw_example(annotations=[])
        theirs = as_datasets_nq(raw)
        assert nq_examples.parse_example(theirs) == nq_examples.parse_example(raw)
        del theirs["annotations"]
        columns = theirs["document"]["tokens"]
        theirs["document"]["tokens"] = [
            {"token": token, "is_html": is_html}
            for token, is_html in zip(columns["token"], columns["is_html"], strict=True)
        ]
        assert nq_examples.parse_example(theirs) == nq_examples.parse_example(raw)

    def test_the_names_of_the_labels_are_taken_for_their_numbers(self):
        raw = nq_raw.raw_example(annotations=[nq_raw.annotation((3, 10), (), "NO")])
        theirs = as_datasets_nq(raw)
        for value in ("no", "NO", 0):
            theirs["annotations"]["yes_no_answer"] = [value]
            assert nq_examples.parse_example(theirs) == nq_examples.parse_example(raw)

    def test_gold_files_have_the_same_annotations(self, tmp_path):
        raws = [
            nq_raw.raw_example(example_id=index, annotations=annotations)
            for index, annotations in enumerate(NQ_ANNOTATIONS[:-1])
        ]
        for name, rows in (("ours", raws), ("theirs", map(as_datasets_nq, raws))):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
        theirs, ours = (
            nq_examples.read_gold(str(tmp_path / f"{x}.jsonl")) for x in ("theirs", "ours")
        )
        assert theirs == ours and len(ours) == 5

    @pytest.mark.parametrize("value", [2, -2, True, None, 0.0])
    def test_other_labels_of_yes_and_no_are_refused(self, value):
        raw = as_datasets_nq(nq_raw.raw_example())
        raw["annotations"]["yes_no_answer"] = [value]
        with pytest.raises(ValueError, match=r"annotations\[0\].yes_no_answer` must be in"):
            nq_examples.parse_example(raw)

    def test_a_real_page(self):
        path = REAL / "nq_simplified_1.jsonl"
        if not path.exists():
            pytest.skip("needs ../shared/real")
        raw = json.loads(path.read_text(encoding="utf-8"))
        assert nq_examples.parse_example(as_datasets_nq(raw)) == nq_examples.parse_example(raw)


def as_datasets_triviaqa(raw, texts):
    """Of the original layout, with the texts of the files by name."""

    def pages(field, renamed, text_field):
        found = [x for x in raw.get(field, []) if x.get("Filename") in texts]
        columns = {new: [x.get(old) for x in found] for old, new in renamed.items()}
        return {**columns, text_field: [texts[x["Filename"]] for x in found]}

    answer = raw.get("Answer")
    return {
        "question": raw["Question"],
        "question_id": raw["QuestionId"],
        "question_source": "http://example.org",
        "entity_pages": pages(
            "EntityPages",
            {"DocSource": "doc_source", "Filename": "filename", "Title": "title"},
            "wiki_context",
        ),
        "search_results": pages(
            "SearchResults",
            {"Description": "description", "Filename": "filename", "Rank": "rank"},
            "search_context",
        ),
        "answer": {
            "aliases": answer["NormalizedAliases"] if answer else [],
            "normalized_aliases": answer["NormalizedAliases"] if answer else [],
            "matched_wiki_entity_name": "",
            "normalized_value": answer["Value"] if answer else "<unk>",
            "value": answer["Value"] if answer else "<unk>",
            "type": "",
        },
    }


class TestTriviaQa:
    TEXTS = {"1/a.txt": "It was the red king. Of mud.", "B.txt": "the green king", "c.txt": "Mud."}

    def both(self, tmp_path, **fields):
        for folder, name in (("web", "1/a.txt"), ("wikipedia", "B.txt"), ("web", "c.txt")):
            path = tmp_path / "evidence" / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.TEXTS[name], encoding="utf-8")
        raw = questions.raw_question(web=["1/a.txt", "c.txt"], wikipedia=["B.txt"], **fields)
        return raw, as_datasets_triviaqa(raw, self.TEXTS)

    @pytest.mark.parametrize("compatible", [False, True])
    @pytest.mark.parametrize("is_training", [False, True])
    def test_features_are_those_of_the_evidence_files(self, tmp_path, is_training, compatible):
        made = []
        for raw, folder in zip(
            self.both(tmp_path, answers=("red king", "mud")), ("evidence", None), strict=True
        ):
            config = questions.input_config(
                is_training=is_training,
                release_compatible=compatible,
                evidence_dir=folder and str(tmp_path / folder),
            )
            processor = config.make_processor(questions.tokenizer(tmp_path))
            made.append(
                triviaqa.make_features(triviaqa_examples.parse_example(raw), config, processor)
            )
        assert made[0] == made[1] and len(made[0].windows) == (2 if is_training else 3)
        assert not made[0].problems

    def test_examples_differ_in_where_their_texts_are_alone(self, tmp_path):
        raw, theirs = self.both(tmp_path)
        ours, theirs = triviaqa_examples.parse_example(raw), triviaqa_examples.parse_example(theirs)
        assert theirs.pages == tuple(x._replace(text=self.TEXTS[x.name]) for x in ours.pages)
        assert (theirs.example_id, theirs.question) == (ours.example_id, ours.question)
        assert theirs.answers == ours.answers == ("red king",)
        assert theirs.keys(True) == ours.keys(True)

    def test_the_sets_without_answers_have_none(self, tmp_path):
        raw, theirs = self.both(tmp_path, Answer=None)
        assert (
            triviaqa_examples.parse_example(theirs).answers
            is triviaqa_examples.parse_example(raw).answers
            is None
        )
        theirs["answer"] = None
        assert triviaqa_examples.parse_example(theirs).answers is None
        with pytest.raises(ValueError, match="field `answer` is missing, and training needs it"):
            triviaqa_examples.parse_example(theirs, needs_labels=True)

    def test_a_context_that_is_null_is_a_file_and_one_that_is_malformed_costs_itself(self):
        pages = {"filename": ["a.txt", "b.txt", "c.txt"], "search_context": [None, 3, "red"]}
        example = triviaqa_examples.parse_example(
            {"question_id": 7, "question": "who", "search_results": pages}
        )
        first, second, third = example.pages
        assert (first.name, first.text, third.text) == ("a.txt", None, "red")
        assert second.problem == (
            "field `search_results[1].search_context` must be a string. Received: 3"
        )
        assert example.example_id == "7"


def as_datasets_wikihop(raw):
    return {
        "id": raw["id"],
        "question": raw["query"],
        "answer": raw["answer"],
        "candidates": raw["candidates"],
        "supports": raw["supports"],
        "annotations": [["follows", "multiple"]],
    }


def strings(value):
    """All strings within a JSON value."""
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return [text for part in parts for text in strings(part)]
    return [value] if isinstance(value, str) else []


def as_datasets_hotpotqa(raw):
    facts = [{"title": title, "sent_id": index} for title, index in raw["supporting_facts"]]
    context = [{"title": title, "sentences": sentences} for title, sentences in raw["context"]]
    return {
        **{name: raw.get(name, "") for name in ("question", "answer", "type", "level")},
        "id": raw["_id"],
        "supporting_facts": lists(facts, "title", "sent_id"),
        "context": lists(context, "title", "sentences"),
    }


@pytest.mark.parametrize("is_array", [False, True])
def test_files_of_triviaqa_are_lines_or_an_array(tmp_path, is_array):
    raw = questions.raw_question(web=["a.txt"])
    theirs = [as_datasets_triviaqa({**raw, "QuestionId": x}, {"a.txt": "red"}) for x in "ab"]
    text = json.dumps(theirs) if is_array else "\n".join(map(json.dumps, theirs))
    path = tmp_path / "train.json"
    path.write_text(text, encoding="utf-8")
    found = list(triviaqa_examples.read_examples(str(path)))
    assert found == list(map(triviaqa_examples.parse_example, theirs))


def nq_windows(example, tokenizer, **options):
    settings = {**NQ_SETTINGS, "long_seq_length": 20, "include_unknown_rate": 1.0, **options}
    config = NqInputConfig.for_tokenizer(tokenizer, **settings)
    made = nq.make_windows(example, config, nq.make_word_tokenizer(tokenizer))
    assert len(made.windows) > 1
    return made


def wikihop_features(example, tokenizer, **options):
    lengths = {"long_seq_length": 512, "global_seq_length": 128, "max_num_sentences": 20}
    config = wikihop_config.WikiHopInputConfig(**lengths, **options)
    made = wikihop.make_features(example, config, tokenizer)
    assert made.num_mentions
    return made


def hotpotqa_features(example, tokenizer, **options):
    config = hotpotqa_config.HotpotQAInputConfig.for_tokenizer(tokenizer, **options)
    made = hotpotqa.make_features(example, config, tokenizer)
    assert made.features
    return made


def true(name):
    """The first two raw examples of a file beside the checkout; one None where it is not."""
    path = REAL / name
    return json.loads(path.read_text(encoding="utf-8"))[:2] if path.exists() else [None]


TASKS = {
    "nq": (as_datasets_nq, nq_examples.parse_example, nq_windows),
    "wikihop": (as_datasets_wikihop, wikihop_examples.parse_example, wikihop_features),
    "hotpotqa": (as_datasets_hotpotqa, hotpotqa_examples.parse_example, hotpotqa_features),
}
RAWS = {
    "nq": [nq_raw.raw_example(annotations=annotations) for annotations in NQ_ANNOTATIONS[:-1]],
    "wikihop": [wikihop_raw.raw_example(), *true("wikihop_1.json")],
    "hotpotqa": [hotpotqa_raw.raw_example(), *true("hotpotqa_10.json")],
}


@pytest.mark.parametrize("compatible", [False, True])
@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize(
    ("task", "number"), [(task, x) for task, raws in RAWS.items() for x in range(len(raws))]
)
def test_examples_and_features_are_the_same(tmp_path, task, number, is_training, compatible):
    raw, (as_datasets, parse, make) = RAWS[task][number], TASKS[task]
    if raw is None:
        pytest.skip("the real examples are not beside this checkout")
    words = nq_raw.vocabulary() if task == "nq" else build_vocabulary(strings(raw))
    tokenizer = vocabularies.tokenizer(tmp_path, words)
    options = {"is_training": is_training, "release_compatible": compatible}
    theirs, ours = map(parse, (as_datasets(raw), raw))
    assert theirs == ours
    assert make(theirs, tokenizer, **options) == make(ours, tokenizer, **options)


OF_NQ = (nq_examples.parse_example, as_datasets_nq(nq_raw.raw_example()))
ONE_PAGE = as_datasets_triviaqa(questions.raw_question(web=["a.txt"]), {"a.txt": "red"})
OF_TRIVIAQA = (triviaqa_examples.parse_example, ONE_PAGE)
WIKIHOP = as_datasets_wikihop(wikihop_raw.raw_example())


@pytest.mark.parametrize(
    ("parse", "raw", "change", "message"),
    [
        (*OF_NQ, {"id": None}, r"no field `example_id` \(or `id`\)"),
        (*OF_NQ, {"id": 1.0}, "field `id` must be a string or a whole number. Received: 1.0"),
        (
            *OF_NQ,
            {"question": {"tokens": []}},
            r"field `question.text` is missing. .*'question.tokens'",
        ),
        (
            *OF_NQ,
            {"document": {"html": ""}},
            r"field `document.tokens` is missing. .*'document.html'",
        ),
        (
            *OF_NQ,
            {"document": {"tokens": {"token": ["a"], "is_html": []}}},
            "example 17: field `document.tokens` must have lists `token`, `is_html`, as long",
        ),
        (
            *OF_NQ,
            {"document": {"tokens": {"token": ["a"], "is_html": [0]}}},
            "field `document.tokens` must have booleans as is_html. Received: 0",
        ),
        (*OF_NQ, {"long_answer_candidates": {"start_token": [1], "end_token": []}}, "all as long"),
        (
            *OF_TRIVIAQA,
            {"question_id": None},
            r"no field `QuestionId` \(or `question_id`\). Its fields: \['a",
        ),
        (*OF_TRIVIAQA, {"question": " "}, "field `question` must not be empty"),
        (
            *OF_TRIVIAQA,
            {"entity_pages": {"filename": ["a"], "wiki_context": []}},
            "field `entity_pages` must",
        ),
        (*OF_TRIVIAQA, {"answer": {"value": "x"}}, "field `answer` must have `normalized_aliases`"),
    ],
)
def test_what_is_wrong_is_named_as_it_is_called_there(parse, raw, change, message):
    with pytest.raises(ValueError, match=message):
        parse({**raw, **change})


def test_a_missing_question_is_told_by_the_name_of_the_files():
    raw = {name: x for name, x in WIKIHOP.items() if name != "question"}
    with pytest.raises(ValueError, match="field `query` is missing. Its fields: .*'supports'"):
        wikihop_examples.parse_example(raw)
