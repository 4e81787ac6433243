"""The base of all exported text models: reading strings, and attention."""

import abc
from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import arrangement, tokenizers
from etcmodel.serving.text import attention as attention_lib
from etcmodel.serving.text import documents as documents_lib

_DEFAULT = "serving_default"


class Given(NamedTuple):
    """The inputs of a signature.

    Attributes:
        texts: `documents.Texts`.
        questions: ragged int32 code points [num_examples, (num_chars)], or None.
        shape: list of int32 scalars. The examples, and the number of an example's texts.
    """

    texts: documents_lib.Texts
    questions: tf.RaggedTensor | None
    shape: list


class TextModule(tf.Module, abc.ABC):
    """A model with everything that it needs to read strings.

    The Keras model itself is not an attribute: saving would then trace each of its layers.

    Args:
        model: `HeadModel`.
        processor: `EtcProcessor`.
        options: `export.TextOptions`.
    Raises:
        ValueError: if an example of the options has other inputs.
    """

    has_question = False
    inputs = {"text": 1}  # Argument of the first signature to its rank.

    def __init__(self, model, processor, options):
        super().__init__()
        for example in options.examples:
            ranks = {name: 1 + isinstance(value, list) for name, value in example.items()}
            if ranks != self.inputs:
                kinds = ("str", "list of str")
                wanted, found = (
                    ", ".join(f"{name} ({kinds[rank - 1]})" for name, rank in x.items())
                    for x in (self.inputs, ranks)
                )
                raise ValueError(
                    f"Each of `examples` must have {wanted}. Received: {found or 'nothing'}"
                )
        self.model_variables = list(model.variables)
        self.tokenizer = tokenizers.make_tokenizer(processor.tokenizer)
        self._splitter = documents_lib.splitter_of(processor.config)
        self._options = options
        self._model = lambda features: model(features, training=False)
        self._arrange = arrangement.Arranger(processor, self.has_question)
        self._attention = None
        if options.attention_keys and attention_lib.AttentionReader.can_read(model):
            self._attention = attention_lib.AttentionReader(model, options)

    def signatures(self):
        """dict from signature name to concrete function; the first one is also the default."""
        concrete = {name: _traced(*entry) for name, entry in self.all_functions().items()}
        return {_DEFAULT: next(iter(concrete.values())), **concrete}

    def all_functions(self):
        """Those of `functions`, and of attention, likewise."""
        return {**self.functions(), **self._functions_of_attention()}

    @abc.abstractmethod
    def functions(self):
        """Name to (function of tensors by keyword, dict of argument to its `tf.TensorSpec`)."""

    def _functions_of_attention(self):
        if self._attention is None:
            return {}
        given = strings_of(self.inputs)
        names = ("document",) * self.has_question + ("start", "end", "layer")
        asked = {name: tf.TensorSpec([None], tf.int32, name) for name in names}
        return {
            "attention": (self._attend, given),
            "attention_of_span": (self._attend_of_span, {**given, **asked}),
        }

    def _given(self, text):
        """The `Given` of `inputs`."""
        num_examples = _checked_size(text=text)
        return Given(documents_lib.of_texts(text), None, [num_examples, 1])

    def _arranged(self, given):
        """(`documents.Source`, `arrangement.Rows`)."""
        read = (given.texts, given.questions, given.shape[0])
        source = documents_lib.read(*read, self.tokenizer, self._splitter)
        return source, self._arrange(source)

    def _read(self, given):
        """(`documents.Source`, `arrangement.Rows`, the model's outputs)."""
        source, rows = self._arranged(given)
        return source, rows, self._model(rows.features)

    def _attend(self, **strings):
        given = self._given(**strings)
        source, rows = self._arranged(given)
        return {
            **attention_lib.told_places(source, rows, *given[:2], given.shape[1]),
            **self._attention.top(rows, source.num_examples),
        }

    def _attend_of_span(self, start, end, layer, document=None, **strings):
        given = self._given(**strings)
        source, rows = self._arranged(given)
        if document is None:  # A text is the only one of its example.
            document = tf.zeros_like(start)
        asked = attention_lib.Asked(document, start, end, layer)
        return {
            **attention_lib.told_places(source, rows, *given[:2], given.shape[1]),
            "attention": self._attention.of_span(source, rows, asked, given.shape[1]),
        }


def strings_of(ranks):
    """Argument to `tf.TensorSpec`, of argument to rank."""
    return {name: tf.TensorSpec([None] * rank, tf.string, name) for name, rank in ranks.items()}


def _traced(function, specs):
    """The concrete function of tensors; one of another rank is an error that names it."""

    def call(**given):
        return function(
            **{name: tf.ensure_shape(x, specs[name].shape) for name, x in given.items()}
        )

    # Functions that are attributes of the saved object would be traced again.
    return tf.function(call, autograph=False).get_concrete_function(**specs)


def _checked_size(**strings):
    """int32 scalar: the number of examples, once there is at least one."""
    ((name, tensor),) = strings.items()
    size = tf.shape(tensor)[0]
    with tf.control_dependencies([check_some(name, size)]):
        return tf.identity(size)


def check_some(name, size):
    """The operation that raises an error that names the argument if there are no examples."""
    return tf.debugging.Assert(size > 0, [f"`{name}` holds no example."])
