"""LED against Hugging Face's: states, attentions, logits, loss, gradients, sequences.

Here a sample, and in `test_led_all.py` all cases. Those of lifting are in
`tests/checkpoints/test_lifting_bart.py`.
"""

import pytest

from tests.reference import cases, led_cases

NAMES = [name for name in led_cases.SAMPLE if not name.startswith("lift/")]
SAMPLE = [case for case in led_cases.load_cases() if case["name"] in NAMES]


@pytest.mark.reference(led_cases.TOPIC)
@pytest.mark.parametrize("case", SAMPLE, ids=cases.case_id)
def test_case(case):
    led_cases.check(case)


def test_the_sample_is_there():
    assert len(SAMPLE) == len(NAMES) and set(led_cases.TRACED) <= set(NAMES)
