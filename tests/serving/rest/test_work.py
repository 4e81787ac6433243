"""What a request asks for is counted before the model sees it, and refused if it is too much."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.serving import rest
from etcmodel.serving.rest.codec import PredictRequest, Signature
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
        ("_a_", 3),
        ("_" * 400, 400),
        ("สวัสดี", 6),
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
    ids, pairs = np.zeros([3, 8], np.int32), np.zeros([3, 80, 2], np.int32)
    request = request_of(3, token_ids=ids, edges=pairs, global_token_ids=ids[:, :2])
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


def test_a_question_and_special_tokens_take_the_room_of_each_window():
    windows = Windows(length=4096, stride=1024, num_special=4)
    inputs = {"question": [b"q " * 4090], "documents": [[b"a " * 20_000]]}
    assert measured(request_of(**inputs), windows)[1] > 6000
    windows = Windows(length=10, stride=4, num_special=3)
    assert measured(request_of(question=[b"q"], text=[b"a " * 12]), windows)[1] == 4


def test_global_tokens_of_a_question_take_room_and_sentences_end_at_any_space():
    by_block = Windows(length=100, stride=0, global_length=8, num_global=1)
    by_token = dataclasses.replace(by_block, question_by_token=True)
    inputs = {"question": [b"q q q q"], "text": [b"a. " * 11 + b"a."]}
    assert measured(request_of(**inputs), by_block)[1] == 2
    assert measured(request_of(**inputs), by_token)[1] == 4
    spaced = request_of(text=["a.\u3000b.\u00a0c.\u2003d.".encode()])
    assert measured(spaced, Windows(length=100, stride=0, global_length=1))[1] == 4


def test_windows_are_no_fewer_than_sentences_and_documents_need():
    windows = Windows(length=100, stride=4, global_length=3)
    # Each window repeats two sentences of two tokens.
    assert measured(request_of(text=[b"a. b! c? d.\ne"]), windows) == (9, 3)
    windows = dataclasses.replace(windows, stride=0)
    assert measured(request_of(text=[b"a. b! c? d.\ne"]), windows) == (9, 2)
    # Four documents and five sentences; a window that begins within a document repeats that.
    documents = [[b"a.", b"b.", b"c.", b"d. e."]]
    assert measured(request_of(documents=documents), windows)[1] == 4


@pytest.mark.parametrize("question", [None, "a", "a b c d a b c"])
@pytest.mark.parametrize("text", ["a b c d " * 50, "a. b. c. d. " * 20, "ab? cd " * 40])
def test_windows_are_about_those_of_a_processor(text, question, tmp_path):
    words = "[PAD] [UNK] [CLS] [SEP] a b c d ab cd . ?"
    (tmp_path / "vocab.txt").write_text("\n".join(words.split(" ")))
    config = {"max_long_len": 24, "max_global_len": 8, "stride": 6}
    processor = etcmodel.EtcProcessor(str(tmp_path / "vocab.txt"), **config)
    windows = Windows(24, 6, 8, num_special=2 + bool(question), num_global=1)
    inputs = {"text": [text.encode()]}
    if question is None:
        num_rows = len(processor([text])["token_ids"])
    else:
        inputs["question"] = [question.encode()]
        num_rows = len(processor([{"text": text, "question": question}])["token_ids"])
    _, about = measured(request_of(**inputs), windows)
    assert num_rows <= about < 2 * num_rows


def test_windows_are_those_of_the_exports_processor(exports, tmp_path):
    folder = tmp_path / "1"
    shutil.copytree(exports["answer"], folder)
    file = folder / "assets" / "text_model.json"
    file.parent.mkdir(exist_ok=True)
    config = {"max_long_len": 64, "stride": 8, "max_global_len": 16, "of a later version": 1}
    file.write_text(json.dumps({"processor": {**config, "question_globals": "tokens"}}))
    expected = Windows(64, 8, 16, num_special=3, num_global=1, question_by_token=True)
    assert rest.ServedModel(str(folder)).windows == expected
    for damage, message in (
        ({"processor": None}, "`processor` must be a JSON object"),
        ({"processor": {**config, "max_long_len": "64"}}, "`max_long_len` must be an int"),
        ({"processor": {**config, "stride": None, "max_global_len": -1}}, "`max_global_len` must"),
    ):
        file.write_text(json.dumps(damage))
        with pytest.raises(ValueError, match=message) as error:
            rest.ServedModel(str(folder))
        assert str(file) in str(error.value) and "\n" not in str(error.value)


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
            "A request may have 262144 tokens. Received: about 400003; send several requests, or "
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
