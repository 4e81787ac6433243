"""What a request asks for is counted before the model sees it, and refused if it is too much."""

import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.serving import rest
from etcmodel.serving.rest.codec import PredictRequest
from etcmodel.serving.rest.signatures import Signature
from etcmodel.serving.rest.work import Windows, measured
from tests.serving.rest import clients


def request_of(num_rows=1, **inputs):
    arrays = {}
    for name, value in inputs.items():
        is_text = not isinstance(value, np.generic | np.ndarray)
        arrays[name] = np.array(value, object if is_text else None)
    return PredictRequest(Signature("f", {}, {}), arrays, False, num_rows)


@pytest.mark.parametrize(
    ("text", "num_tokens"),
    [
        ("", 0),
        (" \n\t ", 0),
        ("It is old.", 4),
        ("wonderful", 3),
        ("88 km/h", 4),
        ("水は青い", 4),
        ("river水", 3),
        ("한국어", 3),
        ("été Straße", 3),
        ("🙂🙂", 2),
        ("_a_", 1),
        ("...", 3),
    ],
)
def test_tokens_of_a_text(text, num_tokens):
    assert measured(request_of(text=[text.encode()])) == (num_tokens, 1)


def test_texts_of_an_example_are_counted_together_and_bytes_that_are_no_text_too():
    documents = [[b"a b", b"c"], [b"d", b""]]
    assert measured(request_of(2, question=[b"x", b"y z"], documents=documents)) == (7, 2)
    assert measured(request_of(text=[b"a \xff b"])) == (3, 1)
    assert measured(request_of(question=[b"x"], documents=np.zeros([1, 0], object))) == (1, 1)


def test_inputs_of_numbers_have_as_many_tokens_as_the_longest():
    ids, pairs = np.zeros([3, 8], np.int32), np.zeros([3, 8, 40], np.int32)
    request = request_of(3, token_ids=ids, pairs=pairs, global_ids=ids[:, :2])
    assert measured(request) == (24, 3)
    assert measured(request_of(x=np.int32(3))) == (0, 1)


def test_tokens_to_generate_are_counted():
    scalars = {"max_length": np.int32(100), "num_beams": np.int32(4), "min_length": np.int32(7)}
    request = request_of(input_ids=np.zeros([2, 10], np.int32), **scalars)
    assert measured(request) == (20 + 2 * 100 * 4, 2)
    endless = {"max_length": np.int32(2**31 - 1), "num_beams": np.int32(2**31 - 1)}
    tokens, _ = measured(request_of(input_ids=np.zeros([64, 1], np.int32), **endless))
    assert tokens == 64 + 64 * (2**31 - 1) ** 2


def test_tokens_of_serialized_examples_are_their_ids():
    def example(**sizes):
        made = tf.train.Example()
        for name, size in sizes.items():
            made.features.feature[name].int64_list.value.extend([1] * size)
        return made.SerializeToString()

    examples = [
        example(token_ids=9, relative_ids=99, global_token_ids=2),
        example(other=5),
        b"\xff",
    ]
    assert measured(request_of(3, examples=examples)) == (14, 3)


def test_windows_are_as_many_as_a_text_has():
    windows = Windows(length=10, stride=4)
    texts = [b"a " * size for size in (0, 10, 11, 16, 17)]
    assert measured(request_of(5, text=texts), windows) == (54, 1 + 1 + 2 + 2 + 3)


def test_windows_are_no_fewer_than_sentences_and_documents_need():
    windows = Windows(length=100, stride=4, global_length=3)
    assert measured(request_of(text=[b"a. b! c? d.\ne"]), windows) == (9, 2)
    documents = [[b"a.", b"b.", b"c.", b"d. e."]]
    assert measured(request_of(documents=documents), windows)[1] == 2


@pytest.mark.parametrize("text", ["a b c d " * 50, "a. b. c. d. " * 20, "ab? cd " * 40])
def test_windows_are_about_those_of_a_processor(text, tmp_path):
    words = "[PAD] [UNK] [CLS] [SEP] a b c d ab cd . ?"
    (tmp_path / "vocab.txt").write_text("\n".join(words.split(" ")))
    processor = etcmodel.EtcProcessor(
        str(tmp_path / "vocab.txt"), max_long_len=24, max_global_len=8, stride=6
    )
    num_rows = len(processor([text])["token_ids"])
    _, about = measured(request_of(text=[text.encode()]), Windows(24, 6, 8))
    assert num_rows / 2 < about < 2 * num_rows


class Counting:
    """A model's runs, counted."""

    def __init__(self, model):
        self._model, self.num_runs = model, 0

    def __getattr__(self, name):
        return getattr(self._model, name)

    def __call__(self, *arguments):
        self.num_runs += 1
        return self._model(*arguments)


def instances(*texts):
    return {"instances": [{"question": "How long?", "documents": [text]} for text in texts]}


def test_four_hundred_thousand_words_are_refused_before_the_model_is_asked(models):
    model = Counting(models["answer"])
    with clients.running(model) as server:
        client = clients.Client(server)
        status, answer = client.predict(instances("word " * 400_000))
        assert status == 413 and answer["error"] == (
            "A request may have 131072 tokens. Received: about 400003; send several requests, or "
            "start the server with a higher --max_request_tokens."
        )
        assert model.num_runs == 0
        assert client.predict(instances("It is 88 km long."))[0] == 200 and model.num_runs == 1
        client.close()


def test_the_flags_limits_are_told(models):
    model = models["answer"]
    body = json.dumps(instances("It is 88 km long.", "x")).encode()
    for limits, message in (
        ({"max_tokens": 12}, "12 tokens. Received: about 13; .* --max_request_tokens"),
        ({"max_windows": 1}, "1 windows. Received: about 2; .* --max_request_windows"),
        ({"max_rows": 1}, "1 examples. Received: 2; .* --max_rows"),
    ):
        application = rest.Application(model, None, **limits)
        response = application("POST", clients.PREDICT, body)
        assert response.status == 413
        with pytest.raises(AssertionError, match=message):
            raise AssertionError(json.loads(response.body)["error"])
