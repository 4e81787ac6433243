"""A system from outside the library: each token is its embedding and the mean of its text's."""

import contextlib
import dataclasses
import typing

import tensorflow as tf

from etcmodel.inspection import observed as inspection_observed
from etcmodel.layers import EmbeddingLookup, base, dense, sublayers
from etcmodel.models import (
    heads,
    json_config,
    processed_batches,
    span_readers,
    systems,
    token_classifiers,
)
from etcmodel.models.heads import base as heads_base
from etcmodel.models.heads import of_text


@dataclasses.dataclass(frozen=True, kw_only=True)
class BagConfig(json_config.JsonConfig):
    model_type: typing.ClassVar[str] = "bag"

    vocab_size: int
    hidden_size: int = 8
    hidden_dropout_prob: float = 0.0
    initializer_range: float = 0.1
    pad_token_id: int = 0
    type_vocab_size: int = 1
    max_length: int = 24
    num_hidden_layers: int = 1
    num_attention_heads: int = 1
    layer_norm_eps: float = 1e-5
    activation: typing.ClassVar[str] = "relu"  # Of the head for masked tokens.

    def __post_init__(self):
        self.check()


class Bag(base.Layer):
    def __init__(self, config, name="bag", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = config
        self.words = EmbeddingLookup(config.vocab_size, config.hidden_size, name="word_emb")
        self.mix = dense.Dense(config.hidden_size, name="mix_layer_0")

    def build(self, input_shape):
        sublayers.build_sublayer(self.words, tf.TensorShape([None, None]))
        sublayers.build_sublayer(self.mix, tf.TensorShape([None, None, self.config.hidden_size]))
        super().build(input_shape)

    def call(self, input_ids, attention_mask=None, output_attentions=False, training=None):
        del training
        if attention_mask is None:
            attention_mask = tf.ones_like(input_ids)
        share = tf.cast(attention_mask, tf.float32)[:, :, tf.newaxis]
        words = self.words(input_ids) * share
        mean = tf.reduce_sum(words, 1, keepdims=True) / tf.reduce_sum(share, 1, keepdims=True)
        outputs = self.mix(words + mean), None
        if not output_attentions:
            return outputs
        shares = share[:, tf.newaxis, tf.newaxis, :, 0]  # To all real tokens alike.
        shares = tf.repeat(shares, tf.shape(input_ids)[1], 2)
        return *outputs, {"attentions": (shares / tf.reduce_sum(shares, -1, keepdims=True),)}

    def get_token_embedding_table(self):
        return self.words.embedding_table


class BagForSequenceClassification(of_text.SequenceClassification):
    head_type = "bag_sequence_classification"
    encoder_class = Bag


class BagForMaskedLM(of_text.MaskedLM):
    head_type = "bag_masked_lm"
    encoder_class = Bag


class BagForQuestionAnswering(of_text.QuestionAnswering):
    head_type = "bag_question_answering"
    encoder_class = Bag


class BagForTokenClassification(of_text.TokenClassification):
    head_type = "bag_token_classification"
    encoder_class = Bag


class BagClassifier(processed_batches.ReadsProcessed, BagForSequenceClassification):
    """The same of a batch of `EtcProcessor`."""


def classifier(config, num_labels, problem_type, pooling):
    del pooling
    return BagClassifier(config, num_labels=num_labels, problem_type=problem_type)


class BagSpanReader(span_readers.ReadsProcessed, BagForQuestionAnswering):
    """The same of a batch of `EtcProcessor`."""


class BagTagger(token_classifiers.ReadsProcessed, BagForTokenClassification):
    """The same of a batch of `EtcProcessor`."""


def observed(encoder, given, outputs):
    """The attention of the only layer; see `systems.System.observed`."""
    del encoder, given
    *_, extras = outputs
    probs = extras["attentions"][0].numpy()
    batch, _, length, _ = probs.shape

    def rows(queries):
        found = probs[:, :, queries].transpose([2, 0, 1, 3])
        return {"long": found, "global": found[..., :0]}

    return inspection_observed.Probabilities({(0, "long"): rows}, (length, 0), batch)


WEIGHTS = systems.Weights(
    prefix="bag.",
    names=(
        ("bag/word_emb/embedding_table", "bag.words.weight"),
        ("bag/mix_layer_0/kernel", "bag.mix.weight"),
        ("bag/mix_layer_0/bias", "bag.mix.bias"),
        ("classifier_dense/kernel", "classifier.dense.weight"),
        ("classifier_dense/bias", "classifier.dense.bias"),
        (r"classifier_out/(weights|bias)", r"classifier.out.\1"),
        *systems.logits_names("classifier", "tagger"),
        *systems.logits_names("qa_outputs", "qa_outputs"),
        *systems.dense_names("language_model/transform_dense", "lm_head.dense"),
        *systems.norm_names("language_model/transform_norm", "lm_head.norm"),
        ("language_model/bias", "lm_head.bias"),
    ),
    copies={"tied.weight": "bag.words.weight"},
    obsolete=("bag.position_ids",),
)
SYSTEM = systems.System(
    config_class=BagConfig,
    encoder_class=Bag,
    scope="bag",
    weights=WEIGHTS,
    has_whole_files=True,
    processor="etcmodel.text.gmat_processor:GmatProcessor",
    classifier=classifier,
)
# What else a record may say, which this one does not.
MORE = {
    "span_reader": BagSpanReader,
    "tagger": BagTagger,
    "masked_lm": BagForMaskedLM,
    "observed": observed,
    "has_layer_rates": True,
}
HEADS = (
    BagForSequenceClassification,
    BagForMaskedLM,
    BagForQuestionAnswering,
    BagForTokenClassification,
)


@contextlib.contextmanager
def registered(**changes):
    """The library knows the system, with some entries of its record changed, until the end."""
    before, heads_before = dict(systems._SYSTEMS), dict(heads_base._HEADS)
    systems._SYSTEMS.pop("bag", None)
    for head in HEADS:
        heads.register_head(head)
    try:
        yield systems.register(dataclasses.replace(SYSTEM, **changes))
    finally:
        for registry, kept in (
            (systems._SYSTEMS, before),
            (heads_base._HEADS, heads_before),
        ):
            registry.clear()
            registry.update(kept)
