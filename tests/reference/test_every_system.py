"""Every system against Hugging Face's, or a plain twin.

States, attentions, logits, losses, gradients, sequences: a sample is quick; all cases are slow,
and some of them are run in graphs, too. By XLA they are in `test_every_system_under_xla.py`, and
what is of one system's files in a module of its own.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.reference import (
    bigbird_cases,
    cases,
    gmat_cases,
    led_cases,
    longformer_cases,
    longformer_encoders,
    longformer_heads,
    modernbert_cases,
    t5_cases,
    ways,
)


class System(NamedTuple):
    """Where the cases of a system are, and how one is run.

    Attributes:
        topic: str. The folder of its cases.
        cases: list of dict.
        check: function of a case and, where there are names in `traced`, a way.
        sample: names of those cases that are quick.
        traced: names of those that are run in graphs.
    """

    topic: str
    cases: list
    check: Callable
    sample: tuple
    traced: tuple = ()


def without_lifting(names):
    """Those of lifting are in the tests of checkpoints."""
    return tuple(name for name in names if not name.startswith("lift/"))


def _longformer(module):
    """The cases of one of its two modules, whose sample is one."""
    known = {case["name"] for case in module.CASES}
    names = (longformer_cases.SAMPLE, longformer_cases.TRACED)
    chosen = (tuple(x for x in some if x in known) for some in names)
    return System(longformer_cases.TOPIC, module.CASES, module.check, *chosen)


SYSTEMS = {
    "BigBird": System(
        bigbird_cases.TOPIC,
        bigbird_cases.all_cases(),
        bigbird_cases.check,
        bigbird_cases.SAMPLE,
        bigbird_cases.TRACED,
    ),
    "GMAT": System(gmat_cases.TOPIC, gmat_cases.load(), gmat_cases.check, gmat_cases.SAMPLE),
    "LED": System(
        led_cases.TOPIC,
        led_cases.load_cases(),
        led_cases.check,
        without_lifting(led_cases.SAMPLE),
        led_cases.TRACED,
    ),
    "Longformer": _longformer(longformer_encoders),
    "Longformer's heads": _longformer(longformer_heads),
    "LongT5, PEGASUS-X": System(
        t5_cases.TOPIC,
        cases.load_cases(t5_cases.TOPIC),
        t5_cases.check,
        t5_cases.SAMPLE,
        t5_cases.TRACED,
    ),
    "ModernBERT": System(
        modernbert_cases.TOPIC,
        modernbert_cases.CASES,
        modernbert_cases.check,
        modernbert_cases.SAMPLE,
        modernbert_cases.TRACED,
    ),
}


def each_case(which=None):
    """Parameters `name` and `case`: all cases, or those that an attribute names."""
    params = [
        pytest.param(name, case, id=f"{name}-{case['name']}", marks=pytest.mark.reference(x.topic))
        for name, x in SYSTEMS.items()
        for case in x.cases
        if which is None or case["name"] in getattr(x, which)
    ]
    return pytest.mark.parametrize(("name", "case"), params)


@each_case("sample")
def test_a_sample(name, case):
    SYSTEMS[name].check(case)


@pytest.mark.slow
@pytest.mark.slow_cases(160)
@each_case()
def test_case(name, case):
    SYSTEMS[name].check(case)


@pytest.mark.slow
@pytest.mark.slow_cases(10)
@each_case("traced")
def test_case_in_a_graph(name, case):
    SYSTEMS[name].check(case, way=ways.GRAPH)


def test_the_samples_are_there():
    for system in SYSTEMS.values():
        known = {case["name"] for case in system.cases}
        assert set(system.traced) <= set(system.sample) <= known
    one, other = SYSTEMS["Longformer"], SYSTEMS["Longformer's heads"]
    assert {*one.sample, *other.sample} == set(without_lifting(longformer_cases.SAMPLE))
    kinds = {name.split("/")[1] for name in other.sample}
    assert kinds == {"a_mc", "a_mlm", "a_qa", "a_seqcls_multilabel", "a_tokcls"}
