"""Small models with the signatures of text exports, made of operations on strings alone.

The answer to every question is the first number in the documents; a sentence ends at a full stop,
and is the more evidence, the more of it are digits; a token is what is between spaces, and looks
at itself, at the next one and at its document.
"""

import tensorflow as tf

_PREFIX = r"(?s)^([^0-9]*).*$"
_NUMBER = r"(?s)^[^0-9]*([0-9]*).*$"
_TEXT = tf.TensorSpec([None], tf.string, "text")
_QUESTION = tf.TensorSpec([None], tf.string, "question")
_DOCUMENTS = tf.TensorSpec([None, None], tf.string, "documents")


def _length(text):
    return tf.strings.length(text, unit="UTF8_CHAR")


def _check(text, name):
    """An error that quotes nothing of the text."""
    bad = tf.reduce_any(tf.strings.regex_full_match(text, r"(?s).*impossible.*"))
    return tf.debugging.Assert(~bad, [f"`{name}` holds what is impossible."])


def _numbers(documents):
    """Of each text the first number, where it starts and where it ends."""
    number = tf.strings.regex_replace(documents, _NUMBER, r"\1")
    start = _length(tf.strings.regex_replace(documents, _PREFIX, r"\1"))
    return number, start, start + _length(number)


def _spans(documents, separator):
    """What is between separators: (document, start, end, text), [batch, longest] each, and -1."""
    parts = tf.strings.split(documents, separator).to_tensor("")  # [batch, documents, parts]
    lengths = _length(parts)
    start = tf.cumsum(lengths + 1, axis=2, exclusive=True)
    number = tf.broadcast_to(
        tf.range(tf.shape(parts)[1])[tf.newaxis, :, tf.newaxis], tf.shape(parts)
    )
    flat = [
        tf.reshape(x, [tf.shape(parts)[0], -1]) for x in (number, start, start + lengths, parts)
    ]
    is_real = flat[3] != ""
    order = tf.argsort(tf.cast(~is_real, tf.int32), axis=1, stable=True)
    size = tf.reduce_max(tf.reduce_sum(tf.cast(is_real, tf.int32), axis=1))
    is_real, *flat = (tf.gather(x, order[:, :size], batch_dims=1) for x in (is_real, *flat))
    *places, text = flat
    return [*(tf.where(is_real, x, -1) for x in places), tf.where(is_real, text, "")]


class TextModel(tf.Module):
    """Functions of the signatures."""

    @tf.function(input_signature=[_QUESTION, _DOCUMENTS])
    def answer(self, question, documents):
        with tf.control_dependencies([_check(question, "question")]):
            number, start, end = _numbers(documents)
        best = tf.argmax(tf.cast(number != "", tf.int32), axis=1, output_type=tf.int32)
        number, start, end = (tf.gather(x, best, batch_dims=1) for x in (number, start, end))
        found = number != ""
        document, start, end = (tf.where(found, x, -1) for x in (best, start, end))
        of, first, last, sentence = _spans(documents, ".")
        num_digits = _length(tf.strings.regex_replace(sentence, "[^0-9]", ""))
        share = num_digits / tf.maximum(_length(sentence), 1)
        return {
            "answer": number,
            "answer_type": tf.where(found, "span", "none"),
            "document": document,
            "start": start,
            "end": end,
            "probability": 1 / (1 + tf.cast(_length(number), tf.float32)),
            "evidence": sentence,
            "evidence_document": of,
            "evidence_start": first,
            "evidence_end": last,
            "evidence_probability": tf.cast(share, tf.float32),
        }

    @tf.function(input_signature=[_QUESTION, _DOCUMENTS])
    def attention(self, question, documents):
        texts = tf.concat([question[:, tf.newaxis], documents], axis=1)
        of, start, end, _ = _spans(texts, " ")
        size = tf.shape(of)[1]
        itself = tf.broadcast_to(tf.range(size), tf.shape(of))
        following = tf.where(itself + 1 < size, itself + 1, -1)
        attended = tf.stack([itself, following, size + of], axis=2)
        document = tf.where(of < 0, -2, of - 1)
        num_texts = tf.shape(texts)[1]
        shape = tf.shape(texts)
        return {
            "document": document,
            "start": start,
            "end": end,
            "attended": tf.where((of < 0)[..., tf.newaxis], -1, attended),
            "attention": tf.broadcast_to([0.5, 0.25, 0.125], tf.shape(attended)),
            "global_document": tf.broadcast_to(tf.range(num_texts) - 1, shape),
            "global_start": tf.zeros(shape, tf.int32),
            "global_end": _length(texts),
        }

    @tf.function(input_signature=[_TEXT])
    def classify(self, text):
        with tf.control_dependencies([_check(text, "text")]):
            _, start, end = _numbers(text)
        share = tf.cast(end - start, tf.float32) / tf.cast(tf.maximum(_length(text), 1), tf.float32)
        label = tf.where(share > 0.5, "number", "prose")
        return {"probabilities": tf.stack([1 - share, share], axis=1), "label": label}

    @tf.function(input_signature=[_TEXT])
    def keyphrases(self, text):
        number, start, end = (x[:, tf.newaxis] for x in _numbers(text))
        none = number == ""
        return {
            "phrases": tf.concat([number, tf.zeros_like(number)], axis=1),
            "start": tf.concat([tf.where(none, -1, start), tf.fill(tf.shape(start), -1)], axis=1),
            "end": tf.concat([tf.where(none, -1, end), tf.fill(tf.shape(end), -1)], axis=1),
            "probability": tf.where(none, [[0.0, 0.0]], [[0.75, 0.0]]),
        }


def export(directory, *names):
    """Writes a SavedModel with these signatures, of which the first is the default."""
    module = TextModel()
    functions = {name: getattr(module, name) for name in names}
    tf.saved_model.save(module, directory, {"serving_default": functions[names[0]], **functions})
    return directory


def answer_of(documents):
    """What `answer` gives, computed by reading: (answer, document, start, end)."""
    for number, text in enumerate(documents):
        places = [i for i, x in enumerate(text) if x in "0123456789"]
        if places:
            end = places[0]
            while end < len(text) and text[end] in "0123456789":
                end += 1
            return text[places[0] : end], number, places[0], end
    return "", -1, -1, -1


def sentences_of(documents):
    """The sentences, as `answer` gives them: list of (document, start, end, text)."""
    found = []
    for number, text in enumerate(documents):
        start = 0
        for sentence in text.split("."):
            if sentence:
                found.append((number, start, start + len(sentence), sentence))
            start += len(sentence) + 1
    return found
