"""All cases of BigBird, of which `test_bigbird.py` has a sample; a few in graphs, and by XLA."""

import pytest

from tests.reference import bigbird_cases, cases, test_bigbird, ways

TRACED = [case for case in test_bigbird.CASES if case["name"] in bigbird_cases.TRACED]


@pytest.mark.slow_cases(50)
@pytest.mark.slow
@pytest.mark.reference(bigbird_cases.TOPIC)
@pytest.mark.parametrize("case", test_bigbird.CASES, ids=cases.case_id)
def test_case(case):
    bigbird_cases.check(case)


@pytest.mark.slow_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("case", TRACED, ids=cases.case_id)
def test_case_in_a_graph_for_any_length(case):
    bigbird_cases.check(case, ways.GRAPH)


ENCODERS = [case for case in test_bigbird.CASES if case["kind"].startswith("bigbird/")]


@pytest.mark.parametrize("case", ways.marked_for_xla(ENCODERS, bigbird_cases.TRACED))
@pytest.mark.slow_cases(1)
def test_case_under_xla(case):
    bigbird_cases.check(case, ways.COMPILED)
