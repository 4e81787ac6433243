"""`draw_attention` of LongT5: what its encoder does is what is drawn."""

import numpy as np
import pytest

from etcmodel import attention_picture
from etcmodel.tools import draw_attention, transient_subjects

MASK = np.array([1] * 15 + [0] * 3)


@pytest.mark.parametrize("radius, block", [(3, 4), (1, 5), (20, 6)])
@pytest.mark.parametrize("name", transient_subjects.EXAMPLES)
def test_pairs_are_those_of_a_dense_mask(name, radius, block):
    kind = transient_subjects.EXAMPLES[name]
    labels = transient_subjects.pair_labels(kind, MASK, radius, block)
    seen = {piece: x != attention_picture.MASKED for piece, x in labels.items()}
    places, rows = np.arange(18), MASK > 0  # What padding sees means nothing.
    near = abs(places - places[:, np.newaxis]) <= radius
    np.testing.assert_array_equal(seen["l2l"][rows], (near & rows)[rows])
    assert (np.diagonal(labels["l2l"])[rows] == 0).all()  # A token itself.
    num_blocks = 18 // block if name == "longt5" else 0
    num_used = 15 // block if num_blocks else 0  # Blocks whose last place holds a token.
    expected = np.broadcast_to(np.arange(num_blocks) < num_used, [18, num_blocks])
    np.testing.assert_array_equal(seen["l2g"][rows], expected[rows])
    for number in range(num_used):
        last = 15 if number == num_used - 1 else (number + 1) * block  # With what is left over.
        assert np.flatnonzero(seen["g2l"][number]).tolist() == list(range(number * block, last))
    assert not seen["g2g"].any()


@pytest.mark.parametrize("name", transient_subjects.EXAMPLES)
def test_the_program_draws_it(name, tmp_path):
    output = tmp_path / "pattern.png"
    draw_attention.run(draw_attention.DrawOptions(example=name, output=str(output)))
    assert output.read_bytes().startswith(b"\x89PNG")
