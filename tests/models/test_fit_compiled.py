"""`fit` with XLA on what a processor makes: batches of fixed lengths, and of any number."""

import numpy as np
import pytest
import tf_keras

from etcmodel.models import heads
from tests.models import text_cases

pytestmark = pytest.mark.slow

EXAMPLES = [
    {"text": f"The {name}. A river{end}", "extra": {"label": label}}
    for name, label in (("Wey", 0), ("Thames", 1))
    for end in (".", ". It is long.")
]


def trained(processor, jit_compile):
    """(losses, weights) of a classifier after a few steps."""
    tf_keras.utils.set_random_seed(0)
    config = text_cases.config(
        processor,
        num_hidden_layers=2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = heads.EtcForSequenceClassification(config, num_labels=2)
    model.compile(tf_keras.optimizers.SGD(0.1), jit_compile=jit_compile)
    dataset = processor.dataset(EXAMPLES, 2, targets="label")
    history = model.fit(dataset, epochs=2, verbose=0)
    return history.history["loss"], model.get_weights()


def test_compiled_training_is_the_same(tmp_path):
    processor = text_cases.processor(
        tmp_path, relation_names=(), max_long_len=32, max_global_len=4, pad_to="max"
    )
    losses, weights = trained(processor, jit_compile=False)
    compiled_losses, compiled_weights = trained(processor, jit_compile=True)
    assert abs(losses[0] - losses[1]) > 1e-3
    np.testing.assert_allclose(compiled_losses, losses, rtol=1e-4)
    for compiled, expected in zip(compiled_weights, weights, strict=True):
        np.testing.assert_allclose(compiled, expected, atol=1e-5)
