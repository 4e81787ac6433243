"""Runs a HotpotQA model case: checkpoint and features to logits, predictions, loss, gradients."""

import json

import numpy as np
import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.models import modeling
from etcmodel.tasks.hotpotqa import model, task
from tests.reference import cases

TOPIC = "core"


def run_case(case, arrays, assert_close, check_norms):
    flags = case["flags"]
    config = modeling.EtcConfig.from_json_file(str(cases.resolve(TOPIC, case["config"])))
    task_model = model.HotpotQaModel(
        config,
        answer_encoding_method=flags["answer_encoding_method"],
        flat_sequence=flags["flat_sequence"],
    )
    task_model.build()
    listed = cases.load_json(TOPIC, case["variables"])
    checkpoint = str(cases.resolve(TOPIC, case["checkpoint"]))
    report = checkpoints.load_released_checkpoint(task_model, checkpoint)
    assert set(report.loaded) == set(listed["variables"])
    assert not report.unused and not report.not_in_checkpoint

    features = {name: tf.constant(arrays[key]) for name, key in case["features"].items()}
    check_records(case, flags, config, features)
    with tf.GradientTape() as tape:
        outputs = task_model(features)
        losses = model.loss(outputs, features)
    results = {**outputs, "loss": losses["loss"]}
    for key in case["outputs"]:
        assert_close(results[key.removeprefix("out.")], arrays[key], case["atol"], what=key)
    for name, key in case["predictions"].items():
        check_prediction(name, outputs, arrays[key], assert_close, case["atol"])
    variables = checkpoints.release_names(task_model)
    gradients = tape.gradient(
        losses["loss"], {name: variables[name] for name in listed["variables"]}
    )
    check_norms(gradients, arrays[case["grads"]["loss_weight_norms"]])


def check_prediction(name, outputs, expected, assert_close, atol):
    """Indices of nearly equal probabilities may change places; the probabilities may not."""
    actual = np.asarray(outputs[name])
    if name.endswith("_indices"):
        probs = np.asarray(outputs[name.replace("_indices", "_probs")])
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        for row in range(len(actual)):
            by_position = dict(zip(actual[row], probs[row], strict=True))
            assert set(actual[row]) == set(expected[row])
            reordered = [by_position[position] for position in expected[row]]
            np.testing.assert_allclose(reordered, probs[row], atol=1e-6)
    else:
        assert_close(actual, expected, atol, what=name)


def check_records(case, flags, config, features):
    """The record file holds the same features as the arrays."""
    record_config = task.RecordConfig(
        long_seq_length=flags["long_seq_length"],
        global_seq_length=flags["global_seq_length"],
        vocab_size=config.vocab_size,
        answer_encoding_method=flags["answer_encoding_method"],
    )
    spec = {**record_config.model_features(), **record_config.label_features()}
    file = str(cases.resolve(TOPIC, case["records"]["file"]))
    records = tf.data.TFRecordDataset(file, case["records"]["compression"])
    parsed = list(records.map(lambda record: tf.io.parse_single_example(record, spec)))
    for name, values in features.items():
        from_file = np.stack([np.asarray(record[name]) for record in parsed])
        np.testing.assert_array_equal(from_file, values, err_msg=json.dumps(name))
