"""Pieces, raw examples, features, scores, and what the generated passages promise."""

import collections
import re

import numpy as np
import pytest

from etcmodel import options
from etcmodel.tasks.numerical_reasoning import config, examples, features, metrics, preprocess
from etcmodel.text import number_pieces, vocabulary_files
from etcmodel.tools.demos import numerical_reasoning as demo
from tests import vocabularies
from tests.reference import cases

RAW = {
    "id": "a",
    "question": "How many apples did the king have ?",
    "passage": "The king had 407 apples .",
    "answer": "1023",
}


tokenizer = vocabularies.fixture(demo.vocabulary())


def features_of(raw, tokenizer, **fields):
    config = features.InputConfig(**{"long_seq_length": 22, "max_answer_length": 7, **fields})
    return features.make_features(examples.parse_example(raw), config, tokenizer)


def tokens_of(ids, tokenizer):
    return " ".join(tokenizer.convert_ids_to_tokens([x for x in ids if x > 0]))


def test_numbers_fall_into_digits(tokenizer):
    found = number_pieces.pieces_of("In 2004, 17 Kings had 3rd 1,250 .", tokenizer)
    wanted = "in 2 ##0 ##0 ##4 , 1 ##7 king ##s had 3 ##r ##d 1 , 2 ##5 ##0 ."
    assert " ".join(found) == wanted
    assert number_pieces.text_of_pieces(["4", "##0", "##7", "king"]) == "407 king"


def test_features_are_question_passage_and_answer(tokenizer):
    found = features_of(RAW, tokenizer)
    values = found.values
    assert (
        tokens_of(values["input_ids"], tokenizer)
        == "[CLS] how many apples did the king have ? [SEP] the king had 4 ##0 ##7 apples . [SEP]"
    )
    assert values["attention_mask"] == [1] * 19 + [0] * 3
    assert values["input_ids"][19:] == [0] * 3
    assert tokens_of(values["labels"], tokenizer) == "1 ##0 ##2 ##3 \\"
    assert values["labels"][5:] == [-100]
    assert (found.num_tokens, found.is_cut) == (19, False)
    unanswered = features_of({**RAW, "answer": None}, tokenizer, is_training=False).values
    assert "labels" not in unanswered and unanswered["input_ids"] == values["input_ids"]


def test_the_end_of_the_passage_is_cut(tokenizer):
    found = features_of(RAW, tokenizer, long_seq_length=15)
    assert (
        tokens_of(found.values["input_ids"], tokenizer)
        == "[CLS] how many apples did the king have ? [SEP] the king had 4 [SEP]"
    )
    assert (found.num_tokens, found.is_cut) == (19, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": None}, "'a': field `answer` is missing, and training needs it"),
        ({"answer": 123456}, "`answer` has 6 tokens; --max_answer_length=7 is for 5"),
        ({"answer": "1 \\ 2"}, "field `answer` must not have '.*', which ends answers"),
        ({"question": "how " * 19}, "has 19 tokens, which with --long_seq_length=22 leaves none"),
    ],
)
def test_what_is_wrong_is_named(tokenizer, changes, message):
    with pytest.raises(ValueError, match=message):
        features_of({**RAW, **changes}, tokenizer)


def test_a_vocabulary_without_digits_is_refused(tmp_path):
    pieces = [x for x in demo.vocabulary() if x != "##7"]
    with pytest.raises(ValueError, match="vocab.txt' lacks the tokens ##7"):
        number_pieces.check_tokenizer(vocabularies.tokenizer(tmp_path, pieces))


def test_the_help_names_the_vocabularies_that_are_taken():
    vocab_file = str(cases.topic_folder("longformer") / "tokenizer" / "vocab.json")
    with pytest.raises(ValueError, match=r"vocab.json' lacks the tokens \[PAD\]"):
        number_pieces.check_tokenizer(vocabulary_files.open_tokenizer(vocab_file))
    for options_class in (preprocess.PreprocessOptions, config.NumericalConfig):
        (help_text,) = (
            field.metadata["help_text"]
            for field in options.option_fields(options_class)
            if field.name == "vocab_file"
        )
        assert help_text == options.WORD_PIECES


def test_answers_end_with_their_token(tokenizer):
    start, end = number_pieces.start_and_end(tokenizer)
    ids = tokenizer.convert_tokens_to_ids(["4", "##0", "##7"])
    sequences = {"a": [start, *ids, end, *ids], "b": [start, *ids, 0], "c": [start, 9999, end]}
    outputs = [
        {"example_id": name.encode(), "sequences": np.array(x)} for name, x in sequences.items()
    ]
    found = [metrics.prediction(output, tokenizer) for output in outputs]
    answers = {"a": "407", "b": "407 [PAD]", "c": ""}
    assert found == [{"id": name, "prediction": answer} for name, answer in answers.items()]


def test_every_digit_must_be_right_and_kinds_are_told_apart():
    made = [
        examples.Example(name, "q", "p", answer, kind)
        for name, answer, kind in (("a", "407", "sum"), ("b", "3.5", "sum"), ("c", "1", ""))
    ]
    found = metrics.metrics(made, {"a": "408", "b": "3 . 5", "d": "1"})
    assert found == {"exact_match": pytest.approx(1 / 3), "exact_match_sum": 0.5}
    with pytest.raises(ValueError, match="two examples with the id 'a'"):
        metrics.metrics([made[0], examples.Example("a", "q", "p", "1")], {})
    with pytest.raises(ValueError, match="example 'x': field `answer` is missing"):
        metrics.metrics([examples.Example("x", "q", "p")], {})
    with pytest.raises(ValueError, match="There is no example"):
        metrics.metrics([], {})


PATTERNS = (
    (r"(?P<a>.+) (?:had|bought|received) (?P<n>\d+) (?:more )?(?P<x>.+?)", ("+a",)),
    (
        r"(?P<a>.+) (?:had|found) (?P<n>\d+) (?P<x>.+?) and (?P<m>\d+) (?P<y>.+?)(?: in .*)?",
        ("+a",),
    ),
    (r"there were (?P<n>\d+) (?P<x>.+) in (?P<a>.+)", ("+a",)),
    (r"(?P<n>\d+) (?P<x>.+) came to (?P<a>.+)", ("+a",)),
    (r"(?P<a>.+) (?:lost|sold) (?P<n>\d+) (?:of the )?(?P<x>.+?)(?: in .*)?", ("-a",)),
    (r"(?P<a>.+) gave (?P<n>\d+) (?P<x>.+) to (?P<b>.+)", ("-a", "+b")),
    (r"(?P<b>.+) took (?P<n>\d+) (?P<x>.+) from (?P<a>.+)", ("-a", "+b")),
)
ASKED = {
    "difference": r"how many more (?P<x>.+) than (?P<y>.+) did (?P<a>.+) have \?",
    "complement": r"how many (?P<x>.+) of (?P<a>.+) were not (?P<j>.+) \?",
    "total": r"how many (?P<x>.+) did (?P<a>.+) have \?",
    "sum": r"how many (?P<x>.+) did (?P<a>.+) and (?P<b>.+) have together \?",
}


def reader_answer(example):
    """The answer by one who reads the texts and knows nothing of the generator."""
    counts = collections.Counter()
    for sentence in example["passage"].lower().removesuffix(" .").split(" . "):
        read = [(re.fullmatch(pattern, sentence), how) for pattern, how in PATTERNS]
        # The second pattern is the first one's where two things are told.
        match, changes = [x for x in read if x[0]][-1]
        words = match.groupdict()
        for number, thing in (("n", "x"), ("m", "y")):
            for change in changes if words.get(number) else ():
                sign = 1 if change[0] == "+" else -1
                counts[words[change[1]], words[thing]] += sign * int(words[number])
    words = re.fullmatch(ASKED[example["kind"]], example["question"].lower()).groupdict()

    def has(owner, thing):
        wanted = thing.split()
        return sum(
            n
            for (who, x), n in counts.items()
            if who == owner and x.split()[-len(wanted) :] == wanted
        )

    if example["kind"] == "difference":
        return has(words["a"], words["x"]) - has(words["a"], words["y"])
    if example["kind"] == "complement":
        return has(words["a"], words["x"]) - has(words["a"], f"{words['j']} {words['x']}")
    return sum(has(words[owner], words["x"]) for owner in ("a", "b") if owner in words)


@pytest.mark.parametrize("settings", [{}, {"sentences": 8, "largest": 20}])
def test_a_reader_finds_the_answers_and_no_passage_has_them(settings):
    made = demo.make_examples(split="train", num_examples=300, seed=0, **settings)
    kinds = collections.Counter(example["kind"] for example in made)
    assert set(kinds) == set(demo.QUESTIONS) and kinds.most_common(1)[0][0] == "difference"
    for example in made:
        answer = reader_answer(example)
        assert example["answer"] == str(answer) and answer > 0, example
        assert example["answer"] not in re.findall(r"\d+", example["passage"])
        assert example["passage"].count(" .") == settings.get("sentences", 5)


def test_the_vocabulary_has_every_word(tokenizer):
    made = demo.make_examples(split="dev", num_examples=300, seed=0)
    words = {word for x in made for text in demo.texts(x) for word in text.lower().split()}
    assert not {word for word in words if not word.isdigit()} - set(tokenizer.vocab)
    config = features.InputConfig()
    assert not any(
        features.make_features(examples.parse_example(x), config, tokenizer).is_cut for x in made
    )
