"""Runs a Natural Questions model case: weights and features to outputs, loss, gradients."""

import json

import numpy as np
import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.models import modeling
from etcmodel.tasks.nq import model, task
from tests.reference import cases

TOPIC = "core"
ATOL = 1e-4


def run_case(case, arrays, assert_close, check_norms):
    """A case of `core`: a checkpoint, records, logits, and norms of gradients."""
    flags = case["flags"]
    config = modeling.EtcConfig.from_json_file(str(cases.resolve(TOPIC, case["config"])))
    task_model = make_model(config, flags)
    listed = cases.load_json(TOPIC, case["variables"])
    checkpoint = str(cases.resolve(TOPIC, case["checkpoint"]))
    report = checkpoints.load_released_checkpoint(task_model, checkpoint)
    assert set(report.loaded) == set(listed["variables"])
    assert not report.unused and not report.not_in_checkpoint
    assert set(case["head_variables"]) < set(report.loaded)

    features = {name: tf.constant(arrays[key]) for name, key in case["features"].items()}
    check_records(case, flags, config, features)
    outputs, losses, tape = run(task_model, features)
    results = {**outputs, "loss": losses["loss"]}
    for key in case["outputs"]:
        assert_close(results[key.removeprefix("out.")], arrays[key], case["atol"], what=key)
    for name, key in case["predictions"].items():
        check_output(name, outputs, arrays[key])
    variables = checkpoints.release_names(task_model)
    gradients = tape.gradient(
        losses["loss"], {name: variables[name] for name in listed["variables"]}
    )
    check_norms(gradients, arrays[case["grads"]["loss_weight_norms"]])


def check_model_case(case, arrays):
    """A case of `nq`: weights by name, outputs, loss, gradients."""
    flags = case["init"]
    task_model = make_model(modeling.EtcConfig(**flags["etc_model_config"]), flags)
    variables = checkpoints.release_names(task_model)
    assert set(variables) == set(case["weights"])
    for name, key in case["weights"].items():
        variables[name].assign(arrays[key])
    features = {name: tf.constant(arrays[key]) for name, key in case["call"]["features"].items()}
    outputs, losses, tape = run(task_model, features)
    for key in case["outputs"]:
        name = key.removeprefix("outputs/")
        if name == "loss":
            np.testing.assert_allclose(losses[name], arrays[key], atol=ATOL, rtol=1e-4)
        else:
            check_output(name, outputs, arrays[key])
    for name, gradient in tape.gradient(losses["loss"], variables).items():
        if name not in case["grads"]:
            assert gradient is None, name
            continue
        gradient = tf.convert_to_tensor(gradient)
        expected = arrays[case["grads"][name]]
        np.testing.assert_allclose(gradient, expected, atol=ATOL, rtol=1e-4, err_msg=name)


def make_model(config, flags):
    task_model = model.NqModel(
        config,
        mask_long_output=flags["mask_long_output"],
        cls_token_id=flags["cls_tok_id"],
        sep_token_id=flags["sep_tok_id"],
    )
    task_model.build()
    return task_model


def run(task_model, features):
    with tf.GradientTape() as tape:
        outputs = task_model(features)
        losses = model.loss(outputs, features)
    return outputs, losses, tape


def check_output(name, outputs, expected):
    """Positions of nearly equal logits may change places; the logits may not."""
    actual = np.asarray(outputs[name])
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, name
    if not name.endswith("_pred"):
        np.testing.assert_allclose(actual, expected, atol=ATOL, rtol=1e-5, err_msg=name)
        return
    logits = np.asarray(outputs[name.replace("_pred", "_logits")])
    for row in range(len(actual)):
        assert len(set(actual[row])) == len(actual[row])
        by_position = logits[row][expected[row]]
        np.testing.assert_allclose(by_position, logits[row][actual[row]], atol=1e-5, rtol=1e-6)


def check_records(case, flags, config, features):
    """The record file holds the same features as the arrays."""
    record_config = task.RecordConfig(
        long_seq_length=flags["max_seq_length"],
        global_seq_length=flags["max_global_seq_length"],
        vocab_size=config.vocab_size,
    )
    spec = {
        **record_config.model_features(),
        **record_config.label_features(),
        **record_config.decoding_features(),
    }
    file = str(cases.resolve(TOPIC, case["records"]["file"]))
    records = tf.data.TFRecordDataset(file, case["records"]["compression"])
    parsed = list(records.map(lambda record: tf.io.parse_single_example(record, spec)))
    assert set(spec) <= set(features)
    for name in spec:
        from_file = np.stack([np.asarray(record[name]) for record in parsed])
        np.testing.assert_array_equal(from_file, features[name], err_msg=json.dumps(name))
