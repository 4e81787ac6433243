"""All cases of GMAT's model, of which `test_gmat.py` has a sample."""

import pytest

from tests.reference import cases, gmat_cases

pytestmark = pytest.mark.slow


@pytest.mark.slow_cases(24)
@pytest.mark.reference(gmat_cases.TOPIC)
@pytest.mark.parametrize("case", gmat_cases.load(), ids=cases.case_id)
def test_case(case):
    gmat_cases.check(case)
