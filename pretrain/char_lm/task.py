"""Character models as a task: sequences, model, loss, metrics."""

import math

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.finetuning import task
from etcmodel.layers import sublayers
from etcmodel.models import encoders

from . import text
from .config import CharLmOptions

__all__ = [
    "CharLmTask",
    "NextCharacterModel",
    "check_length",
    "loss",
    "make_eval_dataset",
    "make_train_dataset",
    "metrics",
]

# Sequences from a text, for training and for evaluation.


def make_train_dataset(text, length, request):
    """Endless batches of sequences with random starts in the text.

    The starts depend only on the seed and the place in the run, so that a resumed run, or one on
    another number of devices, gets the same sequences.

    Args:
        text: uint8 array, long enough: see `check_length`.
        length: int. Characters of a sequence, and one more that is only predicted.
        request: `training.TrainDataRequest`.
    Returns:
        tf.data.Dataset of {"characters": int32 [batch, length + 1]}.
    """
    context, worker, num_workers = request.input_context, 0, 1
    if context is not None:
        worker, num_workers = context.input_pipeline_id, context.num_input_pipelines
    with tf.device("CPU"):
        text = tf.constant(text)
    num_starts = len(text) - length

    def sequence(index):
        seed = tf.stack([tf.constant(request.seed, tf.int64), index])
        start = tf.random.stateless_uniform([], seed, maxval=num_starts, dtype=tf.int32)
        return {"characters": tf.cast(text[start : start + length + 1], tf.int32)}

    # Workers take turns with the sequences of a run.
    indices = tf.data.Dataset.counter(request.skip_examples + worker, num_workers)
    sequences = indices.map(sequence, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    batches = sequences.map(lambda x: _with_length(x, length + 1))
    batches = batches.batch(request.per_replica_batch_size, drop_remainder=True)
    return batches.prefetch(tf.data.AUTOTUNE)


def make_eval_dataset(text, length, step, batch_size):
    """Overlapping sequences, of which only the last predictions count (section 4.2.2).

    So each prediction that counts has a context of at least `length - step` characters; the first
    characters of the text do not count. The last sequence has fewer predictions that count.

    Args:
        text: uint8 array, long enough: see `check_length`.
        length: int. Characters of a sequence, and one more that is only predicted.
        step: int, at most `length`. Number of characters from one sequence to the next.
        batch_size: int.
    Returns:
        tf.data.Dataset of {"characters": int32 [batch, length + 1], "num_counted": int32 [batch]}.
    """
    last = len(text) - 1
    ends = np.append(np.arange(length, last, step), last)
    counted = np.diff(ends, prepend=length - step)
    with tf.device("CPU"):
        text = tf.constant(text)

    def sequence(end, num_counted):
        characters = tf.cast(text[end - length : end + 1], tf.int32)
        return _with_length({"characters": characters, "num_counted": num_counted}, length + 1)

    places = (ends.astype(np.int32), counted.astype(np.int32))
    sequences = tf.data.Dataset.from_tensor_slices(places).map(sequence, tf.data.AUTOTUNE)
    return sequences.batch(batch_size).prefetch(tf.data.AUTOTUNE)


def _with_length(features, length):
    return {**features, "characters": tf.ensure_shape(features["characters"], [length])}


def check_length(text, length, what, flag):
    """Raises ValueError, naming `what` and the `flag`, if a text is too short for sequences."""
    if len(text) <= length:
        raise ValueError(
            f"{what} has {len(text)} bytes, too few for sequences of {length} characters and one "
            f"more. Give a longer text, or a lower {flag}."
        )


# The character model for training and evaluation, and its loss.


class NextCharacterModel(tf_keras.Model):
    """Computes the cross entropy of each character of a sequence, except the first.

    Args:
        encoder_config: `CharLmConfig`.
        **kwargs: arguments of the Keras model.
    Call args:
        features: dict with int32 `characters` [batch, length + 1].
        training: bool.
    Returns:
        dict of float32 `losses` [batch, length], in nats.
    """

    def __init__(self, encoder_config, **kwargs):
        super().__init__(**{"name": "next_character", **kwargs})
        self.language_model = encoders.make_encoder(encoder_config)

    def build(self, input_shape=None):
        sublayers.build_sublayer(self.language_model, None)
        self.built = True

    @without_autograph
    def call(self, features, training=None):
        characters = features["characters"]
        logits = self.language_model(characters[:, :-1], training=training)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(characters[:, 1:], logits)
        return {"losses": losses}


def loss(outputs):
    """dict of float32 scalars: the mean "loss" in nats, and the same as "bits_per_character"."""
    mean = tf.reduce_mean(outputs["losses"])
    return {"loss": mean, "bits_per_character": mean / math.log(2)}


# Bits per character of overlapping sequences.


def metrics(predictions):
    """The metrics of the predictions that count.

    Args:
        predictions: iterator of dict of NumPy arrays, one per sequence: `losses` [length] in nats,
            and `num_counted`, the number of last losses that count.
    Returns:
        dict of float: "bits_per_character", and "characters", the number of predicted characters.
    """
    total, count = 0.0, 0
    for sequence in predictions:
        number = int(sequence["num_counted"])
        total += sequence["losses"][-number:].sum(dtype=np.float64)
        count += number
    return {"bits_per_character": total / count / math.log(2), "characters": float(count)}


# The task.


class CharLmTask(task.OptionsTask):
    """Trains and evaluates a phase.

    Args:
        config: `CharLmOptions` of the phase.
        whole_text: `text.Text`.
        num_train_examples: int. Number of sequences in the phase, over all steps.
    """

    config_class = CharLmOptions
    best_metric = "bits_per_character"
    higher_is_better = False

    def __init__(self, config, whole_text, num_train_examples=0):
        super().__init__(config)
        self.text = whole_text
        self._num_train_examples = num_train_examples

    @property
    def num_train_examples(self):
        return self._num_train_examples

    @property
    def eval_text(self):
        """The text to evaluate on: uint8 array."""
        return getattr(self.text, self.config.eval_split)[: self.config.max_eval_bytes]

    def check_lengths(self, for_training=True):
        """Raises ValueError if a text is too short, or the sizes of evaluations do not fit."""
        length, _ = self.config.eval_sizes
        what = f"the {self.config.eval_split} text"
        check_length(self.eval_text, length, what, "--eval_length")
        if for_training:
            flags = "--seq_length or --max_seq_length"
            check_length(self.text.train, self.config.seq_length, "the training text", flags)

    def build_model(self):
        made = NextCharacterModel(self.config.encoder_config)
        made.build()
        return made

    def loss(self, outputs, features):
        del features
        return loss(outputs)

    def train_dataset(self, request):
        return make_train_dataset(self.text.train, self.config.seq_length, request)

    def eval_dataset(self, batch_size):
        return make_eval_dataset(self.eval_text, *self.config.eval_sizes, batch_size)

    def evaluate(self, predictions):
        of, by = self.eval_text, self.text.train
        return {
            **metrics(predictions),
            "unigram_bits_per_character": text.unigram_bits(of, by),
        }

    def run_notes(self):
        return self.text.notes
