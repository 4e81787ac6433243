"""Requests that are joined get the answers that they get alone."""

import threading

import numpy as np
import pytest

from etcmodel.serving.rest import Batcher, batching
from etcmodel.serving.rest.batching import joining_key
from etcmodel.serving.rest.codec import Signature, TensorInfo
from etcmodel.serving.rest.errors import RequestError
from tests.serving.rest import text_models

FOREVER = 600.0  # Seconds: a batch then runs when it is full.
STRING, INTEGER = np.dtype(object), np.dtype(np.int32)
DOUBLE = Signature(
    "double", {"x": TensorInfo(INTEGER, (None, None))}, {"y": TensorInfo(INTEGER, (None, None))}
)


class Doubling:
    """A model that keeps how many rows it was run on; the number 13 is an error."""

    def __init__(self):
        self.sizes = []

    def __call__(self, name, inputs):
        self.sizes.append(len(inputs["x"]))
        if np.any(inputs["x"] == 13):
            raise ValueError("13")
        return {"y": 2 * inputs["x"]}


def answers(batcher, requests):
    """What each request gets, all asked at the same time: a dict, or an exception."""
    futures = [
        batcher.submit(signature, inputs, len(next(iter(inputs.values()))))
        for signature, inputs in requests
    ]
    batcher.close()
    return [future.exception() or future.result() for future in futures]


def doubled(*rows):
    return DOUBLE, {"x": np.array(rows, np.int32)}


def test_requests_of_one_shape_run_as_one_batch():
    model = Doubling()
    batcher = Batcher(model, max_batch_size=4, wait_seconds=FOREVER)
    found = answers(batcher, [doubled([1]), doubled([2], [3]), doubled([4])])
    assert [x["y"].tolist() for x in found] == [[[2]], [[4], [6]], [[8]]]
    assert model.sizes == [4]


def test_requests_without_rows_share_a_batch_and_get_no_rows():
    none = DOUBLE, {"x": np.zeros([0, 1], np.int32)}
    batcher = Batcher(Doubling(), max_batch_size=1, wait_seconds=FOREVER)
    found = answers(batcher, [none, none, doubled([4])])
    assert [x["y"].tolist() for x in found] == [[], [], [[8]]]


def test_requests_of_other_shapes_do_not():
    model = Doubling()
    batcher = Batcher(model, max_batch_size=2, wait_seconds=FOREVER)
    found = answers(batcher, [doubled([1]), doubled([1, 2, 0]), doubled([3]), doubled([3, 4, 0])])
    assert [x["y"].tolist() for x in found] == [[[2]], [[2, 4, 0]], [[6]], [[6, 8, 0]]]
    assert model.sizes == [2, 2]


WRITING = Signature(
    "write", {"text": TensorInfo(STRING, (None,))}, {"y": TensorInfo(STRING, (None,))}
)


def written(*texts):
    return WRITING, {"text": np.array([text.encode() for text in texts], object)}


class Writing:
    """A model that puts a mark behind each text, and keeps how long the texts of a batch were."""

    def __init__(self):
        self.lengths = []

    def __call__(self, name, inputs):
        self.lengths.append([len(text) for text in inputs["text"]])
        return {"y": np.array([text + b"!" for text in inputs["text"]], object)}


def test_long_texts_do_not_share_a_batch_with_short_ones():
    """A batch is padded to its longest text, which would make the others as slow as itself."""
    model, started, go = Writing(), threading.Event(), threading.Event()

    def run(name, inputs):
        started.set()
        go.wait()
        return model(name, inputs)

    batcher = Batcher(run, max_batch_size=8)
    texts = ["first", "a" * 9000, "b" * 30, "c" * 8000, "d" * 60, "e" * 3000]
    futures = [batcher.submit(*written(texts[0]), 1)]
    started.wait()
    futures += [batcher.submit(*written(text), 1) for text in texts[1:]]
    go.set()
    found = [future.result()["y"].tolist() for future in futures]
    batcher.close()
    assert found == [[text.encode() + b"!"] for text in texts]
    assert model.lengths == [[5], [9000, 8000], [30, 60], [3000]]


def test_a_request_of_unequal_texts_runs_in_parts_and_is_answered_in_its_order():
    model = Writing()
    texts = ["b" * 30, "a" * 9000, "d" * 60, "c" * 8000]
    batcher = Batcher(model)
    found = batcher(*written(*texts), 4)
    alike = batcher(*written(*texts[::-2]), 2)
    batcher.close()
    assert found["y"].tolist() == [text.encode() + b"!" for text in texts]
    assert alike["y"].tolist() == [text.encode() + b"!" for text in texts[::-2]]
    assert model.lengths == [[9000, 8000], [30, 60], [8000, 9000]]


def test_others_come_between_the_parts_of_a_request_that_is_larger_than_a_batch():
    order, others = [], []

    def run(name, inputs):
        order.append(inputs["x"][:, 0].tolist())
        if len(order) == 1:
            others.append(batcher.submit(*doubled([9, 9]), 1))
        return {"y": 2 * inputs["x"]}

    batcher = Batcher(run, max_batch_size=2)
    found = batcher(*doubled([1], [2], [3], [4], [5]), 5)
    assert found["y"].tolist() == [[2], [4], [6], [8], [10]]
    assert order == [[1, 2], [9], [3, 4], [5]]
    assert others[0].result()["y"].tolist() == [[18, 18]]
    batcher.close()


def test_what_a_client_that_has_gone_asked_for_is_dropped():
    model, has_gone = Doubling(), threading.Event()

    def run(name, inputs):
        has_gone.set()
        return model(name, inputs)

    batcher = Batcher(run, max_batch_size=1)
    with batching.watched(has_gone.is_set), pytest.raises(RequestError, match="gone") as error:
        batcher(*doubled([1], [2], [3]), 3)
    assert error.value.status == 499 and model.sizes == [1]
    busy, release = threading.Event(), threading.Event()

    def wait(name, inputs):
        busy.set()
        release.wait()
        return model(name, inputs)

    waiting = Batcher(wait)
    first = waiting.submit(*doubled([1]), 1)
    busy.wait()
    with batching.watched(lambda: True), pytest.raises(RequestError, match="gone"):
        waiting(*doubled([2]), 1)
    release.set()
    assert first.result()["y"] == 2
    waiting.close()
    batcher.close()
    assert model.sizes == [1, 1]


def test_an_error_of_one_is_not_its_neighbors():
    model = Doubling()
    batcher = Batcher(model, max_batch_size=3, wait_seconds=FOREVER)
    first, wrong, last = answers(batcher, [doubled([1]), doubled([13]), doubled([2])])
    assert first["y"] == 2 and last["y"] == 4 and str(wrong) == "13"
    assert model.sizes == [3, 1, 1, 1]


def test_generated_sequences_are_never_joined():
    outputs = {"sequences": TensorInfo(INTEGER, (None, None))}
    inputs = {"input_ids": TensorInfo(INTEGER, (None, None))}
    signature = Signature("generate", inputs, outputs)
    assert joining_key(signature, {"input_ids": np.ones([1, 3], np.int32)}) is None


def test_requests_whose_rows_cannot_be_told_apart_run_by_themselves():
    sizes = []

    def twice(name, inputs):
        sizes.append(len(inputs["x"]))
        return {"y": np.repeat(inputs["x"], 2, axis=0)}

    batcher = Batcher(twice, max_batch_size=2, wait_seconds=FOREVER)
    first, second = answers(batcher, [doubled([7]), doubled([8])])
    assert (first["y"].tolist(), second["y"].tolist()) == ([[7], [7]], [[8], [8]])
    assert sizes == [2, 1, 1]


def alike(name, inputs):
    """How alike any two rows are: a second axis of examples."""
    return {"y": inputs["x"] @ inputs["x"].T}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_request_whose_rows_depend_on_each_other_is_not_parted(size):
    batcher = Batcher(alike, max_batch_size=size)
    signature, inputs = doubled([1, 0, 2], [0, 3, 4], [5, 6, 7], [8, 9, 1])
    found = batcher(signature, inputs, 4)
    np.testing.assert_array_equal(found["y"], inputs["x"] @ inputs["x"].T)
    batcher.close()


def test_what_is_of_all_rows_is_of_the_whole_request():
    def total(name, inputs):
        return {"y": np.stack([inputs["x"].sum(axis=0)] * 2)}

    batcher = Batcher(total, max_batch_size=2)
    signature, inputs = doubled([1, 2, 3], [4, 5, 6], [7, 8, 9])
    assert batcher(signature, inputs, 3)["y"].tolist() == [[12, 15, 18]] * 2
    batcher.close()


def test_joined_requests_get_nothing_of_each_other():
    batcher = Batcher(alike, max_batch_size=2, wait_seconds=FOREVER)
    found = answers(batcher, [doubled([1, 0, 2]), doubled([0, 3, 4])])
    assert [x["y"].tolist() for x in found] == [[[5]], [[25]]]


def test_a_request_larger_than_a_batch_runs_alone():
    model = Doubling()
    batcher = Batcher(model, max_batch_size=2, wait_seconds=FOREVER)
    (found,) = answers(batcher, [doubled([1], [2], [3])])
    assert found["y"].tolist() == [[2], [4], [6]] and model.sizes == [3]


def test_closing_runs_what_is_pending_and_then_takes_no_more():
    model = Doubling()
    batcher = Batcher(model, max_batch_size=9, wait_seconds=FOREVER)
    signature, inputs = doubled([1])
    pending = batcher.submit(signature, inputs, 1)
    batcher.close()
    assert pending.result()["y"] == 2
    with pytest.raises(RuntimeError, match="closed"):
        batcher(signature, inputs, 1)


def test_joined_texts_get_the_answers_that_they_get_alone(models):
    rows = [
        ["It is 88 km long."],
        ["No. Nothing. At all.", "7 bridges. 3 boats", "x"],
        [""],
        ["a.b.c.d.e 1", "2"],
    ]
    model = models["answer"]
    signature = model.signatures["answer"]
    requests = [
        (signature, {"question": bytes_of([""]), "documents": bytes_of([documents])})
        for documents in rows
    ]
    joined = answers(Batcher(model, max_batch_size=4, wait_seconds=FOREVER), requests)
    for documents, request, found in zip(rows, requests, joined, strict=True):
        (alone,) = answers(Batcher(model, max_batch_size=1), [request])
        assert found.keys() == alone.keys()
        for name, value in alone.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
        names = ("answer", "document", "start", "end")
        text, *place = (found[name][0] for name in names)
        assert (text.decode(), *place) == text_models.answer_of(documents)
        assert found["evidence"].shape[1] == len(text_models.sentences_of(documents))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_parts_of_a_request_give_the_answers_of_the_whole(models, size):
    rows = [["It is 88 km long. x. y."], ["no"], ["7 bridges"], ["a.b.c.d.e 1"]]
    model = models["answer"]
    inputs = {"question": bytes_of([""] * 4), "documents": bytes_of(rows)}
    request = model.signatures["answer"], inputs, 4
    whole, parts = Batcher(model), Batcher(model, max_batch_size=size)
    expected, found = whole(*request), parts(*request)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    whole.close()
    parts.close()


def bytes_of(values):
    rows = [[x.encode() for x in row] if isinstance(row, list) else row.encode() for row in values]
    return np.array(rows, object)


def test_texts_whose_outputs_would_show_their_neighbors_are_not_joined(models):
    signatures = models["answer"].signatures
    inputs = {"question": bytes_of([""]), "documents": bytes_of([["a"]])}
    assert joining_key(signatures["answer"], inputs) == ("answer", (2, ()))
    assert joining_key(signatures["attention"], inputs) is None
    assert joining_key(signatures["answer"], {**inputs, "documents": bytes_of([["a", "b"]])}) == (
        joining_key(signatures["answer"], inputs)
    )


def test_what_has_no_batches_is_not_joined():
    scalar = Signature("f", {"x": TensorInfo(INTEGER, ())}, {"y": TensorInfo(INTEGER, ())})
    assert joining_key(scalar, {"x": np.int32(1)}) is None
    fixed = Signature("f", {"x": TensorInfo(INTEGER, (1, None))}, {"y": TensorInfo(INTEGER, (1,))})
    assert joining_key(fixed, {"x": np.zeros([1, 2], np.int32)}) is None
