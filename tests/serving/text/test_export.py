"""An export on strings answers as processor, model and decoding in Python do, without them."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import serving
from etcmodel.text.answers import best_answer
from tests.serving.text import vocabularies

pytestmark = pytest.mark.slow

SETTINGS = {"relation_names": ["part_of"], "max_long_len": 24, "stride": 6}
TEXTS = ["a b. c d! ab abc.", "ä", "", "a b c d. " * 12, "水 b. c\u0301c? " * 5]
QUESTIONS = ["a?", "b", "c", "d"]
DOCUMENTS = [[TEXTS[0], "b"], [TEXTS[3], ""], ["", TEXTS[4]], ["", ""]]
SENTENCES = [[["a b", "ab"], ["c d", ""]], [["c  d", "a"], ["", ""]]]
HEADS = {
    "classify": etcmodel.EtcForSequenceClassification,
    "answer": etcmodel.EtcForQuestionAnswering,
    "keyphrases": etcmodel.EtcForKeyphraseExtraction,
}
ONLY_TENSORFLOW = """
import json, sys
import tensorflow as tf, tensorflow_text
answers = {}
for line in sys.stdin:
    folder, name, inputs = json.loads(line)
    signature = tf.saved_model.load(folder).signatures[name]
    outputs = signature(**{key: tf.constant(value) for key, value in inputs.items()})
    answers[name] = {
        key: [x.decode() for x in value.numpy().ravel()]
        if value.dtype == tf.string
        else value.numpy().tolist()
        for key, value in outputs.items()
    }
assert not any(name.split(".")[0] in ("etcmodel", "official", "tf_keras") for name in sys.modules)
print(json.dumps(answers))
"""


class Exported:
    """A model of each head, its processor, and its export."""

    def __init__(self, folder):
        tf.keras.utils.set_random_seed(1)
        self.processor = vocabularies.processor(folder, **SETTINGS)
        names = SETTINGS["relation_names"]
        self.models = {name: vocabularies.model(head, names) for name, head in HEADS.items()}
        self.folders = {
            name: serving.export_text_model(
                model,
                str(folder / name),
                self.processor,
                attention_keys=0,  # Their signatures have tests of their own.
            )
            for name, model in self.models.items()
        }
        self.loaded = {name: tf.saved_model.load(path) for name, path in self.folders.items()}

    def __call__(self, name, head=None, **inputs):
        signature = self.loaded[head or name].signatures[name]
        inputs = {key: tf.constant(value, tf.string) for key, value in inputs.items()}
        return {key: value.numpy() for key, value in signature(**inputs).items()}

    def rows(self, name, examples):
        """The processor's batch, and the model's outputs."""
        batch = self.processor(examples)
        return batch, self.models[name](batch)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return Exported(tmp_path_factory.mktemp("exports"))


def test_probabilities_of_labels_are_the_mean_over_windows(exported):
    found = exported("classify", text=TEXTS)
    batch, logits = exported.rows("classify", TEXTS)
    of_rows = tf.nn.softmax(logits).numpy()
    for index in range(len(TEXTS)):
        rows = [x.row for x in batch.windows(index)]
        expected = of_rows[rows].mean(0)
        np.testing.assert_allclose(found["probabilities"][index], expected, atol=1e-6)
        assert found["label"][index] == str(expected.argmax()).encode()


def slow_types(logits):
    """Probabilities of span, yes, no and no answer over the windows of one example."""
    of_rows = tf.nn.softmax(logits).numpy()
    none = of_rows[:, 3].min()
    highest = of_rows[:, :3].max(0)
    return np.append(highest / highest.sum() * (1 - none), none)


def test_answers_are_the_best_of_all_windows(exported):
    found = exported("answer", question=QUESTIONS, documents=DOCUMENTS)
    batch, outputs = exported.rows("answer", vocabularies.examples_of(QUESTIONS, DOCUMENTS))
    begin, end = outputs["start"].numpy(), outputs["end"].numpy()
    kinds = list(exported.models["answer"].answer_types)
    assert len(batch.windows(1)) > 2
    for index, row in enumerate(DOCUMENTS):
        windows = batch.windows(index)
        types = slow_types(tf.gather(outputs["type"], [x.row for x in windows]))
        kind = kinds[types.argmax()]
        assert found["answer_type"][index].decode() == kind
        if kind != "span":
            assert found["answer"][index].decode() == kind.replace("no_answer", "")
            assert found["document"][index] == found["start"][index] == -1
            np.testing.assert_allclose(found["probability"][index], types.max(), rtol=1e-4)
            continue
        answer = best_answer(batch, begin, end, index)
        start, stop = int(found["start"][index]), int(found["end"][index])
        assert found["answer"][index].decode() == answer.content
        assert row[found["document"][index]][start:stop] == answer.content
        assert (start, stop) == (answer.start, answer.end)
        logits = np.array(
            [x for window in windows for x in vocabularies.spans_of(window, begin, end)]
        )
        share = np.exp(answer.score - np.logaddexp.reduce(logits))
        np.testing.assert_allclose(found["probability"][index], share * types.max(), rtol=1e-4)


def test_evidence_is_each_sentence_with_its_highest_probability(exported):
    found = exported("answer", question=QUESTIONS, documents=DOCUMENTS)
    batch, outputs = exported.rows("answer", vocabularies.examples_of(QUESTIONS, DOCUMENTS))
    probabilities = tf.sigmoid(outputs["evidence"]).numpy()
    for index, row in enumerate(DOCUMENTS):
        expected = {}
        for window in batch.windows(index):
            for place, block in enumerate(window.global_blocks):
                known = window.document.blocks[block]
                if block >= 0 and known.kind == "sentence":
                    key = (int(block), window.document.block_text(known), known.start, known.end)
                    value = probabilities[window.row, place]
                    expected[key] = max(expected.get(key, 0), value)
        count = len(expected)
        for number, (key, value) in enumerate(sorted(expected.items())):
            assert found["evidence"][index][number].decode() == key[1]
            start, stop = (found[f"evidence_{name}"][index][number] for name in ("start", "end"))
            assert (start, stop) == key[2:]
            assert row[found["evidence_document"][index][number]][start:stop] == key[1]
            np.testing.assert_allclose(
                found["evidence_probability"][index][number], value, rtol=1e-4
            )
        assert (found["evidence_document"][index][count:] == -1).all()
        assert (found["evidence"][index][count:] == b"").all()


def test_sentences_that_are_given_are_named(exported):
    inputs = {"question": QUESTIONS[:2], "sentences": SENTENCES}
    found = exported("answer_sentences", "answer", **inputs)
    assert found["evidence"].tolist() == [[b"a b", b"ab", b"c d"], [b"c  d", b"a", b""]]
    assert found["evidence_document"].tolist() == [[0, 0, 1], [0, 0, -1]]
    assert found["evidence_sentence"].tolist() == [[0, 1, 0], [0, 1, -1]]
    for index in range(2):
        document, sentence = found["document"][index], found["sentence"][index]
        if document >= 0:
            text = SENTENCES[index][document][sentence]
            span = text[found["start"][index] : found["end"][index]]
            assert found["answer"][index].decode() == span


def test_phrases_are_the_best_of_all_windows(exported):
    found = exported("keyphrases", text=TEXTS)
    batch, logits = exported.rows("keyphrases", TEXTS)
    for index, text in enumerate(TEXTS):
        expected = {}
        for window in batch.windows(index):
            for words, row in enumerate(np.asarray(logits[window.row])):
                for first in range(len(window.token_ids) - words):
                    span = window.char_span(first, first + words)
                    if span and first + words >= window.first_new:  # Not wholly in an earlier one.
                        expected[span[1], span[2], first, window.window] = row[first]
        best = sorted(expected.items(), key=lambda entry: -entry[1])[:5]
        total = np.logaddexp.reduce([*expected.values()]) if expected else 0.0
        assert (found["start"][index][len(best) :] == -1).all()
        assert (found["phrases"][index][len(best) :] == b"").all()
        for number, ((start, stop, *_), logit) in enumerate(best):
            probability = found["probability"][index][number]
            np.testing.assert_allclose(probability, np.exp(logit - total), rtol=1e-4)
            assert found["phrases"][index][number].decode() == text[start:stop]


def test_answers_in_a_process_of_tensorflow_alone(exported):
    inputs = {
        "classify": {"text": TEXTS},
        "answer": {"question": QUESTIONS, "documents": DOCUMENTS},
        "keyphrases": {"text": TEXTS},
    }
    lines = [json.dumps([exported.folders[name], name, x]) for name, x in inputs.items()]
    arguments = [sys.executable, "-c", ONLY_TENSORFLOW]
    done = subprocess.run(
        arguments, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = json.loads(done.stdout)
    for name, given in inputs.items():
        for key, value in exported(name, **given).items():
            if value.dtype == object:
                assert [x.decode() for x in value.ravel()] == answers[name][key]
            else:
                np.testing.assert_allclose(answers[name][key], value, atol=1e-5, err_msg=key)


def test_tells_what_it_was_made_with(exported):
    path = pathlib.Path(exported.folders["answer"], "assets", "text_model.json")
    metadata = json.loads(path.read_text())
    assert metadata["sentence_splitter"] == "multilingual"
    assert metadata["head_type"] == "question_answering"
    assert metadata["processor"]["stride"] == 6
    assert metadata["options"]["max_answer_tokens"] == 30
    assert metadata["attention"] == {}  # Its keys are not wanted here.


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"question": ["a"], "documents": [["b"], ["c"]]}, "must have as many rows"),
        (
            {"question": ["a", " \n"], "documents": [["b"], ["c"]]},
            "`question` is empty",
        ),
        ({"question": np.zeros([0], "S1"), "documents": np.zeros([0, 1], "S1")}, "no example"),
        ({"question": ["a b c d " * 9], "documents": [["b"]]}, "`question` is too long"),
        ({"question": ["a"], "documents": ["b"]}, "Shape of tensor documents"),
    ],
)
def test_bad_input_is_an_error_that_names_it(exported, inputs, message):
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError, ValueError), match=message):
        exported("answer", **inputs)


def test_refuses_what_it_cannot_answer(exported, tmp_path):
    def export(model, **options):
        serving.export_text_model(model, str(tmp_path / "export"), exported.processor, **options)

    classifier = exported.models["classify"]
    with pytest.raises(ValueError, match="`labels` must be 2 names"):
        export(classifier, labels=["one"])
    with pytest.raises(ValueError, match="`num_phrases` must be an int of at least 1"):
        export(classifier, num_phrases=0)
    with pytest.raises(
        ValueError, match="`examples` must be a dict of str.* Received: {'text': 1}"
    ):
        export(classifier, examples=[{"text": 1}])
    with pytest.raises(
        ValueError, match=r"`examples` must have text \(str\). Received: question \(str\)"
    ):
        export(classifier, examples=[{"question": "Where?"}])
    with pytest.raises(ValueError, match=r"Received: text \(list of str\)"):
        export(classifier, examples=[{"text": ["Here."]}])
    with pytest.raises(ValueError, match="Received: EtcForMaskedLM"):
        export(vocabularies.model(etcmodel.EtcForMaskedLM))
    with pytest.raises(ValueError, match="`whole_words` must be a bool"):
        export(classifier, whole_words=1)
    with pytest.raises(ValueError, match="`processor` must be given"):
        serving.export_text_model(classifier, str(tmp_path / "export"))
    with pytest.raises(ValueError, match="already something at"):
        serving.export_text_model(classifier, exported.folders["answer"], exported.processor)
    assert not (tmp_path / "export").exists()
