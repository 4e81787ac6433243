"""TFRecords of `preprocess` to batches of compact features; masks are made inside the model."""

import dataclasses

import tensorflow as tf

from etcmodel import training

__all__ = ["RecordConfig", "check_records", "make_eval_dataset", "make_train_dataset"]

LONG_FEATURES = (
    "long_token_ids",
    "long_token_type_ids",
    "long_sentence_ids",
    "long_paragraph_ids",
    "long_paragraph_breakpoints",
)
GLOBAL_FEATURES = ("global_token_ids", "global_token_type_ids", "global_paragraph_breakpoints")
DECODING_FEATURES = ("global_paragraph_ids", "global_sentence_ids")
# What the model takes, and what fills each feature up to a common length.
PADDING = {
    **dict.fromkeys((*LONG_FEATURES, *GLOBAL_FEATURES), 0),
    "long_sentence_ids": -1,
    "long_paragraph_ids": -1,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """What the records must agree with.

    Attributes:
        long_seq_length, global_seq_length: int. Tokens of each input, padding included.
        vocab_size: int. Token ids must be below it.
        answer_encoding_method: 'span' or 'bio'.
    """

    long_seq_length: int
    global_seq_length: int
    vocab_size: int
    answer_encoding_method: str = "span"

    def model_features(self):
        """Feature name to `FixedLenFeature` of what the model reads."""
        return {
            **{name: _ints(self.long_seq_length) for name in LONG_FEATURES},
            **{name: _ints(self.global_seq_length) for name in GLOBAL_FEATURES},
        }

    def label_features(self):
        """Likewise of the labels."""
        answer = (
            {"answer_bio_ids": _ints(self.long_seq_length)}
            if self.answer_encoding_method == "bio"
            else {"answer_begins": _ints(), "answer_ends": _ints()}
        )
        return {
            "supporting_facts": _ints(self.global_seq_length),
            "answer_types": _ints(),
            **answer,
        }

    def decoding_features(self):
        """Likewise of what `decode` needs besides."""
        return {
            "unique_ids": tf.io.FixedLenFeature([], tf.string),
            **{name: _ints(self.global_seq_length) for name in DECODING_FEATURES},
        }


def _ints(length=None):
    return tf.io.FixedLenFeature([] if length is None else [length], tf.int64)


def make_train_dataset(file_pattern, config, request):
    """Endless training batches.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        config: `RecordConfig`.
        request: `training.TrainDataRequest`.
    Returns:
        tf.data.Dataset of dicts of int32 tensors [batch, ...]: the model's features and labels.
    """
    spec = {**config.model_features(), **config.label_features()}
    return training.training_batches(file_pattern, _parser(spec, config), request)


def make_eval_dataset(file_pattern, config, batch_size):
    """Each record once, in order; the last batch may be smaller.

    Returns:
        tf.data.Dataset of dicts of tensors [batch, ...]: the model's features and what decoding
        needs (`unique_ids` are strings, the others int32).
    """
    spec = {**config.model_features(), **config.decoding_features()}
    records = tf.data.TFRecordDataset(training.matching_files(file_pattern))
    parse = _parser(spec, config)
    return records.map(parse, tf.data.AUTOTUNE).batch(batch_size).prefetch(tf.data.AUTOTUNE)


def _parser(spec, config):
    def parse(serialized):
        features = tf.io.parse_single_example(serialized, spec)
        features = {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in features.items()
        }
        checks = [_check_ids(name, features[name], config.vocab_size) for name in _TOKEN_IDS]
        with tf.control_dependencies(checks):
            return {name: tf.identity(value) for name, value in features.items()}

    return parse


_TOKEN_IDS = ("long_token_ids", "global_token_ids")


def _check_ids(name, ids, vocab_size):
    return tf.debugging.assert_less(
        ids,
        vocab_size,
        message=_outside_vocabulary(name, vocab_size),
    )


def _outside_vocabulary(name, vocab_size):
    return (
        f"`{name}` of a record are outside the vocabulary of the model, which has {vocab_size} "
        "entries: were the records made with another vocabulary?"
    )


def check_records(file_pattern, config, *, need_labels):
    """Compares the first record with what the model will be given.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        config: `RecordConfig`.
        need_labels: bool. Whether the records are for training.
    Raises:
        ValueError: naming file, feature and both lengths (or the vocabulary), if they do not fit;
            if no file matches or the files are empty.
    """
    spec = config.model_features()
    spec.update(config.label_features() if need_labels else config.decoding_features())
    for file in training.matching_files(file_pattern):
        for serialized in tf.data.TFRecordDataset(file).take(1):
            example = tf.train.Example.FromString(serialized.numpy())
            _check_record(file, example, spec)
            for name in _TOKEN_IDS:
                if max(example.features.feature[name].int64_list.value) >= config.vocab_size:
                    raise ValueError(f"{file}: {_outside_vocabulary(name, config.vocab_size)}")
            return
    raise ValueError(f"The files that match {file_pattern!r} hold no records.")


def _check_record(file, example, spec):
    for name, feature in spec.items():
        if name not in example.features.feature:
            raise ValueError(
                f"{file}: the records have no feature `{name}`. They were made for "
                "another mode or answer encoding: see --is_training and "
                "--answer_encoding_method of preprocess."
            )
        values = example.features.feature[name]
        length = len(getattr(values, values.WhichOneof("kind") or "int64_list").value)
        expected = feature.shape[0] if feature.shape else 1
        if length != expected:
            raise ValueError(
                f"{file}: `{name}` has {length} values, the model's length is {expected}. Give "
                "the lengths that the records were made with (--max_long_seq_length, "
                "--max_global_seq_length), or preprocess again."
            )
