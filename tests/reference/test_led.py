"""LED against Hugging Face's: states, attentions, logits, loss, gradients, sequences.

In graphs. Here a sample, and in `test_led_all.py` all cases.
"""

import pytest

from tests.reference import cases, led_cases

SAMPLE = [case for case in led_cases.load_cases() if case["name"] in led_cases.SAMPLE]


@pytest.mark.reference(led_cases.TOPIC)
@pytest.mark.parametrize("case", SAMPLE, ids=cases.case_id)
def test_case(case):
    led_cases.check(case)


def test_the_sample_is_there():
    assert len(SAMPLE) == len(led_cases.SAMPLE)
