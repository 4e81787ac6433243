"""Reads batches of features from TFRecords; masks are made inside the model."""

import abc
import dataclasses
import math

import tensorflow as tf
from google.protobuf import message

from etcmodel import feature_checks, format_versions, record_files, training
from etcmodel import options as options_lib
from etcmodel.autograph import without_autograph
from etcmodel.autotuning import without_autotuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import spans
from etcmodel.models.processed_batches import GLOBAL_FEATURES, LONG_FEATURES
from etcmodel.shown_values import as_flag

# The records themselves show this length, and the stride affects only the number of windows.
_NOT_COMPARED = ("global_seq_length", "stride")


def settings(file_pattern):
    """The settings files that `preprocess` wrote beside the records, if they exist.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
    Returns:
        dict from the path of a settings file to its content, a dict.

    >>> from etcmodel import finetuning
    >>> ((path, found),) = finetuning.settings("my_records/train").items()
    >>> found["labels"], found["tokenizer"]
    (['neg', 'pos'], 'wordpiece')
    """
    try:
        files = training.matching_files(file_pattern) if file_pattern else []
    except ValueError:
        return {}  # The reader of the records reports the error.
    return record_files.read_settings(files)


def vocabularies(file_pattern):
    """The vocabularies that records were made with, if they have settings files.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
    Returns:
        dict from the path of a settings file to a `FullTokenizer.source_sha256`.
    """
    found = {name: noted.get("vocab_sha256") for name, noted in settings(file_pattern).items()}
    return {name: sha256 for name, sha256 in found.items() if sha256}


def check_vocabulary(file_pattern, tokenizer):
    """Compares the vocabulary of records, if it is known, with that of the run.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        tokenizer: `FullTokenizer`.
    Raises:
        ValueError: naming both files, if they differ.

    >>> from etcmodel import finetuning
    >>> from etcmodel.text.tokenization import FullTokenizer
    >>> finetuning.check_vocabulary("my_records/train", FullTokenizer("vocab.txt")) is None
    True
    """
    expected = tokenizer.source_sha256()
    for settings_file, sha256 in vocabularies(file_pattern).items():
        if sha256 != expected:
            raise ValueError(
                f"{settings_file}: the records were made with another vocabulary than "
                f"{str(tokenizer.source_file)!r}. Give that one, or preprocess again."
            )
    check_punctuation(file_pattern, tokenizer.split_punctuation)


def check_one_vocabulary(*file_patterns):
    """Checks that records have one vocabulary, if their settings tell it.

    Without a vocabulary of the run, nothing else tells that ids of one set mean other tokens.

    Args:
        *file_patterns: str or list of str, or None for no records. TFRecord files, wildcards
            allowed.
    Raises:
        ValueError: naming the settings beside the records of two vocabularies.

    >>> from etcmodel.finetuning import records
    >>> records.check_one_vocabulary("my_records/train", None) is None
    True
    """
    files = {}
    for pattern in filter(None, file_patterns):
        for settings_file, sha256 in vocabularies(pattern).items():
            files.setdefault(str(sha256), settings_file)
    if len(files) > 1:
        first, other = list(files.values())[:2]
        raise ValueError(
            f"{other}: the records were made with another vocabulary than those of {first}. "
            "Preprocess them alike."
        )


def check_punctuation(file_pattern, split_punctuation):
    """Compares `split_punctuation` of records with that of the run.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        split_punctuation: bool. See `tokenization.FullTokenizer`.
    Raises:
        ValueError: naming the settings beside the records, if they differ.

    >>> from etcmodel import finetuning
    >>> finetuning.check_punctuation("my_records/train", split_punctuation=False)
    >>> finetuning.check_punctuation("my_records/train", split_punctuation=True)
    Traceback (most recent call last):
        ...
    ValueError: my_records/train.config.json: the records were made without --split_punctuation.
    Leave it out, or preprocess again.
    """
    for settings_file, noted in settings(file_pattern).items():
        if noted.get("split_punctuation", False) != split_punctuation:
            made, advice = ("without", "Leave it out") if split_punctuation else ("with", "Give it")
            raise ValueError(
                f"{settings_file}: the records were made {made} --split_punctuation. {advice}, or "
                "preprocess again."
            )


def check_labels(file_pattern, labels):
    """Checks that evaluation records have the labels of the run, if their settings name any.

    Args:
        file_pattern: str, or None for no records.
        labels: tuple of str.
    Raises:
        ValueError: naming the file of the settings.

    >>> from etcmodel import finetuning
    >>> finetuning.check_labels(None, ("neg", "pos")) is None
    True
    """
    for file, noted in settings(file_pattern or "").items():
        if tuple(noted.get("labels", labels)) != labels:
            raise ValueError(
                f"{file}: the records have other labels than the model, or in another order. "
                f"Preprocess them again, with --labels={as_flag(labels)}, or with the settings of "
                "the training records as --labels_file."
            )


def check_evaluation(file_pattern, config):
    """Compares the options of evaluation records with those of the run.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        config: `FinetuningConfig`. Its `not_of_evaluation` options are not compared.
    Raises:
        ValueError: naming the settings beside the records and both values, if they differ.
    """
    fields = options_lib.option_fields(type(config))
    names = {field.name for field in fields if field.metadata["role"] == "features"}
    names -= {*_NOT_COMPARED, *config.not_of_evaluation}
    for settings_file, noted in settings(file_pattern).items():
        noted = options_lib.from_kept(type(config), noted)
        if noted.get("tokenizer", "wordpiece") != "wordpiece":
            noted.pop("do_lower_case", None)  # Only WordPiece depends on this option.
        for name in sorted(names & noted.keys()):
            made, expected = noted[name], getattr(config, name)
            if made != expected:
                raise ValueError(
                    f"{settings_file}: the records were made with --{name}={as_flag(made)}, and "
                    f"the model's inputs with --{name}={as_flag(expected)}. Preprocess them alike; "
                    "where no run tells how the model was trained, give the flag."
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(abc.ABC):
    """The format that records must have; a task's subclass defines the features.

    Features are `tf.io.FixedLenFeature`s of any shape, of dtype int64 (which becomes int32),
    float32 or string. A model's feature has at least one axis beside the batch axis; the first of
    these may have another length in an exported model.

    Attributes:
        long_seq_length, global_seq_length: int. Length of each input in tokens, with padding.
        vocab_size: int. Token ids must be below it.
        segment_vocab_size: int or None. Token types must be below it; None: not known.
        skip_padding: bool. Whether the long inputs of a training batch have similar lengths.
        token_id_features: names of the features that hold token ids.
        length_feature: name of the feature that is 0 only at padding and so gives the length of an
            example; None: the first of `token_id_features`.
        int64_features: names of the features that stay int64, such as hashes.
        padding: dict from the name of a model's feature to its padding value; 0 for others.
        deciding_flags: flags of preprocess that determine which features exist.
        length_flags: flags of preprocess that determine the lengths.
        format_version: the latest version of the task's records that can be read: the version that
            its `ConverterFactory` makes.
        task: the `task` of that `ConverterFactory`, which the settings beside records name; records
            of another one are refused. None: those of any task are read.

    >>> from etcmodel.tasks.classification.task import RecordConfig
    >>> kind = {"problem_type": "single_label_classification", "labels": ("neg", "pos")}
    >>> config = RecordConfig(long_seq_length=16, global_seq_length=4, vocab_size=128, **kind)
    >>> config.label_features()
    {'labels': FixedLenFeature(shape=[], dtype=tf.int64, default_value=None)}
    """

    long_seq_length: int
    global_seq_length: int
    vocab_size: int
    segment_vocab_size: int | None = None
    skip_padding: bool = False

    token_id_features = ("long_token_ids", "global_token_ids")
    length_feature = None
    int64_features = ()
    padding = {}
    deciding_flags = ("is_training",)
    length_flags = ("long_seq_length", "global_seq_length")
    format_version = 1
    task = None

    @classmethod
    def of_run(cls, config, **fields):
        """The format of a run's records.

        Args:
            config: the run's options. Fields are taken from the options of the same names, and the
                sizes of the vocabularies from its `encoder_config`.
            **fields: further fields, and overriding values.
        """
        own = {field.name for field in dataclasses.fields(cls)}
        given = {name: getattr(config, name) for name in own if hasattr(config, name)}
        sizes = {
            "vocab_size": config.encoder_config.vocab_size,
            # Encoders other than ETC need not have such an entry.
            "segment_vocab_size": getattr(config.encoder_config, "segment_vocab_size", None),
        }
        return cls(**{**given, **sizes, **fields})

    def ranges(self):
        """dict from feature name to `feature_checks.Range`; subclasses add further features."""
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
        """dict from a model's feature to its first axis: 'long' or 'global', else its own name."""
        features = self.model_features()
        axes = {name: name for name in features}
        for axis in ("global", "long"):
            # Features whose length changes with that of an input belong to it.
            length = f"{axis}_seq_length"
            longer = dataclasses.replace(self, **{length: getattr(self, length) + 1})
            changed = longer.model_features()
            axes |= {name: axis for name in features if changed[name].shape != features[name].shape}
        return axes

    def problem_of_kind(self, name, kind, length):
        """Says that a record's feature is not of the kind that the model learns: str, '' if it is.

        Subclasses know kinds that neither a type nor a length names, such as several labels.

        Args:
            name: str. The feature.
            kind: str. "int64_list", "float_list" or "bytes_list".
            length: int. The number of its values.
        """
        del name, kind, length
        return ""

    def length_of(self):
        """The function from an example to its length, to group batches by; None: no grouping."""
        if not self.skip_padding:
            return None
        name = self.length_feature or self.token_id_features[0]
        return lambda features: tf.math.count_nonzero(features[name])

    @abc.abstractmethod
    def model_features(self):
        """The model's features: dict of name to `FixedLenFeature`."""

    @abc.abstractmethod
    def label_features(self):
        """The additional features that the loss needs, likewise."""

    @abc.abstractmethod
    def decoding_features(self):
        """The additional features that decoding needs, likewise."""


def int_feature(*shape):
    """The `FixedLenFeature` for integers of this shape.

    >>> from etcmodel import finetuning
    >>> finetuning.int_feature(16)
    FixedLenFeature(shape=[16], dtype=tf.int64, default_value=None)
    """
    return tf.io.FixedLenFeature(list(shape), tf.int64)


def string_feature():
    """The `FixedLenFeature` for one string.

    >>> from etcmodel import finetuning
    >>> finetuning.string_feature()
    FixedLenFeature(shape=[], dtype=tf.string, default_value=None)
    """
    return tf.io.FixedLenFeature([], tf.string)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneInputRecordConfig(RecordConfig):
    """The format of records of a single input, `input_ids`; a task's subclass adds `labels`.

    >>> from etcmodel.tasks.majority_tagging.task import RecordConfig
    >>> sizes = {"long_seq_length": 8, "global_seq_length": 1, "vocab_size": 5}
    >>> sorted(RecordConfig(**sizes, pairs=1).model_features())
    ['attention_mask', 'input_ids']
    """

    token_id_features = ("input_ids",)
    length_feature = "attention_mask"
    deciding_flags = ("input_pattern",)
    length_flags = ("long_seq_length",)

    def ranges(self):
        return {**super().ranges(), "attention_mask": FLAG}

    def model_features(self):
        return dict.fromkeys(("input_ids", "attention_mask"), int_feature(self.long_seq_length))

    def decoding_features(self):
        return {"example_id": string_feature()}


def make_train_dataset(file_pattern, config, request):
    """Endless training batches.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        config: `RecordConfig`.
        request: `training.TrainDataRequest`.
    Returns:
        tf.data.Dataset of dicts of tensors [batch, ...]: the model's features and labels.

    >>> from etcmodel import finetuning, training
    >>> from etcmodel.tasks.classification.task import RecordConfig
    >>> kind = {"problem_type": "single_label_classification", "labels": ("neg", "pos")}
    >>> config = RecordConfig(long_seq_length=16, global_seq_length=4, vocab_size=128, **kind)
    >>> request = training.TrainDataRequest(global_batch_size=3)
    >>> finetuning.make_train_dataset("my_records/train", config, request).element_spec["labels"]
    TensorSpec(shape=(3,), dtype=tf.int32, name=None)
    """
    spec = {**config.model_features(), **config.label_features()}
    parse, length_of = _parser(spec, config), config.length_of()
    return training.training_batches(file_pattern, parse, request, length_of=length_of)


def make_eval_dataset(file_pattern, config, batch_size):
    """Evaluation batches: each record once, in order; the last batch may be smaller.

    Returns:
        tf.data.Dataset of dicts of tensors [batch, ...]: the features of model and decoding.

    >>> from etcmodel import finetuning
    >>> from etcmodel.tasks.classification.task import RecordConfig
    >>> kind = {"problem_type": "single_label_classification", "labels": ("neg", "pos")}
    >>> config = RecordConfig(long_seq_length=16, global_seq_length=4, vocab_size=128, **kind)
    >>> [len(x["token_ids"]) for x in finetuning.make_eval_dataset("my_records/train", config, 3)]
    [3, 1]
    """
    spec = {**config.model_features(), **config.decoding_features()}
    records = record_files.records(training.matching_files(file_pattern))
    parse = _parser(spec, config)
    return records.map(parse, tf.data.AUTOTUNE).batch(batch_size).prefetch(tf.data.AUTOTUNE)


def _parser(spec, config):
    checks = config.checks()
    shapes = {name: tuple(feature.shape) for name, feature in spec.items()}
    lengths = {name: shape[0] for name, shape in shapes.items() if shape}

    @without_autograph
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
    """Compares the first record with the expected format.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        config: `RecordConfig`.
        need_labels: bool. Whether the records are for training.
    Raises:
        ValueError: naming file, feature and both lengths (or the vocabulary), if they do not fit;
            if a later version or another task's preprocess made them; if no file matches or the
            files are empty.

    >>> from etcmodel import finetuning
    >>> from etcmodel.tasks.classification.task import RecordConfig
    >>> kind = {"problem_type": "single_label_classification", "labels": ("neg", "pos")}
    >>> config = RecordConfig(long_seq_length=99, global_seq_length=4, vocab_size=128, **kind)
    >>> finetuning.check_records("my_records/train", config, need_labels=False)
    Traceback (most recent call last):
        ...
    ValueError: my_records/train-00000-of-00001.tfrecord: `token_ids` has 16 values, the model's
    length is 99. Give the lengths that the records were made with (--long_seq_length,
    --global_seq_length), or preprocess again.
    """
    spec = config.model_features()
    spec.update(config.label_features() if need_labels else config.decoding_features())
    files = training.matching_files(file_pattern)
    for settings_file, noted in record_files.read_settings(files).items():
        _check_task(noted, config.task, settings_file)
        format_versions.check(noted, config.format_version, settings_file)
    record_files.check_sizes(files)
    for file in files:
        for serialized in without_autotuning(record_files.records([file]).take(1)):
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


def find_bad_record(file_pattern, config, *, need_labels):
    """Finds the first record that cannot be read, since TensorFlow's error does not name it.

    Args:
        file_pattern, config, need_labels: as in `check_records`.
    Raises:
        ValueError: naming the file, the record and what is wrong with it.

    >>> from etcmodel import finetuning
    >>> from etcmodel.tasks.classification.task import RecordConfig
    >>> kind = {"problem_type": "single_label_classification", "labels": ("neg", "pos")}
    >>> config = RecordConfig(long_seq_length=16, global_seq_length=4, vocab_size=50, **kind)
    >>> finetuning.find_bad_record("my_records/train", config, need_labels=False)
    Traceback (most recent call last):
        ...
    ValueError: my_records/train-00000-of-00001.tfrecord: record 1: `token_ids` has the value
    91; allowed are 0 to 49...
    """
    spec = config.model_features()
    spec.update(config.label_features() if need_labels else config.decoding_features())
    parse = _parser(spec, config)
    for file in training.matching_files(file_pattern):
        parsed = record_files.records([file]).map(parse, tf.data.AUTOTUNE)
        numbered = without_autotuning(parsed.enumerate(1))
        last = 0
        try:
            for last in numbered.map(lambda number, _: number).as_numpy_iterator():  # noqa: B007
                pass
        except tf.errors.OpError as error:
            raise ValueError(
                f"{file}: record {last + 1}: {training.error_line(error)}. Copy the file again, or "
                "preprocess again."
            ) from error
        except UnicodeDecodeError as error:  # TensorFlow's message has the bytes of the record.
            raise ValueError(
                f"{file}: record {last + 1} is no `tf.train.Example`. Copy the file again, or "
                "preprocess again."
            ) from error


def _check_task(noted, task, settings_file):
    """Raises ValueError, naming the settings, if they are of records of another task."""
    made_for = noted.get("task")
    if None not in (made_for, task) and made_for != task:
        raise ValueError(
            f"{settings_file}: the records are of the task {made_for!r}, and this is {task!r}. "
            "Give records that its preprocess made. (A data set of your own that extends one: the "
            "`task` of its `RecordConfig` must be that of its `ConverterFactory`.)"
        )


def _example(file, serialized):
    try:
        return tf.train.Example.FromString(serialized)
    except message.DecodeError as error:
        raise ValueError(
            f"{file}: the first record is no `tf.train.Example`. Preprocess again."
        ) from error


_KINDS = {tf.int64: "int64_list", tf.float32: "float_list", tf.string: "bytes_list"}


def _values(file, example, name, feature, config):
    """The values of a feature of a `tf.train.Example`, after checking their number."""
    if name not in example.features.feature:
        raise ValueError(
            f"{file}: the records have no feature `{name}`. They were made in another mode or with "
            f"other options: see {_flags(config.deciding_flags, ' and ')} of preprocess."
        )
    values = example.features.feature[name]
    expected_kind = _KINDS[tf.as_dtype(feature.dtype)]
    kind = values.WhichOneof("kind") or expected_kind
    length, expected = len(getattr(values, kind).value), math.prod(feature.shape)
    if problem := config.problem_of_kind(name, kind, length):
        raise ValueError(f"{file}: {problem}")
    if kind != expected_kind:
        raise ValueError(
            f"{file}: `{name}` is a {kind}, the model needs a {expected_kind}. Preprocess again."
        )
    if length != expected:
        raise ValueError(
            f"{file}: `{name}` has {length} values, the model's length is {expected}. Give the "
            f"lengths that the records were made with ({_flags(config.length_flags, ', ')}), or "
            "preprocess again."
        )
    return getattr(values, kind).value


def _flags(names, separator):
    return separator.join(f"--{name}" for name in names)


# Records of a processor's output: a long and a global input, and their links.


def features_of_row(batch, row=0):
    """The features of a record: dict of name to list of int.

    Args:
        batch: `text.encoding.ProcessedBatch`, padded to the records' lengths.
        row: int.

    >>> from etcmodel import finetuning
    >>> lengths = {"max_long_len": 6, "max_global_len": 3}
    >>> processor = etcmodel.EtcProcessor("vocab.txt", pad_to="max", **lengths)
    >>> finetuning.features_of_row(processor("Good!"))["token_ids"]
    [2, 91, 46, 3, 0, 0]
    """
    return {name: batch[name][row].tolist() for name in (*LONG_FEATURES, *GLOBAL_FEATURES)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessedRecordConfig(RecordConfig):
    """The format of records with `features_of_row`; a task's subclass adds labels and ids.

    >>> from etcmodel.tasks.classification.task import RecordConfig
    >>> kind = {"problem_type": "single_label_classification", "labels": ("neg", "pos")}
    >>> config = RecordConfig(long_seq_length=16, global_seq_length=4, vocab_size=128, **kind)
    >>> sorted(config.model_features())
    ['example_ids', 'global_example_ids', 'global_segment_ids', 'global_token_ids', 'links',
    'segment_ids', 'token_ids']
    """

    token_id_features = ("token_ids", "global_token_ids")
    length_feature = "example_ids"
    padding = {"links": -1}

    def ranges(self):
        return {
            **super().ranges(),
            "segment_ids": self.token_type_range(),
            "global_segment_ids": self.token_type_range(),
            "example_ids": FLAG,
            "global_example_ids": FLAG,
            "links": Range(-1, "global_token_ids", "-1, or the place of a global token"),
        }

    def model_features(self):
        return {
            **{name: int_feature(self.long_seq_length) for name in LONG_FEATURES},
            **{name: int_feature(self.global_seq_length) for name in GLOBAL_FEATURES},
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanRecordConfig(ProcessedRecordConfig):
    """The format of records of windows with answers: see `spans.span_labels` and `window_text`.

    Attributes:
        texts: tuple of str. String features that decoding needs.

    >>> from etcmodel.tasks.triviaqa.task import RecordConfig
    >>> config = RecordConfig(long_seq_length=16, global_seq_length=4, vocab_size=128)
    >>> sorted(config.label_features())
    ['labels/ends', 'labels/starts']
    """

    texts = ()

    def ranges(self):
        place = Range(-1, None, "-1, or a character of the text")
        own = dict.fromkeys(spans.SPAN_LABELS, FLAG) | dict.fromkeys(spans.WINDOW_PLACES, place)
        return {**super().ranges(), **own}

    def label_features(self):
        return dict.fromkeys(spans.SPAN_LABELS, int_feature(self.long_seq_length))

    def decoding_features(self):
        return {
            **{name: string_feature() for name in (*self.texts, "text")},
            "text_start": int_feature(),
            **dict.fromkeys(spans.WINDOW_PLACES, int_feature(self.long_seq_length)),
        }
