"""AdamW and LAMB of Model Garden, and Bert-Adam."""

import tensorflow as tf

from etcmodel import extras

with extras.needed("train"):
    from official.modeling import optimization, performance

from etcmodel.training.bert_adam import BertAdam

__all__ = ["build_optimizer", "clip_gradients"]

_CLIP_EPSILON = 1e-6  # Added to the norm of a variable's gradient, as PyTorch does.
# Biases, and the scales and offsets of normalization, by whatever name of the layer; a further
# device calls its copy of a variable `<name>/replica_<number>`.
_NO_DECAY = ["bias", r"(^|/)(gamma|beta)(/replica_\d+)?(:\d+)?$"]
_HYPERPARAMETERS = {
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "exclude_from_weight_decay": _NO_DECAY,
}


def build_optimizer(config, learning_rate):
    """AdamW, LAMB or Bert-Adam: betas 0.9 and 0.999, epsilon 1e-6 and decoupled weight decay.

    Weights whose names contain `bias`, and those that are named `gamma` or `beta`, as the scale and
    the offset of every normalization are, have no weight decay (and in LAMB no layer-wise
    adaptation). AdamW and LAMB correct the bias of the moments, as in their
    papers. BERT's TF1 optimizers, on which those of the release are based, do not, and neither does
    Bert-Adam. AdamW adds epsilon to the square root of the uncorrected second moment ("epsilon
    hat").

    Args:
        config: TrainingConfig. With `mixed_float16` the optimizer scales the loss.
        learning_rate: float or LearningRateSchedule.
    Returns:
        tf_keras legacy optimizer (LAMB exists only as such). It does not clip gradients, since they
        must be summed over devices before that: see `clip_gradients`.
    """
    hyperparameters = {**_HYPERPARAMETERS, "weight_decay_rate": config.weight_decay_rate}
    if config.optimizer == "bert_adam":
        optimizer = BertAdam(learning_rate, **hyperparameters)
    else:
        optimizer = _of_model_garden(config.optimizer, hyperparameters, learning_rate)
    return performance.configure_optimizer(
        optimizer, use_float16=config.mixed_precision == "mixed_float16"
    )


def _of_model_garden(name, hyperparameters, learning_rate):
    if name == "adamw":
        hyperparameters["gradient_clip_norm"] = 0.0
    params = {
        "optimizer": {"type": name, name: hyperparameters},
        # The factory requires a schedule by name; ours is passed below.
        "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.0}},
    }
    factory = optimization.OptimizerFactory(optimization.OptimizationConfig(params))
    return factory.build_optimizer(learning_rate)


def clip_gradients(gradients, most, *, per_variable=False):
    """Clips gradients to an L2 norm.

    Args:
        gradients: list of float tensors.
        most: float. The greatest norm.
        per_variable: bool. Whether that is the norm of each, as Bert-Adam has it, and not of all.
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
