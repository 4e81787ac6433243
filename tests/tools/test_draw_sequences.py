"""`draw_attention` of Longformer: what its model does is what is drawn."""

import numpy as np
import pytest

from etcmodel import attention_picture
from etcmodel.models.longformer import LongformerConfig
from etcmodel.tools import draw_attention, sequence_subjects
from tests.ops import numpy_sliding_window

MASK = np.array([1] * 17 + [0] * 2)


@pytest.mark.parametrize("name", sequence_subjects.EXAMPLES)
def test_pairs_are_those_of_the_numpy_twin(name):
    changes, positions = sequence_subjects.EXAMPLES[name]
    config = LongformerConfig(**sequence_subjects._SIZES, **changes)
    labels = sequence_subjects.pair_labels(config, MASK, positions)
    radius = config.radii[0]
    right = 0 if config.autoregressive else radius
    is_global = np.isin(np.arange(19), positions)
    sees = numpy_sliding_window.dense_mask(
        19, [(radius, right, config.dilations[0])], MASK[np.newaxis] > 0, is_global[np.newaxis]
    )[0, 0]
    sees[is_global] = MASK
    np.testing.assert_array_equal(labels != attention_picture.MASKED, sees)
    with_global = is_global | is_global[:, np.newaxis]
    free = sequence_subjects.legend_of(config).labels.num_reserved
    np.testing.assert_array_equal(labels == free, sees & with_global)
    assert labels[12, 12] == 0  # A token itself.


def test_the_program_draws_it(tmp_path):
    output = tmp_path / "pattern.png"
    options = draw_attention.DrawOptions(example="longformer", output=str(output))
    draw_attention.run(options)
    assert output.read_bytes().startswith(b"\x89PNG")
