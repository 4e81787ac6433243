"""What stands beside texts is checked before anything is trained or measured with it."""

import numpy as np
import pandas
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.models import heads, longformer, sequence_classifiers
from etcmodel.models.heads import losses
from tests.models import text_cases

TEXTS = ["a b. c d.", "the wey.", "e", "long f g h i? j."]
NUMBERS = [1, 0, 0, 1]


@pytest.fixture(name="processor", scope="module")
def make_processor(tmp_path_factory):
    return text_cases.processor(tmp_path_factory.mktemp("texts"), relation_names=())


def weights(model):
    return np.concatenate([x.ravel() for x in model.get_weights()])


def refused(message, call, *args, **kwargs):
    with pytest.raises(ValueError, match=message) as raised:
        call(*args, verbose=0, **kwargs)
    assert "\n" not in str(raised.value)


WRONG = {
    "too large": [0, 1, 2, 1],
    "too small": [0, 1, -2, 1],
    "a fraction": [0, 1, 0.5, 1],
    "none": [0, 1, None, 1],
    "NaN": [0, 1, float("nan"), 1],
    "bytes": [0, 1, b"neg", 1],
    "NumPy's": np.array([0, 1, 2, 1]),
    "a Series": pandas.Series([0, 1, 2, 1]),
    "a tensor": tf.constant([0, 1, 2, 1]),
}


@pytest.mark.parametrize("labels", WRONG.values(), ids=WRONG)
def test_a_number_that_is_no_label_is_told_with_its_place(processor, labels):
    model = text_cases.classifier(processor)
    message = r"^`y\[2\]` must be a whole number from 0 to 1, or -1 for no label. Received: "
    for call in (model.fit, model.evaluate):
        refused(message, call, TEXTS, labels)
    refused(message, model.fit, TEXTS, NUMBERS, validation_data=(TEXTS, labels))
    named = text_cases.classifier(processor, labels=["neg", "pos"])
    refused(message, named.fit, TEXTS, labels)


def test_a_row_of_numbers_for_each_text_is_no_label(processor):
    """One-hot rows and the like, which the head's loss does not take."""
    model, rows = text_cases.classifier(processor), np.eye(2, dtype=int)[NUMBERS]
    advice = r"give class numbers or names, not a row for each text: `argmax\(axis=-1\)`"
    message = rf"^`y\[0\]` must be a whole number from 0 to 1, .*; {advice}. Received: \[0, 1\]$"
    for call in (model.fit, model.evaluate):
        for given in (rows, rows.tolist(), tf.constant(rows)):
            refused(message, call, TEXTS, given)
    refused(message, model.evaluate, (x for x in [(TEXTS, rows)]))
    slices = tf.data.Dataset.from_tensor_slices((TEXTS, rows))
    for given in (slices, slices.batch(2)):
        for call in (model.fit, model.evaluate):
            refused(f"^Labels of a `tf.data.Dataset`: {advice}. Received shape: ", call, given)
    one_each = slices.map(lambda text, row: (text, tf.argmax(row)))
    wanted = model.evaluate(TEXTS, NUMBERS, verbose=0)
    np.testing.assert_allclose(model.evaluate(one_each, verbose=0), wanted, rtol=1e-5)
    columns = one_each.map(lambda text, label: (text, label[tf.newaxis]))
    np.testing.assert_allclose(model.evaluate(columns, verbose=0), wanted, rtol=1e-5)


def test_each_kind_of_labels_has_its_numbers(processor):
    several = text_cases.classifier(processor, multi_label=True)
    good = [[0, 1], [1, 1], [0, 0], [-1, 1]]
    several.fit(TEXTS, good, verbose=0)
    expected = several.evaluate(dict(several.processor(TEXTS)), np.array(good), verbose=0)
    for rows in (good, [*map(tuple, good)], [*np.array(good)], pandas.Series([*map(list, good)])):
        np.testing.assert_allclose(several.evaluate(TEXTS, rows, verbose=0), expected, rtol=1e-5)
    for wrong in ([0.5, 1], [0, 2], [0], 1):
        refused(r"`y\[1\]` must be a list of 2 numbers", several.fit, TEXTS, [[0, 1], wrong] * 2)
    number = text_cases.classifier(processor, problem_type="regression", num_labels=1)
    for wrong in (float("nan"), float("inf"), None, [], [1, 2]):
        refused(r"`y\[1\]` must be a finite number", number.fit, TEXTS, [0.5, wrong, 1, 2])
    assert np.isfinite(weights(number)).all()
    flag = text_cases.classifier(
        processor, problem_type="multi_label_classification", labels=["true"]
    )
    wanted = flag.evaluate(TEXTS, [[1], [0], [0], [1]], verbose=0)
    found = flag.evaluate(TEXTS, [True, False, False, True], verbose=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_model_that_is_not_compiled_is_told_so(processor):
    model = text_cases.classifier(processor)
    other = type(model)(model.config, num_labels=2)
    other.processor = processor
    for call in (other.fit, other.evaluate):
        with pytest.raises(RuntimeError, match="compile"):
            call(TEXTS, NUMBERS, verbose=0)


def test_another_loss_says_itself_which_labels_there_are(processor):
    kinds = tf_keras.losses.CategoricalCrossentropy(from_logits=True)
    model = text_cases.classifier(processor, loss=kinds)
    model.compile(loss=kinds, metrics=[], run_eagerly=True)
    model.fit(TEXTS, np.eye(2)[NUMBERS] * 0.8 + 0.1, verbose=0)
    assert isinstance(text_cases.classifier(processor).loss, losses.SparseCrossentropy)


LOSSES_OF_PROBABILITIES = {
    "name": "sparse_categorical_crossentropy",
    "function": tf_keras.losses.binary_crossentropy,
    "object": tf_keras.losses.CategoricalCrossentropy(),
    "dict": {"logits": "mse", "other": tf_keras.losses.BinaryFocalCrossentropy()},
    "without logits": tf_keras.losses.KLDivergence(),
}


class Probabilities(sequence_classifiers.LongformerClassifier):
    def call(self, features, training=None):
        return tf.nn.softmax(super().call(features, training))


@pytest.mark.parametrize("loss", LOSSES_OF_PROBABILITIES.values(), ids=LOSSES_OF_PROBABILITIES)
def test_a_loss_of_probabilities_is_warned_of(processor, caplog, loss):
    caplog.set_level("WARNING", logger="absl")
    model = text_cases.classifier(processor)
    model.compile(loss=loss)
    (told,) = caplog.messages
    assert "takes probabilities, and EtcForSequenceClassification returns logits" in told
    caplog.clear()
    model.compile(loss=tf_keras.losses.CategoricalCrossentropy(from_logits=True))
    model.compile(loss="mse")
    Probabilities(text_cases.longformer_config(processor)).compile(loss=loss)
    assert not caplog.messages


def test_the_word_accuracy_stands_for_that_of_the_head(processor):
    config = text_cases.longformer_config(processor)
    tags = longformer.LongformerForTokenClassification(config, num_labels=3)
    inputs, labels = {"input_ids": np.full([2, 6], 7)}, np.full([2, 6], -100)
    labels[:, 0] = tags(inputs).numpy()[:, 0].argmax(-1)  # One is right, five have no label.
    answers = longformer.LongformerForQuestionAnswering(config)
    asked = {"input_ids": np.array([[0, 7, 2, 8, 9, 2]])}
    places = {name: logits.numpy().argmax(-1) for name, logits in answers(asked).items()}
    for given in ("accuracy", ["acc"]):
        tags.compile(metrics=given, run_eagerly=True)
        assert tags.evaluate(inputs, labels, verbose=0)[1] == 1
        answers.compile(metrics=given, run_eagerly=True)
        assert answers.evaluate(asked, places, verbose=0)[-2:] == [1, 1]
    config = text_cases.config(processor, num_hidden_layers=1)
    for given in (["accuracy"], [], {"type": ["accuracy"]}, "mae"):
        heads.EtcForQuestionAnswering(config).compile(metrics=given)
    several = text_cases.classifier(processor, multi_label=True)
    several.compile(metrics=["accuracy"], run_eagerly=True)
    flags = np.array(several.predict(TEXTS, verbose=0) > 0, int)
    flags[0] = 1 - flags[0]
    assert several.evaluate(TEXTS, flags, verbose=0)[1] == 0.75


@pytest.mark.slow
def test_truth_values_are_the_labels_of_these_names(processor):
    flags = [True, False, True, True]
    model = text_cases.classifier(processor, labels=["true", "false"])
    wanted = model.evaluate(dict(processor(TEXTS)), np.array([0, 1, 0, 0]), verbose=0)
    for given in (flags, np.array(flags), [*map(np.bool_, flags)], pandas.Series(flags)):
        np.testing.assert_allclose(model.evaluate(TEXTS, given, verbose=0), wanted, rtol=1e-5)
    table = pandas.DataFrame({"text": TEXTS, "label": flags})
    np.testing.assert_allclose(model.evaluate(table, verbose=0), wanted, rtol=1e-5)
    stars = text_cases.classifier(processor, labels=["1", "2"])
    refused(r"^`y\[0\]` True is none of the 2 labels", stars.evaluate, TEXTS, flags)


def test_what_pandas_has_of_texts_and_labels_is_read(processor):
    model = text_cases.classifier(processor, labels=["neg", "pos"])
    words = [model.labels[x] for x in NUMBERS]
    wanted = model.evaluate(TEXTS, words, verbose=0)
    for container in (pandas.Categorical, pandas.Index, pandas.array):
        found = model.evaluate(container(TEXTS), container(words), verbose=0)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    categories = pandas.Series(words, dtype="category")
    np.testing.assert_allclose(model.evaluate(TEXTS, categories, verbose=0), wanted, rtol=1e-5)


@pytest.mark.parametrize("call", ["fit", "evaluate", "train_on_batch", "test_on_batch"])
def test_weights_beside_features_are_checked_too(processor, call):
    model = text_cases.classifier(processor)
    features = dict(processor(TEXTS))

    def run(*args, verbose, **kwargs):
        shown = {} if "batch" in call else {"verbose": verbose}
        getattr(model, call)(*args, **shown, **kwargs)

    message = r"^`sample_weight\[1\]` must be a finite number"
    refused(message, run, features, NUMBERS, sample_weight=np.array([1, -1, 1, 1.0]))
    if call in ("fit", "train_on_batch"):
        refused("^`class_weight` of 1 must be", run, features, NUMBERS, class_weight={0: 1, 1: -2})
    refused(r"^`labels` must have shape \[4\].*\[4, 2\]", run, features, np.eye(2)[NUMBERS])
    model.compile(loss=lambda y, logits: tf.reduce_mean(logits, -1), run_eagerly=True)
    run(features, np.array(NUMBERS), sample_weight=np.array([1, -1, 1, 1.0]), verbose=0)


def test_labels_of_several_outputs_have_their_names(processor):
    """Keras would take those of another name, or a tuple, in the order of the names."""
    config = text_cases.longformer_config(processor)
    model = longformer.LongformerForQuestionAnswering(config)
    model.compile(run_eagerly=True)
    inputs = {"input_ids": np.array([[0, 7, 2, 8, 9, 2]] * 2)}
    starts, ends = np.array([1, 2]), np.array([3, 4])
    model.evaluate(inputs, {"end": ends, "start": starts}, verbose=0)
    told = "^Labels of LongformerForQuestionAnswering must be a dict by output, start, end. "
    for names in (("start_positions", "end_positions"), ("start", "end", "ends")):
        labels = dict(zip(names, (starts, ends, ends), strict=False))
        for call in (model.fit, model.evaluate):
            refused(told, call, inputs, labels)
    refused(f"{told}Received: tuple", model.fit, inputs, (starts, ends))
    refused(f"{told}Received: end_positions", model.fit, inputs, {"end_positions": ends})
    both = {"start": starts, "end": ends}
    weights_of = {"begin": np.ones(2)}
    refused("^Weights of .* Received: begin", model.fit, inputs, both, sample_weight=weights_of)


WEIGHTS = [[1, 1, -0.5, 1], [1, 1, float("nan"), 1], np.array([1, 1, np.inf, 1])]


@pytest.mark.parametrize("given", WEIGHTS, ids=["negative", "NaN", "infinite"])
def test_weights_of_examples_are_finite_and_not_negative(processor, given):
    model = text_cases.classifier(processor)
    message = r"^`sample_weight\[2\]` must be a finite number, at least 0. Received: "
    for call in (model.fit, model.evaluate):
        refused(message, call, TEXTS, NUMBERS, sample_weight=given)
    validation = TEXTS, NUMBERS, given
    refused(
        r"^`validation_data\[2\]\[2\]` must", model.fit, TEXTS, NUMBERS, validation_data=validation
    )
    batches = (x for x in [(TEXTS, NUMBERS, np.array(given))])
    refused(r"^`the weights of a batch\[2\]` must", model.evaluate, batches)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("size", [2, 1, 4, None])
def test_those_of_a_dataset_are_too(processor, size):
    model = text_cases.classifier(processor)
    message = r"^`sample_weight\[2\]` must be a finite number, at least 0. Received: "
    slices = tf.data.Dataset.from_tensor_slices((TEXTS, NUMBERS, np.array(WEIGHTS[1])))
    data = slices.batch(size) if size else slices
    for call in (model.fit, model.evaluate):
        refused(message, call, data)
    refused(message, model.fit, TEXTS, NUMBERS, validation_data=data)


@pytest.mark.slow
def test_a_dataset_may_have_none(processor):
    model = text_cases.classifier(processor)
    none = tf.data.Dataset.from_tensor_slices((TEXTS, NUMBERS)).map(lambda x, y: (x, y, None))
    wanted = model.evaluate(TEXTS, NUMBERS, verbose=0)
    np.testing.assert_allclose(model.evaluate(none, verbose=0), wanted, rtol=1e-5)


@pytest.mark.slow
def test_weights_of_labels_are_given_by_name_or_number(processor):
    words = [("neg", "pos")[x] for x in NUMBERS]
    found = []
    for given in ({0: 1.0, 1: 3.0}, {"neg": 1.0, "pos": 3}, {"pos": np.float32(3), 0: 1}):
        model = text_cases.classifier(processor, labels=["neg", "pos"])
        model.fit(TEXTS, words, class_weight=given, shuffle=False, verbose=0)
        found.append(weights(model))
    model = text_cases.classifier(processor, labels=["neg", "pos"])
    model.fit(TEXTS, words, sample_weight=[3, 1, 1, 3], shuffle=False, verbose=0)
    for of_labels in found:
        np.testing.assert_allclose(of_labels, weights(model), rtol=1e-5, atol=1e-7)


def test_weights_of_labels_beside_features_are_keras_own(processor):
    found = []
    for labels in ((), ["1", "0"]):  # The second names are not the numbers of their places.
        model = text_cases.classifier(processor, labels=labels)
        batches = (x for x in [(dict(processor(TEXTS)), np.array(NUMBERS))])
        model.fit(batches, class_weight={0: 1.0, 1: 3.0}, verbose=0)
        found.append(weights(model))
    np.testing.assert_array_equal(*found)


WRONG_WEIGHTS = {
    "an unknown name": ({"neg": 1, "pos": 1, "so": 2}, "the label 'so' is none of the 2 labels"),
    "an unknown number": ({0: 1, 1: 1, 2: 5}, "the label 2 is none of the 2 labels"),
    "two weights": ({0: 1, 1: 1, "pos": 2}, "has two weights of the label 'pos'"),
    "none": ({"pos": 2}, "must have a weight of each label; it lacks 'neg'"),
    "negative": ({0: -1, 1: 1}, "of 'neg' must be a finite number, at least 0. Received: -1"),
    "NaN": ({0: 1, 1: float("nan")}, "of 'pos' must be a finite number"),
}


@pytest.mark.parametrize(("given", "message"), WRONG_WEIGHTS.values(), ids=WRONG_WEIGHTS)
def test_weights_of_other_labels_are_told(processor, given, message):
    model = text_cases.classifier(processor, labels=["neg", "pos"])
    for labels in (NUMBERS, ["pos", "neg", "neg", "pos"]):
        refused(f"^`class_weight`.*{message}", model.fit, TEXTS, labels, class_weight=given)
    table = pandas.DataFrame({"text": TEXTS, "label": NUMBERS})
    refused(f"^`class_weight`.*{message}", model.fit, table, class_weight=given)


@pytest.mark.parametrize("is_eager", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_without_labels_nothing_is_measured(processor, is_eager):
    model = text_cases.classifier(processor)
    model.compile(run_eagerly=is_eager)
    message = "^There are no labels to compare with: give `y`, or data with labels.$"
    batches = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
    kinds = (TEXTS, batches, dict(processor(TEXTS)), (x for x in [TEXTS]))
    for given in kinds if is_eager else kinds[:1]:  # To trace the others takes as long.
        refused(message, model.evaluate, given)
    if is_eager:
        refused(message, model.fit, TEXTS, NUMBERS, validation_data=batches)
    refused(message, model.fit, TEXTS)
    assert len(model.predict(batches, verbose=0)) == len(TEXTS)


@pytest.mark.slow
def test_a_label_beyond_the_last_in_a_dataset_is_told_in_a_line(processor):
    model = text_cases.classifier(processor)
    model.compile()
    data = tf.data.Dataset.from_tensor_slices((TEXTS, [0, 1, 7, 1])).batch(2)
    refused(r"^`labels` must be at least -1 and below 2, .* from 1 to 7$", model.evaluate, data)
