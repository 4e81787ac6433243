"""Checks of OpenKP's reference values: operations, features, the model and its gradients."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import checkpoints, preprocessing
from etcmodel.models import modeling, side_inputs
from etcmodel.tasks.openkp import model
from tests.reference import cases, openkp_model

TOPIC = "openkp"


def unit_labels(
    label_start_idx, label_phrase_len, long_max_length, kp_max_length, additive_smoothing_mass=1e-6
):
    shape = [label_start_idx.shape[0], kp_max_length, long_max_length]
    labels, _ = model.ngram_labels(
        label_start_idx,
        label_phrase_len,
        tf.ones(shape, tf.bool),
        additive_smoothing_mass,
        release_compatible=True,
    )
    return tf.reshape(labels, [shape[0], -1])


def unit_loss(labels, logits):
    losses = model.cross_entropy(tf.reshape(labels, tf.shape(logits)), logits)
    return losses, tf.reduce_mean(losses)


def unit_indicators(indicators):
    return model.crossed_indicators(*tf.unstack(indicators))


UNITS = {
    "make_ngram_labels": unit_labels,
    "loss": unit_loss,
    "batch_segment_sum_embeddings": model.sum_words,
    "gather_global_embeddings_to_long": model.to_long,
    "indicators_to_id": unit_indicators,
    "transform": model.scaled,
}


def assert_close(actual, expected, atol, what):
    """Compares as the README of the values says: losses also relatively, all else absolutely."""
    actual = np.asarray(actual)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, what
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    rtol = atol if what.endswith("loss") else 0
    np.testing.assert_allclose(actual, expected, atol=atol, rtol=rtol, err_msg=what)


def check_unit(case):
    arrays = cases.arrays_of(TOPIC, case)
    call = {
        name: tf.constant(arrays[value.split(",")[0]]) if isinstance(value, str) else value
        for name, value in case["call"].items()
    }
    # The release has no function for the loss, but a description.
    function = UNITS["loss" if "cross entropy" in case["api"] else case["api"].rpartition(".")[2]]
    results = function(**renamed(call), **case["init"])
    results = results if isinstance(results, tuple) else (results,)
    for key, result in zip(case["outputs"], results, strict=True):
        assert_close(result, arrays[key], 1e-5, key)


def renamed(arguments):
    """The arguments by the names that they have here."""
    names = {"tensor": "values", "*indicators": "indicators"}
    return {names.get(name, name): value for name, value in arguments.items()}


def check_unit_errors(case):
    content = cases.load_json(TOPIC, case["file"])
    for entry in content["dense_feature_scaler"]:
        with pytest.raises(ValueError, match="must be below `max_value`"):
            model.scaled(tf.zeros([1]), entry["min_value"], entry["max_value"])
    with pytest.raises(ValueError, match="one indicator at least"):
        model.crossed_indicators()


def check_pipeline(case):
    """Records to one batch of features; what the release adds to them is made in the model."""
    flags, arrays = case["init"]["flags"], cases.arrays_of(TOPIC, case)
    config = modeling.EtcConfig(vocab_size=30522, **case["init"]["model_config"])
    visual_config = openkp_model.make_visual_config(flags)
    features = records_of(case, config, flags)
    structure = model.make_structure(features, config)
    made = {**features, **side_inputs.side_inputs_of(structure, config.local_radius).to_dict()}
    if visual_config.is_used:
        made.update(model.derived_features(features, visual_config))
    for name in case["outputs"]:
        assert_close(tf.convert_to_tensor(made[name]), arrays[name], 1e-5, name)


def records_of(case, config, flags):
    """The records, written and read again."""
    content = cases.load_json(TOPIC, case["records"])
    record_config = openkp_model.records(config, flags)
    spec = {
        **record_config.model_features(),
        **record_config.label_features(),
        **record_config.decoding_features(),
    }
    serialized = [preprocessing.to_tf_example(r).SerializeToString() for r in content]
    parsed = tf.io.parse_example(serialized, spec)
    return {
        name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
        for name, value in parsed.items()
    }


def check_model(case):
    flags, arrays = case["init"]["flags"], cases.arrays_of(TOPIC, case)
    config = modeling.EtcConfig(**case["init"]["model_config"])
    task_model = openkp_model.make_model(config, flags)
    variables = checkpoints.release_names(task_model)
    assert set(variables) == set(case["weights"])
    for name, key in case["weights"].items():
        variables[name].assign(arrays[key])
    features = {name: tf.constant(arrays[key]) for name, key in case["call"]["features"].items()}
    with tf.GradientTape() as tape:
        outputs = task_model(features)
        losses = openkp_model.losses(outputs, features, flags)
    outputs, gradients = {**outputs, **losses}, tape.gradient(losses["loss"], variables)
    for key in case["outputs"]:
        assert_close(outputs[key.removeprefix("outputs/")], arrays[key], case["tolerance"], key)
    for name, gradient in gradients.items():
        assert (gradient is None) == (name not in case["grads"]), name
        if gradient is not None:
            expected = arrays[case["grads"][name]]
            assert_close(tf.convert_to_tensor(gradient), expected, case["tolerance"], name)
