"""`fit`, `evaluate` and `predict` on texts are those on what the processor makes of them."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.models import longformer
from etcmodel.models.sequence_classifiers import LongformerClassifier
from tests.models import text_cases

TEXTS = ["a b. c d.", "the wey.", "e", "long f g h i? j.", "k l m"]
LABELS = np.array([0, 1, 1, 0, 1])
FIELDS = [{"question": "who?", "text": text} for text in TEXTS]


@pytest.fixture(name="processor", scope="module")
def make_processor(tmp_path_factory):
    return text_cases.processor(tmp_path_factory.mktemp("texts"), relation_names=())


@pytest.fixture(name="model", scope="module")
def model_of_no_training(processor):
    return text_cases.classifier(processor)


def dataset(*parts):
    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])


def columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


GIVEN = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "array": np.array(TEXTS),
    "objects": np.array(TEXTS, object),
    "tensor": tf.constant(TEXTS),
    "dataset": dataset(TEXTS),
    "batches": dataset(TEXTS).batch(2),
    "pairs": dataset(TEXTS, LABELS).batch(2),
}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("x", GIVEN.values(), ids=GIVEN.keys())
def test_predictions_are_those_of_the_processed_texts(model, processor, x):
    wanted = model.predict(dict(processor(TEXTS)), verbose=0)
    np.testing.assert_allclose(model.predict(x, verbose=0), wanted, atol=1e-5)


def test_one_text_is_a_batch_of_one(model, processor):
    found = model.predict(TEXTS[3], verbose=0)
    np.testing.assert_allclose(found, model(processor(TEXTS[3:4])), atol=1e-5)


@pytest.mark.parametrize("x", [FIELDS, dataset(columns(FIELDS)).batch(3)], ids=["list", "dataset"])
def test_examples_may_be_of_fields(model, processor, x):
    wanted = model(processor(FIELDS))
    np.testing.assert_allclose(model.predict(x, verbose=0), wanted, atol=1e-5)


def histories(processor, arguments, wanted_arguments, epochs=2):
    """What two equal models' training tells, and their weights."""
    found = []
    for given in (arguments, wanted_arguments):
        model = text_cases.classifier(processor)
        history = model.fit(**given, epochs=epochs, shuffle=False, verbose=0).history
        found.append(([*history.values()], model.get_weights()))
    return found


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_training_on_a_dataset_is_that_on_processed_batches(processor):
    weights = {0: 2.0, 1: 0.5}
    data = dataset(TEXTS, LABELS)
    given = {"x": data, "batch_size": 2, "class_weight": weights, "validation_data": data.batch(4)}
    validation = processor.dataset(data, 4)
    wanted = {"x": processor.dataset(data, 2), "class_weight": weights}
    wanted["validation_data"] = validation
    assert_same(*histories(processor, given, wanted))


def test_training_on_a_list_is_that_on_its_features(processor):
    sample_weight = np.array([1.0, 0.0, 3.0, 1.0, 2.0])
    rest = {"y": LABELS, "batch_size": 3, "sample_weight": sample_weight}
    features = dict(processor(TEXTS))
    # Labels and weights may be lists, too, as Keras has them beside a list.
    lists = {**rest, "y": LABELS.tolist(), "sample_weight": sample_weight.tolist()}
    given = {"x": TEXTS, "validation_data": (TEXTS, LABELS.tolist()), **lists}
    wanted = {"x": features, "validation_data": (features, LABELS), **rest}
    assert_same(*histories(processor, given, wanted, epochs=1))


def test_weights_of_examples_may_be_in_the_dataset(model, processor):
    weights = np.array([1.0, 0.0, 3.0, 1.0, 2.0], np.float32)
    data = dataset(TEXTS, LABELS, weights).batch(5)
    wanted = model.evaluate(dict(processor(TEXTS)), LABELS, sample_weight=weights, verbose=0)
    np.testing.assert_allclose(model.evaluate(data, verbose=0), wanted, rtol=1e-5)


@pytest.mark.slow
def test_under_a_strategy_the_loss_is_the_same(processor):
    data = dataset(TEXTS[:4], LABELS[:4]).batch(4)
    alone = text_cases.classifier(processor, is_eager=False)
    wanted = alone.fit(data, epochs=2, verbose=0).history["loss"]
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = text_cases.classifier(processor, is_eager=False)
    found = model.fit(data, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_longformer_reads_them_too(processor):
    tf_keras.utils.set_random_seed(1)
    config = text_cases.longformer_config(processor, type_vocab_size=2)
    for make in (LongformerClassifier, longformer.LongformerForSequenceClassification):
        model = make(config)
        model.compile(run_eagerly=True)
        model.processor = processor
        one = model.predict(dataset(TEXTS).batch(2), verbose=0)
        np.testing.assert_allclose(one, model.predict(TEXTS, verbose=0), atol=1e-5)
        assert one.shape == (5, 2) and np.ptp(one[:, 0]) > 0


def test_features_are_taken_as_ever(model, processor):
    features = dict(processor(TEXTS))
    data = dataset(features).batch(2)
    np.testing.assert_allclose(
        model.predict(data, verbose=0), model.predict(features, verbose=0), atol=1e-5
    )


# The processor's settings, or None for no processor; what is given; the message.
REFUSED = {
    "none": (None, {"x": TEXTS}, "Texts need a processor: set `model.processor`"),
    "a path": ("vocab.txt", {"x": TEXTS}, "must make batches of texts.* Received: 'vocab.txt'"),
    "none of a dataset": (None, {"x": dataset(TEXTS)}, "Texts need a processor"),
    "stride": (
        {"stride": 4, "max_long_len": 9},
        {"x": TEXTS},
        "the processor has `stride`, 4: give",
    ),
    "pack": (
        {"pack": True, "max_long_len": 90, "max_global_len": 9},
        {"x": dataset(TEXTS)},
        "the processor has `pack`, True: give",
    ),
    "empty": ({}, {"x": dataset(TEXTS).take(0)}, "The dataset holds no texts"),
    "rank": ({}, {"x": dataset([TEXTS]).batch(2)}, "must be single ones or have shape"),
    "array": (
        {},
        {"x": np.array([TEXTS])},
        r"Texts must have shape \[batch\]. Received shape: \[1, 5\]",
    ),
    "batches": (
        {},
        {"x": dataset(TEXTS).batch(2), "batch_size": 3},
        "leave out `batch_size`, or do not",
    ),
}


@pytest.mark.parametrize(("settings", "given", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_told_in_a_line(model, monkeypatch, tmp_path, settings, given, message):
    if settings is None or isinstance(settings, str):
        monkeypatch.setattr(model, "processor", settings)
    elif settings:
        other = text_cases.processor(tmp_path, relation_names=(), **settings)
        monkeypatch.setattr(model, "processor", other)
    with pytest.raises(ValueError, match=message) as raised:
        model.predict(**given, verbose=0)
    assert "\n" not in str(raised.value)


BAD = [*TEXTS[:3], b"a \xffb", TEXTS[4]]
BAD_FIELDS = {"question": ["who?"] * 5, "text": BAD}
NO_UTF8 = {
    "array": (np.array(BAD, object), "text"),
    "first batch": (dataset(BAD), "text"),
    "later batch": (dataset(BAD).batch(2), "text"),
    "fields": (dataset({**BAD_FIELDS, "question": BAD, "text": TEXTS}).batch(2), "question"),
}


@pytest.mark.parametrize(("x", "field"), NO_UTF8.values(), ids=NO_UTF8.keys())
def test_bytes_that_are_no_text_are_told_with_example_and_place(model, x, field):
    with pytest.raises(ValueError) as raised:
        model.predict(x, verbose=0)
    wanted = f"`{field}` of example 3, counted from 0: invalid UTF-8 at byte 3"
    assert str(raised.value) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("is_eager", [True, False])
def test_training_and_evaluation_tell_it_too(processor, is_eager):
    model = text_cases.classifier(processor, is_eager=is_eager)
    good, bad = dataset(TEXTS, LABELS).batch(2), dataset(BAD, LABELS).batch(2)
    calls = [
        lambda: model.fit(bad, verbose=0),
        lambda: model.fit(good, validation_data=bad, verbose=0),
        lambda: model.evaluate(bad, verbose=0),
    ]
    for call in calls if is_eager else calls[:1]:  # To trace the others takes as long.
        with pytest.raises(ValueError, match="^`text` of example 3, .* UTF-8 at byte 3$"):
            call()
    assert not is_eager or len(model.predict(good, verbose=0)) == 5


def test_what_else_the_processor_refuses_of_a_later_batch_is_told_in_a_line(
    model, monkeypatch, tmp_path
):
    options = {"relation_names": (), "max_long_len": 8, "truncation": "error"}
    monkeypatch.setattr(model, "processor", text_cases.processor(tmp_path, **options))
    with pytest.raises(ValueError) as raised:
        model.predict(dataset(TEXTS).batch(1), verbose=0)
    assert "\n" not in str(raised.value) and "truncation" in str(raised.value)
