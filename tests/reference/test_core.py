"""Every core case of the reference values: features, side inputs, layers, stacks, models, tasks."""

import builtins
import importlib
import inspect
import os

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import checkpoints, tensor_utils
from etcmodel.models import input_utils, modeling
from tests.reference import cases, core_tasks, hotpotqa_model, nq_model, openkp_model, wikihop_model

TOPIC = "core"
ATOL = {"stacks": 5e-5, "models": 1e-4, "tasks": 1e-4}
CONFIG_ARGUMENTS = ("config", "model_config")
QUICK = ("stack_default", "relative_transformer_relative", "model_share_qkv")  # Of many layers.

# Task models by the release's name of what makes them.
TASKS = {
    "etcmodel.models.hotpotqa.run_finetuning_lib.model_fn_builder": hotpotqa_model.TASK,
    "etcmodel.models.nq.run_nq_lib.model_fn_builder": nq_model.TASK,
    "etcmodel.models.openkp.run_finetuning_lib.model_fn_builder": openkp_model.TASK,
    "etcmodel.models.wikihop.run_wikihop_lib.model_fn_builder": wikihop_model.TASK,
}


def public_object(name):
    """The function, class or method of that full name."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[split:]:
            found = getattr(found, attribute)
        return found
    raise AssertionError(f"no way to run {name}")


def resolved(value, arrays, name=None):
    """An argument as the manifest writes it, made into what the function takes."""
    if isinstance(value, str) and value.startswith(("in.", "side.")):
        return tf.constant(arrays[value])
    if isinstance(value, list):
        return [resolved(item, arrays) for item in value]
    if isinstance(value, dict):
        if "get_activation" in value:
            return tensor_utils.get_activation(value["get_activation"])
        if "layer" in value:
            layer = value["layer"].removeprefix("tf.keras.layers.")
            known = getattr(tf_keras.layers, layer, None) or public_object(value["layer"])
            return known(**resolved_all(value["init"], arrays))
        if name in CONFIG_ARGUMENTS:
            return modeling.EtcConfig(**value)
        return resolved_all(value, arrays)
    return value


def resolved_all(arguments, arrays):
    return {name: resolved(value, arrays, name) for name, value in arguments.items()}


def construct(case, arrays, **changes):
    """The object of a case about a class or a method of one."""
    owner = public_object(case["api"])
    if not inspect.isclass(owner):
        owner = public_object(case["api"].rpartition(".")[0])
    return owner(**{**resolved_all(case.get("init", {}), arrays), **changes})


def assert_close(actual, expected, atol, rtol=1e-5, what=""):
    actual = np.asarray(actual)
    assert actual.shape == expected.shape, f"{what}: {actual.shape} is not {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype} is not {expected.dtype}"
    if np.issubdtype(expected.dtype, np.floating):
        np.testing.assert_allclose(actual, expected, atol=atol, rtol=rtol, err_msg=what)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=what)


def named_results(result, outputs):
    """Results by the keys that the case lists."""
    if isinstance(result, tuple) and isinstance(
        result[0], input_utils.GlobalLocalTransformerSideInputs
    ):
        side_inputs, global_token_ids = result
        result = {**side_inputs.to_dict(), "global_token_ids": global_token_ids}
    elif isinstance(result, input_utils.GlobalLocalTransformerSideInputs):
        result = result.to_dict()
    if isinstance(result, dict):
        return {f"out.{name}": value for name, value in result.items()}
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    return dict(zip(outputs, results, strict=True))


def check_function(case):
    arrays = cases.arrays_of(TOPIC, case)
    function = callable_of(case, arrays)
    for name, value in case.get("attributes", {}).items():
        assert getattr(function.__self__, name) == value, name
    result = named_results(function(**resolved_all(case["call"], arrays)), case["outputs"])
    none_outputs = case.get("none_outputs", [])
    for key in none_outputs:
        assert result.get(key) is None, key
    for key in case["outputs"]:
        assert_close(result[key], arrays[key], case.get("atol", 1e-5), what=key)


def check_config(case):
    make = public_object(case["api"])
    config = construct(case, {}) if "init" in case else make(**case["call"])
    assert config.to_dict() == case["to_dict"]
    if "to_json_string" in case:
        assert config.to_json_string() == case["to_json_string"]


def check_raises(case):
    arrays = cases.arrays_of(TOPIC, case)
    with pytest.raises(getattr(builtins, case["raises"])):
        called = callable_of(case, arrays)
        if "call" in case:
            called(**resolved_all(case["call"], arrays))


def callable_of(case, arrays):
    """What `call` is for: a function, a method of a constructed object, or such an object."""
    found = public_object(case["api"])
    if "init" not in case:
        return found
    owner = construct(case, arrays)
    return owner if inspect.isclass(found) else getattr(owner, found.__name__)


def variants(case):
    """The case itself, and with each other value that gave the same numbers."""
    yield {}
    for argument, values in case.get("same_for", {}).items():
        yield from ({argument: value} for value in values)


def check_layer(case):
    arrays = cases.arrays_of(TOPIC, case)
    constructor = inspect.signature(public_object(case["api"]).__init__).parameters
    for variant in variants(case):
        in_init = {name: value for name, value in variant.items() if name in constructor}
        in_call = {name: value for name, value in variant.items() if name not in constructor}
        layer = construct(case, arrays, **in_init)
        call = {**resolved_all(case["call"], arrays), **in_call}
        layer(**call)
        names = {
            f"{layer.name}/{name}": variable
            for name, variable in checkpoints.release_names(layer).items()
        }
        assert set(names) == set(case["weights"])
        for name, key in case["weights"].items():
            names[name].assign(arrays[key])
        check_outputs_and_gradients(case, arrays, layer, call, names)


def check_outputs_and_gradients(case, arrays, layer, call, names):
    keys = list(case.get("grads", {}).get("inputs", {}))
    call_keys = {key: tf.constant(arrays[key]) for key in keys}
    call = {name: swap_in(case["call"].get(name), value, call_keys) for name, value in call.items()}
    with tf.GradientTape() as tape:
        tape.watch(list(call_keys.values()))
        results = named_results(layer(**call), case["outputs"])
        cotangents = case.get("grads", {}).get("cotangents", [])
        pairs = zip(case["outputs"], cotangents, strict=False)
        target = sum(tf.reduce_sum(results[key] * arrays[cot]) for key, cot in pairs)
    atol = case.get("atol", ATOL.get(case["kind"], 1e-5))
    for key in case["outputs"]:
        assert_close(results[key], arrays[key], atol, what=key)
    if not cotangents:
        return
    sources = {**call_keys, **{name: names[name] for name in case["grads"]["weights"]}}
    expected = {**case["grads"]["inputs"], **case["grads"]["weights"]}
    gradients = tape.gradient(target, sources)
    for name, key in expected.items():
        if key is None:
            assert gradients[name] is None, name
        else:
            assert gradients[name] is not None, name
            gradient = tf.convert_to_tensor(gradients[name])
            grad_atol = case.get("grad_atol", case.get("atol", 1e-4))
            assert_close(gradient, arrays[key], max(grad_atol, 1e-4), rtol=1e-4, what=name)


def swap_in(written, value, watched):
    """The watched tensor where the manifest wrote its key."""
    if isinstance(written, list):
        return [watched.get(key, item) for key, item in zip(written, value, strict=True)]
    return watched.get(written, value) if isinstance(written, str) else value


def check_model(case):
    arrays = cases.arrays_of(TOPIC, case)
    checkpoint = str(cases.resolve(TOPIC, case["checkpoint"]))
    model = checkpoints.load_pretrained(os.path.dirname(checkpoint), **case["init"])
    listed = cases.load_json(TOPIC, case["variables"])
    report = checkpoints.load_released_checkpoint(model, checkpoint)
    assert set(report.loaded) == set(listed["variables"])
    assert set(report.training_state) == set(listed["other_variables"])
    assert not report.unused and not report.not_in_checkpoint

    if case["side_inputs"]:
        check_side_inputs(case["side_inputs"], arrays)
    for variant in variants(case):
        call = {**resolved_all(case["call"], arrays), **variant}
        with tf.GradientTape() as tape:
            results = named_results(model(**call), case["outputs"])
            pairs = zip(case["outputs"], case["grads"]["cotangents"], strict=True)
            target = sum(tf.reduce_sum(results[key] * arrays[cot]) for key, cot in pairs)
        for key in case["outputs"]:
            assert_close(results[key], arrays[key], case["atol"], what=key)
        variables = checkpoints.release_names(model)
        gradients = tape.gradient(target, {name: variables[name] for name in listed["variables"]})
        check_norms(gradients, arrays[case["grads"]["weight_norms"]])


def check_side_inputs(side_inputs, arrays):
    """How the `side.` arrays of a model's case follow from its `in.` arrays."""
    function = public_object(side_inputs["api"])
    made = function(**resolved_all(side_inputs["call"], arrays)).to_dict()
    for name, key in side_inputs["outputs"].items():
        np.testing.assert_array_equal(made[name], arrays[key], err_msg=name)


def check_norms(gradients, expected):
    """L2 norms of gradients, in order; -1 where there is none."""
    for (name, gradient), norm in zip(gradients.items(), expected, strict=True):
        actual = -1.0 if gradient is None else np.linalg.norm(tf.convert_to_tensor(gradient))
        np.testing.assert_allclose(actual, norm, atol=1e-4, rtol=1e-4, err_msg=name)


def check_task(case):
    core_tasks.run_case(
        TASKS[case["api"]], case, cases.arrays_of(TOPIC, case), assert_close, check_norms
    )


CHECKS = {
    "feature_utils": check_function,
    "side_inputs": check_function,
    "multihop_side_inputs": check_function,
    "config": check_config,
    "layers": check_layer,
    "stacks": check_layer,
    "models": check_model,
    "tasks": check_task,
}


def is_slow(case):
    return case["kind"] in ("stacks", "models") and case["name"] not in QUICK


CASES = [
    pytest.param(case, id=cases.case_id(case), marks=[pytest.mark.slow] * is_slow(case))
    for case in cases.load_cases(TOPIC)
]


@pytest.mark.reference(TOPIC)
@pytest.mark.parametrize("case", CASES)
def test_case(case):
    check = check_raises if "raises" in case else CHECKS[case["kind"]]
    check(case)


def test_there_are_cases():
    assert {case["name"] for case in cases.load_cases(TOPIC)} >= set(QUICK)


def test_a_model_case_need_not_say_where_its_side_inputs_are_from():
    case = next(case for case in cases.load_cases(TOPIC) if case["kind"] == "models")
    check_model({**case, "side_inputs": None})
