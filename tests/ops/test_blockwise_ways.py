"""Attention over key sets is the same compiled, with unknown lengths and in low precision."""

import functools

import pytest
import tensorflow as tf

from etcmodel.ops import labels
from etcmodel.ops.tiles import Tiling
from tests.ops import plain_key_sets
from tests.ops.blockwise_cases import (
    CASES,
    TILING,
    assert_close,
    expected,
    forget_lengths,
    fused,
    run,
)

pytestmark = pytest.mark.slow


def run_with_unknown_lengths(case, **options):
    biases = [
        id(x)
        for key_set in case.key_sets
        if isinstance(key_set.labels, labels.PairBiases)
        for x in key_set.labels.tensors()
    ]
    # Whether heads and examples share biases is always known.
    tensors = [
        forget_lengths(x) if len(x.shape) == 4 and id(x) not in biases else x
        for x in case.tensors()
    ]
    return run(case.of(tensors), **options)


WAYS = {
    "element-wise parts compiled": lambda case: tf.function(
        functools.partial(fused("always", run), case, tiling=TILING), autograph=False
    ),
    "lengths unknown": lambda case: tf.function(
        functools.partial(run_with_unknown_lengths, case, tiling=TILING), autograph=False
    ),
    "all rows in a tile, lengths unknown": lambda case: tf.function(
        functools.partial(run_with_unknown_lengths, case, tiling=Tiling(rows="all")),
        autograph=False,
    ),
    "compiled": lambda case: tf.function(
        functools.partial(run, case, tiling=TILING), jit_compile=True, autograph=False
    ),
}


@pytest.mark.slow_cases(8)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_every_reach_is_the_same_however_it_is_computed(name, way):
    assert_close(WAYS[way](CASES[name])(), expected(name))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_every_reach_in_low_precision(name, dtype):
    case = CASES[name]
    rounded = case.of([tf.cast(x, dtype) for x in case.tensors()])
    results = run(rounded, tiling=TILING)
    assert {x.dtype for x in results} == {dtype}
    plain = run(case.of([tf.cast(x, tf.float32) for x in rounded.tensors()]), plain_key_sets.attend)
    assert_close(results, plain, tolerance=0.05)
