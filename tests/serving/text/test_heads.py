"""Signatures of heads with other settings: several labels, no types of answers, no evidence."""

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.serving.text import export
from etcmodel.serving.text.export import TextOptions
from etcmodel.text.answers import best_answer
from tests.serving.text import vocabularies

TEXTS = ["a b. c d! ab abc.", "", "a b c d. " * 12]
QUESTIONS = ["a b?", "b", "c d"]
DOCUMENTS = [[TEXTS[0], "b"], [TEXTS[2], "c"], ["", ""]]
EVIDENCE = {"evidence", "evidence_document", "evidence_start", "evidence_end"}
EVIDENCE |= {"evidence_probability"}


class Asked:
    """A model, and the functions of its export's signatures, run operation by operation."""

    def __init__(self, folder, head, labels=(), **settings):
        tf.keras.utils.set_random_seed(2)
        self.processor = vocabularies.processor(folder, max_long_len=24, stride=6)
        self.model = vocabularies.model(head, **settings)
        options = TextOptions(labels=labels)
        self.functions = export.make_module(self.model, self.processor, options).functions()

    def __call__(self, name, **inputs):
        function, _ = self.functions[name]
        given = {key: tf.constant(value) for key, value in inputs.items()}
        return {key: value.numpy() for key, value in function(**given).items()}


def test_each_of_several_labels_has_a_probability_of_its_own(tmp_path):
    names = ["long", "short", "odd"]
    asked = Asked(
        tmp_path,
        etcmodel.EtcForSequenceClassification,
        labels=names,
        num_labels=3,
        multi_label=True,
    )
    found = asked("classify", text=TEXTS)
    batch = asked.processor(TEXTS)
    of_rows = tf.sigmoid(asked.model(batch)).numpy()
    assert len(batch.windows(2)) > 2
    for index in range(len(TEXTS)):
        expected = of_rows[[x.row for x in batch.windows(index)]].mean(0)
        np.testing.assert_allclose(found["probabilities"][index], expected, atol=1e-6)
        assert found["label"][index].decode() == names[expected.argmax()]
    assert abs(found["probabilities"].sum(1) - 1).min() > 0.01  # They are no softmax.


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("evidence", [True, False])
def test_without_types_of_answers_the_best_span_is_the_answer(tmp_path, evidence):
    asked = Asked(tmp_path, etcmodel.EtcForQuestionAnswering, answer_types=(), evidence=evidence)
    found = asked("answer", question=QUESTIONS, documents=DOCUMENTS)
    assert EVIDENCE & found.keys() == (EVIDENCE if evidence else set())
    assert found.keys() - EVIDENCE == {
        *("answer", "answer_type", "document", "start", "end", "probability")
    }
    batch = asked.processor(vocabularies.examples_of(QUESTIONS, DOCUMENTS))
    outputs = asked.model(batch)
    begin, end = outputs["start"].numpy(), outputs["end"].numpy()
    assert ("evidence" in outputs) == evidence
    for index in (0, 1):
        answer = best_answer(batch, begin, end, index)
        assert found["answer"][index].decode() == answer.content
        place = (found["start"][index], found["end"][index])
        assert place == (answer.start, answer.end)
        text = DOCUMENTS[index][found["document"][index]]
        assert text[slice(*place)] == answer.content
        logits = [
            x for window in batch.windows(index) for x in vocabularies.spans_of(window, begin, end)
        ]
        share = np.exp(answer.score - np.logaddexp.reduce(logits))
        np.testing.assert_allclose(found["probability"][index], share, rtol=1e-4)
    assert (found["answer_type"] == b"span").all()
    assert found["answer"][2] == b"" and found["probability"][2] == 0
    assert found["document"][2] == found["start"][2] == found["end"][2] == -1


def test_of_no_documents_there_is_no_answer(tmp_path):
    asked = Asked(tmp_path, etcmodel.EtcForQuestionAnswering, answer_types=())
    found = asked("answer", question=["a?"], documents=np.zeros([1, 0], "S1"))
    assert found["answer"].tolist() == [b""] and found["document"].tolist() == [-1]
    assert found["evidence"].shape == (1, 0)


def test_without_evidence_sentences_that_are_given_are_named_all_the_same(tmp_path):
    asked = Asked(tmp_path, etcmodel.EtcForQuestionAnswering, answer_types=(), evidence=False)
    sentences = [[["a b", "ab"], ["c d", ""]]]
    found = asked("answer_sentences", question=["a?"], sentences=sentences)
    assert not EVIDENCE & found.keys() and "evidence_sentence" not in found
    document, sentence = found["document"][0], found["sentence"][0]
    text = sentences[0][document][sentence]
    assert text[found["start"][0] : found["end"][0]] == found["answer"][0].decode() != ""
