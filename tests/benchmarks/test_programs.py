"""Programs that benchmarks run."""

import pytest

from benchmarks import programs
from etcmodel.training import TrainingConfig


@pytest.mark.parametrize("number", [97, 161, 199, 245, 2423])
@pytest.mark.parametrize(("steps", "batch_size"), [(200, 2), (1, 8), (7, 32)])
def test_epochs_are_of_as_many_steps(number, steps, batch_size):
    epochs = programs.epochs(steps, batch_size, number)
    config = TrainingConfig(num_train_epochs=epochs, train_batch_size=batch_size)
    assert config.num_train_steps(number) == steps
