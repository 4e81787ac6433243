"""All cases of LongT5 and PEGASUS-X, of which `test_t5.py` has a sample."""

import pytest

from tests.reference import cases, t5_cases

pytestmark = pytest.mark.slow
CASES = cases.load_cases(t5_cases.TOPIC)


@pytest.mark.reference(t5_cases.TOPIC)
@pytest.mark.parametrize("case", CASES, ids=cases.case_id)
def test_case(case):
    t5_cases.check(case)
