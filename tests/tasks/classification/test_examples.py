"""Features of texts, compared with some written by hand."""

import pytest

from etcmodel.tasks.classification import config, examples, features
from tests.tasks.classification.raw_texts import VOCAB, input_config, tokenizer


def make(tmp_path, example, **options):
    settings = input_config(**options)
    processor = settings.make_processor(tokenizer(tmp_path))
    return features.make_features(example, settings, processor)


def words(ids):
    return " ".join(VOCAB[i] for i in ids)


def test_a_text_has_a_global_token_of_its_own_and_one_for_each_sentence(tmp_path):
    example = examples.TextExample("e", "It is good. It is very good.", label="good")
    features, encoding = make(tmp_path, example)
    assert words(features["token_ids"]) == ("[CLS] it is good . it is very good . [SEP] [PAD]")
    assert features["links"] == [0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0, -1]
    assert words(features["global_token_ids"]) == "[CLS] [CLS] [CLS] [PAD]"
    assert features["example_ids"] == [1] * 11 + [0]
    assert features["global_example_ids"] == [1, 1, 1, 0]
    assert features["example_id"] == ["e"] and features["labels"] == [1]
    assert not encoding.cut


def test_two_texts_are_told_apart_and_the_second_gives_way(tmp_path):
    example = examples.TextExample("e", "it is", "very " * 20)
    features, encoding = make(tmp_path, example)
    assert words(features["token_ids"]) == "[CLS] it is [SEP] " + "very " * 7 + "[SEP]"
    assert features["segment_ids"] == [0] * 4 + [1] * 8
    assert encoding.cut.num_tokens == 13
    assert "labels" not in features


def test_a_first_text_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(ValueError, match="example 'e'"):
        make(tmp_path, examples.TextExample("e", "very " * 20, "it"))


@pytest.mark.parametrize(
    ("options", "label", "expected"),
    [
        ({}, "bad", [0]),
        ({"problem_type": config.MULTI_LABEL}, ("good",), [0, 1]),
        ({"problem_type": config.MULTI_LABEL}, (), [0, 0]),
        ({"problem_type": config.REGRESSION}, 2.0, [2.0]),
    ],
)
def test_labels_are_as_the_problem_has_them(tmp_path, options, label, expected):
    features, _ = make(tmp_path, examples.TextExample("e", "it", label=label), **options)
    assert features["labels"] == expected


@pytest.mark.parametrize(
    ("options", "label"), [({}, "odd"), ({"problem_type": config.MULTI_LABEL}, ("good", "odd"))]
)
def test_an_unknown_label_is_named(tmp_path, options, label):
    message = "example 'e': field `label`: 'odd' is none of the 2 labels: 'bad', 'good'"
    with pytest.raises(ValueError, match=message):
        make(tmp_path, examples.TextExample("e", "it", label=label), **options)
