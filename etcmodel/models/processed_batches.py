"""Adapts batches of `EtcProcessor` (see `models.features`) to encoders."""

import tensorflow as tf

from etcmodel.models import padding

LONG_FEATURES = ("token_ids", "segment_ids", "example_ids", "links")
GLOBAL_FEATURES = ("global_token_ids", "global_segment_ids", "global_example_ids")


class ReadsProcessed:
    """Calls a model with the features of a batch of `EtcProcessor` that its encoder takes.

    A mixin to list before the model's class, which has an `encoder`.

    Attributes:
        skip_padding: bool. Whether to leave out what is padding in the whole batch; False, whatever
            it is set to, where that would change the encoder's outputs.
        reads_as_head: bool. Whether `read`, of the same class, gives the head what it takes of
            such a batch by itself.
    """

    reads_as_head = True

    _skips = False
    token_feature = "token_ids"

    @property
    def skip_padding(self):
        return self._skips and may_skip_padding(self.encoder.config)

    @skip_padding.setter
    def skip_padding(self, skips):
        self._skips = skips

    def read(self, features):
        """Returns the features that the model takes; by default those of an encoder of one text."""
        return text_arguments(features, self.encoder.config)

    def restored(self, outputs, features):
        """Pads outputs of a batch without padding to the lengths of the whole batch, `features`."""
        return outputs

    @property
    def is_plain(self):
        """Whether `plain` answers such a batch alike; not if a `read` of one's own does not say."""
        reader = next(x for x in type(self).__mro__ if "read" in vars(x))
        return vars(reader).get("reads_as_head", False)

    def plain(self, labels=()):
        """Returns the same model as the head that `from_pretrained` makes: with the same encoder.

        Args:
            labels: sequence of str. Names of its labels; empty for a head without any.
        Returns:
            `EncoderWithHead` with this model's weights, which takes its own features.
        """
        head_class = next(x for x in type(self).__mro__ if "head_type" in vars(x))
        settings = {**self.settings(), **({"labels": tuple(labels)} if labels else {})}
        made = head_class(self.encoder, **settings)
        made.set_weights(self.get_weights())
        return made

    def call(self, features, training=None):
        if not self.skip_padding:
            return super().call(self.read(features), training=training)
        kept = self.read(without_padding(features))
        return self.restored(super().call(kept, training=training), features)


def may_skip_padding(config):
    """Whether outputs stay the same without padding: not if attention depends on a row's length.

    Args:
        config: `EncoderConfig`. BigBird's has `pattern_by_length`.
    """
    return getattr(config, "pattern_by_length", True)


def without_padding(features):
    """Removes the positions that are padding in all rows of a batch: see `padding.cut`.

    Args:
        features: dict of int32 [batch, long_len] `LONG_FEATURES` and `global_attention_mask`,
            [batch, global_len] `GLOBAL_FEATURES`, of which some may be missing, and others, which
            stay whole.
    Returns:
        dict of tensors.
    """
    of_long = (*LONG_FEATURES, "global_attention_mask")
    for name, names in (("example_ids", of_long), ("global_example_ids", GLOBAL_FEATURES)):
        if name in features:
            features = padding.cut(features, features[name] > 0, names)
    return features


def text_arguments(features, config):
    """Returns the arguments of an encoder of one text, such as Longformer.

    Args:
        features: dict of int32 [batch, long_len] `token_ids`, `example_ids`, `segment_ids`.
        config: the encoder's config.
    Returns:
        dict of `input_ids`, `attention_mask`, and `token_type_ids` if the encoder has token types.
    """
    is_token = features["example_ids"] > 0
    batch = {
        # Longformer counts positions by the config's padding id, which may not be the vocabulary's.
        "input_ids": tf.where(is_token, features["token_ids"], config.pad_token_id),
        "attention_mask": tf.cast(is_token, tf.int32),
    }
    if getattr(config, "type_vocab_size", 1) > 1:  # RoBERTa's checkpoints have one, T5 none.
        batch["token_type_ids"] = features["segment_ids"]
    return batch


def question_mask(features):
    """Marks [CLS] and the question's long tokens, without its separator.

    Args:
        features: dict of int32 [batch, long_len] `example_ids`, `segment_ids`, `links`. Each row
            has one example with a question, and its first global token stands for the whole.
    Returns:
        bool [batch, long_len].
    """
    is_first = tf.range(tf.shape(features["links"])[1]) == 0
    is_question = (features["segment_ids"] == 0) & ((features["links"] > 0) | is_first)
    return is_question & (features["example_ids"] > 0)


def is_text(features):
    """Marks the long tokens of the text behind the question: bool [batch, long_len].

    Args:
        features: as in `question_mask`.
    """
    return (features["segment_ids"] > 0) & (features["links"] > 0)
