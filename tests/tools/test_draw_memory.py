"""`draw_attention` of GMAT and PEGASUS-X: what their models do is what is drawn."""

import numpy as np
import pytest

from etcmodel import attention_picture
from etcmodel.tools import draw_attention, memory_subjects

MASK = np.array([1] * 17 + [0] * 2)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("chunk_size, memory", [(1, 1), (5, 3), (6, 2), (40, 2)])
@pytest.mark.parametrize("name", memory_subjects.EXAMPLES)
def test_pairs_are_those_of_a_dense_mask(name, chunk_size, memory):
    system, layer = memory_subjects.EXAMPLES[name]
    labels = memory_subjects.pair_labels(system, MASK, chunk_size, memory, layer)
    shift = chunk_size // 2 if name == "pegasus_x_staggered" else 0
    chunks = (np.arange(19) + shift) // chunk_size
    is_valid = MASK > 0
    sees = (chunks == chunks[:, np.newaxis]) & is_valid
    rows = is_valid  # What padding sees means nothing.
    found = labels["l2l"] != attention_picture.MASKED
    np.testing.assert_array_equal(found[rows], sees[rows])
    assert (labels["l2g"][rows] != attention_picture.MASKED).all()
    assert (labels["g2g"] != attention_picture.MASKED).all()
    seen = np.broadcast_to(is_valid, [memory, 19])
    np.testing.assert_array_equal(labels["g2l"] != attention_picture.MASKED, seen)
    assert (np.diagonal(labels["l2l"])[rows] == 0).all()  # A token itself.


@pytest.mark.parametrize("name", ["gmat", "pegasus_x_staggered"])
def test_the_program_draws_it(name, tmp_path):
    output = tmp_path / "pattern.png"
    draw_attention.run(draw_attention.DrawOptions(example=name, output=str(output)))
    assert output.read_bytes().startswith(b"\x89PNG")
