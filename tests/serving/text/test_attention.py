"""What exported models say that tokens look at is what `inspection.attention` finds."""

import functools
import itertools
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import inspection, serving
from etcmodel.serving.text import export
from etcmodel.serving.text.export import TextOptions
from tests.serving.text import vocabularies

SETTINGS = {
    "windows": {"relation_names": ["part_of"], "max_long_len": 24, "stride": 6},
    "tokens of the question": {"question_globals": "tokens"},
    "bare": {"whole_token": False, "special_tokens": False, "max_long_len": 14, "stride": 4},
}
KEYS = 4
TEXTS = ["a b. c d! ab abc.", "", "a b c d. " * 12]
QUESTIONS = ["a b?", "b", "c d"]
DOCUMENTS = [[TEXTS[0], "b"], [TEXTS[2], ""], ["", ""]]
SPECIAL = (-2, -1, -1)


class Read:
    """A model, and the function of an export's signatures, run operation by operation."""

    def __init__(self, folder, head, settings, layer=None):
        tf.keras.utils.set_random_seed(1)
        self.processor = vocabularies.processor(folder, **settings)
        names = settings.get("relation_names", ())
        self.model = vocabularies.model(head, names, num_layers=2)
        options = TextOptions(attention_keys=KEYS, attention_layer=layer)
        module = export.make_module(self.model, self.processor, options)
        self.functions = module.all_functions()

    def __call__(self, name, **inputs):
        function, specs = self.functions[name]
        given = {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}
        return {key: value.numpy() for key, value in function(**given).items()}

    def expected(self, batch, encoding, layer, heads):
        """[long tokens, heads, (long and global tokens)] of a window."""
        (found,) = inspection.attention(
            self.model,
            batch,
            layers=[layer],
            heads=heads,
            queries={"long": range(len(encoding.token_ids))},
            example=encoding.row,
        )
        sizes = (len(encoding.token_ids), len(encoding.global_ids))
        return np.array(
            [[cut(found.dense(query, head), sizes) for head in heads] for query in range(sizes[0])]
        )


def cut(by_side, sizes):
    return np.concatenate([by_side[x][:n] for x, n in zip(("long", "global"), sizes, strict=True)])


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A function of a head, the name of settings and a layer to a `Read`, which is made once."""
    folder = tmp_path_factory.mktemp("read")

    @functools.cache
    def made(head, name=None, layer=None):
        return Read(folder, head, SETTINGS.get(name, {}), layer)

    return made


def token_places(encoding, num_before):
    """(document, start, end) of each long token of a window; `num_before` texts are questions."""
    places = zip(encoding.texts.tolist(), encoding.offsets.tolist(), strict=True)
    return [SPECIAL if text < 0 else (text - num_before, *ends) for text, ends in places]


def global_places(encoding, num_before):
    """The same of each global token."""
    question, blocks = encoding.document.texts[0], encoding.document.blocks
    question_tokens = [x for x in token_places(encoding, num_before) if x[0] == -1]
    for number, index in enumerate(encoding.global_blocks):
        block = blocks[index] if index >= 0 else None
        if block is None:
            yield SPECIAL
        elif block.kind == "document":
            place = sum(x.kind == "document" for x in blocks[:index])
            yield place, 0, len(encoding.document.texts[num_before + place])
        elif block.kind != "question":
            yield block.text - num_before, block.start, block.end
        elif (encoding.global_blocks == index).sum() > 1:
            yield question_tokens[number - np.flatnonzero(encoding.global_blocks == index)[0]]
        else:
            yield (-1, 0, len(question))


def places_in(found, prefix=""):
    """(document, start, end) of the tokens of each example, without padding at the end."""
    names = [f"{prefix}{name}" for name in ("document", "start", "end")]
    return [[*zip(*(found[name][i].tolist() for name in names), strict=True)] for i in range(3)]


def check_places(found, batch, num_before):
    """Tokens are those of the windows, one after the other."""
    pairs = [("", token_places), ("global_", lambda *x: [*global_places(*x)])]
    for prefix, of_window in pairs:
        for index, row in enumerate(places_in(found, prefix)):
            windows = [of_window(x, num_before) for x in batch.windows(index)]
            expected = [*itertools.chain(*windows)]
            assert row[: len(expected)] == expected
            assert set(row[len(expected) :]) <= {SPECIAL}


def check_attention(read, found, batch, layer):
    """What each token looks at is what the model's attention is in its window."""
    num_tokens = found["document"].shape[1]
    for index in range(3):
        first = first_global = 0
        for window in batch.windows(index):
            size, num_global = len(window.token_ids), len(window.global_ids)
            rows = read.expected(batch, window, layer, [inspection.MEAN])[:, 0]
            for number, row in enumerate(rows):
                keys = found["attended"][index][first + number]
                probs = found["attention"][index][first + number]
                there = keys >= 0
                own = np.where(
                    keys < num_tokens, keys - first, keys - num_tokens - first_global + size
                )
                assert ((own >= 0) & (own < size + num_global))[there].all()
                np.testing.assert_allclose(probs[there], row[own[there]], atol=1e-6)
                best = np.sort(row)[::-1][:KEYS]
                np.testing.assert_allclose(probs[: len(best)], best, atol=1e-6)
            first, first_global = first + size, first_global + num_global
        assert (found["attended"][index][first:] == -1).all()
        assert not found["attention"][index][first:].any()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("layer", [None, 0])
@pytest.mark.parametrize("settings", SETTINGS)
def test_tokens_of_documents_look_at_what_the_model_looks_at(reader, settings, layer):
    read = reader(etcmodel.EtcForQuestionAnswering, settings, layer)
    batch = read.processor(vocabularies.examples_of(QUESTIONS, DOCUMENTS))
    found = read("attention", question=QUESTIONS, documents=DOCUMENTS)
    check_places(found, batch, 1)
    check_attention(read, found, batch, 1 if layer is None else layer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "head", [etcmodel.EtcForSequenceClassification, etcmodel.EtcForKeyphraseExtraction]
)
def test_tokens_of_texts_look_at_what_the_model_looks_at(reader, head):
    read = reader(head, "windows")
    batch = read.processor(TEXTS)
    found = read("attention", text=TEXTS)
    assert len(batch.windows(2)) > 2
    check_places(found, batch, 0)
    check_attention(read, found, batch, 1)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_characters_of_a_span_are_looked_up_in_the_layer_that_is_asked_for(reader, settings):
    read = reader(etcmodel.EtcForQuestionAnswering, settings)
    batch = read.processor(vocabularies.examples_of(QUESTIONS, DOCUMENTS))
    inputs = {"question": QUESTIONS, "documents": DOCUMENTS}
    # "ab" (two pieces), "d" in a later window and a part of it alone, and a question's token.
    asked = {"document": [0, 0, -1], "start": [10, 24, 0], "end": [12, 25, 3], "layer": [0, 1, 1]}
    found = read("attention_of_span", **inputs, **asked)
    check_places(found, batch, 1)
    num_tokens = found["document"].shape[1]
    for index in range(3):
        document, start, end, layer = (asked[name][index] for name in asked)
        expected = {}
        first = first_global = 0
        for window in batch.windows(index):
            size, num_global = len(window.token_ids), len(window.global_ids)
            for number, place in enumerate(token_places(window, 1)):
                is_there = place[0] == document and place[1] < end and place[2] > start
                if is_there and place not in expected:
                    row = read.expected(batch, window, layer, [0, 1])[number]
                    of_all = np.zeros_like(found["attention"][index])
                    of_all[:, first : first + size] = row[:, :size]
                    begin = num_tokens + first_global
                    of_all[:, begin : begin + num_global] = row[:, size:]
                    expected[place] = of_all
            first, first_global = first + size, first_global + num_global
        mean = np.mean([*expected.values()], 0)
        np.testing.assert_allclose(found["attention"][index], mean, atol=1e-6)
        np.testing.assert_allclose(mean.sum(1), 1, atol=1e-5)
    assert len(expected) == 2


def test_a_text_has_no_number(reader):
    read = reader(etcmodel.EtcForSequenceClassification)
    found = read("attention_of_span", text=["a bc"], start=[2], end=[3], layer=[1])
    batch = read.processor(["a bc"])
    assert batch.encodings[0].tokens == ["[CLS]", "a", "b", "##c", "[SEP]"]
    expected = read.expected(batch, batch.encodings[0], 1, [0, 1])[2]
    np.testing.assert_allclose(found["attention"][0], expected, atol=1e-6)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"layer": [2]}, "(?s)`layer` must be from 0 to 1. Received:.*2"),
        ({"layer": [-1]}, "`layer` must be from 0 to 1"),
        ({"start": [1], "end": [2]}, "No token is from the characters `start` to `end`"),
        ({"end": [1, 1]}, "`end` must have a number for each row"),
        ({"text": np.zeros([0], "S1")}, "`text` holds no example"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_it(reader, changes, message):
    read = reader(etcmodel.EtcForSequenceClassification)
    inputs = {"text": ["a b"], "start": [0], "end": [1], "layer": [0], **changes}
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        read("attention_of_span", **inputs)


def test_options_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`attention_layer` must be from 0 to 1.*Received: 2"):
        Read(tmp_path, etcmodel.EtcForSequenceClassification, {}, layer=2)
    for name, message in (("attention_keys", "at least 0"), ("attention_layer", "at least 0")):
        with pytest.raises(ValueError, match=f"`{name}` must be an int of {message}"):
            TextOptions(**{name: -1})


@pytest.mark.exhaustive
def test_an_export_has_the_signatures_unless_no_keys_are_wanted(tmp_path):
    read = Read(tmp_path, etcmodel.EtcForQuestionAnswering, SETTINGS["windows"])
    for keys, names in ((0, set()), (KEYS, {"attention", "attention_of_span"})):
        folder = str(tmp_path / f"export{keys}")
        serving.export_text_model(read.model, folder, read.processor, attention_keys=keys)
        loaded = tf.saved_model.load(folder)
        known = {"serving_default", "answer", "answer_sentences"}
        assert loaded.signatures.keys() == known | names
        told = json.loads(pathlib.Path(folder, "assets", "text_model.json").read_text("utf-8"))
        config = read.model.encoder.config
        layers, heads = config.num_hidden_layers, config.num_attention_heads
        sizes = {"layers": layers, "heads": heads, "layer": layers - 1}
        assert told["attention"] == (sizes if keys else {})
    inputs = {"question": QUESTIONS, "documents": DOCUMENTS}
    asked = {"document": [0, 0, -1], "start": [10, 24, 0], "end": [12, 25, 3], "layer": [0, 1, 1]}
    for name, further in (("attention", {}), ("attention_of_span", asked)):
        expected = read(name, **inputs, **further)
        given = {key: tf.constant(value) for key, value in {**inputs, **further}.items()}
        found = loaded.signatures[name](**given)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, atol=1e-6, err_msg=key)
