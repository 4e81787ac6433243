"""GMAT against a plain twin of the paper, and encoders of Hugging Face's that are kin to it.

A sample; in `test_gmat_all.py` all cases.
"""

import pytest

from tests.reference import cases, gmat_cases, gmat_tagging

SAMPLE = gmat_cases.load(sample=gmat_cases.SAMPLE)


@pytest.mark.reference(gmat_cases.TOPIC)
@pytest.mark.parametrize("case", SAMPLE, ids=cases.case_id)
def test_case(case):
    gmat_cases.check(case)


def test_the_sample_is_there():
    assert len(SAMPLE) == len(gmat_cases.SAMPLE)


@pytest.mark.parametrize(("length", "pairs"), [(64, 1), (128, 4)])
def test_the_constant_answer_to_generated_sequences_is_right_as_often_as_it_must(length, pairs):
    gmat_tagging.check_statistics(length, pairs)
