"""BigBird-Pegasus's blocks: what holds for others, too, is in `test_encoder_decoders`."""

import numpy as np
import pytest

from tests.models import barts
from tests.models.bigbird_pegasus import models

LABELS = np.array([[5, 6, 7, 1]])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("length", [9, 14, 15, 23])
def test_by_length_a_text_alone_has_hugging_faces_values(length):
    ids = np.random.default_rng(length).integers(3, barts.VOCAB_SIZE, [1, length])
    found = models.model(pattern_by_length=True)(ids, np.ones_like(ids), labels=LABELS)["logits"]
    expected = models.model()(ids, np.ones_like(ids), labels=LABELS)["logits"]
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_wrong_inputs_are_named():
    model = models.model()
    with pytest.raises(ValueError, match="`position_ids` .* `max_position_embeddings`"):
        model(np.ones([1, 41], int), labels=LABELS)
    with pytest.raises(ValueError, match="`random_blocks` must be of all blocks but the first"):
        model(np.ones([1, 20], int), labels=LABELS, random_blocks=np.zeros([2, 2, 5, 1], int))
    with pytest.raises(ValueError, match="`random_blocks` must have shape .encoder_layers"):
        model(np.ones([1, 20], int), labels=LABELS, random_blocks=np.zeros([1, 2, 8, 1], int))
