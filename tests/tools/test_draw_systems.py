"""`draw_attention` of GMAT, PEGASUS-X, LongT5 and Longformer: what their models do is drawn."""

import numpy as np
import pytest

from etcmodel import attention_picture
from etcmodel.models.longformer import LongformerConfig
from etcmodel.tools import draw_attention, memory_subjects, sequence_subjects, transient_subjects
from tests.ops import numpy_sliding_window

MASK = np.array([1] * 17 + [0] * 2)
ROWS = MASK > 0  # What padding sees means nothing.


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("chunk_size, memory", [(1, 1), (5, 3), (6, 2), (40, 2)])
@pytest.mark.parametrize("name", memory_subjects.EXAMPLES)
def test_of_a_memory_pairs_are_those_of_a_dense_mask(name, chunk_size, memory):
    system, layer = memory_subjects.EXAMPLES[name]
    labels = memory_subjects.pair_labels(system, MASK, chunk_size, memory, layer)
    seen = {piece: x != attention_picture.MASKED for piece, x in labels.items()}
    shift = chunk_size // 2 if name == "pegasus_x_staggered" else 0
    chunks = (np.arange(19) + shift) // chunk_size
    sees = (chunks == chunks[:, np.newaxis]) & ROWS
    np.testing.assert_array_equal(seen["l2l"][ROWS], sees[ROWS])
    assert seen["l2g"][ROWS].all() and seen["g2g"].all()
    np.testing.assert_array_equal(seen["g2l"], np.broadcast_to(ROWS, [memory, 19]))
    assert (np.diagonal(labels["l2l"])[ROWS] == 0).all()  # A token itself.


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("radius, block", [(3, 4), (1, 5), (20, 6)])
@pytest.mark.parametrize("name", transient_subjects.EXAMPLES)
def test_of_blocks_pairs_are_those_of_a_dense_mask(name, radius, block):
    kind = transient_subjects.EXAMPLES[name]
    labels = transient_subjects.pair_labels(kind, MASK, radius, block)
    seen = {piece: x != attention_picture.MASKED for piece, x in labels.items()}
    near = abs(np.arange(19) - np.arange(19)[:, np.newaxis]) <= radius
    np.testing.assert_array_equal(seen["l2l"][ROWS], (near & ROWS)[ROWS])
    assert (np.diagonal(labels["l2l"])[ROWS] == 0).all()  # A token itself.
    num_blocks = 19 // block if name == "longt5" else 0
    num_used = 17 // block if num_blocks else 0  # Blocks whose last place holds a token.
    expected = np.broadcast_to(np.arange(num_blocks) < num_used, [19, num_blocks])
    np.testing.assert_array_equal(seen["l2g"][ROWS], expected[ROWS])
    for number in range(num_used):
        last = 17 if number == num_used - 1 else (number + 1) * block  # With what is left over.
        assert np.flatnonzero(seen["g2l"][number]).tolist() == list(range(number * block, last))
    assert not seen["g2g"].any()


@pytest.mark.parametrize("name", sequence_subjects.EXAMPLES)
def test_of_a_window_pairs_are_those_of_the_numpy_twin(name):
    changes, positions = sequence_subjects.EXAMPLES[name]
    config = LongformerConfig(**sequence_subjects._SIZES, **changes)
    labels = sequence_subjects.pair_labels(config, MASK, positions)
    radius = config.radii[0]
    right = 0 if config.autoregressive else radius
    is_global = np.isin(np.arange(19), positions)
    sees = numpy_sliding_window.dense_mask(
        19, [(radius, right, config.dilations[0])], ROWS[np.newaxis], is_global[np.newaxis]
    )[0, 0]
    sees[is_global] = MASK
    np.testing.assert_array_equal(labels != attention_picture.MASKED, sees)
    with_global = is_global | is_global[:, np.newaxis]
    free = sequence_subjects.legend_of(config).labels.num_reserved
    np.testing.assert_array_equal(labels == free, sees & with_global)
    assert labels[12, 12] == 0  # A token itself.


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ["pegasus_x_staggered", "longt5", "longformer"])
def test_the_program_draws_it(name, tmp_path):
    output = tmp_path / "pattern.png"
    draw_attention.run(draw_attention.DrawOptions(example=name, output=str(output)))
    assert output.read_bytes().startswith(b"\x89PNG")
