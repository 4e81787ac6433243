"""All cases of BigBird, of which `test_bigbird.py` has a sample; a few in graphs, and by XLA."""

import pytest

from tests.reference import bigbird_cases, cases, test_bigbird, ways

pytestmark = pytest.mark.slow
TRACED = [case for case in test_bigbird.CASES if case["name"] in bigbird_cases.TRACED]


@pytest.mark.reference(bigbird_cases.TOPIC)
@pytest.mark.parametrize("case", test_bigbird.CASES, ids=cases.case_id)
def test_case(case):
    bigbird_cases.check(case)


@pytest.mark.parametrize("case", TRACED, ids=cases.case_id)
def test_case_in_a_graph_for_any_length(case):
    bigbird_cases.check(case, ways.GRAPH)


@pytest.mark.parametrize("case", ways.marked_for_xla(test_bigbird.CASES, bigbird_cases.TRACED))
def test_case_under_xla(case):
    bigbird_cases.check(case, ways.COMPILED)
