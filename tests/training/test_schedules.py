"""Learning rates by step, and how a schedule is added: the example of the page is run."""

import numpy as np
import pytest
import tf_keras

from etcmodel import training
from etcmodel.training import config as config_lib
from etcmodel.training import optimizer
from tests import page
from tests.options.test_fields import program_flags

CONFIG = config_lib.TrainingConfig(learning_rate=0.1, weight_decay_rate=0.01)


def learning_rates(steps, **options):
    schedule = optimizer.build_learning_rate(
        config_lib.TrainingConfig(learning_rate=1.0, **options), num_train_steps=100
    )
    return [float(schedule(step)) for step in steps]


def test_polynomial_decay_follows_the_release():
    rates = learning_rates([0, 5, 9, 10, 50, 100, 101])
    np.testing.assert_allclose(rates, [0.0, 0.5, 0.9, 0.9, 0.5, 0.0, 0.0], atol=1e-6)


def test_polynomial_decay_has_a_power():
    rates = learning_rates([10, 50], poly_power=2.0)
    np.testing.assert_allclose(rates, [0.81, 0.25], atol=1e-6)


def test_bert_adam_falls_from_the_peak():
    options = {"optimizer": "bert_adam", "warmup_proportion": 0.125}
    rates = learning_rates([0, 5, 12, 13, 40, 100, 101], **options)
    falling = [(1 - step / 100) / 0.875 for step in (13, 40, 100)]
    np.testing.assert_allclose(rates, [0.0, 0.4, 0.96, *falling, 0.0], atol=1e-6)


def test_bert_adam_has_a_power_a_late_start_and_may_do_without_warmup():
    options = {"optimizer": "bert_adam", "poly_power": 2.0, "warmup_proportion": 0.25}
    rates = learning_rates([15, 20, 45, 60, 75, 100], start_warmup_step=20, **options)
    falling = [((100 - step) / 55) ** 2 for step in (60, 75, 100)]
    np.testing.assert_allclose(rates, [0.0, 0.0, 1.0, *falling], atol=1e-6)
    rates = learning_rates([0, 50], optimizer="bert_adam", warmup_proportion=0.0)
    np.testing.assert_allclose(rates, [1.0, 0.5])
    rates = learning_rates([0, 50, 100], optimizer="bert_adam", warmup_proportion=1.0)
    np.testing.assert_allclose(rates, [0.0, 0.5, 1.0])


@pytest.mark.parametrize("name", ["adamw", "bert_adam"])
def test_warmup_is_a_share_of_the_steps_or_so_many(name):
    steps = [0, 10, 19, 20, 50]
    by_share = learning_rates(steps, optimizer=name, warmup_proportion=0.2)
    assert learning_rates(steps, optimizer=name, warmup_steps=20) == by_share
    assert learning_rates([0], optimizer=name, warmup_steps=0) == [1.0]


def test_warmup_starts_late():
    rates = learning_rates([0, 20, 25, 30, 40], start_warmup_step=20)
    np.testing.assert_allclose(rates, [0.0, 0.0, 0.5, 0.7, 0.6], atol=1e-6)


def test_no_warmup():
    np.testing.assert_allclose(learning_rates([0, 50], warmup_proportion=0.0), [1.0, 0.5])


def test_inverse_sqrt_peaks_at_the_end_of_the_warmup():
    rates = learning_rates([5, 10, 40, 90], learning_rate_schedule="inverse_sqrt")
    np.testing.assert_allclose(rates, [0.5, 1.0, 1 / 2, 1 / 3], rtol=1e-6)


def test_inverse_sqrt_counts_from_the_start_of_the_warmup():
    options = {"learning_rate_schedule": "inverse_sqrt", "start_warmup_step": 20}
    np.testing.assert_allclose(learning_rates([20, 25, 30, 60], **options), [0, 0.5, 1, 0.5])


def test_constant_stays_at_the_peak_after_the_warmup():
    rates = learning_rates([0, 5, 10, 55, 99], learning_rate_schedule="constant")
    np.testing.assert_allclose(rates, [0.0, 0.5, 1.0, 1.0, 1.0], rtol=1e-6)
    rates = learning_rates([0, 99], learning_rate_schedule="constant", warmup_proportion=0.0)
    np.testing.assert_allclose(rates, [1.0, 1.0])


def test_inverse_sqrt_without_warmup():
    options = {"learning_rate_schedule": "inverse_sqrt", "warmup_proportion": 0.0}
    np.testing.assert_allclose(learning_rates([0, 1, 4], **options), [1, 1, 0.5])


def test_schedules_survive_serialization():
    schedule = optimizer.build_learning_rate(CONFIG, 100)
    config = schedule.get_config()
    after = tf_keras.optimizers.schedules.deserialize(config.pop("after"))
    again = optimizer.LinearWarmup(**config, after=after)
    assert float(again(33)) == float(schedule(33))


def test_every_choice_of_the_flag_is_a_decay():
    (field,) = (
        field
        for field in config_lib.TrainingConfig.__dataclass_fields__.values()
        if field.name == "learning_rate_schedule"
    )
    assert set(field.metadata["choices"]) == set(optimizer.DECAYS)
    assert all(map(callable, optimizer.DECAYS.values()))


def test_a_schedule_is_added_as_the_page_says(decays):
    (code,) = page.code("Add a learning rate schedule")
    exec(code, {})  # The library's own page.
    assert training.DECAYS["cosine"].__name__ == "cosine"
    rates = learning_rates([0, 5, 10, 55, 100], learning_rate_schedule="cosine")
    np.testing.assert_allclose(rates, [0, 0.5, 1, np.cos(np.pi / 4) ** 2, 0], atol=1e-6)
    late = {"learning_rate_schedule": "cosine", "start_warmup_step": 20}
    rates = learning_rates([20, 25, 30, 65, 100], **late)
    np.testing.assert_allclose(rates, [0, 0.5, 1, 0.5, 0], atol=1e-6)
    rates = learning_rates([0, 50, 100], warmup_proportion=0.0, **late)
    np.testing.assert_allclose(rates, [1, 0.5, 0], atol=1e-6)
    _, values = program_flags(config_lib.TrainingConfig, "--learning_rate_schedule=cosine")
    assert values.learning_rate_schedule == "cosine"


def test_a_schedule_that_is_none_is_named(decays):
    decays["up"] = lambda config, num_train_steps, warmup_steps: config.learning_rate
    line = r"^`DECAYS\['up'\]` must return a LearningRateSchedule. Received: 1.0$"
    with pytest.raises(ValueError, match=line):
        learning_rates([0], learning_rate_schedule="up")
    with pytest.raises(ValueError, match=r"one of \('poly_decay', .*, 'up'\). Received: 'down'"):
        learning_rates([0], learning_rate_schedule="down")


@pytest.fixture
def decays():
    """Those of the library, and what the test adds."""
    before = dict(training.DECAYS)
    yield training.DECAYS
    training.DECAYS.clear()
    training.DECAYS.update(before)
