"""The HotpotQA models: an encoder with a head for each kind of output.

That of ETC (paper, appendix C), and that of any encoder of one sequence (marked evidence).
"""

import copy
import functools

import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.layers import dense, heads, initializers, sublayers
from etcmodel.models import encoders, multihop_utils, padding, token_classifiers
from etcmodel.ops import activations, relations

from .config import ANSWER_TYPES, BIO_IDS, Kind
from .features import EDGE_FEATURES, GLOBAL_FEATURES, LONG_FEATURES

__all__ = [
    "EDGE_LABELS",
    "HotpotQaModel",
    "MarkedHotpotQaModel",
    "loss",
    "make_structure",
    "marked_loss",
]

# The names of the first unused labels, in order; the released models have room for four. Only
# mentions of a title have a direction that the tokens themselves do not show.
EDGE_LABELS = ("same_word_in_paragraph", "same_word", "title", "title_back")


class HotpotQaModel(tf_keras.Model):
    """Scores supporting facts, the answer's type and the answer's tokens.

    Supporting facts come from every global token, the type (span, yes, no) from the global CLS
    token, the answer from every long token: its begin and end, or a BIO id. The heads are float32
    under any policy. The CLS token's attention is exempt from the hard g2l mask.

    Args:
        encoder_config: `EncoderConfig`.
        answer_encoding_method: 'span' or 'bio'.
        flat_sequence: bool. Ignore paragraphs (paper, table 3).
        skip_padding: bool. Exclude padding from answers and facts, and do not encode positions that
            are padding in the whole batch (`models.padding`).
        **kwargs: arguments of the Keras model.
    Call args:
        features: dict of int [batch, long_len] `long_token_ids`, `long_token_type_ids`,
            `long_sentence_ids`, `long_paragraph_ids`, `long_paragraph_breakpoints`, and int
            [batch, global_len] `global_token_ids`, `global_token_type_ids`,
            `global_paragraph_breakpoints`; optionally int [batch, num_edges, 2] `same_word_edges`
            and `title_edges`, pairs of global tokens (-1 twice for none); others are ignored.
        training: bool.
    Returns:
        dict of float32 `supporting_facts_logits` and `_probs` [batch, global_len],
        `answer_type_logits` and `_probs` [batch, 3], int32 `answer_types` [batch, 1]; with spans
        `answer_begin_logits`, `answer_end_logits` [batch, long_len] and for both ends the k best
        `_top_probs` and `_top_indices` [batch, k], k = min(50, long_len); with BIO
        `answer_bio_logits` [batch, long_len, 3], `answer_bio_probs` (of the best id) and
        `answer_bio_ids` [batch, long_len].
    Raises:
        ValueError: if `answer_encoding_method` is unknown.
    """

    def __init__(
        self,
        encoder_config,
        *,
        answer_encoding_method="span",
        flat_sequence=False,
        skip_padding=False,
        **kwargs,
    ):
        super().__init__(**{"name": "hotpotqa", "dtype": "float32", **kwargs})
        if answer_encoding_method not in ("span", "bio"):
            raise ValueError(
                "`answer_encoding_method` must be 'span' or 'bio'. "
                f"Received: {answer_encoding_method!r}"
            )
        self.encoder_config = copy.copy(encoder_config)  # The caller may still change theirs.
        self.answer_encoding_method = answer_encoding_method
        self.flat_sequence = flat_sequence
        self.skip_padding = skip_padding
        self.etc_model = encoders.make_global_local_encoder(encoder_config)
        options = {"initializer_range": encoder_config.initializer_range, "dtype": "float32"}
        self.supporting_facts_head = heads.TokenLogits(1, name="facts", **options)
        self.answer_type_head = heads.TokenLogits(len(ANSWER_TYPES), name="types", **options)
        if answer_encoding_method == "span":
            self.answer_head = heads.SpanLogits(("begin", "end"), name="span", **options)
        else:
            self.answer_head = heads.TokenLogits(len(BIO_IDS), name="bio", **options)

    def build(self, input_shape=None):
        sublayers.build_sublayer(self.etc_model, None)
        for name, head in (
            ("supporting_facts", self.supporting_facts_head),
            ("answer_type", self.answer_type_head),
            (f"answer_{self.answer_encoding_method}", self.answer_head),
        ):
            head.build_in(self, f"{name}_output_", self.encoder_config.hidden_size)
        self.built = True

    @without_autograph
    def call(self, features, training=None):
        encode = functools.partial(self._encode, training=training)
        if not self.skip_padding:
            return self._outputs(*encode(features))
        is_real = multihop_utils.real_tokens(features)
        axes = (LONG_FEATURES, GLOBAL_FEATURES)
        hidden = padding.encode_without_padding(encode, features, *is_real, axes)
        return self._outputs(*hidden, *is_real)

    def _encode(self, features, training):
        return self.etc_model(
            features["long_token_ids"],
            features["global_token_ids"],
            segment_ids=features["long_token_type_ids"],
            global_segment_ids=features["global_token_type_ids"],
            training=training,
            structure=make_structure(features, self.encoder_config, self.flat_sequence),
        )

    def _outputs(self, long_output, global_output, long_is_real=None, global_is_real=None):
        supporting_facts_logits = self.supporting_facts_head(global_output)[:, :, 0]
        if global_is_real is not None:
            supporting_facts_logits = tf.where(
                global_is_real, supporting_facts_logits, heads.MASKED_LOGIT
            )
        answer_type_logits = self.answer_type_head(global_output[:, 0])
        return {
            "supporting_facts_logits": supporting_facts_logits,
            "supporting_facts_probs": tf.sigmoid(supporting_facts_logits),
            "answer_type_logits": answer_type_logits,
            "answer_type_probs": tf.nn.softmax(answer_type_logits),
            "answer_types": tf.argmax(answer_type_logits, -1, tf.int32)[:, tf.newaxis],
            **self._answer_outputs(long_output, long_is_real),
        }

    def _answer_outputs(self, long_output, long_is_real):
        """The outputs of the answer's head, by name."""
        if self.answer_encoding_method == "bio":
            logits = self.answer_head(long_output)
            if long_is_real is not None:
                outside = tf.one_hot(BIO_IDS["outside"], len(BIO_IDS), 0.0, heads.MASKED_LOGIT)
                logits = tf.where(long_is_real[:, :, tf.newaxis], logits, outside)
            tags, probs = heads.best_tags(logits)
            return {
                "answer_bio_logits": logits,
                "answer_bio_probs": probs,
                "answer_bio_ids": tags,
            }
        outputs = {}
        for name, end_logits in self.answer_head(long_output, allowed=long_is_real).items():
            top_probs, top_indices = heads.top_positions(tf.nn.softmax(end_logits))
            outputs[f"answer_{name}_logits"] = end_logits
            outputs[f"answer_{name}_top_probs"] = top_probs
            outputs[f"answer_{name}_top_indices"] = top_indices
        return outputs


class MarkedHotpotQaModel(tf_keras.Model):
    """Scores marked paragraphs and sentences, the answer's type and the answer's tokens.

    Paragraphs and sentences have two layers each, on their marks; the type (span, yes, no) one, on
    [CLS]; both ends of the answer one, on each token of text (Beltagy et al. 2020,
    arXiv:2004.05150, appendix D, "HotpotQA"). In Longformer, [CLS], the question, and the marks of
    paragraphs and sentences are global. The heads are float32 under any policy.

    Args:
        encoder_config: `EncoderConfig`, of an encoder of one sequence.
        skip_padding: bool. Do not encode positions that are padding in the whole batch
            (`models.padding`).
        **kwargs: arguments of the Keras model.
    Call args:
        features: dict of int [batch, long_len] `token_ids` and `kinds`: see `marks.make_features`;
            others are ignored.
        training: bool.
    Returns:
        dict of float32 `supporting_facts_logits` [batch, long_len], -1e9 where there is no mark;
        `answer_type_logits` [batch, 3], int32 `answer_types` [batch, 1]; `answer_begin_logits` and
        `answer_end_logits` [batch, long_len], -1e9 where there is no text.
    Raises:
        ValueError: naming the config's type, if there is no such model for it.
    """

    def __init__(self, encoder_config, *, skip_padding=False, **kwargs):
        super().__init__(**{"name": "hotpotqa", "dtype": "float32", **kwargs})
        encoders.check_one_sequence(encoder_config)
        self.encoder = token_classifiers.make_token_encoder(encoder_config, "Evidence is found")
        self.skip_padding = skip_padding
        deviation = encoder_config.initializer_range
        sizes = [encoder_config.hidden_size, 1]
        for name in ("paragraph", "sentence"):
            initializer = initializers.default_initializer(deviation)
            head = dense.DenseLayers(
                sizes,
                activation=activations.gelu_exact,
                kernel_initializer=initializer,
                name=f"{name}_head",
                dtype="float32",
            )
            setattr(self, f"{name}_head", head)
        options = {"initializer_range": deviation, "dtype": "float32"}
        self.answer_type_head = heads.TokenLogits(len(ANSWER_TYPES), name="types", **options)
        self.answer_head = heads.SpanLogits(("begin", "end"), name="span", **options)

    def build(self, input_shape=None):
        size = self.encoder.config.hidden_size
        sublayers.build_sublayer(self.encoder, None)
        for head in (self.paragraph_head, self.sentence_head):
            sublayers.build_sublayer(head, tf.TensorShape([None, size]))
        self.answer_type_head.build_in(self, "answer_type_output_", size)
        self.answer_head.build_in(self, "answer_span_output_", size)
        self.built = True

    @without_autograph
    def call(self, features, training=None):
        kinds = features["kinds"]
        is_global = (kinds == Kind.QUESTION) | (kinds == Kind.TITLE) | (kinds == Kind.SENTENCE)
        inputs = {
            "token_ids": features["token_ids"],
            "segment_ids": tf.cast(kinds > Kind.QUESTION, tf.int32),
            "example_ids": tf.cast(kinds > Kind.PADDING, tf.int32),
            "global_attention_mask": tf.cast(is_global, tf.int32),
        }
        hidden = token_classifiers.hidden_states(
            self.encoder, inputs, training=training, skip_padding=self.skip_padding
        )
        hidden = tf.cast(hidden, tf.float32)
        facts = tf.fill(tf.shape(kinds), heads.MASKED_LOGIT)
        for kind, head in (
            (Kind.TITLE, self.paragraph_head),
            (Kind.SENTENCE, self.sentence_head),
        ):
            facts = tf.where(kinds == kind, head(hidden, training=training)[:, :, 0], facts)
        type_logits = self.answer_type_head(hidden[:, 0])
        ends = self.answer_head(hidden, allowed=kinds == Kind.TEXT)
        return {
            "supporting_facts_logits": facts,
            "answer_type_logits": type_logits,
            "answer_types": tf.argmax(type_logits, -1, tf.int32)[:, tf.newaxis],
            **{f"answer_{name}_logits": logits for name, logits in ends.items()},
        }


def make_structure(features, encoder_config, flat_sequence=False):
    """The structure of `HotpotQaModel`'s input.

    Args:
        features: as of the model.
        encoder_config: `EncoderConfig`.
        flat_sequence: bool. Ignores paragraphs and edges.
    Returns:
        `ops.structure.GlobalLocalStructure`.
    Raises:
        ValueError: if there are edges and the config has no room for their labels.
    """
    is_cls = tf.equal(tf.range(tf.shape(features["global_token_ids"])[1]), 0)
    structure = multihop_utils.structure_of(
        features,
        encoder_config,
        ignore_hard_g2l_mask=is_cls[tf.newaxis],
        flat_sequence=flat_sequence,
    )
    if flat_sequence or EDGE_FEATURES[0] not in features:
        return structure
    labels = encoder_config.relation_labels(*EDGE_LABELS)
    ids = _edge_labels(features, structure, [labels[name] for name in EDGE_LABELS])
    return structure.with_relations(relations.GlobalLabels(ids, "edges"))


def _edge_labels(features, structure, labels):
    """The label of each pair of global tokens with an edge, -1 for others.

    Args:
        features: as of `make_structure`.
        structure: that without the edges.
        labels: list of int. Those of `EDGE_LABELS`.
    Returns:
        int32 [batch, global_len, global_len].
    """
    sizes = structure.sizes()
    words, titles = (
        relations.GlobalEdges(features[name], name, 0).holds(sizes) for name in EDGE_FEATURES
    )
    segments = structure.global_segment_ids
    same = tf.equal(segments[:, :, tf.newaxis], segments[:, tf.newaxis])
    # An edge of one piece of a paragraph is given to all of its pieces: two steps would take two
    # layers, and more examples to learn.
    words_of_paragraph, titles = _joined(same, words), _joined(titles, same)
    ids = tf.fill(tf.shape(same), -1)
    for pairs, label in zip(
        (
            words_of_paragraph | tf.linalg.matrix_transpose(words_of_paragraph),
            words | tf.linalg.matrix_transpose(words),
            titles,
            tf.linalg.matrix_transpose(titles),
        ),
        labels,
        strict=True,
    ):
        ids = tf.where(pairs, label, ids)
    return ids


def _joined(first, second):
    """Pairs that are connected by a third token: bool [batch, global_len, global_len] each."""
    return tf.matmul(tf.cast(first, tf.float32), tf.cast(second, tf.float32)) > 0


def loss(outputs, features):
    """Mean over the batch of the mean of the outputs' losses, each summed over its tokens.

    Args:
        outputs: of `HotpotQaModel`.
        features: dict of int32 labels: `supporting_facts` [batch, global_len], 0 or 1;
            `answer_types` [batch]; `answer_begins` and `answer_ends` [batch], where -1 adds
            nothing, nor does a position beyond the input, which the release's records may have; or
            `answer_bio_ids` [batch, long_len].
    Returns:
        dict of float32 scalars: "loss", and its parts by name.
    """
    facts = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(features["supporting_facts"], tf.float32),
        logits=outputs["supporting_facts_logits"],
    )
    parts = {
        "supporting_facts_loss": tf.reduce_sum(facts, axis=-1),
        "answer_type_loss": _cross_entropy(features["answer_types"], outputs["answer_type_logits"]),
    }
    if "answer_bio_logits" in outputs:
        bio = _cross_entropy(features["answer_bio_ids"], outputs["answer_bio_logits"])
        parts["answer_bio_loss"] = tf.reduce_sum(bio, axis=-1)
    else:
        for name in ("begin", "end"):
            parts[f"answer_{name}_loss"] = _cross_entropy(
                features[f"answer_{name}s"], outputs[f"answer_{name}_logits"]
            )
    means = {name: tf.reduce_mean(part) for name, part in parts.items()}
    return {"loss": tf.add_n(list(means.values())) / len(means), **means}


def marked_loss(outputs, features):
    """The sum of the losses of paragraphs, sentences, the answer's type and its span.

    Those of paragraphs and of sentences are means over an example's, that of the span is the mean
    of both ends'; each is the mean over the batch.

    Args:
        outputs: of `MarkedHotpotQaModel`.
        features: dict of int32 `kinds` [batch, long_len], and of the labels `supporting_facts`
            [batch, long_len], 0 or 1; `answer_types` [batch]; `answer_begins` and `answer_ends`
            [batch], where -1 adds nothing.
    Returns:
        dict of float32 scalars: "loss", and its parts by name.
    """
    facts = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(features["supporting_facts"], tf.float32),
        logits=outputs["supporting_facts_logits"],
    )
    parts = {}
    for name, kind in (("paragraphs", Kind.TITLE), ("sentences", Kind.SENTENCE)):
        is_mark = tf.cast(features["kinds"] == kind, tf.float32)
        total = tf.reduce_sum(facts * is_mark, axis=1)
        parts[f"{name}_loss"] = tf.math.divide_no_nan(total, tf.reduce_sum(is_mark, axis=1))
    parts["answer_type_loss"] = _cross_entropy(
        features["answer_types"], outputs["answer_type_logits"]
    )
    ends = (
        _cross_entropy(features[f"answer_{end}s"], outputs[f"answer_{end}_logits"])
        for end in ("begin", "end")
    )
    parts["answer_span_loss"] = sum(ends) / 2
    means = {name: tf.reduce_mean(part) for name, part in parts.items()}
    return {"loss": tf.add_n(list(means.values())), **means}


def _cross_entropy(labels, logits):
    """Softmax cross entropy; 0 where the label is out of range."""
    known = (labels >= 0) & (labels < tf.shape(logits)[-1])
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.where(known, labels, 0), logits=logits
    )
    return tf.where(known, cross_entropy, 0.0)
