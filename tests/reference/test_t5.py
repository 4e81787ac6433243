"""LongT5 and PEGASUS-X against Hugging Face's: states, attentions, logits, loss, gradients.

And sequences. Here a sample, and in `test_t5_all.py` all cases.
"""

import pytest

from tests.reference import cases, t5_cases

SAMPLE = [case for case in cases.load_cases(t5_cases.TOPIC) if case["name"] in t5_cases.SAMPLE]


@pytest.mark.reference(t5_cases.TOPIC)
@pytest.mark.parametrize("case", SAMPLE, ids=cases.case_id)
def test_case(case):
    t5_cases.check(case)


def test_the_sample_is_there():
    assert len(SAMPLE) == len(t5_cases.SAMPLE)
    assert set(t5_cases.TRACED) <= set(t5_cases.SAMPLE)
