"""What would keep a program from a TPU is found."""

import re

import pytest
import tensorflow as tf

from tests.tasks import lowering, lowering_cases

VECTOR = tf.TensorSpec([4], tf.float32)


def program_of(fn):
    return tf.function(fn, jit_compile=True, autograph=False)


def in_python(x):
    return tf.ensure_shape(tf.py_function(lambda y: y, [x], tf.float32), [4])


def in_a_loop(x):
    return tf.while_loop(lambda y: tf.reduce_sum(y) < 9, lambda y: (in_python(y),), [x])[0]


def printed(x):
    with tf.control_dependencies([tf.print(x)]):
        return tf.identity(x)


# Name: (the function, what is told of it).
OF_THE_HOST = {
    "python": (in_python, "EagerPyFunc .* is not for the device"),
    "python in a loop": (in_a_loop, "EagerPyFunc .* is not for the device"),
    "print": (printed, "PrintV2 .* is not for the device"),
    "string": (tf.strings.as_string, "AsString .* is not for the device"),
    "type": (lambda x: tf.abs(tf.cast(x, tf.complex128)), "Cast .* has type complex128"),
}


@pytest.mark.parametrize("name", OF_THE_HOST)
def test_operations_that_a_tpu_lacks_are_found(name):
    fn, message = OF_THE_HOST[name]
    found = lowering.problems_of_operations(program_of(fn).get_concrete_function(VECTOR).graph)
    assert any(re.match(message, problem) for problem in found), found


def text_of(fn):
    return program_of(fn).experimental_get_compiler_ir(VECTOR)(stage="stablehlo")


@pytest.mark.parametrize("fn", [lambda x: tf.where(x > 0), lambda x: tf.unique(x)[0]])
def test_shapes_that_the_data_decide_are_found(fn):
    (found,) = lowering.problems_of_text(text_of(fn))
    assert found.startswith("has no static shape: ")


def test_calls_of_the_host_are_found():
    text = '%0 = stablehlo.add %a, %b : tensor<2xf32>\n%1 = "stablehlo.outfeed"(%0, %t)\n'
    assert lowering.problems_of_text(text) == ["calls its host by outfeed"]
    assert lowering.problems_of_text("module {}") == ["is empty"]


def test_what_a_device_runs_is_no_problem():
    def step(x):
        parts = tf.while_loop(lambda y: tf.reduce_sum(y) < 9, lambda y: (y + 1,), [x])[0]
        tf.debugging.assert_greater(parts, 0.0)  # Left out by XLA, with its message.
        return tf.nn.softmax(parts[1:3]) * tf.random.stateless_uniform([2], [1, 2])

    graph = program_of(step).get_concrete_function(VECTOR).graph
    assert not lowering.problems_of_operations(graph)
    assert not lowering.problems_of_text(text_of(step))


# For the time it takes, `make test-xla` has the others.
QUICKER = {"triviaqa longformer", "numerical_reasoning gmat", "summarization led"}
# Models that generate: their loops read variables, which cannot become constants.
GENERATING = {name for name in lowering_cases.TASKS if name.startswith(("numerical", "summ"))}
NAMES = [
    pytest.param(name, marks=[] if name in QUICKER else [pytest.mark.xla])
    for name in lowering_cases.TASKS
]


def checked(strategy):
    (program,) = strategy.programs
    lowering.check(program)
    return program


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow_cases(1)
def test_a_training_step_is_a_program_without_its_host(name, tmp_path):
    checked(lowering.lower_training(lowering_cases.TASKS[name](tmp_path)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow_cases(1)
def test_a_prediction_is_a_program_without_its_host(name, tmp_path):
    program = checked(lowering.lower_prediction(lowering_cases.TASKS[name](tmp_path)))
    if name not in GENERATING:
        assert not lowering.problems_of_text(program.stablehlo_of_constants("GPU"))
