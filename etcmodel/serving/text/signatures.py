"""The signatures of an exported text model, by kind of head.

Strings are UTF-8; offsets `[start, end)` count Unicode characters of a given string.
"""

import tensorflow as tf

from etcmodel.models import heads
from etcmodel.serving.text import answers, places
from etcmodel.serving.text import documents as documents_lib
from etcmodel.serving.text.answers import _NONE
from etcmodel.serving.text.text_module import Given, TextModule, check_some, strings_of

__all__ = ["TextModule", "make_module"]


class Classifier(TextModule):
    """Signature `classify`."""

    def __init__(self, model, processor, options):
        super().__init__(model, processor, options)
        self._activation = tf.sigmoid if model.multi_label else tf.nn.softmax
        self._labels = list(options.labels or map(str, range(model.num_labels)))
        if len(self._labels) != model.num_labels:
            raise ValueError(
                f"`labels` must be {model.num_labels} names, one for each label of the model. "
                f"Received: {len(self._labels)}"
            )

    def functions(self):
        return {"classify": (self._classify, strings_of(self.inputs))}

    def _classify(self, text):
        source, rows, logits = self._read(self._given(text))
        probabilities = self._activation(logits)
        probabilities = answers.join_labels(probabilities, rows.examples, source.num_examples)
        best = tf.argmax(probabilities, axis=1)
        return {"probabilities": probabilities, "label": tf.gather(self._labels, best)}


class KeyphraseExtractor(TextModule):
    """Signature `keyphrases`."""

    def functions(self):
        return {"keyphrases": (self._keyphrases, strings_of(self.inputs))}

    def _keyphrases(self, text):
        given = self._given(text)
        source, rows, logits = self._read(given)
        spans = answers.top_phrases(
            logits,
            places.texts_of(source, rows),
            rows.pieces >= rows.first_new[:, tf.newaxis],
            rows.examples,
            self._options.num_phrases,
        )
        found = places.to_characters(source, rows, spans)
        return {
            "phrases": places.substrings(given.texts.code_points, found),
            "start": found.starts,
            "end": found.ends,
            "probability": spans.probabilities,
        }


class QuestionAnswerer(TextModule):
    """Signatures `answer` and `answer_sentences`."""

    has_question = True
    inputs = {"question": 1, "documents": 2}
    sentence_inputs = {"question": 1, "sentences": 3}

    def __init__(self, model, processor, options):
        super().__init__(model, processor, options)
        self._types = list(model.answer_types)

    def functions(self):
        return {
            "answer": (self._answer, strings_of(self.inputs)),
            "answer_sentences": (
                self._answer_sentences,
                strings_of({"question": 1, "sentences": 3}),
            ),
        }

    def _given(self, question, documents):
        texts = documents_lib.of_documents(documents)
        return Given(texts, *_checked_pair(question, "documents", documents))

    def _answer(self, question, documents):
        return self._outputs(self._given(question, documents), ["document"])

    def _answer_sentences(self, question, sentences):
        texts = documents_lib.of_sentences(sentences)
        given = Given(texts, *_checked_pair(question, "sentences", sentences))
        return self._outputs(given, ["document", "sentence"])

    def _outputs(self, given, names):
        """The outputs of both signatures; `names` are those of the given strings' axes."""
        source, rows, logits = self._read(given)
        texts, _, shape = given
        spans = answers.best_spans(
            logits["start"],
            logits["end"],
            places.texts_of(source, rows),
            rows.examples,
            source.num_examples,
            self._options.max_answer_tokens,
        )
        found = places.to_characters(source, rows, spans)
        if self._options.whole_words:
            found = places.widened(texts.code_points, found)
        strings = places.substrings(texts.code_points, found)
        kind, probability = tf.fill(tf.shape(strings), answers.SPAN), spans.probabilities
        if self._types:
            kind, probability = self._typed(logits["type"], rows, spans)
        is_span = tf.equal(kind, answers.SPAN)
        found = places.Places(*(tf.where(is_span, x, _NONE) for x in found))
        named = tf.where(tf.equal(kind, answers.NO_ANSWER), "", kind)
        outputs = {
            "answer": tf.where(is_span, strings, named),
            "answer_type": kind,
            **_where(found, shape, names),
            "probability": probability,
        }
        if "evidence" in logits:
            outputs |= self._evidence(texts, source, rows, logits["evidence"], shape, names)
        return outputs

    def _typed(self, logits, rows, spans):
        """(type, probability of the answer): that of the type, and of a span among spans."""
        size = tf.size(spans.rows)
        types = answers.join_types(logits, self._types, rows.examples, size)
        kind = tf.gather(self._types, tf.argmax(types, axis=1))
        share = tf.where(tf.equal(kind, answers.SPAN), spans.probabilities, 1.0)
        return kind, tf.reduce_max(types, axis=1) * share

    def _evidence(self, texts, source, rows, logits, shape, names):
        probabilities = answers.join_sentences(tf.sigmoid(logits), rows.blocks, source.is_document)
        kept = tf.where(~source.is_document)[:, 0]
        examples = tf.gather(source.examples, kept)

        def dense(values, default):
            ragged = tf.RaggedTensor.from_value_rowids(
                tf.gather(values, kept), tf.cast(examples, tf.int64), tf.cast(shape[0], tf.int64)
            )
            return ragged.to_tensor(default)

        blocks = (source.block_texts, source.block_starts, source.block_ends)
        found = places.Places(*(dense(values, _NONE) for values in blocks))
        outputs = {f"evidence_{name}": x for name, x in _where(found, shape, names).items()}
        outputs["evidence"] = places.substrings(texts.code_points, found)
        return {**outputs, "evidence_probability": dense(probabilities, 0.0)}


_MODULES = {
    heads.EtcForSequenceClassification: Classifier,
    heads.EtcForKeyphraseExtraction: KeyphraseExtractor,
    heads.EtcForQuestionAnswering: QuestionAnswerer,
}


def make_module(model, processor, options):
    """Makes the `TextModule` of a model, with the same arguments.

    Raises:
        ValueError: if there is none for the model's head, or the arguments are invalid.
    """
    for head, module in _MODULES.items():
        if isinstance(model, head):
            return module(model, processor, options)
    known = ", ".join(head.__name__ for head in _MODULES)
    raise ValueError(
        f"Strings are answered by {known}. Received: {type(model).__name__}. Export features "
        "instead: `serving.export_saved_model`."
    )


def _where(found, shape, names):
    """The outputs that say where `Places` are, by name."""
    outputs, rest = {}, found.texts
    shape = [tf.maximum(size, 1) for size in shape]  # There may be no documents.
    for name, size in [*zip(names, shape[1:], strict=True)][::-1]:
        outputs[name] = tf.where(found.texts >= 0, rest % size, _NONE)
        rest = rest // size
    return {**outputs, "start": found.starts, "end": found.ends}


def _checked_pair(question, name, strings):
    """(questions as code points, list of int32: the shape of `strings`), once both are right."""
    shape, size = tf.unstack(tf.shape(strings)), tf.size(question)
    rows = [f"`question` and `{name}` must have as many rows. Received:", size, shape[0]]
    questions = documents_lib.decode(question)
    is_blank = tf.equal(tf.strings.length(tf.strings.strip(question)), 0)
    blank = ["A `question` is empty, in the row:", tf.argmax(is_blank)]
    checks = [
        check_some("question", size),
        tf.debugging.Assert(tf.equal(size, shape[0]), rows),
        tf.debugging.Assert(~tf.reduce_any(is_blank), blank),
    ]
    with tf.control_dependencies(checks):
        return questions, [tf.identity(x) for x in shape]
