"""A task whose documents become several records with features of several shapes and types.

A document is {"id", "words", "sizes", "label"}: each window of two words is a record, and its score
is a weighted sum of its token ids and sizes. The prediction is the sum over the windows.
"""

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel import finetuning
from etcmodel.models import modeling
from etcmodel.preprocessing import raw_files
from tests import records

WINDOW = 2
NUM_SIZES = 3
BIG_ID = 2**40  # Not an int32.
VOCAB = ["[PAD]", "[UNK]", "a", "b", "c", "d"]
ETC_CONFIG = {"vocab_size": len(VOCAB), "hidden_size": 8, "num_attention_heads": 2}


def make_documents(num_documents, seed=0):
    """Documents of one to three windows, which a linear model can learn."""
    random = np.random.default_rng(seed)
    documents = []
    for number in range(num_documents):
        num_words = WINDOW * (1 + number % 3)
        words = random.choice(VOCAB[2:], num_words).tolist()
        sizes = random.normal(size=[num_words, NUM_SIZES]).round(3).tolist()
        label = float(sum(map(sum, sizes)))
        documents.append({"id": number, "words": words, "sizes": sizes, "label": label})
    return documents


def parse_document(raw):
    if "words" not in raw:
        raise ValueError(f"document {raw.get('id')}: has no `words`.")
    return raw


def make_features(document, tokenizer):
    """One feature dict per window."""
    for start in range(0, len(document["words"]), WINDOW):
        words = document["words"][start : start + WINDOW]
        sizes = document["sizes"][start : start + WINDOW]
        yield {
            "long_token_ids": tokenizer.convert_tokens_to_ids(words),
            "sizes": [float(size) for row in sizes for size in row],
            "label": [float(sum(map(sum, sizes)))],
            "document": [BIG_ID + document["id"]],
            "name": [f"document {document['id']}"],
        }


def write_records(path, documents, tokenizer):
    records.write(path, *(row for x in documents for row in make_features(x, tokenizer)))


class ToyModel(tf_keras.Model):
    """Weighted sum of token embeddings and sizes."""

    def __init__(self, vocab_size):
        super().__init__()
        self.vocab_size = vocab_size

    def build(self, input_shape=None):
        self.embedding = self.add_weight("embedding", [self.vocab_size], initializer="zeros")
        self.kernel = self.add_weight("kernel", [NUM_SIZES], initializer="zeros")
        self.built = True

    def call(self, features, training=None):
        embedded = tf.gather(self.embedding, features["long_token_ids"])  # [batch, length]
        sizes = tf.tensordot(tf.cast(features["sizes"], self.kernel.dtype), self.kernel, 1)
        score = tf.reduce_sum(embedded + sizes, axis=1)  # Of [batch, length].
        return {"score": tf.cast(score, tf.float32)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    token_id_features = ("long_token_ids",)
    int64_features = ("document",)
    deciding_flags = ("is_training", "debug")

    def model_features(self):
        return {
            "long_token_ids": tf.io.FixedLenFeature([self.long_seq_length], tf.int64),
            "sizes": tf.io.FixedLenFeature([self.long_seq_length, NUM_SIZES], tf.float32),
        }

    def label_features(self):
        return {"label": tf.io.FixedLenFeature([], tf.float32)}

    def decoding_features(self):
        return {
            "document": tf.io.FixedLenFeature([], tf.int64),
            "name": tf.io.FixedLenFeature([], tf.string),
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyConfig(finetuning.FinetuningConfig):
    aliases = {
        "train_tf_examples_filepattern": "train_data",
        "predict_tf_examples_filepattern": "eval_data",
        "predict_input_file": "input_file",
        "toy_gold": "eval_gold",
        "long_seq_len": "long_seq_length",
    }

    long_seq_length: int = finetuning.changed(
        finetuning.FinetuningConfig, "long_seq_length", default=WINDOW, lower_bound=1
    )
    factor: float = finetuning.option(1.0, "Multiplies predictions.", role="decoding")
    tags: tuple = finetuning.option(("x", "y"), "Some names.", role="model")

    def records(self):
        return RecordConfig(
            long_seq_length=self.long_seq_length,
            global_seq_length=self.global_seq_length,
            vocab_size=self.encoder_config.vocab_size,
        )


class ToyTask(finetuning.FinetuningTask):
    name = "toy"
    title = "Toy"
    config_class = ToyConfig
    best_metric = "error"
    higher_is_better = False

    def make_model(self):
        return ToyModel(self.config.encoder_config.vocab_size)

    def loss(self, outputs, features):
        return {"loss": tf.reduce_mean((outputs["score"] - features["label"]) ** 2)}

    def read_examples(self, path, check=None):
        read = raw_files.example_reader(raw_files.read_json_elements, parse_document)
        return read(path, check)

    def decode(self, outputs, examples):
        totals = {document["id"]: 0.0 for document in examples}
        for output in outputs:
            document = int(np.ravel(output["document"])[0]) - BIG_ID
            totals[document] += self.config.factor * float(output["score"])
        return {str(document): total for document, total in totals.items()}

    def metrics(self, examples, predictions):
        errors = [abs(predictions[str(one["id"])] - one["label"]) for one in examples]
        return {"error": float(np.mean(errors))}


class ToyPredictor(finetuning.Predictor):
    task_class = ToyTask

    def parse_example(self, raw):
        return parse_document(raw)

    def make_features(self, example):
        return make_features(example, self.tokenizer)


def etc_config():
    return modeling.EtcConfig(**ETC_CONFIG)
