"""Attention in a graph: attention probabilities, with the characters of queries and keys.

The tokens of an example are the long tokens of its windows, one window after the other and without
padding, and likewise its global tokens; each attends to those of its own window.
"""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.layers.observation import watching
from etcmodel.models.modeling import EtcModel
from etcmodel.ops import attention_summaries
from etcmodel.serving.text import sequences
from etcmodel.serving.text.features import NONE, QUESTION
from etcmodel.serving.text.places import Places

# In place of the number of a document.
QUESTION_TEXT, SPECIAL = -1, -2


class _Joined:
    """The tokens of one input in all windows of an example, one after the other.

    Args:
        codes: ragged int32 [num_rows, (len)]. One of `arrangement.Rows.codes`.
        padded_len: int32 scalar. The length of the padded input.
        examples: int32 [num_rows]. The example of each row, in order.
        num_examples: int32 scalar.

    Attributes:
        codes: int32 [num_tokens].
        examples: int32 [num_tokens].
        offsets: int32 [num_rows]. Where each row's tokens begin among those of its example.
    """

    def __init__(self, codes, padded_len, examples, num_examples):
        rows = tf.cast(codes.value_rowids(), tf.int32)
        before = tf.cumsum(sequences.lengths(codes), exclusive=True)
        places = tf.range(tf.size(rows)) - tf.gather(before, rows)
        firsts = tf.math.unsorted_segment_min(before, examples, num_examples)
        self.codes, self.examples = codes.flat_values, tf.gather(examples, rows)
        self.offsets = before - tf.gather(firsts, examples)
        self._num_examples, self._flat = num_examples, rows * padded_len + places

    def dense(self, values, default):
        """[num_tokens, …] by example: [batch, most tokens, …]."""
        ragged = sequences.of_rows(values, self.examples, self._num_examples)
        return sequences.padded(ragged, default, sequences.longest(ragged))

    def dense_of_rows(self, values, default):
        """[num_rows, padded_len, …] likewise, without the padding."""
        shape = tf.concat([[-1], tf.shape(values)[2:]], 0)
        return self.dense(tf.gather(tf.reshape(values, shape), self._flat), default)


class Asked(NamedTuple):
    """The requested characters and layers: int32 [batch] each.

    Attributes:
        documents: Which text of the example; `QUESTION_TEXT` for the question.
        starts, ends: Its characters `[start, end)`.
        layers: From 0.
    """

    documents: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    layers: tf.Tensor


class AttentionReader:
    """Records an `EtcModel`'s attention while the model is called.

    Args:
        model: `HeadModel`.
        options: `export.TextOptions`.
    Raises:
        ValueError: if the model does not have the layer.
    """

    def __init__(self, model, options):
        self._call = lambda features: model(features, training=False)
        self._blocks = model.encoder.global_local_transformer_layers.fused_att_layers
        self._num_keys = options.attention_keys
        last = self.num_layers - 1
        self._layer = last if options.attention_layer is None else options.attention_layer
        if self._layer > last:
            raise ValueError(
                f"`attention_layer` must be from 0 to {last}, the model's last. "
                f"Received: {self._layer}"
            )

    @staticmethod
    def can_read(model):
        return isinstance(model.encoder, EtcModel)

    @classmethod
    def sizes(cls, model, options):
        """dict of the numbers of "layers" and "heads", and the "layer" of `top`; {} without any."""
        if not (options.attention_keys and cls.can_read(model)):
            return {}
        config = model.encoder.config
        layers, layer = config.num_hidden_layers, options.attention_layer
        layer = layers - 1 if layer is None else layer
        return {"layers": layers, "heads": config.num_attention_heads, "layer": layer}

    @property
    def num_layers(self):
        return len(self._blocks)

    def top(self, rows, num_examples):
        """The keys that each long token attends to most, averaged over the heads.

        Args:
            rows: `arrangement.Rows`.
            num_examples: int32 scalar.
        Returns:
            dict of `attended` int32 [batch, num_tokens, num_keys] and `attention` float32,
            likewise, the most probable first: a long token, or num_tokens plus a global token.
            Missing entries are -1 and 0.
        """
        tokens, global_tokens = _joined(rows, num_examples)
        found = []

        def look(layer, side, inputs, queries, key_sets, options):
            if side == "long":
                found.extend(
                    attention_summaries.top_probs(queries, key_sets, self._num_keys, **options)
                )

        with watching({self._layer: self._blocks[self._layer]}, look):
            self._call(rows.features)
        keys, probs = found
        long_len = tf.shape(keys)[1]
        num_tokens = tf.reduce_max(tf.math.bincount(tokens.examples, minlength=num_examples))
        offsets, global_offsets = (
            x.offsets[:, tf.newaxis, tf.newaxis] for x in (tokens, global_tokens)
        )
        of_global = keys - long_len + global_offsets + num_tokens
        places = tf.where(keys < long_len, keys + offsets, of_global)
        return {
            "attended": tokens.dense_of_rows(tf.where(keys >= 0, places, NONE), NONE),
            "attention": tokens.dense_of_rows(probs, 0.0),
        }

    def of_span(self, source, rows, asked, num_documents):
        """What the long tokens of some characters attend to, averaged over these tokens.

        Each token is taken from the first window that contains it.

        Args:
            source: `documents.Source`.
            rows: `arrangement.Rows`.
            asked: `Asked`.
            num_documents: int32 scalar. Texts of each example.
        Returns:
            float32 [batch, num_heads, num_tokens + num_global_tokens].
        Raises:
            tf.errors.InvalidArgumentError: if there is no token there, or no such layer; or another
                number of rows is asked for than there are.
        """
        asked = _checked(asked, source.num_examples, self.num_layers)
        is_asked = _is_asked(source, rows, asked, num_documents)
        return self._of_tokens(rows, source.num_examples, is_asked, asked.layers)

    def _of_tokens(self, rows, num_examples, is_asked, layers):
        """`of_span` of bool [num_rows, long_len]: which tokens are asked for."""
        counts = tf.reduce_sum(tf.cast(is_asked, tf.float32), axis=1)
        counts = tf.math.unsorted_segment_sum(counts, rows.examples, num_examples)
        counts = tf.gather(counts, rows.examples)[:, tf.newaxis]
        weights = tf.cast(is_asked, tf.float32) / counts
        layers, found = tf.gather(layers, rows.examples), []

        def look(layer, side, inputs, queries, key_sets, options):
            if side != "long":
                return
            is_here = tf.equal(layers, layer)
            own = weights * tf.cast(is_here, tf.float32)[:, tf.newaxis]
            num_keys = sum(key_set.num_keys for key_set in key_sets)
            shape = [tf.shape(queries)[0], queries.shape[2], num_keys]
            found.append(
                tf.cond(
                    tf.reduce_any(is_here),
                    lambda: attention_summaries.mean_probs(queries, key_sets, own, **options),
                    lambda: tf.zeros(shape),
                )
            )

        with watching(dict(enumerate(self._blocks)), look):
            self._call(rows.features)
        probs = tf.transpose(tf.add_n(found), [0, 2, 1])  # [num_rows, keys, num_heads]
        long_len = tf.shape(rows.pieces)[1]
        parts = zip(
            _joined(rows, num_examples), (probs[:, :long_len], probs[:, long_len:]), strict=True
        )
        dense = [part.dense_of_rows(values, 0.0) for part, values in parts]
        return tf.transpose(tf.concat(dense, 1), [0, 2, 1])


def _checked(asked, num_examples, num_layers):
    """The `Asked`, once its sizes and layers are right."""
    checks = [
        tf.debugging.Assert(
            tf.equal(tf.size(x), num_examples),
            [f"`{name}` must have a number for each row. Received numbers and rows:"]
            + [tf.size(x), num_examples],
        )
        for name, x in zip(("document", "start", "end", "layer"), asked, strict=True)
    ]
    in_range = (asked.layers >= 0) & (asked.layers < num_layers)
    told = [f"`layer` must be from 0 to {num_layers - 1}. Received:", asked.layers]
    checks.append(tf.debugging.Assert(tf.reduce_all(in_range), told))
    with tf.control_dependencies(checks):
        return Asked(*(tf.identity(x) for x in asked))


def _is_asked(source, rows, asked, num_documents):
    """bool [num_rows, long_len]: tokens of the characters, in the first window that has them."""
    found = of_pieces(source, rows.pieces, tf.maximum(num_documents, 1))
    documents, starts, ends, _ = (tf.gather(x, rows.examples)[:, tf.newaxis] for x in asked)
    is_first = sequences.firsts_of_runs(rows.examples)[:, tf.newaxis]
    is_new = (rows.pieces >= rows.first_new[:, tf.newaxis]) | is_first
    is_asked = tf.equal(found.texts, documents) & is_new & (rows.pieces >= 0)
    is_asked &= (found.starts < ends) & (found.ends > starts)
    counts = tf.reduce_sum(tf.cast(is_asked, tf.int32), axis=1)
    counts = tf.math.unsorted_segment_sum(counts, rows.examples, source.num_examples)
    told = ["No token is from the characters `start` to `end`, in the row:", tf.argmin(counts)]
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(counts > 0), told)]):
        return tf.identity(is_asked)


def _joined(rows, num_examples):
    """(`_Joined` of the long tokens, of the global tokens) of `arrangement.Rows`."""
    inputs = ((rows.codes.pieces, rows.pieces), (rows.codes.blocks, rows.blocks))
    return [_Joined(x, tf.shape(dense)[1], rows.examples, num_examples) for x, dense in inputs]


def told_places(source, rows, texts, questions, num_documents):
    """Where all tokens of examples are from.

    Args:
        source: `documents.Source`.
        rows: `arrangement.Rows`.
        texts: `documents.Texts`.
        questions: ragged int32 code points, or None.
        num_documents: int32 scalar. Texts of each example.
    Returns:
        dict of int32: `document`, `start`, `end` [batch, num_tokens], and with `global_` before
        them [batch, num_global_tokens]. Documents are `QUESTION_TEXT` and `SPECIAL`, too, the
        latter also in padding; the characters of special tokens are -1.
    """
    tokens, global_tokens = _joined(rows, source.num_examples)
    num_documents = tf.maximum(num_documents, 1)  # There may be none.
    found = of_pieces(source, tokens.codes, num_documents)
    outputs = {name: tokens.dense(*x) for name, x in _named(found).items()}
    found = _of_global_tokens(source, global_tokens, texts, questions, num_documents)
    named = {f"global_{name}": x for name, x in _named(found).items()}
    return {**outputs, **{name: global_tokens.dense(*x) for name, x in named.items()}}


def _named(found):
    """Name to (values, padding)."""
    return {
        "document": (found.texts, SPECIAL),
        "start": (found.starts, NONE),
        "end": (found.ends, NONE),
    }


def of_pieces(source, pieces, num_documents):
    """`Places` of pieces, int32 of any shape, below 0 for special tokens, by the document."""
    texts, starts, ends = (
        sequences.gathered(x, pieces) for x in (source.texts, source.starts, source.ends)
    )
    documents = tf.where(texts < 0, QUESTION_TEXT, texts % num_documents)
    is_piece = pieces >= 0
    return Places(
        tf.where(is_piece, documents, SPECIAL),
        tf.where(is_piece, starts, NONE),
        tf.where(is_piece, ends, NONE),
    )


def _of_global_tokens(source, tokens, texts, questions, num_documents):
    """`Places` of global tokens: a block's characters, those of the question, or of its token."""
    codes = tokens.codes
    of_question = of_pieces(source, QUESTION - 1 - codes, num_documents)
    block_texts, starts, ends, is_document = (
        sequences.gathered(x, codes)
        for x in (source.block_texts, source.block_starts, source.block_ends, source.is_document)
    )
    lengths = sequences.lengths(texts.code_points)
    ends = tf.where(is_document, sequences.gathered(lengths, block_texts), ends)
    is_block, is_question = codes >= 0, tf.equal(codes, QUESTION)
    found = [
        tf.where(is_block, x, of_piece)
        for x, of_piece in zip(
            (block_texts % num_documents, starts, ends), of_question, strict=True
        )
    ]
    if questions is None:
        return Places(*found)
    whole = (QUESTION_TEXT, 0, tf.gather(sequences.lengths(questions), tokens.examples))
    return Places(*(tf.where(is_question, x, y) for x, y in zip(whole, found, strict=True)))
