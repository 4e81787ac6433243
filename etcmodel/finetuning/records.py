"""TFRecords of a task's preprocessing to batches of features; masks are made inside the model."""

import abc
import dataclasses
import math

import tensorflow as tf
from google.protobuf import message

from etcmodel import feature_checks, record_files, training

__all__ = [
    "RecordConfig",
    "check_punctuation",
    "check_records",
    "check_vocabulary",
    "make_eval_dataset",
    "make_train_dataset",
    "settings",
    "vocabularies",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(abc.ABC):
    """What the records must agree with; a task says which features they hold.

    Features are `tf.io.FixedLenFeature`s of any shape, of int64 (which becomes int32), float32 or
    string. A model's feature has at least one axis (beside the batch); in an exported model the
    first one may have another length.

    Attributes:
        long_seq_length, global_seq_length: int. Tokens of each input, padding included.
        vocab_size: int. Token ids must be below it.
        segment_vocab_size: int or None. Token types must be below it; None: not known.
        token_id_features: names of the features whose ids are of the vocabulary.
        int64_features: names of the features that stay int64, such as hashes.
        padding: dict of a model's feature to what fills it up to a common length; 0 for others.
        deciding_flags: flags of preprocess that decide which features there are.
        length_flags: flags of the lengths above.
    """

    long_seq_length: int
    global_seq_length: int
    vocab_size: int
    segment_vocab_size: int | None = None

    token_id_features = ("long_token_ids", "global_token_ids")
    int64_features = ()
    padding = {}
    deciding_flags = ("is_training",)
    length_flags = ("max_long_seq_length", "max_global_seq_length")

    def ranges(self):
        """Feature name to `feature_checks.Range`: what a subclass adds to the token ids."""
        vocabulary = feature_checks.Range(0, self.vocab_size, "the ids of the model's vocabulary")
        return dict.fromkeys(self.token_id_features, vocabulary)

    def token_type_range(self):
        """The `feature_checks.Range` of token types."""
        return feature_checks.Range(
            0, self.segment_vocab_size, "the model's `segment_vocab_size` decides"
        )

    def checks(self):
        """The `FeatureChecks` of all features."""
        return feature_checks.FeatureChecks(self.ranges(), tuple(self.int64_features))

    def model_axes(self):
        """Name of a model's feature to 'long' or 'global': what its first axis is."""
        # Features that change their length with that of an input are of this input.
        longer = dataclasses.replace(self, long_seq_length=self.long_seq_length + 1)
        changed = longer.model_features()
        return {
            name: "long" if changed[name].shape != feature.shape else "global"
            for name, feature in self.model_features().items()
        }

    @abc.abstractmethod
    def model_features(self):
        """Feature name to `FixedLenFeature` of what the model reads."""

    @abc.abstractmethod
    def label_features(self):
        """Likewise of what the loss needs besides."""

    @abc.abstractmethod
    def decoding_features(self):
        """Likewise of what decoding needs besides."""


def make_train_dataset(file_pattern, config, request):
    """Endless training batches.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        config: `RecordConfig`.
        request: `training.TrainDataRequest`.
    Returns:
        tf.data.Dataset of dicts of tensors [batch, ...]: the model's features and labels.
    """
    spec = {**config.model_features(), **config.label_features()}
    return training.training_batches(file_pattern, _parser(spec, config), request)


def make_eval_dataset(file_pattern, config, batch_size):
    """Each record once, in order; the last batch may be smaller.

    Returns:
        tf.data.Dataset of dicts of tensors [batch, ...]: the model's features and what decoding
        needs.
    """
    spec = {**config.model_features(), **config.decoding_features()}
    records = tf.data.TFRecordDataset(training.matching_files(file_pattern))
    parse = _parser(spec, config)
    return records.map(parse, tf.data.AUTOTUNE).batch(batch_size).prefetch(tf.data.AUTOTUNE)


def _parser(spec, config):
    checks = config.checks()
    shapes = {name: tuple(feature.shape) for name, feature in spec.items()}
    lengths = {name: shape[0] for name, shape in shapes.items() if shape}

    def parse(serialized):
        features = tf.io.parse_single_example(serialized, spec)
        features = checks.checked(features, lengths, shapes)
        return {name: _cast(name, value, config) for name, value in features.items()}

    return parse


def _cast(name, value, config):
    if value.dtype == tf.int64 and name not in config.int64_features:
        return tf.cast(value, tf.int32)
    return value


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
    files = training.matching_files(file_pattern)
    record_files.check_sizes(files)
    for file in files:
        for serialized in tf.data.TFRecordDataset(file).take(1):
            example = _example(file, serialized.numpy())
            values = {
                name: _values(file, example, name, feature, config)
                for name, feature in spec.items()
            }
            lengths = {name: len(found) for name, found in values.items()}
            for name, found in values.items():
                if problem := config.checks().problem(name, found, lengths):
                    raise ValueError(
                        f"{file}: {problem} Were the records made with another vocabulary or for "
                        "another model?"
                    )
            return
    raise ValueError(f"The files that match {file_pattern!r} hold no records.")


def settings(file_pattern):
    """What `preprocess` noted of records, as far as it lies beside them.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
    Returns:
        dict of a settings file to a dict.
    """
    try:
        files = training.matching_files(file_pattern) if file_pattern else []
    except ValueError:
        return {}  # Whoever reads the records tells what is wrong with them.
    return record_files.read_settings(files)


def _example(file, serialized):
    try:
        return tf.train.Example.FromString(serialized)
    except message.DecodeError as error:
        raise ValueError(
            f"{file}: the first record is no `tf.train.Example`. Preprocess again."
        ) from error


def vocabularies(file_pattern):
    """The vocabularies that records were made with, as far as their settings lie beside them.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
    Returns:
        dict of a settings file to `FullTokenizer.source_sha256`.
    """
    found = {name: noted.get("vocab_sha256") for name, noted in settings(file_pattern).items()}
    return {name: sha256 for name, sha256 in found.items() if sha256}


def check_vocabulary(file_pattern, tokenizer):
    """Compares the vocabulary of records with that of the run, as far as it is known.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        tokenizer: `FullTokenizer`.
    Raises:
        ValueError: naming both files, if they differ.
    """
    expected = tokenizer.source_sha256()
    for settings_file, sha256 in vocabularies(file_pattern).items():
        if sha256 != expected:
            raise ValueError(
                f"{settings_file}: the records were made with another vocabulary than "
                f"{str(tokenizer.source_file)!r}. Give that one, or preprocess again."
            )
    check_punctuation(file_pattern, tokenizer.split_punctuation)


def check_punctuation(file_pattern, split_punctuation):
    """Compares how the text of records was split with how the run splits it.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        split_punctuation: bool. See `tokenization.FullTokenizer`.
    Raises:
        ValueError: naming the settings beside the records, if they differ.
    """
    for settings_file, noted in settings(file_pattern).items():
        if noted.get("split_punctuation", False) != split_punctuation:
            made, advice = ("without", "Leave it out") if split_punctuation else ("with", "Give it")
            raise ValueError(
                f"{settings_file}: the records were made {made} --split_punctuation. {advice}, or "
                "preprocess again."
            )


_KINDS = {tf.int64: "int64_list", tf.float32: "float_list", tf.string: "bytes_list"}


def _values(file, example, name, feature, config):
    """The values of a feature of a `tf.train.Example`, if they are as many as there should be."""
    if name not in example.features.feature:
        raise ValueError(
            f"{file}: the records have no feature `{name}`. They were made in another mode or with "
            f"other options: see {_flags(config.deciding_flags, ' and ')} of preprocess."
        )
    values = example.features.feature[name]
    expected_kind = _KINDS[tf.as_dtype(feature.dtype)]
    kind = values.WhichOneof("kind") or expected_kind
    if kind != expected_kind:
        raise ValueError(
            f"{file}: `{name}` is a {kind}, the model needs a {expected_kind}. Preprocess again."
        )
    length, expected = len(getattr(values, kind).value), math.prod(feature.shape)
    if length != expected:
        raise ValueError(
            f"{file}: `{name}` has {length} values, the model's length is {expected}. Give the "
            f"lengths that the records were made with ({_flags(config.length_flags, ', ')}), or "
            "preprocess again."
        )
    return getattr(values, kind).value


def _flags(names, separator):
    return separator.join(f"--{name}" for name in names)
