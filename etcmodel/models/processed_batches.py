"""What encoders of one text read of a batch of `EtcProcessor` (see `models.features`)."""

import tensorflow as tf

__all__ = ["is_text", "question_mask", "text_arguments"]


def text_arguments(features, config):
    """The arguments of an encoder of one text, such as Longformer.

    Args:
        features: dict of int32 [batch, long_len] `token_ids`, `example_ids`, `segment_ids`.
        config: the encoder's config.
    Returns:
        dict of `input_ids`, `attention_mask`, and `token_type_ids` where it has types.
    """
    is_token = features["example_ids"] > 0
    batch = {
        # Longformer counts positions by the config's padding, maybe not the vocabulary's.
        "input_ids": tf.where(is_token, features["token_ids"], config.pad_token_id),
        "attention_mask": tf.cast(is_token, tf.int32),
    }
    if config.type_vocab_size > 1:  # RoBERTa's checkpoints have but one.
        batch["token_type_ids"] = features["segment_ids"]
    return batch


def question_mask(features):
    """Which long tokens are [CLS] or of the question, without its separator.

    Args:
        features: dict of int32 [batch, long_len] `example_ids`, `segment_ids`, `links`; there is a
            question, and one example a row, whose first global token stands for the whole.
    Returns:
        bool [batch, long_len].
    """
    is_first = tf.range(tf.shape(features["links"])[1]) == 0
    is_question = (features["segment_ids"] == 0) & ((features["links"] > 0) | is_first)
    return is_question & (features["example_ids"] > 0)


def is_text(features):
    """Which long tokens are of the text behind the question: bool [batch, long_len].

    Args:
        features: as in `question_mask`.
    """
    return (features["segment_ids"] > 0) & (features["links"] > 0)
