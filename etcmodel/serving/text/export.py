"""Writes a model and its processor as a SavedModel that takes strings."""

import dataclasses
import json
from typing import NamedTuple

import tensorflow as tf

from etcmodel import format_versions
from etcmodel.models import heads, text_data
from etcmodel.serving import export
from etcmodel.serving.saved_model import TEXT_FILE
from etcmodel.serving.text import attention, documents, places
from etcmodel.serving.text import documents as documents_lib
from etcmodel.serving.text.text_module import Given, TextModule, check_some, strings_of
from etcmodel.text.labels import REGRESSION

# From logits to answers, in a graph: labels, spans of text, sentences, phrases.
#
# An example may be split into several windows, each a row. Their outputs are combined by these
# rules:
#
# - labels: the mean of the windows' probabilities;
# - spans: each logit counts as what it is above that of the window's first token, as in
#   `text.answers`; then one softmax over all spans of all windows;
# - types of answers: there is none only if no window has one. "no_answer" has the least of its
#   probabilities, and the other types share the rest in proportion to the highest of theirs;
# - sentences: the highest probability;
# - phrases: one softmax over all phrases of all windows, those that a window repeats left out.
#
# Of one window these are the model's own softmax and sigmoid.


SPAN, NO_ANSWER = "span", "no_answer"
_NONE = -1


class Spans(NamedTuple):
    """Spans of tokens; missing spans have probability 0 and -1 everywhere else.

    Attributes:
        rows, firsts, lasts: int32 [batch] or [batch, num_spans]. Row, first and last token.
        probabilities: float32, likewise.
    """

    rows: tf.Tensor
    firsts: tf.Tensor
    lasts: tf.Tensor
    probabilities: tf.Tensor


def best_spans(begin, end, texts, examples, num_examples, max_tokens):
    """The best span of each example, that of `text.answers.best_answer`.

    Args:
        begin, end: float [num_rows, long_len]. Logits.
        texts: int32 [num_rows, long_len]. Which text each token is from; -1 where no answer is
            allowed.
        examples: int32 [num_rows]. The example of each row, in order.
        num_examples: int32 scalar.
        max_tokens: int. Maximum length of an answer in tokens.
    Returns:
        `Spans` [batch].
    """
    begin, end = begin - begin[:, :1], end - end[:, :1]
    length = tf.shape(texts)[1]
    offsets = tf.range(max_tokens)[:, tf.newaxis]
    places = tf.range(length) + offsets  # [max_tokens, long_len], by length, then first token.
    inside = places < length
    places = tf.minimum(places, length - 1)
    first_texts = texts[:, tf.newaxis]
    is_span = inside & (first_texts >= 0) & tf.equal(first_texts, tf.gather(texts, places, axis=1))
    logits = begin[:, tf.newaxis] + tf.gather(end, places, axis=1)
    logits = tf.where(is_span, logits, logits.dtype.min)
    logits = tf.reshape(logits, [-1, max_tokens * length])
    log_sums = _joined_log_sums(logits, examples, num_examples)
    row_best = tf.reduce_max(logits, axis=1)
    best = tf.math.unsorted_segment_max(row_best, examples, num_examples)
    is_best = tf.equal(row_best, tf.gather(best, examples))
    numbers = tf.range(tf.size(examples))
    row = tf.where(is_best, numbers, tf.size(numbers))
    row = tf.math.unsorted_segment_min(row, examples, num_examples)
    flat = tf.gather(tf.argmax(logits, axis=1, output_type=tf.int32), row)
    first = flat % length
    there = best > logits.dtype.min
    found = (tf.where(there, x, _NONE) for x in (row, first, first + flat // length))
    return Spans(*found, tf.where(there, tf.exp(best - log_sums), 0.0))


def _joined_log_sums(logits, examples, num_examples):
    """float [batch]: the logarithm of the sum of exponents over all rows of an example."""
    of_rows = tf.reduce_logsumexp(logits, axis=1)
    highest = tf.math.unsorted_segment_max(of_rows, examples, num_examples)
    shares = tf.exp(of_rows - tf.gather(highest, examples))
    return highest + tf.math.log(tf.math.unsorted_segment_sum(shares, examples, num_examples))


def join_labels(probabilities, examples, num_examples):
    """float32 [batch, num_labels] of [num_rows, num_labels]: see above."""
    return tf.math.unsorted_segment_mean(probabilities, examples, num_examples)


def join_types(logits, answer_types, examples, num_examples):
    """Probabilities of types of answers: see above.

    Args:
        logits: float [num_rows, num_types].
        answer_types: sequence of str.
        examples, num_examples: as in `best_spans`.
    Returns:
        float [batch, num_types].
    """
    probabilities = tf.nn.softmax(logits)
    highest = tf.math.unsorted_segment_max(probabilities, examples, num_examples)
    is_none = tf.constant([kind == NO_ANSWER for kind in answer_types])
    others = tf.where(is_none, 0.0, highest)
    least = tf.math.unsorted_segment_min(probabilities, examples, num_examples)
    none = tf.where(is_none, least, 0.0)
    rest = 1.0 - tf.reduce_sum(none, axis=1, keepdims=True)
    return none + rest * tf.math.divide_no_nan(others, tf.reduce_sum(others, 1, keepdims=True))


def join_sentences(probabilities, blocks, is_block):
    """float32 [num_blocks]: the highest of each block, 0 where no window has it.

    Args:
        probabilities: float [num_rows, global_len].
        blocks: int32 [num_rows, global_len]. The block of each global token, or -1.
        is_block: any [num_blocks]. What there is one of for each block.
    """
    flat = tf.reshape(probabilities, [-1])
    highest = tf.math.unsorted_segment_max(flat, tf.reshape(blocks, [-1]), tf.size(is_block))
    return tf.maximum(highest, 0.0)


def top_phrases(logits, texts, is_new, examples, num_phrases):
    """The best phrases of each example.

    Args:
        logits: float [num_rows, max_tokens, long_len], by number of tokens and first one.
        texts: int32 [num_rows, long_len]. Which text each token is from; -1 where no phrase is.
        is_new: bool [num_rows, long_len]. Tokens that are in no earlier window.
        examples: int32 [num_rows], in order, each at least once.
        num_phrases: int.
    Returns:
        `Spans` [batch, num_phrases], the most probable first.
    """
    num_rows, max_tokens, length = tf.unstack(tf.shape(logits))
    places = tf.range(length) + tf.range(max_tokens)[:, tf.newaxis]
    inside = places < length
    places = tf.minimum(places, length - 1)
    first_texts = texts[:, tf.newaxis]
    allowed = inside & (first_texts >= 0) & tf.gather(is_new, places, axis=1)
    allowed &= tf.equal(first_texts, tf.gather(texts, places, axis=1))
    logits = tf.where(allowed, logits, logits.dtype.min)
    of_rows = tf.reshape(logits, [num_rows, max_tokens * length])
    grouped = tf.RaggedTensor.from_value_rowids(tf.range(num_rows), tf.cast(examples, tf.int64))
    rows = grouped.to_tensor(_NONE)  # [batch, most windows]
    flat = tf.gather(of_rows, tf.maximum(rows, 0))
    flat = tf.where((rows >= 0)[:, :, tf.newaxis], flat, logits.dtype.min)
    flat = tf.reshape(flat, [tf.shape(rows)[0], -1])
    flat = tf.pad(flat, [[0, 0], [0, num_phrases]], constant_values=logits.dtype.min)
    best, found = tf.math.top_k(flat, num_phrases)
    there = best > logits.dtype.min
    window = tf.where(there, found // (max_tokens * length), 0)
    row = tf.gather(rows, window, batch_dims=1)
    first, extra = found % length, found % (max_tokens * length) // length
    probabilities = tf.exp(best - tf.reduce_logsumexp(flat, axis=1, keepdims=True))
    found = (tf.where(there, x, _NONE) for x in (row, first, first + extra))
    return Spans(*found, tf.where(there, probabilities, 0.0))


# The signatures of an exported text model, by kind of head.
#
# Strings are UTF-8; offsets `[start, end)` count Unicode characters of a given string.


class Classifier(TextModule):
    """Signature `classify`."""

    def __init__(self, model, processor, options):
        super().__init__(model, processor, options)
        if model.problem_type == REGRESSION:
            raise ValueError(
                "A model that predicts numbers has no probabilities of labels. Export it with "
                "`serving.export_saved_model`."
            )
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
        probabilities = join_labels(probabilities, rows.examples, source.num_examples)
        best = tf.argmax(probabilities, axis=1)
        return {"probabilities": probabilities, "label": tf.gather(self._labels, best)}


class KeyphraseExtractor(TextModule):
    """Signature `keyphrases`."""

    def functions(self):
        return {"keyphrases": (self._keyphrases, strings_of(self.inputs))}

    def _keyphrases(self, text):
        given = self._given(text)
        source, rows, logits = self._read(given)
        spans = top_phrases(
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
            "answer_sentences": (self._answer_sentences, strings_of(self.sentence_inputs)),
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
        spans = best_spans(
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
        kind, probability = tf.fill(tf.shape(strings), SPAN), spans.probabilities
        if self._types:
            kind, probability = self._typed(logits["type"], rows, spans)
        is_span = tf.equal(kind, SPAN)
        found = places.Places(*(tf.where(is_span, x, _NONE) for x in found))
        named = tf.where(tf.equal(kind, NO_ANSWER), "", kind)
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
        types = join_types(logits, self._types, rows.examples, size)
        kind = tf.gather(self._types, tf.argmax(types, axis=1))
        share = tf.where(tf.equal(kind, SPAN), spans.probabilities, 1.0)
        return kind, tf.reduce_max(types, axis=1) * share

    def _evidence(self, texts, source, rows, logits, shape, names):
        probabilities = join_sentences(tf.sigmoid(logits), rows.blocks, source.is_document)
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
    return _module_class(model)(model, processor, options)


def _module_class(model):
    for head, module in _MODULES.items():
        if isinstance(model, head):
            return module
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
    some = check_some("question", size)
    with tf.control_dependencies([some]):  # `argmax` of nothing has an error of its own.
        blank = ["A `question` is empty, in the row:", tf.argmax(is_blank)]
    checks = [
        some,
        tf.debugging.Assert(tf.equal(size, shape[0]), rows),
        tf.debugging.Assert(~tf.reduce_any(is_blank), blank),
    ]
    with tf.control_dependencies(checks):
        return questions, [tf.identity(x) for x in shape]


# The export.


METADATA_FILE = TEXT_FILE


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Options of the answers of an exported text model.

    Attributes:
        labels: sequence of str. The names of a classifier's labels; by default those of the model,
            or their numbers.
        max_answer_tokens: int. Maximum length of an answer in tokens.
        whole_words: bool. Whether answers are extended to whole words: see `text.answers.widened`.
        num_phrases: int. Number of key phrases per text.
        attention_keys: int. Number of attended tokens that the signature `attention` returns for
            each token; 0 for an export without attention signatures.
        attention_layer: int or None. The layer of this attention, from 0; None for the last.
        examples: sequence of dict. Example requests offered on the server's page, such as
            {"question": "Where is it?", "documents": ["It is here."]} or {"text": "It is here."}:
            a str for each input, and a list for documents.

    Raises:
        ValueError: naming the option, if it is invalid.
    """

    labels: tuple = ()
    max_answer_tokens: int = 30
    whole_words: bool = True
    num_phrases: int = 5
    attention_keys: int = 8
    attention_layer: int | None = None
    examples: tuple = ()

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels or ()))
        if not isinstance(self.whole_words, bool):
            raise ValueError(f"`whole_words` must be a bool. Received: {self.whole_words!r}")
        if not all(isinstance(label, str) for label in self.labels):
            raise ValueError(f"`labels` must be strings. Received: {list(self.labels)}")
        object.__setattr__(self, "examples", tuple(map(_checked_example, self.examples or ())))
        least = {"max_answer_tokens": 1, "num_phrases": 1, "attention_keys": 0}
        if self.attention_layer is not None:
            least["attention_layer"] = 0
        for name, lowest in least.items():
            value = getattr(self, name)
            if type(value) is not int or value < lowest:
                raise ValueError(
                    f"`{name}` must be an int of at least {lowest}. Received: {value!r}"
                )


def _checked_example(example):
    def is_text(value):
        return isinstance(value, str)

    values = example.values() if isinstance(example, dict) else [None]
    if not all(is_text(x) or isinstance(x, list) and all(map(is_text, x)) for x in values):
        raise ValueError(
            "Each of `examples` must be a dict of str, or of list of str, by the name of an input. "
            f"Received: {example!r:.100}"
        )
    return example


def export_text_model(model, directory, processor=None, *, weights="float32", **options):
    """Writes a SavedModel whose signatures take strings; it needs TensorFlow and tensorflow-text.

    The signatures of each kind of head, and the rules for texts, are described in docs/serving.md.
    The graph produces the same ids as the processor, except that 'simple' splits sentences in place
    of 'punkt', and that examples never share a row.

    Args:
        model: `EtcForSequenceClassification`, `EtcForQuestionAnswering` or
            `EtcForKeyphraseExtraction`.
        directory: str. Where to write; must not exist. It appears only when it is complete.
        processor: `EtcProcessor`; by default the model's own.
        weights: see `export_saved_model`.
        **options: fields of `TextOptions`.
    Returns:
        `directory`.
    Raises:
        ValueError: if there are no signatures for the model, a graph cannot reproduce the
            processor, an option is invalid, or the directory exists.

    >>> from etcmodel import serving
    >>> model = etcmodel.from_pretrained("my_model")
    >>> serving.export_text_model(model, "reviewer", labels=["neg", "pos"])
    'reviewer'
    >>> classify = tf.saved_model.load("reviewer").signatures["serving_default"]
    >>> classify(tf.constant(["Good!"]))["label"].numpy()
    array([b'pos'], dtype=object)
    """
    _module_class(model)  # Before the processor, which may be another system's.
    processor = processor or model.processor
    if processor is None:
        raise ValueError("`processor` must be given: the model has none of its own.")
    text_data.check_vocabulary(model, processor)
    options = TextOptions(**{"labels": getattr(model, "labels", ()), **options})
    metadata = {
        format_versions.ENTRY: format_versions.EXPORT,
        "head_type": model.head_type,
        "sentence_splitter": documents.splitter_of(processor.config),
        "options": dataclasses.asdict(options),
        "processor": dataclasses.asdict(processor.config),
        "attention": attention.AttentionReader.sizes(model, options),
    }
    content = json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
    return export.write_saved_model(
        directory,
        {METADATA_FILE: content.encode()},
        lambda: make_module(model, processor, options),
        weights,
    )
