"""Optimizers (AdamW, LAMB, Bert-Adam) and the schedules of their learning rates."""

import re

import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.shown_values import shown
from etcmodel.training import model_garden
from etcmodel.training.config import DECAYS

__all__ = [
    "DECAYS",
    "BertAdam",
    "Constant",
    "InverseSqrtDecay",
    "Later",
    "LinearWarmup",
    "build_learning_rate",
    "build_optimizer",
    "clip_gradients",
    "is_named",
    "with_shares",
    "without_bias_correction",
]

# Learning rate schedules: a linear warm-up, followed by one of several decays.


class Constant(tf_keras.optimizers.schedules.LearningRateSchedule):
    """A constant learning rate, `value`."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def __call__(self, step):
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

    >>> import tf_keras
    >>> from etcmodel.training import optimizer
    >>> decay = tf_keras.optimizers.schedules.CosineDecay(1.0, decay_steps=10)
    >>> round(float(optimizer.Later(decay, 5)(10)), 2)
    0.5
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


DECAYS.update(
    poly_decay=_poly_decay,
    inverse_sqrt=_inverse_sqrt,
    constant=lambda config, *_: Constant(config.learning_rate),
)


def build_learning_rate(config, num_train_steps):
    """The schedule of a run.

    Args:
        config: TrainingConfig.
        num_train_steps: int. Number of steps of the whole run.
    Returns:
        LearningRateSchedule, a function of the step, counted from 0. With Bert-Adam and linear
        decay it is that of `pytorch-pretrained-bert` since 0.6.
    Raises:
        ValueError: if the function in `DECAYS` returns no schedule.

    >>> from etcmodel import training
    >>> config = training.TrainingConfig(output_dir="run", learning_rate=1.0, warmup_proportion=0.5)
    >>> schedule = training.build_learning_rate(config, num_train_steps=8)
    >>> [round(float(schedule(step)), 2) for step in range(8)]
    [0.0, 0.25, 0.5, 0.75, 0.5, 0.38, 0.25, 0.12]
    """
    warmup_steps = config.warmup_steps
    if warmup_steps is None:
        warmup_steps = num_train_steps * config.warmup_proportion
    if config.optimizer != "bert_adam":  # Bert-Adam counts in fractions of the run.
        warmup_steps = int(warmup_steps)
    name = config.learning_rate_schedule
    after = DECAYS[name](config, num_train_steps, warmup_steps)
    if not callable(after):
        raise ValueError(
            f"`DECAYS[{name!r}]` must return a LearningRateSchedule. Received: {shown(after)}"
        )
    if not warmup_steps:
        return after
    return LinearWarmup(
        peak=config.learning_rate,
        warmup_steps=warmup_steps,
        after=after,
        start_step=config.start_warmup_step,
    )


# Bert-Adam.


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BertAdam(tf_keras.optimizers.legacy.Optimizer):
    """Adam without bias correction and with decoupled weight decay, like BERT's TF1 optimizer.

    A weight w with the moments m and v moves by -rate * (m / (sqrt(v) + epsilon) + decay * w).
    Source: Devlin et al. 2018 (arXiv:1810.04805), appendix A.2, as implemented in
        `pytorch-pretrained-bert`, which also clips the gradient of each variable: see
        `clip_gradients`.

    Args:
        learning_rate: float or LearningRateSchedule.
        weight_decay_rate: float.
        beta_1, beta_2: float. Decay of the moments.
        epsilon: float. Added to the root of the second moment.
        exclude_from_weight_decay: sequence of str. Patterns of names of weights without decay.
        name: str.
        **kwargs: of the Keras legacy optimizer.
    """

    def __init__(
        self,
        learning_rate,
        *,
        weight_decay_rate=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        exclude_from_weight_decay=(),
        name="BertAdam",
        **kwargs,
    ):
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", learning_rate)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.weight_decay_rate = weight_decay_rate
        self.exclude_from_weight_decay = list(exclude_from_weight_decay)

    def _create_slots(self, var_list):
        for var in var_list:
            self.add_slot(var, "m")
            self.add_slot(var, "v")

    def _resource_apply_dense(self, grad, var, apply_state=None):
        return self._move(grad, var, apply_state)

    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        # The moments of rows without a gradient decay, too.
        dense = tf.convert_to_tensor(tf.IndexedSlices(grad, indices, tf.shape(var)))
        return self._move(dense, var, apply_state)

    def _move(self, grad, var, apply_state):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        place = var.device, var.dtype.base_dtype
        known = (apply_state or {}).get(place) or self._fallback_apply_state(*place)
        m = m.assign(self.beta_1 * m + (1.0 - self.beta_1) * grad, use_locking=self._use_locking)
        v = v.assign(
            self.beta_2 * v + (1.0 - self.beta_2) * tf.square(grad), use_locking=self._use_locking
        )
        update = m / (tf.sqrt(v) + self.epsilon)
        if not is_named(var, self.exclude_from_weight_decay):
            update += self.weight_decay_rate * var
        step = known["lr_t"] * self._adapted(update, var)
        return var.assign_sub(step, use_locking=self._use_locking)

    def _adapted(self, update, var):
        """What moves the variable at a rate of 1; subclasses may scale it."""
        return update

    def get_config(self):
        return {
            **super().get_config(),
            "learning_rate": self._serialize_hyperparameter("learning_rate"),
            "weight_decay_rate": self.weight_decay_rate,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "exclude_from_weight_decay": self.exclude_from_weight_decay,
        }


# Optimizers that use only a fraction of the learning rate for some weights.


_RATES = ("lr", "lr_t")  # Names of the rates in an optimizer's state of a step.
# Pattern of the copies of a variable on further devices: `<name>/replica_<number>`.
END_OF_NAME = r"(/replica_\d+)?(:\d+)?$"


def with_shares(optimizer_class, pairs):
    """Makes an optimizer class that multiplies learning rates by factors, per variable.

    Multiplying gradients would have no effect: Adam's steps do not depend on their scale.

    Args:
        optimizer_class: class of tf_keras legacy optimizers whose `_resource_apply_…` methods take
            their rates, and thereby the weight decay, from `apply_state`.
        pairs: iterable of (variable, float: fraction of the rate); others have the full rate.
    Returns:
        subclass of `optimizer_class`; `optimizer_class` itself if there are no pairs.
    Raises:
        ValueError: if two variables with the same name have different fractions.
    """
    shares = {}
    for variable, share in pairs:
        if shares.setdefault(_key(variable), share) != share:
            raise ValueError(f"Two variables {variable.name!r} have different shares of the rate.")
    if not shares:
        return optimizer_class

    class WithShares(optimizer_class):
        def _resource_apply_dense(self, grad, var, apply_state=None):
            state = _state_of(self, var, apply_state, shares)
            return super()._resource_apply_dense(grad, var, apply_state=state)

        def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
            state = _state_of(self, var, apply_state, shares)
            return super()._resource_apply_sparse(grad, var, indices, apply_state=state)

    return WithShares


def is_named(variable, patterns):
    """Whether a variable's name has one of the patterns."""
    return any(re.search(pattern, _key(variable)) for pattern in patterns)


def _key(variable):
    """The identity of a variable, equal for its copies on all devices."""
    return re.sub(END_OF_NAME, "", variable.name)


def _state_of(optimizer, variable, state, shares):
    """The state of a step, with the rates for one variable."""
    place = variable.device, variable.dtype.base_dtype
    known = (state or {}).get(place) or optimizer._fallback_apply_state(*place)
    share = shares.get(_key(variable), 1.0)
    return {place: {name: x * share if name in _RATES else x for name, x in known.items()}}


# The optimizer of a run.


_CLIP_EPSILON = 1e-6  # Added to the norm of a variable's gradient, as PyTorch does.
# Biases, and the scales and offsets of normalization, by whatever name of the layer.
_NO_DECAY = ["bias", rf"(^|/)(gamma|beta){END_OF_NAME}"]
_CLASSES = {
    "adamw": model_garden.AdamWeightDecay,
    "lamb": model_garden.LAMB,
    "bert_adam": BertAdam,
}
_HYPERPARAMETERS = {
    "beta_1": 0.9,
    "epsilon": 1e-6,
    "exclude_from_weight_decay": _NO_DECAY,
}


def without_bias_correction(optimizer_class):
    """Makes an optimizer class that uses the moments as they are: AdamW or LAMB of the release.

    Args:
        optimizer_class: class of tf_keras legacy optimizers that take the powers of the betas, by
            which moments are corrected, from `apply_state`.
    """

    class WithoutBiasCorrection(optimizer_class):
        def _prepare_local(self, var_device, var_dtype, apply_state):
            super()._prepare_local(var_device, var_dtype, apply_state)
            state, zero = apply_state[var_device, var_dtype], tf.zeros([], var_dtype)
            state.update(beta_1_power=zero, beta_2_power=zero, lr=state["lr_t"])

    return WithoutBiasCorrection


def build_optimizer(config, learning_rate, shares=()):
    """AdamW, LAMB or Bert-Adam, with beta_1 0.9, epsilon 1e-6 and decoupled weight decay.

    Weights whose names contain `bias`, and those named `gamma` or `beta` (the scale and offset of
    every normalization), have no weight decay (and in LAMB no layer-wise adaptation). AdamW and
    LAMB correct the bias of the moments, as in their papers, unless the config's
    `adam_bias_correction` is False. BERT's TF1 optimizers, on which those of the release are based,
    do not, and neither does Bert-Adam. AdamW adds epsilon to the square root of the uncorrected
    second moment ("epsilon hat").

    Args:
        config: TrainingConfig. With `mixed_float16` the optimizer scales the loss.
        learning_rate: float or LearningRateSchedule.
        shares: iterable of (variable, float). Factors for the learning rates of variables; others
            have the full rate.
    Returns:
        tf_keras legacy optimizer (LAMB exists only as such). It does not clip gradients, since they
        must be summed over devices before that: see `clip_gradients`.

    >>> from etcmodel import training
    >>> config = training.TrainingConfig(output_dir="run", optimizer="lamb")
    >>> type(training.build_optimizer(config, learning_rate=1e-3)).__name__
    'LAMB'
    """
    optimizer_class = _CLASSES[config.optimizer]
    if config.adam_bias_correction is False and optimizer_class is not BertAdam:
        optimizer_class = without_bias_correction(optimizer_class)
    optimizer_class = with_shares(optimizer_class, shares)
    hyperparameters = {
        **_HYPERPARAMETERS,
        "beta_2": config.adam_beta_2,
        "weight_decay_rate": config.weight_decay_rate,
    }
    if config.optimizer == "adamw":
        hyperparameters["gradient_clip_norm"] = 0.0
    optimizer = optimizer_class(learning_rate, **hyperparameters)
    if config.mixed_precision == "mixed_float16":
        return tf_keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer


@without_autograph
def clip_gradients(gradients, most, *, per_variable=False):
    """Clips gradients to an L2 norm.

    Args:
        gradients: list of float tensors.
        most: float. The maximum norm.
        per_variable: bool. Whether to clip each gradient's norm, as Bert-Adam does, instead of the
            global norm.
    Returns:
        (list of clipped tensors, scalar norm of all before clipping). If the norm is not finite,
        all gradients are NaN, so that a loss-scaling optimizer skips the step.
    """
    if not per_variable:
        return tf.clip_by_global_norm(gradients, most)
    norms = [tf.norm(gradient) for gradient in gradients]
    norm = tf.norm(tf.stack(norms))
    factors = [tf.minimum(1.0, most / (x + _CLIP_EPSILON)) for x in norms]
    factors = [tf.where(tf.math.is_finite(norm), x, float("nan")) for x in factors]
    return [gradient * x for gradient, x in zip(gradients, factors, strict=True)], norm
