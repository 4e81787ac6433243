"""Generated sequences to be tagged: what GMAT's paper has of them."""

import pytest

from tests.reference import gmat_tagging


@pytest.mark.parametrize(("length", "pairs"), [(64, 1), (128, 4)])
def test_the_constant_answer_to_generated_sequences_is_right_as_often_as_it_must(length, pairs):
    gmat_tagging.check_statistics(length, pairs)
