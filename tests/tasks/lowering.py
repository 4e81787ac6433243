"""Training steps and predictions as programs of XLA, which are looked into and not run.

The pip package of TensorFlow has XLA's kernels for CPU and GPU, which lower a program to StableHLO
without such a device; it has none for TPU. What keeps a program from a TPU is looked for in the
operations of TensorFlow and in the lowered text.
"""

import contextlib
import dataclasses
import functools
import re

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import compiler_ir, polymorphic_function
from tensorflow.python.framework import convert_to_constants, kernels

from etcmodel import training
from etcmodel.training import evaluator, run
from tests.tasks.trainers import BATCH_SIZE, build

PLATFORMS = ("CPU", "GPU")
# XLA leaves these out; their texts are messages.
LEFT_OUT = {"Assert", "Const", "NoOp", "Placeholder"}
# What XLA has kernels for, and the host has a part in.
OF_HOST = re.compile(
    "PyFunc|Print|Infeed|Outfeed|Host|Send|Recv|Dataset|Iterator|Summary|Save|File"
)
# Types that a TPU computes with; doubles slowly, in software.
TYPES = {"float32", "bfloat16", "bool", "float64"}
TYPES |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
HANDLES = {"resource", "variant"}  # Of variables, and of the arrays that loops fill.
# How a program would talk to its host.
HOST_CALLS = {"custom_call", "infeed", "outfeed", "send", "recv"}
# A shape that the data decide; it is in the type of whatever has one.
DYNAMIC = re.compile(r"tensor<[^>]*\?|#stablehlo\.bounds")


@dataclasses.dataclass(frozen=True)
class Program:
    """What a strategy was given to run.

    Attributes:
        strategy: `LoweringStrategy`.
        function: `tf.function`.
        specs: its arguments' `TensorSpec`s.
    """

    strategy: tf.distribute.Strategy
    function: object
    specs: tuple

    def traced(self):
        """Its `ConcreteFunction`, made as a call would: models look whether XLA compiles them."""
        with polymorphic_function.OptionalXlaContext(True):
            return self.strategy.in_replica(
                lambda: self.function.get_concrete_function(*self.specs)
            )

    def stablehlo(self):
        """Its text for a CPU."""
        return _stablehlo(self.traced(), "CPU")

    def stablehlo_of_constants(self, platform):
        """Its text for one of `PLATFORMS`, with the weights as constants.

        Variables would be asked of a device of that kind.
        """
        traced = self.traced()
        constant = convert_to_constants.convert_variables_to_constants_v2(
            traced,
            lower_control_flow=False,  # Which XLA needs as it is.
        )
        return _stablehlo(constant, platform)


def _stablehlo(traced, platform):
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in traced.inputs if x.dtype != tf.resource]
    lower = compiler_ir.from_concrete_function(traced, specs)
    return lower(stage="stablehlo", platform_name=platform)


class LoweringStrategy(tf.distribute.OneDeviceStrategy):
    """Traces what it is given to run as TPUStrategy does, and gives zeros instead of running it.

    Attributes:
        programs: list of `Program`.
    """

    def __init__(self):
        super().__init__("CPU:0")
        self.programs = []

    def run(self, fn, args=(), kwargs=None, options=None):
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), args)
        program = Program(self, tf.function(fn, jit_compile=True, autograph=False), specs)
        self.programs.append(program)
        # Lifted out of the caller's graph, to refer to variables themselves; but the scope stops
        # gradients, so that what has some must be called eagerly.
        with contextlib.nullcontext() if tf.executing_eagerly() else tf.init_scope():
            outputs = program.traced().structured_outputs
        return tf.nest.map_structure(lambda x: tf.zeros(x.shape, x.dtype), outputs)

    def in_replica(self, fn):
        """What a function gives that is called where a device's part of a step is."""
        found = []
        super().run(lambda: found.append(fn()))
        return found[0]


def lower_training(task):
    """The `LoweringStrategy` with the program of a step."""
    strategy = LoweringStrategy()
    _, trainer = build(task, strategy)
    request = training.TrainDataRequest(global_batch_size=BATCH_SIZE)
    trainer.train_step(iter(task.train_dataset(request)))
    return strategy


def lower_prediction(task):
    """The `LoweringStrategy` with the program of a batch's prediction."""
    strategy = LoweringStrategy()
    with strategy.scope():
        model = run.build_model(task, training.TrainingConfig())
    predictor = evaluator.Predictor(model, strategy, select=task.model_features)
    assert list(predictor(task.eval_dataset, BATCH_SIZE))
    return strategy


@functools.cache
def compiled_operations():
    """Names of the operations that XLA compiles for all of `PLATFORMS`."""
    # Only then does XLA make its kernels known.
    tf.function(lambda: tf.ones([]), jit_compile=True).experimental_get_compiler_ir()(stage="hlo")
    found = {f"XLA_{platform}_JIT": set() for platform in PLATFORMS}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in found:
            found[kernel.device_type].add(kernel.op)
    return frozenset.intersection(*map(frozenset, found.values()))


def problems_of_operations(graph):
    """What of the operations a TPU would refuse: list of str."""
    compiled = compiled_operations() | LEFT_OUT
    found = []
    for node in _nodes(graph):
        if node.op not in compiled or OF_HOST.search(node.op):
            found.append(f"{node.op} {node.name} is not for the device")
        elif node.op not in LEFT_OUT:
            types = {x for value in node.attr.values() for x in (value.type, *value.list.type)}
            names = {tf.as_dtype(x).name for x in types if x} - TYPES - HANDLES
            found += [f"{node.op} {node.name} has type {x}" for x in sorted(names)]
    return found


def _nodes(graph):
    definition = graph.as_graph_def()
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def


def problems_of_text(text):
    """What of StableHLO a device could not run by itself: list of str."""
    operations = set(re.findall(r"stablehlo\.(\w+)", text))
    found = [f"calls its host by {x}" for x in sorted(operations & HOST_CALLS)]
    dialects = set(re.findall(r"= \"?(\w+)\.\w+", text))
    found += [f"is in {x}" for x in sorted(dialects - {"stablehlo", "chlo", "mhlo", "func"})]
    if match := DYNAMIC.search(text):
        found.append(f"has no static shape: {text[match.start() : match.start() + 80]}")
    return found if operations else [*found, "is empty"]


def check(program):
    """That nothing keeps a `Program` from a device: no string, and nothing of the host."""
    traced = program.traced()
    for tensor in [*tf.nest.flatten(program.specs), *tf.nest.flatten(traced.structured_outputs)]:
        assert tensor.dtype != tf.string
    assert not problems_of_operations(traced.graph)
    assert not problems_of_text(program.stablehlo())
