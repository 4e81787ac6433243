"""The soak finds what is wrong: readers that take, fail, hang or fill the memory are found out."""

import json

import numpy as np
import pytest
import safetensors.numpy

from tests.soak import bounds, folder_damage, test_folders
from tests.soak.folder_damage import Verdict

REFUSED, SAME, COUNTS, OPEN = Verdict
ARRAYS = {"shared.weight": np.ones([3, 2], np.float32), "b": np.arange(2, dtype=np.float16)}


def fail(error):
    raise error


def loop():
    while True:
        try:
            while True:
                pass
        except Exception:  # What is tried may catch all errors.
            continue


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (lambda: 3, ""),
        (lambda: fail(ValueError("`x` must be 3. Received: 4")), ""),
        (lambda: fail(OSError(2, "No such file", "x")), ""),
        (lambda: fail(TypeError("x")), "trace: TypeError: x"),
        (lambda: fail(RecursionError()), "trace: RecursionError"),
        (lambda: "x".encode("ascii") + b"\xff".decode().encode(), "trace: UnicodeDecodeError"),
        (lambda: fail(ValueError("")), "message: not one line"),
        (lambda: fail(ValueError("a\nb")), "message: not one line"),
        (lambda: fail(ValueError("x" * 2000)), "message: 2000 characters"),
        (lambda: fail(ValueError(f"{object()}")), "message: it has 'object at 0x'"),
        (loop, "hangs: more than 0 s"),
        (lambda: np.ones(100 << 20, np.int8), "memory: "),
        (lambda: np.ones(1 << 40, np.int8), "memory: Unable to allocate"),
    ],
)
def test_how_an_input_is_met(action, problem):
    met = bounds.meet(action, seconds=0.1 if action is loop else 60.0, memory=8 << 20)
    assert met.problem.startswith(problem) and bool(met.problem) == bool(problem)
    assert met.problem or bool(met.line) == (met.value is None)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        ('{"hidden_act": "gelu", "x": 1}', REFUSED),
        ('{"hidden_act": "relu"}', OPEN),
        ('{"hidden_act": 1}', SAME),
        ("{}", OPEN),
        ('{"hidden_act": "gelu", "hidden_act": "gelu"}', REFUSED),
        ('{"hidden_act": "gelu"', REFUSED),
        ("[]", REFUSED),
        ('\ufeff{"hidden_act": "gelu"}', SAME),
    ],
)
def test_what_configs_say(made, verdict):
    judge = folder_damage.KINDS[0][1].judge
    assert judge(b'{"hidden_act": "gelu"}', made.encode()) is verdict


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(1e-5, OPEN), (-1, REFUSED), (float("nan"), REFUSED), ("1e-5", SAME), (None, SAME)],
)
def test_what_numbers_say(value, verdict):
    judge = folder_damage.KINDS[0][1].judge
    made = json.dumps({"layer_norm_eps": value}).encode()
    assert judge(b'{"layer_norm_eps": 1e-12}', made) is verdict


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, SAME),
        ({"shared.weight": None}, REFUSED),
        ({"shared.weight": np.ones([4, 2], np.float32)}, REFUSED),
        ({"shared.weight": np.ones([3, 2], np.int8)}, REFUSED),
        ({"shared.weight": np.ones([3, 2])}, SAME),
        ({"shared.weight": np.ones([3, 2, 1], np.float32)}, SAME),
        ({"shared.weight": np.zeros([3, 2], np.float32)}, OPEN),
        ({"lm_head.weight": np.ones([3, 2], np.float32)}, SAME),
        ({"lm_head.weight": np.zeros([3, 2], np.float32)}, COUNTS),
        ({"more": np.zeros([3, 2], np.float32)}, SAME),
    ],
)
def test_what_tensors_say(changes, verdict):
    arrays = {name: x for name, x in {**ARRAYS, **changes}.items() if x is not None}
    made, judge = folder_damage.packed(arrays), folder_damage.Safetensors().judge
    loaded, read = safetensors.numpy.load(made), folder_damage.tensors(made)
    assert loaded.keys() == read.keys()
    assert all(np.array_equal(read[name], value) for name, value in loaded.items())
    assert judge("longt5", folder_damage.packed(ARRAYS), made) is verdict
    for wrong in (made[:-1], made + b"x", made.replace(b"[0, ", b"[4, "), made[:8]):
        assert folder_damage.tensors(wrong) is None


@pytest.mark.parametrize(
    ("verdict", "value", "fault"),
    [
        (REFUSED, 1.0, "taken for good"),
        (SAME, 1.0, ""),
        (SAME, 2.0, "silent: other"),
        (COUNTS, 1.0, "silent: left out"),
        (COUNTS, 2.0, ""),
        (OPEN, 2.0, ""),
    ],
)
def test_what_is_taken(verdict, value, fault):
    expected = {"outputs": [np.ones(2)], "batch": None}
    met = bounds.Met(value={"outputs": [np.full(2, value)], "batch": None})
    found = test_folders.fault(met, verdict, expected, "config.json", "/x")
    assert found.startswith(fault) and bool(found) == bool(fault)
    assert not test_folders.fault(bounds.Met(line="/x/a: no"), verdict, expected, "a", "/x")
    assert test_folders.fault(bounds.Met(line="no"), verdict, expected, "a", "/x")
