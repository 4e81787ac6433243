"""The optimizers of the release under its names: `models.optimization`, `models.lamb_optimizer`.

They are those of BERT and ALBERT in TensorFlow 1, and do not correct the bias of the moments. The
programs take theirs from `training.optimizer`.
"""

import tensorflow as tf
import tf_keras

from etcmodel.training import optimizer as optimizer_lib
from etcmodel.training.config import TrainingConfig


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class AdamWeightDecayOptimizer(optimizer_lib.BertAdam):
    """AdamW of the release: moments as they are, decay beside the gradient.

    Args:
        learning_rate: float, LearningRateSchedule, or function without arguments.
        weight_decay_rate: float.
        beta_1, beta_2: float. Decay of the moments.
        epsilon: float. Added to the root of the second moment.
        exclude_from_weight_decay: sequence of str or None. Patterns of names without decay.
        name: str.
        **kwargs: of the Keras legacy optimizer.

    >>> from etcmodel.models import optimization
    >>> weight = tf.Variable([1.0])
    >>> adamw = optimization.AdamWeightDecayOptimizer(0.1, weight_decay_rate=0.01)
    >>> _ = adamw.apply_gradients([(tf.constant([2.0]), weight)])
    >>> weight.numpy().round(3)  # 1 - 0.1 * (0.1 * 2 / (0.001 * 2**2)**0.5 + 0.01)
    array([0.683], dtype=float32)
    """

    def __init__(
        self,
        learning_rate,
        weight_decay_rate=0.0,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        exclude_from_weight_decay=None,
        name="AdamWeightDecayOptimizer",
        **kwargs,
    ):
        super().__init__(
            learning_rate,
            weight_decay_rate=weight_decay_rate,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            exclude_from_weight_decay=exclude_from_weight_decay or (),
            name=name,
            **kwargs,
        )

    def apply_gradients(self, grads_and_vars, global_step=None, name=None, **kwargs):
        """Moves the variables; as in the release, it is the caller who advances `global_step`.

        >>> from etcmodel.models import optimization
        >>> optimizer, weight = optimization.AdamWeightDecayOptimizer(0.1), tf.Variable([1.0])
        >>> _ = optimizer.apply_gradients([(tf.constant([2.0]), weight)])
        >>> weight.numpy().round(4)  # 1 - 0.1 * 0.2 / sqrt(0.004)
        array([0.6838], dtype=float32)
        """
        return super().apply_gradients(grads_and_vars, name, **kwargs)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LAMBOptimizer(AdamWeightDecayOptimizer):
    """LAMB of the release: AdamW's step, as long as the layer's weights times the rate.

    Source: You et al. 2019 (arXiv:1904.00962), algorithm 2, without the bias correction.

    Args:
        learning_rate, weight_decay_rate, beta_1, beta_2, epsilon, exclude_from_weight_decay, name,
            **kwargs: as in `AdamWeightDecayOptimizer`.
        exclude_from_layer_adaptation: sequence of str or None. Patterns of names of weights whose
            steps have AdamW's length; None: as `exclude_from_weight_decay`.

    >>> from etcmodel.models import lamb_optimizer
    >>> weight = tf.Variable([3.0, 4.0])
    >>> _ = lamb_optimizer.LAMBOptimizer(0.1).apply_gradients([(tf.constant([0.0, 2.0]), weight)])
    >>> weight.numpy().round(3)  # A step of 0.1 * 5.
    array([3. , 3.5], dtype=float32)
    """

    def __init__(
        self,
        learning_rate,
        weight_decay_rate=0.0,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        exclude_from_weight_decay=None,
        exclude_from_layer_adaptation=None,
        name="LAMBOptimizer",
        **kwargs,
    ):
        super().__init__(
            learning_rate,
            weight_decay_rate,
            beta_1,
            beta_2,
            epsilon,
            exclude_from_weight_decay,
            name,
            **kwargs,
        )
        excluded = exclude_from_layer_adaptation or self.exclude_from_weight_decay
        self.exclude_from_layer_adaptation = list(excluded)

    def _adapted(self, update, var):
        if optimizer_lib.is_named(var, self.exclude_from_layer_adaptation):
            return update
        ratio = tf.norm(var) / tf.norm(update)
        return update * tf.where(tf.math.is_finite(ratio) & (ratio > 0), ratio, 1.0)

    def get_config(self):
        excluded = self.exclude_from_layer_adaptation
        return {**super().get_config(), "exclude_from_layer_adaptation": excluded}


_CLASSES = {"adamw": AdamWeightDecayOptimizer, "lamb": LAMBOptimizer}


def create_optimizer(
    loss,
    init_lr,
    num_train_steps,
    num_warmup_steps,
    use_tpu,
    optimizer="adamw",
    poly_power=1.0,
    start_warmup_step=0,
    learning_rate_schedule="poly_decay",
    weight_decay_rate=0.01,
):
    """Creates the operation of a training step in a graph of TensorFlow 1.

    It clips the gradients of all trainable variables to a common norm of 1, and advances the global
    step. Unlike in the release, the schedule `inverse_sqrt` is used when asked for.

    Args:
        loss: float tensor [] in a `tf.Graph`.
        init_lr: float. The highest learning rate.
        num_train_steps, num_warmup_steps: int. Steps of the run, and of its linear warm-up.
        use_tpu: bool. False: TensorFlow 2 has TPUs as a distribution strategy.
        optimizer: 'adamw' or 'lamb'.
        start_warmup_step: int. The step at which the warm-up starts.
        learning_rate_schedule: 'poly_decay', of the power `poly_power`, or 'inverse_sqrt'.
        weight_decay_rate: float. Biases and layer normalization are exempt.
    Returns:
        tf.Operation.
    Raises:
        ValueError: if called eagerly, for a TPU, or with an unknown optimizer or schedule.

    >>> from etcmodel.models import optimization
    >>> with tf.Graph().as_default():
    ...     weight = tf.compat.v1.get_variable("weight", [2])
    ...     loss = tf.reduce_sum(weight**2)
    ...     optimization.create_optimizer(loss, 5e-5, 100, num_warmup_steps=10, use_tpu=False).type
    'NoOp'
    """
    _check(loss, use_tpu, optimizer)
    config = TrainingConfig(
        learning_rate=init_lr,
        poly_power=poly_power,
        warmup_steps=num_warmup_steps or 0,
        start_warmup_step=start_warmup_step,
        learning_rate_schedule=learning_rate_schedule,
    )
    schedule = optimizer_lib.build_learning_rate(config, num_train_steps)
    global_step = tf.compat.v1.train.get_or_create_global_step()
    made = _CLASSES[optimizer](
        schedule(global_step),
        weight_decay_rate=weight_decay_rate,
        exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"],
    )
    with tf.control_dependencies([_apply_clipped(made, loss)]):
        return tf.group(global_step.assign_add(1))


def _apply_clipped(optimizer, loss):
    variables = tf.compat.v1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    return optimizer.apply_gradients(zip(gradients, variables, strict=True))


def _check(loss, use_tpu, optimizer):
    if not isinstance(loss, tf.Tensor) or tf.compat.v1.executing_eagerly_outside_functions():
        raise ValueError(
            "`create_optimizer` makes a step for the `loss` of a TensorFlow 1 graph. In TensorFlow "
            "2 use `training.build_optimizer` with `training.build_learning_rate`, or "
            "`AdamWeightDecayOptimizer` and `LAMBOptimizer`."
        )
    if use_tpu:
        raise ValueError("`use_tpu` must be False: see `--distribution_strategy` of the programs.")
    if optimizer not in _CLASSES:
        raise ValueError(f"`optimizer` must be one of {[*_CLASSES]}. Received: {optimizer!r}")
