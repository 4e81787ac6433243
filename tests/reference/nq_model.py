"""Natural Questions' model: in cases of `core`, and in those of `nq`."""

import numpy as np
import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.models import modeling
from etcmodel.tasks.nq import model, task
from tests.reference import core_tasks

ATOL = 1e-4


def check_model_case(case, arrays):
    """A case of `nq`: weights by name, outputs, loss, gradients."""
    flags = case["init"]
    task_model = make_model(modeling.EtcConfig(**flags["etc_model_config"]), flags)
    variables = checkpoints.release_names(task_model)
    assert set(variables) == set(case["weights"])
    for name, key in case["weights"].items():
        variables[name].assign(arrays[key])
    features = {name: tf.constant(arrays[key]) for name, key in case["call"]["features"].items()}
    with tf.GradientTape() as tape:
        outputs = task_model(features)
        losses = model.loss(outputs, features)
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


def records(config, flags, features):
    return task.RecordConfig(
        long_seq_length=flags["max_seq_length"],
        global_seq_length=flags["max_global_seq_length"],
        vocab_size=config.vocab_size,
    )


def check(case, task_model, features, outputs, arrays, assert_close):
    for name, key in case["predictions"].items():
        check_output(name, outputs, arrays[key])


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


FURTHER = frozenset({"candidate_ids", "token_pos", "unique_ids"})
TASK = core_tasks.Task(make_model, records, lambda x, y, flags: model.loss(x, y), check, FURTHER)
