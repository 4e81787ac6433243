"""AdamW and LAMB of Model Garden, with the learning rate schedules of the authors' release."""

import tensorflow as tf
import tf_keras
from official.modeling import optimization, performance

__all__ = [
    "CLIP_NORM",
    "InverseSqrtDecay",
    "LinearWarmup",
    "build_learning_rate",
    "build_optimizer",
    "clip_gradients",
]

CLIP_NORM = 1.0  # The largest L2 norm of all gradients together.
_NO_DECAY = ["layer_norm", "LayerNorm", "bias"]
_HYPERPARAMETERS = {
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "exclude_from_weight_decay": _NO_DECAY,
}


class InverseSqrtDecay(tf_keras.optimizers.schedules.LearningRateSchedule):
    """Keeps `peak` up to step `start_step + flat_steps`, then falls as 1 / sqrt(step).

    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 5.3.

    Args:
        peak: float. The highest learning rate.
        flat_steps: int. Steps after `start_step` until the fall begins; at least 1 is used.
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

    As in the release, the rise aims at `peak`, whatever `after` gives at its end. (Model Garden's
    schedules cannot start late, and its linear one aims at the value of `after`.)

    Args:
        peak: float. The learning rate at the end of the warm-up.
        warmup_steps: int, at least 1.
        after: schedule of the steps from `start_step + warmup_steps` on.
        start_step: int. Up to here the learning rate is 0.
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


def build_learning_rate(config, num_train_steps):
    """The schedule of a run.

    Args:
        config: TrainingConfig.
        num_train_steps: int. Steps of the whole run.
    Returns:
        LearningRateSchedule from the step, counted from 0, to the learning rate.
    """
    warmup_steps = int(num_train_steps * config.warmup_proportion)
    if config.learning_rate_schedule == "inverse_sqrt":
        after = InverseSqrtDecay(
            peak=config.learning_rate,
            flat_steps=warmup_steps,
            start_step=config.start_warmup_step if warmup_steps else 0,
        )
    else:
        after = tf_keras.optimizers.schedules.PolynomialDecay(
            config.learning_rate, num_train_steps, end_learning_rate=0.0, power=config.poly_power
        )
    if not warmup_steps:
        return after
    return LinearWarmup(
        peak=config.learning_rate,
        warmup_steps=warmup_steps,
        after=after,
        start_step=config.start_warmup_step,
    )


def build_optimizer(config, learning_rate):
    """AdamW or LAMB with betas 0.9 and 0.999, epsilon 1e-6 and decoupled weight decay.

    Weights whose name holds `layer_norm`, `LayerNorm` or `bias` do not decay (and are not
    adapted by layer in LAMB). Both optimizers correct the moments' bias towards 0 at the first
    steps, as their papers do; the TF1 optimizers of BERT, from which the release's descend, do
    not. AdamW adds epsilon to the root of the uncorrected second moment ("epsilon hat").

    Args:
        config: TrainingConfig. With `mixed_float16` the optimizer scales the loss.
        learning_rate: float or LearningRateSchedule.
    Returns:
        tf_keras legacy optimizer (the only kind that LAMB has). It does not clip, because clipping
        must see gradients that are already summed over devices: see `clip_gradients`.
    """
    hyperparameters = {**_HYPERPARAMETERS, "weight_decay_rate": config.weight_decay_rate}
    if config.optimizer == "adamw":
        hyperparameters["gradient_clip_norm"] = 0.0
    params = {
        "optimizer": {"type": config.optimizer, config.optimizer: hyperparameters},
        # The factory wants one of its own schedules by name; ours is handed over below.
        "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.0}},
    }
    factory = optimization.OptimizerFactory(optimization.OptimizationConfig(params))
    return performance.configure_optimizer(
        factory.build_optimizer(learning_rate),
        use_float16=config.mixed_precision == "mixed_float16",
    )


def clip_gradients(gradients):
    """Scales gradients down to a common L2 norm of `CLIP_NORM`.

    Args:
        gradients: list of float tensors.
    Returns:
        (list of clipped tensors, scalar norm before clipping). A norm that is not finite makes
        every gradient NaN, which a loss-scaling optimizer takes as the sign to skip the step.
    """
    return tf.clip_by_global_norm(gradients, CLIP_NORM)
