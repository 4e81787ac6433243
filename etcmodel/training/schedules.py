"""Learning rate schedules: a linear warm-up, followed by one of several decays."""

import tensorflow as tf
import tf_keras

__all__ = ["DECAYS", "Constant", "InverseSqrtDecay", "Later", "LinearWarmup", "build_learning_rate"]


class Constant(tf_keras.optimizers.schedules.LearningRateSchedule):
    """A constant learning rate, `value`."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def __call__(self, step):
        del step
        return tf.constant(self.value, tf.float32)

    def get_config(self):
        return {"value": self.value}


class InverseSqrtDecay(tf_keras.optimizers.schedules.LearningRateSchedule):
    """Stays at `peak` up to step `start_step + flat_steps`, then decays as 1 / sqrt(step).

    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 5.3.

    Args:
        peak: float. The highest learning rate.
        flat_steps: int. Number of steps after `start_step` before the decay; at least 1 is used.
        start_step: int. The step from which steps are counted.
    """

    def __init__(self, *, peak, flat_steps, start_step=0):
        super().__init__()
        self.peak, self.flat_steps, self.start_step = peak, max(flat_steps, 1), start_step

    def __call__(self, step):
        step = tf.cast(step, tf.float32) - self.start_step
        return self.peak * tf.math.rsqrt(tf.maximum(step / self.flat_steps, 1.0))

    def get_config(self):
        return {"peak": self.peak, "flat_steps": self.flat_steps, "start_step": self.start_step}


class LinearWarmup(tf_keras.optimizers.schedules.LearningRateSchedule):
    """Rises from 0 at `start_step` to `peak` in `warmup_steps` steps, then follows `after`.

    As in the release, it rises to `peak`, whatever the value of `after` at that step. (Model
    Garden's schedules cannot start late, and its linear one rises to the value of `after`.)

    Args:
        peak: float. The learning rate at the end of the warm-up.
        warmup_steps: int or float, above 0.
        after: schedule for the steps from `start_step + warmup_steps`.
        start_step: int. Up to this step the learning rate is 0.
    """

    def __init__(self, *, peak, warmup_steps, after, start_step=0):
        super().__init__()
        self.peak, self.warmup_steps = peak, warmup_steps
        self.after, self.start_step = after, start_step

    def __call__(self, step):
        share = (tf.cast(step, tf.float32) - self.start_step) / self.warmup_steps
        return tf.where(share < 1.0, self.peak * tf.maximum(share, 0.0), self.after(step))

    def get_config(self):
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "after": tf_keras.optimizers.schedules.serialize(self.after),
            "start_step": self.start_step,
        }


class Later(tf_keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that starts at a later step.

    Args:
        schedule: LearningRateSchedule.
        start_step: int or float. The step that is its step 0.
    """

    def __init__(self, schedule, start_step):
        super().__init__()
        self.schedule, self.start_step = schedule, start_step

    def __call__(self, step):
        return self.schedule(tf.cast(step, tf.float32) - self.start_step)

    def get_config(self):
        return {
            "schedule": tf_keras.optimizers.schedules.serialize(self.schedule),
            "start_step": self.start_step,
        }


def _poly_decay(config, num_train_steps, warmup_steps):
    start_step = 0
    if config.optimizer == "bert_adam" and warmup_steps:  # It decays from the peak.
        start_step = config.start_warmup_step + warmup_steps
    decay = tf_keras.optimizers.schedules.PolynomialDecay(
        config.learning_rate,
        max(num_train_steps - start_step, 1),
        end_learning_rate=0.0,
        power=config.poly_power,
    )
    return Later(decay, start_step) if start_step else decay


def _inverse_sqrt(config, num_train_steps, warmup_steps):
    return InverseSqrtDecay(
        peak=config.learning_rate,
        flat_steps=warmup_steps,
        start_step=config.start_warmup_step if warmup_steps else 0,
    )


def _constant(config, num_train_steps, warmup_steps):
    return Constant(config.learning_rate)


# The decays by their names in `TrainingConfig.learning_rate_schedule`: functions of (config, steps
# of the run, steps of the warm-up) to a LearningRateSchedule.
DECAYS = {"poly_decay": _poly_decay, "inverse_sqrt": _inverse_sqrt, "constant": _constant}


def build_learning_rate(config, num_train_steps):
    """The schedule of a run.

    Args:
        config: TrainingConfig.
        num_train_steps: int. Number of steps of the whole run.
    Returns:
        LearningRateSchedule, a function of the step, counted from 0. With Bert-Adam and linear
        decay it is that of `pytorch-pretrained-bert` since 0.6.

    >>> from etcmodel import training
    >>> config = training.TrainingConfig(output_dir="run", learning_rate=1.0, warmup_proportion=0.5)
    >>> schedule = training.build_learning_rate(config, num_train_steps=8)
    >>> [round(float(schedule(step)), 2) for step in range(8)]
    [0.0, 0.25, 0.5, 0.75, 0.5, 0.38, 0.25, 0.12]
    """
    warmup_steps = num_train_steps * config.warmup_proportion
    if config.optimizer != "bert_adam":  # Bert-Adam counts in fractions of the run.
        warmup_steps = int(warmup_steps)
    after = DECAYS[config.learning_rate_schedule](config, num_train_steps, warmup_steps)
    if not warmup_steps:
        return after
    return LinearWarmup(
        peak=config.learning_rate,
        warmup_steps=warmup_steps,
        after=after,
        start_step=config.start_warmup_step,
    )
