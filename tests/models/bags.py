"""A system from outside the library: each token is its embedding and the mean of its text's."""

import contextlib
import dataclasses
import typing

import tensorflow as tf

from etcmodel.layers import EmbeddingLookup, base, dense, sublayers
from etcmodel.models import heads, json_config, processed_batches, systems
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

    def __post_init__(self):
        self.check()


class Bag(base.Layer):
    def __init__(self, config, name="bag", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = config
        self.words = EmbeddingLookup(config.vocab_size, config.hidden_size, name="words")
        self.mix = dense.Dense(config.hidden_size, name="mix")

    def build(self, input_shape):
        sublayers.build_sublayer(self.words, tf.TensorShape([None, None]))
        sublayers.build_sublayer(self.mix, tf.TensorShape([None, None, self.config.hidden_size]))
        super().build(input_shape)

    def call(self, input_ids, attention_mask=None, training=None):
        del training
        if attention_mask is None:
            attention_mask = tf.ones_like(input_ids)
        share = tf.cast(attention_mask, tf.float32)[:, :, tf.newaxis]
        words = self.words(input_ids) * share
        mean = tf.reduce_sum(words, 1, keepdims=True) / tf.reduce_sum(share, 1, keepdims=True)
        return self.mix(words + mean), None

    def get_token_embedding_table(self):
        return self.words.embedding_table


class BagForSequenceClassification(of_text.SequenceClassification):
    head_type = "bag_sequence_classification"
    encoder_class = Bag


class BagClassifier(processed_batches.ReadsProcessed, BagForSequenceClassification):
    """The same of a batch of `EtcProcessor`."""


def classifier(config, num_labels, problem_type, pooling):
    del pooling
    return BagClassifier(config, num_labels=num_labels, problem_type=problem_type)


WEIGHTS = systems.Weights(
    prefix="bag.",
    names=(
        ("bag/words/embedding_table", "bag.words.weight"),
        ("bag/mix/kernel", "bag.mix.weight"),
        ("bag/mix/bias", "bag.mix.bias"),
        ("classifier_dense/kernel", "classifier.dense.weight"),
        ("classifier_dense/bias", "classifier.dense.bias"),
        (r"classifier_out/(weights|bias)", r"classifier.out.\1"),
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


@contextlib.contextmanager
def registered(**changes):
    """The library knows the system, with some entries of its record changed, until the end."""
    before, heads_before = dict(systems._SYSTEMS), dict(heads_base._HEADS)
    systems._SYSTEMS.pop("bag", None)
    heads.register_head(BagForSequenceClassification)
    try:
        yield systems.register(dataclasses.replace(SYSTEM, **changes))
    finally:
        for registry, kept in (
            (systems._SYSTEMS, before),
            (heads_base._HEADS, heads_before),
        ):
            registry.clear()
            registry.update(kept)
