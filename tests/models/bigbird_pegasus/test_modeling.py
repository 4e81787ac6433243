"""`BigBirdPegasusForConditionalGeneration` beyond Hugging Face's: padding, generation, errors."""

import numpy as np
import pytest
import tensorflow as tf

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


def test_greedy_sequences_are_the_likeliest_next_tokens():
    model = models.model()
    ids, mask = text(21, 24)
    sequence = model.generate(ids, mask, max_length=6)["sequences"].numpy()
    logits = model(ids, mask, decoder_input_ids=sequence[:, :-1])["logits"]
    for place, chosen in enumerate(sequence[0, 1:]):
        assert chosen == logits[0, place].numpy().argmax()
        if chosen == model.config.eos_token_id:
            break


def test_mixed_precision_is_close():
    ids, mask = text(21, 24)
    expected = models.model()(ids, mask, labels=LABELS)["logits"]
    found = models.model(policy="mixed_bfloat16")(ids, mask, labels=LABELS)["logits"]
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, expected, atol=0.5)


def test_wrong_inputs_are_named():
    model = models.model()
    with pytest.raises(ValueError, match="`position_ids` .* `max_position_embeddings`"):
        model(np.ones([1, 41], int), labels=LABELS)
    with pytest.raises(ValueError, match="`random_blocks` must be of all blocks but the first"):
        model(np.ones([1, 20], int), labels=LABELS, random_blocks=np.zeros([2, 2, 5, 1], int))
    with pytest.raises(ValueError, match="`random_blocks` must have shape .encoder_layers"):
        model(np.ones([1, 20], int), labels=LABELS, random_blocks=np.zeros([1, 2, 8, 1], int))
    with pytest.raises(ValueError, match="`tie_word_embeddings` must be true"):
        models.config(tie_word_embeddings=False)
