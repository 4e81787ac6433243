"""Runs an OpenKP model case: checkpoint and features to logits, loss, gradients."""

import json

import numpy as np
import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.models import modeling
from etcmodel.tasks.openkp import model, task
from etcmodel.tasks.openkp.config import DENSE_RANGES, VisualConfig
from tests.reference import cases

TOPIC = "core"


def make_visual_config(flags):
    """The release's flags as a config."""
    return VisualConfig(
        use_in_long=flags["use_visual_features_in_long"],
        use_in_global=flags["use_visual_features_in_global"],
        ranges={name: (flags[f"{name}_min"], flags[f"{name}_max"]) for name in DENSE_RANGES},
        indicators_to_cross=tuple(flags["indicators_to_cross"]),
        num_extra_dense_layers=flags.get("extra_dense_feature_layers", 1),
    )


def make_model(config, flags):
    """A built model for the release's flags."""
    task_model = model.OpenKpModel(
        config,
        visual_config=make_visual_config(flags),
        kp_max_length=flags["kp_max_length"],
    )
    task_model.build()
    return task_model


def run(task_model, features, flags, variables):
    """(outputs with the loss, gradients of the variables by name)."""
    with tf.GradientTape() as tape:
        outputs = task_model(features)
        losses = model.loss(
            outputs,
            features,
            additive_smoothing_mass=flags["additive_smoothing_mass"],
            release_compatible=True,
        )
    return {**outputs, **losses}, tape.gradient(losses["loss"], variables)


def run_case(case, arrays, assert_close, check_norms):
    flags = case["flags"]
    config = modeling.EtcConfig.from_json_file(str(cases.resolve(TOPIC, case["config"])))
    task_model = make_model(config, flags)
    listed = cases.load_json(TOPIC, case["variables"])
    checkpoint = str(cases.resolve(TOPIC, case["checkpoint"]))
    report = checkpoints.load_released_checkpoint(task_model, checkpoint)
    assert set(report.loaded) == set(listed["variables"])
    assert not report.unused and not report.not_in_checkpoint

    features = {name: tf.constant(arrays[key]) for name, key in case["features"].items()}
    check_records(case, flags, config, features)
    variables = checkpoints.release_names(task_model)
    wanted = {name: variables[name] for name in listed["variables"]}
    outputs, gradients = run(task_model, features, flags, wanted)
    for key in case["outputs"]:
        assert_close(outputs[key.removeprefix("out.")], arrays[key], case["atol"], what=key)
    for name, key in case["predictions"].items():
        assert_close(outputs[name], arrays[key], case["atol"], what=key)
    check_norms(gradients, arrays[case["grads"]["loss_weight_norms"]])
    check_best(outputs, arrays[case["predictions"]["ngram_logits"]])


def check_best(outputs, expected_logits):
    """The best n-grams are those of the expected logits."""
    batch_size, _, num_places = expected_logits.shape
    for row in range(batch_size):
        starts, lengths = outputs["top_start_idx"][row], outputs["top_phrase_len"][row]
        real = lengths > 0
        places = ((lengths - 1) * num_places + starts)[real].numpy()
        flat = expected_logits[row].ravel()
        num_real = len(places)
        assert num_real and np.all(flat[places] > -5000)
        np.testing.assert_allclose(flat[places], np.sort(flat)[::-1][:num_real], atol=1e-4)


def make_record_config(config, flags):
    """The release's flags as what its records hold."""
    return task.RecordConfig(
        long_seq_length=flags["long_max_length"],
        global_seq_length=flags["global_max_length"],
        url_max_code_points=flags["url_num_code_points"],
        kp_max_length=flags.get("kp_max_length", 5),  # By default, as in the release.
        num_labels=flags["num_labels"],
        vocab_size=config.vocab_size,
        use_visual_features=make_visual_config(flags).is_used,
    )


def check_records(case, flags, config, features):
    """The record file holds the same features as the arrays."""
    record_config = make_record_config(config, flags)
    spec = {**record_config.model_features(), **record_config.label_features()}
    file = str(cases.resolve(TOPIC, case["records"]["file"]))
    records = tf.data.TFRecordDataset(file, case["records"]["compression"])
    parsed = list(records.map(lambda record: tf.io.parse_single_example(record, spec)))
    for name in spec:
        from_file = np.stack([np.asarray(record[name]) for record in parsed])
        np.testing.assert_array_equal(from_file, features[name], err_msg=json.dumps(name))
