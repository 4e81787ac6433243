"""Runs a case of a task's model: from a checkpoint and features to logits, loss and gradients."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.models import modeling
from etcmodel.text import tokenization
from tests.reference import cases

TOPIC = "core"


class Task(NamedTuple):
    """What a task has by itself.

    Attributes:
        make_model: function of the encoder's config and the release's flags: a built model.
        records: function of the same and the features: the config of the records.
        losses: function of the model's outputs, the features and the flags: dict.
        check: function of the case, its model, features, outputs and arrays, and `assert_close`;
            it compares the predictions.
        further: frozenset of str. Features besides those of the model and of labels.
    """

    make_model: Callable
    records: Callable
    losses: Callable
    check: Callable
    further: frozenset = frozenset()


def run_case(task, case, arrays, assert_close, check_norms):
    flags = case["flags"]
    config = modeling.EtcConfig.from_json_file(str(cases.resolve(TOPIC, case["config"])))
    task_model = task.make_model(config, flags)
    listed = cases.load_json(TOPIC, case["variables"])
    checkpoint = str(cases.resolve(TOPIC, case["checkpoint"]))
    report = checkpoints.load_released_checkpoint(task_model, checkpoint)
    assert set(report.loaded) == set(listed["variables"])
    assert not report.unused and not report.not_in_checkpoint
    assert set(case["head_variables"]) < set(report.loaded)
    features = {name: tf.constant(arrays[key]) for name, key in case["features"].items()}
    check_records(case, task, task.records(config, flags, features), features)
    with tf.GradientTape() as tape:
        outputs = task_model(features)
        losses = task.losses(outputs, features, flags)
    results = {**outputs, **losses}
    for key in case["outputs"]:
        assert_close(results[key.removeprefix("out.")], arrays[key], case["atol"], what=key)
    task.check(case, task_model, features, outputs, arrays, assert_close)
    variables = checkpoints.release_names(task_model)
    gradients = tape.gradient(
        losses["loss"], {name: variables[name] for name in listed["variables"]}
    )
    check_norms(gradients, arrays[case["grads"]["loss_weight_norms"]])


def check_records(case, task, config, features):
    """The record file holds the same features as the arrays."""
    spec = {**config.model_features(), **config.label_features()}
    assert {*spec, *task.further} == set(features)
    spec |= {name: x for name, x in config.decoding_features().items() if name in task.further}
    file = str(cases.resolve(TOPIC, case["records"]["file"]))
    records = tf.data.TFRecordDataset(file, case["records"]["compression"])
    parsed = list(records.map(lambda record: tf.io.parse_single_example(record, spec)))
    for name in spec:
        from_file = np.stack([np.asarray(record[name]) for record in parsed])
        np.testing.assert_array_equal(from_file, features[name], err_msg=name)


@functools.lru_cache
def tokenizer_of(topic, vocab_file, spm_model_file, do_lower_case=True):
    """The `FullTokenizer` of files that a manifest names, one of which may be None."""
    paths = [
        str(cases.resolve(topic, name)) if name else None for name in (vocab_file, spm_model_file)
    ]
    return tokenization.FullTokenizer(paths[0], do_lower_case, spm_model_file=paths[1])
