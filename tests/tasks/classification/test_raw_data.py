"""From rows to typed examples, and what is refused."""

import pytest

from etcmodel.tasks.classification import config
from etcmodel.tasks.classification import examples as classification_examples
from tests.tasks.classification.raw_texts import input_config


def parse(raw, **options):
    return classification_examples.parse_example(raw, input_config(**options), "file:1")


def test_fields_are_those_that_the_options_name():
    raw = {"no": 7, "a": "one", "b": "two", "y": "good"}
    names = {"text_field": "a", "second_text_field": "b", "label_field": "y", "id_field": "no"}
    assert parse(raw, **names) == classification_examples.TextExample("7", "one", "two", "good")
    assert parse({"text": "one"}) == classification_examples.TextExample("file:1", "one")
    assert parse({"id": "x", "text": "one"}).example_id == "x"


@pytest.mark.parametrize(
    ("value", "label"), [("good", "good"), (" good ", "good"), (3, "3"), (True, "true")]
)
def test_a_label_becomes_text(value, label):
    assert parse({"text": "t", "label": value}).label == label


@pytest.mark.parametrize("value", [None, ""])
def test_nothing_is_no_label_and_no_number(value):
    assert parse({"text": "t", "label": value}).label is None
    assert parse({"text": "t", "label": value}, problem_type=config.REGRESSION).label is None


@pytest.mark.parametrize(
    ("value", "labels"),
    [(["a", 2], ("a", "2")), ("a| b|a", ("a", "b")), ([], ()), ("", ()), (None, None)],
)
def test_several_labels_are_a_list_or_separated(value, labels):
    example = parse({"text": "t", "label": value}, problem_type=config.MULTI_LABEL)
    assert example.label == labels


@pytest.mark.parametrize(("value", "number"), [(2, 2.0), ("-1.5", -1.5), (0.25, 0.25)])
def test_a_number_may_be_text(value, number):
    example = parse({"text": "t", "label": value}, problem_type=config.REGRESSION)
    assert example.label == number


@pytest.mark.parametrize(
    ("raw", "options", "message"),
    [
        ({"id": [1], "text": "t"}, {}, "field `id` must be a string or a whole number. Received"),
        ({"text": "t"}, {"second_text_field": "b"}, "field `b` is missing"),
        ({"text": "t", "label": 3}, {"problem_type": config.MULTI_LABEL}, "list of labels"),
        ({"text": "t", "label": "x"}, {"problem_type": config.REGRESSION}, "finite number"),
        ({"text": "t", "label": True}, {"problem_type": config.REGRESSION}, "finite number"),
        ({"text": "t", "label": "inf"}, {"problem_type": config.REGRESSION}, "finite number"),
    ],
)
def test_malformed_examples_are_named(raw, options, message):
    with pytest.raises(ValueError, match=message):
        parse(raw, **options)


def test_a_reader_without_labels_takes_any(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\none,?\n", encoding="utf-8")
    options = input_config(problem_type="regression", labels=())
    with pytest.raises(ValueError, match="field `label` must be a finite number"):
        list(classification_examples.example_reader(options)(str(path)))
    examples = classification_examples.example_reader(options, with_label=False)(str(path))
    assert list(examples) == [classification_examples.TextExample("a.csv:2", "one")]
