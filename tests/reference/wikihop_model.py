"""Runs a WikiHop model case: checkpoint and features to logits, loss, gradients."""

import json

import numpy as np
import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.models import modeling
from etcmodel.models.side_inputs import side_inputs_of
from etcmodel.tasks.wikihop import model, task
from tests.reference import cases

TOPIC = "core"


def run_case(case, arrays, assert_close, check_norms):
    flags = dict(case["flags"])
    label_smoothing = flags.pop("label_smoothing")
    config = modeling.EtcConfig.from_json_file(str(cases.resolve(TOPIC, case["config"])))
    task_model = model.WikiHopModel(config, **flags)
    task_model.build()
    listed = cases.load_json(TOPIC, case["variables"])
    checkpoint = str(cases.resolve(TOPIC, case["checkpoint"]))
    report = checkpoints.load_released_checkpoint(task_model, checkpoint)
    assert set(report.loaded) == set(listed["variables"])
    assert not report.unused and not report.not_in_checkpoint

    features = {name: tf.constant(arrays[key]) for name, key in case["features"].items()}
    check_records(case, config, features)
    check_side_inputs(case, task_model, features, arrays)
    with tf.GradientTape() as tape:
        outputs = task_model(features)
        losses = model.loss(outputs, features, label_smoothing=label_smoothing)
    per_example = model.per_example_loss(outputs, features, label_smoothing=label_smoothing)
    results = {**outputs, **losses, "per_example_loss": per_example}
    for key in case["outputs"]:
        assert_close(results[key.removeprefix("out.")], arrays[key], case["atol"], what=key)
    predictions = case["predictions"]
    assert_close(outputs["logits"], arrays[predictions["logits"]], case["atol"])
    # The release passes the labels on.
    np.testing.assert_array_equal(arrays[predictions["label_ids"]], features["label_id"])
    variables = checkpoints.release_names(task_model)
    gradients = tape.gradient(
        losses["loss"], {name: variables[name] for name in listed["variables"]}
    )
    check_norms(gradients, arrays[case["grads"]["loss_weight_norms"]])


def check_side_inputs(case, task_model, features, arrays):
    """The model's own masks and labels are those of the release's input pipeline."""
    structure = task_model._structure(features)
    side_inputs = side_inputs_of(structure, task_model.encoder_config.local_radius)
    made = side_inputs.to_dict(exclude_none_values=True)
    assert set(made) == set(case["derived_features"])
    for name, key in case["derived_features"].items():
        np.testing.assert_array_equal(np.asarray(made[name], np.int32), arrays[key], err_msg=name)


def check_records(case, config, features):
    """The record file holds the same features as the arrays."""
    record_config = task.RecordConfig(
        long_seq_length=features["long_token_ids"].shape[1],
        global_seq_length=features["global_token_ids"].shape[1],
        vocab_size=config.vocab_size,
    )
    spec = {**record_config.model_features(), **record_config.label_features()}
    file = str(cases.resolve(TOPIC, case["records"]["file"]))
    records = tf.data.TFRecordDataset(file, case["records"]["compression"])
    parsed = list(records.map(lambda record: tf.io.parse_single_example(record, spec)))
    assert set(spec) == set(features)
    for name, values in features.items():
        from_file = np.stack([np.asarray(record[name]) for record in parsed])
        np.testing.assert_array_equal(from_file, values, err_msg=json.dumps(name))
