"""BigBird-Pegasus's blocks: what holds for others, too, is in `test_encoder_decoders`."""

import numpy as np
import pytest

from tests.models.bigbird_pegasus import models

LABELS = np.array([[5, 6, 7, 1]])


def text(length, padded):
    ids = np.zeros([1, padded], np.int32)
    ids[0, :length] = np.random.default_rng(length).integers(3, models.VOCAB_SIZE, length)
    return ids, (np.arange(padded) < length).astype(np.int32)[np.newaxis]


@pytest.mark.parametrize("length", [9, 14, 15, 23])
def test_by_length_padding_changes_nothing(length):
    model = models.model(pattern_by_length=True)
    alone = model(*text(length, length), labels=LABELS)["logits"]
    for padded in (length + 1, 33):
        found = model(*text(length, padded), labels=LABELS)["logits"]
        np.testing.assert_allclose(found, alone, atol=2e-5)
    expected = models.model()(*text(length, length), labels=LABELS)["logits"]
    np.testing.assert_allclose(alone, expected, atol=2e-5)


def test_wrong_inputs_are_named():
    model = models.model()
    with pytest.raises(ValueError, match="`position_ids` .* `max_position_embeddings`"):
        model(np.ones([1, 41], int), labels=LABELS)
    with pytest.raises(ValueError, match="`random_blocks` must be of all blocks but the first"):
        model(np.ones([1, 20], int), labels=LABELS, random_blocks=np.zeros([2, 2, 5, 1], int))
    with pytest.raises(ValueError, match="`random_blocks` must have shape .encoder_layers"):
        model(np.ones([1, 20], int), labels=LABELS, random_blocks=np.zeros([1, 2, 8, 1], int))
