"""Every task's training step and prediction as an XLA device runs them: compiled, and whole.

A strategy stands in for that of a TPU: what it is given to run, it compiles. The compiled programs
are then looked into: what is not in them cannot be asked of a TPU.
"""

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import preprocessing
from etcmodel.models import modeling
from etcmodel.pretrain import task as pretrain_task
from etcmodel.tasks.hotpotqa import task as hotpotqa_task
from etcmodel.tasks.nq import task as nq_task
from etcmodel.tasks.openkp import task as openkp_task
from etcmodel.tasks.wikihop import task as wikihop_task
from etcmodel.training import evaluator
from tests.pretrain import windows
from tests.tasks.trainers import BATCH_SIZE, build

pytestmark = pytest.mark.xla

RECORDS = pathlib.Path(__file__).parents[1] / "fixtures" / "first_edition"
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# Operations that run on the host wherever they are.
HOST_OPERATIONS = {"EagerPyFunc", "PyFunc", "PyFuncStateless", "Print", "PrintV2", "StringFormat"}
# XLA leaves these out; their texts are messages.
LEFT_OUT = {"Assert", "Const", "Placeholder"}


class CompilingStrategy(tf.distribute.OneDeviceStrategy):
    """Compiles what it runs, as TPUStrategy does, and keeps it."""

    def __init__(self):
        super().__init__("CPU:0")
        self.programs = []

    def run(self, fn, args=(), kwargs=None, options=None):
        compiled = tf.function(fn, jit_compile=True, autograph=False)
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), args)
        self.programs.append((compiled, specs))
        return super().run(compiled, args, kwargs, options)

    def stablehlo(self):
        """The texts of the compiled programs."""
        return [
            compiled.experimental_get_compiler_ir(*_zeros(specs))(stage="stablehlo")
            for compiled, specs in self.programs
        ]

    def operations(self):
        """Every operation of the programs and of the functions in them."""
        for compiled, specs in self.programs:
            yield from _operations(compiled.get_concrete_function(*_zeros(specs)).graph)


def _zeros(specs):
    return tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), specs)


def _operations(graph):
    definition = graph.as_graph_def()
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def


def etc_config(vocab_file, **changes):
    return modeling.EtcConfig(
        vocab_size=len(vocab_file.read_text(encoding="utf-8").splitlines()),
        hidden_size=16,
        intermediate_size=16,
        num_attention_heads=2,
        local_radius=7,
        relative_pos_max_distance=4,
        relative_vocab_size=12,
        initializer_range=0.2,  # So narrow a layer would have hardly any gradient.
        # XLA draws other random numbers than TensorFlow's kernels do.
        **{"num_hidden_layers": 1, **NO_DROPOUT, **changes},
    )


def finetuning_task(name, task_class, config_class, split_names, *, sizes=None, **options):
    """A task on the records of the first edition."""
    train, dev = split_names
    vocab_file = RECORDS / name / "vocab.txt"
    config = etc_config(vocab_file, **(sizes or {}))
    return task_class(
        config_class(
            encoder_config=config,
            vocab_file=str(vocab_file),
            train_data=str(RECORDS / name / "records" / f"{train}-*.tfrecord"),
            eval_data=str(RECORDS / name / "records" / f"{dev}-*.tfrecord"),
            **options,
        )
    )


def make_hotpotqa(folder):
    return finetuning_task(
        "hotpotqa",
        hotpotqa_task.HotpotQaTask,
        hotpotqa_task.HotpotQaConfig,
        ("train", "dev"),
        long_seq_length=320,
        global_seq_length=96,
    )


def make_nq(folder):
    return finetuning_task(
        "nq",
        nq_task.NqTask,
        nq_task.NqConfig,
        ("train", "dev"),
        long_seq_length=128,
        global_seq_length=32,
        mask_long_output=True,
    )


def make_wikihop(folder):
    return finetuning_task(
        "wikihop",
        wikihop_task.WikiHopTask,
        wikihop_task.WikiHopConfig,
        ("train", "dev"),
        long_seq_length=160,
        global_seq_length=56,
    )


def make_openkp(folder, **sizes):
    return finetuning_task(
        "openkp",
        openkp_task.OpenKpTask,
        openkp_task.OpenKpConfig,
        ("openkp_train", "openkp_dev"),
        sizes=sizes,
        long_seq_length=104,
        global_seq_length=16,
        url_max_code_points=100,
    )


def make_pretraining(folder):
    tokenizer = windows.make_tokenizer(folder)
    documents = [windows.document(str(n), *range(n, n + 4)) for n in range(6)]
    records = folder / "text.tfrecord"
    with tf.io.TFRecordWriter(str(records)) as writer:
        for features in windows.make_windows(documents, tokenizer).features:
            writer.write(preprocessing.to_tf_example(features).SerializeToString())
    config = pretrain_task.PretrainConfig(
        encoder_config=windows.etc_config(num_hidden_layers=1),
        train_data=str(records),
        eval_data=str(records),
        vocab_file=str(folder / "vocab.txt"),
        long_seq_length=windows.LONG,
        global_seq_length=windows.GLOBAL,
    )
    return pretrain_task.PretrainTask(config)


TASKS = {
    "hotpotqa": make_hotpotqa,
    "nq": make_nq,
    "wikihop": make_wikihop,
    "openkp": make_openkp,
    "pretraining": make_pretraining,
}


@pytest.fixture(scope="module", params=TASKS)
def task(request, tmp_path_factory):
    return TASKS[request.param](tmp_path_factory.mktemp(request.param))


def train(task, strategy):
    """Metrics of a step, and the weights after it."""
    model, trainer = build(task, strategy)
    metrics = trainer.train(tf.constant(1))
    metrics.pop("examples_per_second", None)
    return metrics, model.get_weights()


def predict(task, strategy):
    model, _ = build(task, strategy)
    predictor = evaluator.Predictor(model, strategy, select=task.model_features)
    return list(predictor(task.eval_dataset, BATCH_SIZE))


def plain_strategy():
    return tf.distribute.OneDeviceStrategy("CPU:0")


def check_programs(strategy):
    """Nothing of the host is in the programs, and no string."""
    assert strategy.programs
    for compiled, specs in strategy.programs:
        program = compiled.get_concrete_function(*_zeros(specs))
        for tensor in [*tf.nest.flatten(specs), *tf.nest.flatten(program.structured_outputs)]:
            assert tensor.dtype != tf.string
    for operation in strategy.operations():
        assert operation.op not in HOST_OPERATIONS, operation.name
        if operation.op not in LEFT_OUT:
            types = [value.type for value in operation.attr.values()]
            assert tf.string.as_datatype_enum not in types, f"{operation.op} {operation.name}"
    for text in strategy.stablehlo():
        dialects = set(re.findall(r"= \"?(\w+)\.\w+", text))
        assert "stablehlo" in dialects and dialects <= {"stablehlo", "chlo", "mhlo", "func"}
        # How a program would talk to its host.
        operations = set(re.findall(r"stablehlo\.(\w+)", text))
        assert not operations & {"custom_call", "infeed", "outfeed", "send", "recv"}


def test_a_training_step_is_one_program_for_the_device(task):
    strategy = CompilingStrategy()
    metrics, weights = train(task, strategy)
    expected_metrics, expected_weights = train(task, plain_strategy())
    assert metrics == pytest.approx(expected_metrics, rel=1e-4)
    for weight, expected in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(weight, expected, atol=1e-4)
    check_programs(strategy)


def test_a_prediction_is_one_program_for_the_device(task):
    strategy = CompilingStrategy()
    rows, expected_rows = predict(task, strategy), predict(task, plain_strategy())
    (features,) = task.eval_dataset(len(rows))
    for row, expected in zip(rows, expected_rows, strict=True):
        assert row.keys() == expected.keys()
        for name, value in row.items():
            if np.asarray(value).dtype.kind == "f":
                np.testing.assert_allclose(value, expected[name], atol=1e-4, err_msg=name)
            elif name in features:  # Places of the best logits may change where two are equal.
                np.testing.assert_array_equal(value, expected[name], err_msg=name)
    check_programs(strategy)
