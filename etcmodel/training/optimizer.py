"""AdamW and LAMB of Model Garden, and Bert-Adam."""

import tensorflow as tf

from etcmodel import extras

with extras.needed("train"):
    from official.modeling import performance
    from official.modeling.optimization import lamb, legacy_adamw

from etcmodel.training import rate_shares
from etcmodel.training.bert_adam import BertAdam

__all__ = ["build_optimizer", "clip_gradients"]

_CLIP_EPSILON = 1e-6  # Added to the norm of a variable's gradient, as PyTorch does.
# Biases, and the scales and offsets of normalization, by whatever name of the layer.
_NO_DECAY = ["bias", rf"(^|/)(gamma|beta){rate_shares.END_OF_NAME}"]
_CLASSES = {"adamw": legacy_adamw.AdamWeightDecay, "lamb": lamb.LAMB, "bert_adam": BertAdam}
_HYPERPARAMETERS = {
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "exclude_from_weight_decay": _NO_DECAY,
}


def build_optimizer(config, learning_rate, shares=()):
    """AdamW, LAMB or Bert-Adam: betas 0.9 and 0.999, epsilon 1e-6 and decoupled weight decay.

    Weights whose names contain `bias`, and those named `gamma` or `beta` (the scale and offset of
    every normalization), have no weight decay (and in LAMB no layer-wise adaptation). AdamW and
    LAMB correct the bias of the moments, as in their papers. BERT's TF1 optimizers, on which those
    of the release are based, do not, and neither does Bert-Adam. AdamW adds epsilon to the square
    root of the uncorrected second moment ("epsilon hat").

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
    optimizer_class = rate_shares.with_shares(_CLASSES[config.optimizer], shares)
    hyperparameters = {**_HYPERPARAMETERS, "weight_decay_rate": config.weight_decay_rate}
    if config.optimizer == "adamw":
        hyperparameters["gradient_clip_norm"] = 0.0
    optimizer = optimizer_class(learning_rate, **hyperparameters)
    return performance.configure_optimizer(
        optimizer, use_float16=config.mixed_precision == "mixed_float16"
    )


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
