"""Batches of a processor as a `tf.data.Dataset`."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.text import processors

EXAMPLES = [
    {"text": "A b", "extra": {"label": 1}},
    {"text": "B", "extra": {"label": 0}},
    {"nodes": {"x": "A", "y": "B"}, "edges": [["x", "y", "to"]], "extra": {"label": 1}},
]


processor = processors.fixture(["a", "b"], relation_names=("to",))


def labels_of(batch):
    return np.array([x.document.extra["label"] for x in batch.encodings], np.int64)


@pytest.mark.parametrize("is_file", [False, True])
def test_a_dataset_has_the_batches_of_a_list_or_a_file_again_and_again(
    processor, tmp_path, is_file
):
    source = EXAMPLES
    if is_file:
        source = tmp_path / "examples.jsonl"
        source.write_text("\n".join(map(json.dumps, EXAMPLES)))
    dataset = processor.dataset(source, 2, targets=labels_of, shuffle=False)
    assert dataset.options().autotune.enabled is False  # So that its epochs end at once.
    expected = [(x, labels_of(x)) for x in processor.batches(EXAMPLES, 2)]
    for _ in range(2):
        found = [*dataset.as_numpy_iterator()]
        assert [labels.tolist() for _, labels in found] == [[1, 0], [1]]
        for (features, _), (batch, _) in zip(found, expected, strict=True):
            assert sorted(features) == sorted(batch)
            for name, array in batch.items():
                np.testing.assert_array_equal(features[name], array, err_msg=name)


def test_the_lengths_of_batches_may_differ(processor):
    spec = processor.dataset(EXAMPLES, 1).element_spec
    assert spec["token_ids"] == tf.TensorSpec([None, None], tf.int32)
    assert spec["edges/to"] == tf.TensorSpec([None, None, None], tf.int32)
    lengths = [x["token_ids"].shape[1] for x in processor.dataset(EXAMPLES, 1)]
    assert lengths == [4, 3, 4]


def test_what_can_be_read_but_once_or_is_empty_is_refused(processor):
    with pytest.raises(ValueError, match="must be readable more than once: a list, or the path"):
        processor.dataset(iter(EXAMPLES), 2)
    with pytest.raises(ValueError, match="`examples` holds no examples"):
        processor.dataset([], 2)


def test_a_label_is_a_field_of_extra(processor):
    dataset = processor.dataset(EXAMPLES, 2, targets="label", shuffle=False)
    assert [labels.tolist() for _, labels in dataset.as_numpy_iterator()] == [[1, 0], [1]]


def test_numbers_of_two_types_are_refused_not_cut(processor):
    examples = [{"text": "a", "extra": {"label": label}} for label in (0, 1, 0.75, 0.25)]
    dataset = processor.dataset(examples, 2, targets="label", shuffle=False)
    with pytest.raises(tf.errors.OpError, match="Those of the first batch are int.*, others float"):
        list(dataset)
    floats = processor.dataset(examples[::-1], 2, targets="label", shuffle=False)
    assert [x.tolist() for _, x in floats.as_numpy_iterator()] == [[0.25, 0.75], [1.0, 0.0]]


@pytest.mark.parametrize("as_fields", [False, True])
def test_a_dataset_of_strings_and_labels_is_one_of_batches(processor, as_fields):
    strings = ["A b", "B", "b é"]
    given = {"question": ["a"] * 3, "text": strings} if as_fields else strings
    pairs = tf.data.Dataset.from_tensor_slices((given, [1, 0, 1]))
    questions = {"question": "a"} if as_fields else {}
    expected = [*processor.batches([{**questions, "text": text} for text in strings], 2)]
    for _ in range(2):
        found = [*processor.dataset(pairs, 2).as_numpy_iterator()]
        assert [labels.tolist() for _, labels in found] == [[1, 0], [1]]
        for (features, _), batch in zip(found, expected, strict=True):
            for name, array in batch.items():
                np.testing.assert_array_equal(features[name], array, err_msg=name)
    (features, *_) = processor.dataset(pairs.map(lambda x, label: x), 2)
    np.testing.assert_array_equal(features["token_ids"], expected[0]["token_ids"])


def test_bytes_that_are_no_text_are_told_with_example_and_place(processor):
    given = tf.data.Dataset.from_tensor_slices({"text": [b"A", b"B\xe9"], "question": ["a", "b"]})
    message = "^`text` of example 1, counted from 0: invalid UTF-8 at byte 2$"
    with pytest.raises(ValueError, match=message):
        processor.dataset(given, 2)


def test_labels_are_numbered_by_their_names_or_those_of_the_data(processor, tmp_path):
    rows = [{"text": "a", "stars": "pos"}, {"text": "b", "stars": "neg"}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows))

    def numbers(given, **kwargs):
        dataset = processor.dataset(given, 2, shuffle=False, **kwargs)
        return [y.tolist() for _, y in dataset.as_numpy_iterator()]

    assert numbers(path, label="stars", labels=["neg", "pos"]) == [[1, 0]]
    assert numbers(path, targets="stars", labels=["pos", "neg"]) == [[0, 1]]
    assert [x["token_ids"].shape for x in processor.dataset(path, 2)] == [(2, 3)]
    with pytest.raises(ValueError, match="a.json, element 0: `stars` is a word, 'pos': give all"):
        numbers(path, label="stars")
    with pytest.raises(ValueError, match="`labels` need `label`"):
        numbers(path, labels=["neg", "pos"])
    with pytest.raises(ValueError, match="one of the two"):
        numbers(path, label="stars", targets="stars")


def test_batches_of_a_function_are_those_of_what_it_begins(processor):
    wanted = [*processor.batches(EXAMPLES, 2)]
    for given in (lambda: iter(EXAMPLES), iter(EXAMPLES)):
        for batch, expected in zip(processor.batches(given, 2), wanted, strict=True):
            np.testing.assert_array_equal(batch["token_ids"], expected["token_ids"])
