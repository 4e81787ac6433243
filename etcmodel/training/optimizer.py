"""AdamW and LAMB of Model Garden."""

import tensorflow as tf
from official.modeling import optimization, performance

__all__ = ["build_optimizer", "clip_gradients"]

_NO_DECAY = ["layer_norm", "LayerNorm", "bias"]
_HYPERPARAMETERS = {
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "exclude_from_weight_decay": _NO_DECAY,
}


def build_optimizer(config, learning_rate):
    """AdamW or LAMB with betas 0.9 and 0.999, epsilon 1e-6 and decoupled weight decay.

    Weights whose names contain `layer_norm`, `LayerNorm` or `bias` have no weight decay (and in
    LAMB no layer-wise adaptation). Both optimizers correct the bias of the moments, as in their
    papers. BERT's TF1 optimizers, on which those of the release are based, do not. AdamW adds
    epsilon to the square root of the uncorrected second moment ("epsilon hat").

    Args:
        config: TrainingConfig. With `mixed_float16` the optimizer scales the loss.
        learning_rate: float or LearningRateSchedule.
    Returns:
        tf_keras legacy optimizer (LAMB exists only as such). It does not clip gradients, since they
        must be summed over devices before that: see `clip_gradients`.
    """
    hyperparameters = {**_HYPERPARAMETERS, "weight_decay_rate": config.weight_decay_rate}
    if config.optimizer == "adamw":
        hyperparameters["gradient_clip_norm"] = 0.0
    params = {
        "optimizer": {"type": config.optimizer, config.optimizer: hyperparameters},
        # The factory requires a schedule by name; ours is passed below.
        "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.0}},
    }
    factory = optimization.OptimizerFactory(optimization.OptimizationConfig(params))
    return performance.configure_optimizer(
        factory.build_optimizer(learning_rate),
        use_float16=config.mixed_precision == "mixed_float16",
    )


def clip_gradients(gradients, most):
    """Clips gradients to a global L2 norm.

    Args:
        gradients: list of float tensors.
        most: float. The greatest norm.
    Returns:
        (list of clipped tensors, scalar norm before clipping). If the norm is not finite, all
        gradients are NaN, so that a loss-scaling optimizer skips the step.
    """
    return tf.clip_by_global_norm(gradients, most)
