"""A labelled table and `fit`: words become labels, rows become batches, and come back as words."""

import json

import numpy as np
import pandas
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel import serving
from etcmodel.models import longformer
from etcmodel.models.gmat import GmatConfig, GmatForSequenceClassification
from tests.models import etcs, text_cases

TEXTS = ["a b. c d.", "the wey.", "e", "long f g h i? j.", "k l m"]
WORDS = ["pos", "neg", "neg", "pos", "neg"]  # In the order of `in_order`: neg 0, pos 1.
NUMBERS = np.array([1, 0, 0, 1, 0])
FRAME = pandas.DataFrame({"review": TEXTS, "stars": WORDS, "day": range(5)})
NAMED = {"text": "review", "label": "stars"}


@pytest.fixture(name="processor", scope="module")
def make_processor(tmp_path_factory):
    return text_cases.processor(tmp_path_factory.mktemp("texts"), relation_names=())


@pytest.fixture(name="model", scope="module")
def model_of_no_training(processor):
    return text_cases.classifier(processor)


@pytest.fixture(name="folder", scope="module")
def make_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    FRAME.to_csv(folder / "reviews.csv", index=False)
    (folder / "reviews.jsonl").write_text(
        "\n".join(json.dumps({"text": x, "label": y}) for x, y in zip(TEXTS, WORDS, strict=True))
    )
    return folder


def weights(model):
    return np.concatenate([x.ravel() for x in model.get_weights()])


@pytest.fixture(name="trained", scope="module")
def trained_on_features(processor):
    """The weights after an epoch on features and numbers, three rows a batch, in their order."""
    model = text_cases.classifier(processor)
    for rows in (slice(3), slice(3, 5)):
        model.train_on_batch(dict(processor(TEXTS[rows])), NUMBERS[rows])
    return weights(model)


GIVEN = {
    "csv": lambda folder: {"x": folder / "reviews.csv", **NAMED},
    "str": lambda folder: {"x": str(folder / "reviews.csv"), **NAMED},
    "json lines": lambda folder: {"x": folder / "reviews.jsonl"},
    "frame": lambda folder: {"x": FRAME, **NAMED},
    "rows": lambda folder: {"x": FRAME.to_dict("records"), **NAMED},
    "series": lambda folder: {"x": FRAME["review"], "y": FRAME["stars"]},
    "lists": lambda folder: {"x": TEXTS, "y": WORDS},
    "tensors": lambda folder: {"x": tf.data.Dataset.from_tensor_slices((TEXTS, WORDS)).batch(3)},
    "sequence": lambda folder: {"x": Batches()},
    "generator": lambda folder: {"x": (Batches()[number] for number in range(2))},
}


class Batches(tf_keras.utils.Sequence):
    def __len__(self):
        return 2

    def __getitem__(self, number):
        rows = slice(3 * number, 3 * number + 3)
        return TEXTS[rows], WORDS[rows]


class Whole(tf_keras.utils.Sequence):
    def __len__(self):
        return 1

    def __getitem__(self, number):
        return TEXTS, WORDS


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVEN)
def test_training_on_words_is_that_on_features_and_numbers(processor, folder, trained, name):
    given = GIVEN[name](folder)
    of_batches = name in ("sequence", "generator", "tensors")
    model = text_cases.classifier(processor, labels=["neg", "pos"] if of_batches else ())
    batch = {} if of_batches else {"batch_size": 3}
    model.fit(**given, **batch, shuffle=False, verbose=0)
    assert model.labels == ("neg", "pos")
    np.testing.assert_allclose(weights(model), trained, rtol=1e-4, atol=1e-6)


def test_it_is_evaluated_and_predicted_by_the_same_labels(processor, folder):
    model, wanted = text_cases.classifier(processor, labels=["pos", "neg"]), 1 - NUMBERS
    features = dict(processor(TEXTS))
    expected = model.evaluate(features, wanted, verbose=0)
    path = folder / "reviews.csv"
    np.testing.assert_allclose(model.evaluate(path, **NAMED, verbose=0), expected, rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(TEXTS, WORDS, verbose=0), expected, rtol=1e-5)
    model.optimizer.learning_rate = 0.0
    for given in (FRAME, (TEXTS, WORDS), Whole()):
        found = model.fit(FRAME, **NAMED, validation_data=given, verbose=0).history
        np.testing.assert_allclose([found["val_loss"][0], *expected[1:]], expected, rtol=1e-5)
    logits = model.predict(features, verbose=0)
    np.testing.assert_allclose(model.predict(path, text="review", verbose=0), logits, atol=1e-5)
    np.testing.assert_allclose(model(path.with_suffix(".jsonl")), logits, atol=1e-5)
    np.testing.assert_allclose(model(TEXTS), logits, atol=1e-5)
    names = [model.labels[number] for number in logits.argmax(-1)]
    assert model.predict(TEXTS, verbose=0, as_labels=True) == names


@pytest.mark.slow
def test_several_labels_and_numbers_are_words_of_tables_too(processor, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\na,x|y\nb,""\nc,y\n')
    several = text_cases.classifier(processor, multi_label=True)
    with pytest.raises(ValueError, match="line 3: the label `label` is missing"):
        several.fit(path, verbose=0)
    rows = [
        {"text": "a", "label": ["x", "y"]},
        {"text": "b", "label": []},
        {"text": "c", "label": "y"},
    ]
    several.fit(rows, verbose=0)
    assert several.labels == ("x", "y")
    flags = np.array([[1, 1], [0, 0], [0, 1]])
    expected = several.evaluate(dict(processor(list("abc"))), flags, verbose=0)
    np.testing.assert_allclose(several.evaluate(rows, verbose=0), expected, rtol=1e-5)
    logits = several.predict(list("abc"), verbose=0)
    names = [tuple(x for x, y in zip("xy", row, strict=True) if y > 0) for row in logits]
    assert several.predict(list("abc"), verbose=0, as_labels=True) == names
    # Stars from 1 to 2, and numbers as they are.
    path.write_text("text,label\na,1\nb,2\n")
    stars = text_cases.classifier(processor)
    stars.fit(path, verbose=0)
    assert stars.labels == ("1", "2")
    path.write_text("text,label\na,1\nb,0\n")
    plain = text_cases.classifier(processor)
    plain.fit(path, verbose=0)
    assert plain.labels == ("0", "1")
    # As names they are in lists, too, and in datasets; and they stay so.
    wanted = stars.evaluate(dict(processor(["a", "b"])), np.array([0, 1]), verbose=0)
    pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2])).batch(2)
    for given in ((["a", "b"], [1, 2]), (["a", "b"], pandas.Series([1, 2])), (pairs,)):
        np.testing.assert_allclose(stars.evaluate(*given, verbose=0), wanted, rtol=1e-5)
    with pytest.raises(ValueError, match="line 3: `label` '0' is none of the 2 labels: '1', '2'"):
        stars.evaluate(path, verbose=0)
    numbers = processor.dataset([{"text": "a", "label": 1}], 1, label="label")
    named = processor.dataset(rows[2:], 1, label="label", labels=["y", "x"])
    for given in (numbers, named):
        with pytest.raises(ValueError, match="labels of the dataset are not those of the model"):
            stars.evaluate(given, verbose=0)


def test_a_batch_of_texts_is_trained_on_and_measured(processor):
    features, weights = dict(processor(TEXTS)), np.array([1.0, 0, 2, 1, 1])
    ways = []
    for x, y in ((TEXTS, WORDS), (features, NUMBERS)):
        model = text_cases.classifier(processor, labels=["neg", "pos"])
        ways.append(
            [
                *model.train_on_batch(x, y, weights, {0: 0.5, 1: 2.0}),
                *model.test_on_batch(x, y, weights),
                *model.predict_on_batch(x).ravel(),
            ]
        )
    np.testing.assert_allclose(*ways, rtol=1e-4, atol=1e-6)
    named = text_cases.classifier(processor)
    named.train_on_batch(np.array(TEXTS), WORDS, class_weight={"neg": 1.0, "pos": 2.0})
    assert named.labels == ("neg", "pos")
    with pytest.raises(ValueError, match=r"`sample_weight\[1\]` must be a finite number"):
        named.test_on_batch(TEXTS, WORDS, weights - [0, 1, 0, 0, 0])


def test_an_etc_predicts_numbers_of_tables(processor, tmp_path):
    rows = [{"text": "a", "label": 0.5}, {"text": "b", "label": -2}, {"text": "c d", "label": 3}]
    texts, numbers = [row["text"] for row in rows], np.array([row["label"] for row in rows])
    config = text_cases.config(processor, num_hidden_layers=1, **etcs.NO_DROPOUT)
    settings = {"num_labels": 1, "problem_type": "regression"}
    model = etcmodel.EtcForSequenceClassification(config, **settings)
    model.processor = processor
    model.compile(run_eagerly=True)
    found = model.predict(texts, verbose=0)
    loss = model.evaluate(rows, verbose=0)
    np.testing.assert_allclose(loss, np.mean((found[:, 0] - numbers) ** 2), rtol=1e-5)
    model.fit(rows, verbose=0)
    assert model.evaluate(rows, verbose=0) < loss and model.labels == ()
    model.save_pretrained(tmp_path / "folder")
    same = etcmodel.from_pretrained(tmp_path / "folder")
    assert same.problem_type == "regression"
    found = model.predict(texts, verbose=0)
    np.testing.assert_allclose(same.predict(texts, verbose=0), found, atol=1e-6)
    with pytest.raises(ValueError, match="predicts numbers has no probabilities of labels"):
        serving.export_text_model(model, str(tmp_path / "export"))
    with pytest.raises(ValueError, match="`labels` must be a sequence of names. Received: 'xy'"):
        etcmodel.EtcForSequenceClassification(config, labels="xy")
    with pytest.raises(ValueError, match="`multi_label` True contradicts `problem_type`"):
        etcmodel.EtcForSequenceClassification(config, multi_label=True, **settings)


def test_several_numbers_of_a_text_are_as_many_as_the_model_predicts(processor):
    numbers = np.array([[1.0, -1], [0, 2], [3, 0.5], [0, 0], [1, 1]])
    model = text_cases.classifier(processor, num_labels=2, problem_type="regression")
    found = model.predict(TEXTS, verbose=0)
    loss = model.evaluate(TEXTS, numbers, verbose=0)
    np.testing.assert_allclose(loss, np.mean((found - numbers) ** 2), rtol=1e-5)
    with pytest.raises(ValueError, match=r"`y\[0\]` must be a list of 2 finite numbers.*: 1.0"):
        model.fit(TEXTS, numbers[:, 0], verbose=0)
    features = dict(processor(TEXTS))
    for call in (model.fit, model.evaluate, model.train_on_batch):
        with pytest.raises(ValueError, match=r"`labels` must have shape \[5, 2\].* shape: \[5"):
            call(features, numbers[:, 0])
    unknown = tf.data.Dataset.from_generator(
        lambda: iter([(features, numbers[:, :1])]),
        output_signature=(
            {x: tf.TensorSpec([None, None], tf.int32) for x in features},
            tf.TensorSpec([None, None]),
        ),
    )
    model.compile()  # As a graph, where Keras would compare both outputs with the one number.
    with pytest.raises(ValueError, match=r"`labels` must have shape \[., 2\].* shape: \[?5 1"):
        model.fit(unknown, verbose=0)
    one = text_cases.classifier(processor, problem_type="regression")
    assert one.num_labels == 1
    with pytest.raises(ValueError, match=r"`labels` must have shape \[5, 1\].* shape: \[5, 2\]"):
        one.fit(features, numbers, verbose=0)


def small(make, processor, **entries):
    sizes = {"vocab_size": len(processor.vocabulary), **etcs.sizes(intermediate_size=8)}
    return make(**{**sizes, **entries})


@pytest.mark.slow
def test_other_systems_read_tables_by_their_own_processors(processor):
    window = {"attention_window": 4, "max_position_embeddings": 100}
    chunks = {"chunk_size": 8, "num_memory_tokens": 2}
    cases = (
        (
            longformer.LongformerForSequenceClassification,
            small(longformer.LongformerConfig, processor, **window),
            etcmodel.LongformerProcessor(processor),
        ),
        (
            GmatForSequenceClassification,
            small(GmatConfig, processor, **chunks),
            etcmodel.GmatProcessor(processor),
        ),
    )
    for make, config, own in cases:
        model = make(config, problem_type="regression", num_labels=1)
        model.compile(run_eagerly=True)
        for model.processor in (own, processor):
            frame = FRAME.assign(stars=["0.5", "1", "-2", "0", "3"])
            found = model.evaluate(frame, **NAMED, batch_size=2, verbose=0)
            logits = model.predict(TEXTS, verbose=0)[:, 0]
            squares = (logits - [0.5, 1, -2, 0, 3]) ** 2
            np.testing.assert_allclose(found, squares.mean(), rtol=1e-4)
        dataset = own.dataset(frame, 2, **NAMED, shuffle=False)
        assert [y.tolist() for _, y in dataset.as_numpy_iterator()] == [[0.5, 1], [-2, 0], [3]]


def test_a_file_sorted_by_label_is_mixed_anew_each_epoch(model, processor):
    rows = [{"text": "a", "label": int(n >= 50)} for n in range(100)]
    dataset = processor.dataset(rows, 10, label="label")
    epochs = [np.concatenate([y for _, y in dataset.as_numpy_iterator()]) for _ in range(2)]
    assert epochs[0].tolist() != epochs[1].tolist()
    for labels in epochs:
        assert labels.sum() == 50 and 2 < labels[:20].sum() < 18
    again = processor.dataset(rows, 10, label="label")
    assert np.concatenate([y for _, y in again.as_numpy_iterator()]).tolist() == epochs[0].tolist()
    with pytest.raises(
        ValueError, match="The dataset is shuffled, .* make it with `shuffle=False`"
    ):
        model.predict(dataset, verbose=0)


@pytest.mark.slow
def test_the_names_are_kept_with_the_model(processor, tmp_path):
    model = text_cases.classifier(processor, labels=["neg", "neutral", "pos"])
    assert model.num_labels == 3
    model.save_pretrained(tmp_path / "a")
    loaded = etcmodel.load_pretrained(tmp_path / "a")
    assert loaded.labels == ("neg", "neutral", "pos")
    assert loaded.predict(TEXTS, verbose=0, as_labels=True) == [
        model.labels[x] for x in model(TEXTS).numpy().argmax(-1)
    ]
    fresh = etcmodel.EtcForSequenceClassification.from_pretrained(
        tmp_path / "a", labels=["a", "b", "c"]
    )
    assert fresh.labels == ("a", "b", "c")
    model.save(tmp_path / "a.keras")
    assert tf_keras.models.load_model(tmp_path / "a.keras").labels == model.labels


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        (
            {},
            {"x": FRAME, "text": "review"},
            r"examples\[0\] has no label `label`. There is: 'stars'",
        ),
        ({}, {"x": FRAME, "text": "body"}, r"has no `body`, the `text`. It has: `review`"),
        ({}, {"x": FRAME, "y": NUMBERS, **NAMED}, "leave out `y` and `sample_weight`"),
        ({}, {"x": TEXTS, "y": NUMBERS, **NAMED}, "has no columns, but they are named: text='re"),
        (
            {"num_labels": 3},
            {"x": FRAME, **NAMED},
            "there are 2 labels, neg, pos, and the model has 3",
        ),
        (
            {"labels": ["a", "pos"]},
            {"x": FRAME, **NAMED},
            r"examples\[1\]: `stars` 'neg' is none of",
        ),
        ({"labels": ["a", "pos"]}, {"x": TEXTS, "y": WORDS}, r"`y\[1\]` 'neg' is none of the 2"),
        ({}, {"x": "no_such.csv"}, "no_such.csv"),
        (
            {},
            {"x": "no_such_folder"},
            "There is no file or folder 'no_such_folder'. A text goes in",
        ),
        ({"labels": ["a", "a"]}, {}, "`labels` must be different"),
        ({"labels": ["a"], "num_labels": 2}, {}, "`labels` must be as many as `num_labels`, 2"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(model, processor, settings, given, message):
    with pytest.raises((ValueError, OSError), match=message) as raised:
        model = text_cases.classifier(processor, **settings) if settings else model
        model.fit(**given, verbose=0)
    assert "\n" not in str(raised.value)


def test_a_later_row_that_cannot_be_is_told_in_a_line(model, processor):
    rows = [{"text": "a", "label": x} for x in (0, 1, 0, 5)]
    dataset = processor.dataset(
        rows[:3] + [{"text": "a", "label": "x"}], 2, label="label", shuffle=False
    )
    for given in (rows, dataset):
        with pytest.raises(ValueError, match=r"^examples\[3\]: .*") as raised:
            model.evaluate(given, verbose=0)
        assert "\n" not in str(raised.value)
    with pytest.raises(
        ValueError, match="must be a whole number below 2, since the labels have no"
    ):
        model.evaluate(TEXTS, WORDS, verbose=0)
    for path in ("data/tset", "my reviws.csv"):
        with pytest.raises(ValueError, match=rf"There is no file or folder '{path}'"):
            model.predict(path, verbose=0)
    words = tf.data.Dataset.from_tensor_slices((TEXTS, WORDS))
    with pytest.raises(ValueError, match="are words: make the model with `labels`, all of them"):
        model.fit(words, verbose=0)
    with pytest.raises(ValueError, match="The model has no names of its labels: train it on words"):
        model.predict(TEXTS, as_labels=True, verbose=0)
    with pytest.raises(ValueError, match="`labels` must be as many as `num_labels`, 2"):
        model.labels = ["a", "b", "c"]


def test_a_head_that_learns_no_labels_of_texts_says_what_to_give(processor):
    config = text_cases.config(processor, num_hidden_layers=1)
    model = etcmodel.EtcForTokenClassification(config, labels=["o", "b", "i"])
    model.compile(run_eagerly=True)
    model.processor = processor
    with pytest.raises(ValueError, match=r"learns no labels of texts: give `processor.dataset"):
        model.fit(FRAME, **NAMED, verbose=0)
    found = model.predict(TEXTS[:2], as_labels=True, verbose=0)
    logits = model(TEXTS[:2]).numpy()
    assert found == [[model.labels[x] for x in row] for row in logits.argmax(-1)]
    assert tf.is_tensor(model(TEXTS[0]))
    with pytest.raises(ValueError, match="Texts cannot be read within a graph: export the model"):
        tf.function(model).get_concrete_function(tf.TensorSpec([None], tf.string))


NOT_TEXTS = {
    "a missing one": ([*TEXTS[:2], None], r"The example 2, counted .* Received: None"),
    "missing ones alone": ([None], r"The example 0, counted .* Received: None"),
    "a Series of missing ones": (
        pandas.Series([float("nan")] * 2),
        r"The example 0, counted .* Received: nan",
    ),
    "numpy": (np.array(["a", None], object), r"The example 1, .* Received: None"),
    "a Series": (pandas.Series(["a", float("nan")]), r"The example 1, .* Received: nan"),
    "bytes": ([b"a", b"b"], r"The example 0, .* Received: b'a'"),
    "lists": ([["a"], ["b"]], r"The example 0, .* Received: \['a'\]"),
    "pairs": ([("a", "b"), ("c", "d")], r"The example 0, .* Received: \('a', 'b'\)"),
    "a row": ([{"text": "a"}, None], r"The example 1, .* Received: None"),
    "none": ([], "There are no examples: the list is empty"),
    "an empty Series": (
        pandas.Series([], dtype=object),
        "There are no examples: the list is empty",
    ),
}


@pytest.mark.parametrize("given", NOT_TEXTS)
def test_what_is_no_text_among_texts_is_told_by_its_number(model, given):
    texts, problem = NOT_TEXTS[given]
    with pytest.raises(ValueError, match=problem):
        model.predict(texts, verbose=0)
    with pytest.raises(ValueError, match=problem):
        model.fit(texts, NUMBERS[: len(texts)], verbose=0)


@pytest.mark.parametrize("names", [(1, 2), (0, 5)])
def test_whole_numbers_beside_texts_are_labels_as_they_are_in_a_table(processor, names):
    numbered, tabled = text_cases.classifier(processor), text_cases.classifier(processor)
    given = np.array(names)[NUMBERS]
    numbered.fit(TEXTS, given, verbose=0)
    tabled.fit(FRAME.assign(stars=given), **NAMED, verbose=0)
    assert numbered.labels == tabled.labels
    assert numbered.labels == tuple(map(str, names))
    np.testing.assert_allclose(weights(numbered), weights(tabled), atol=1e-6)
    assert numbered.evaluate(TEXTS, given, verbose=0) == numbered.evaluate(
        FRAME.assign(stars=given), **NAMED, verbose=0
    )


CONTAINERS = {
    "integers of NumPy": lambda given: list(np.array(given)),
    "floats": lambda given: np.array(given, np.float32),
    "a tensor": tf.constant,
    "a Series": pandas.Series,
}


@pytest.mark.slow
def test_names_are_the_same_in_whatever_they_come(processor):
    given = [(1, 2)[x] for x in NUMBERS]
    told = text_cases.classifier(processor, labels=("1", "2")).evaluate(TEXTS, given, verbose=0)
    for container in CONTAINERS.values():
        model = text_cases.classifier(processor)
        model.optimizer.learning_rate = 0.0
        model.fit(TEXTS, container(given), verbose=0)
        assert model.labels == ("1", "2")
        assert model.evaluate(TEXTS, container(given), verbose=0) == told


def test_names_below_zero_are_names(processor):
    model = text_cases.classifier(processor)
    given = np.array([(-1, 1)[x] for x in NUMBERS])
    with pytest.raises(ValueError, match="`y` has -1, which may be a label of its own or none"):
        model.fit(TEXTS, given, verbose=0)
    model.fit(FRAME.assign(stars=given), **NAMED, verbose=0)
    assert model.labels == ("-1", "1")
    told = model.evaluate(FRAME.assign(stars=given), **NAMED, verbose=0)
    assert model.evaluate(TEXTS, given, verbose=0) == told
    with pytest.raises(ValueError, match=r"`y\[0\]` 0 is none of the 2 labels"):
        model.evaluate(TEXTS, [0] * len(TEXTS), verbose=0)


def test_without_a_name_a_label_of_minus_one_does_not_count(processor):
    model = text_cases.classifier(processor)
    loss, _ = model.evaluate(TEXTS[:2], np.array([1, -1]), verbose=0)
    alone, _ = model.evaluate(TEXTS[:1], np.array([1]), verbose=0)
    model.fit(TEXTS[:3], np.array([1, -1, 0]), verbose=0)
    np.testing.assert_allclose(2 * loss, alone, rtol=1e-5)
    assert not model.labels
