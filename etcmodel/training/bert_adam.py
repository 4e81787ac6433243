"""The optimizer of BERT's first PyTorch port, with which GMAT was trained."""

import re

import tensorflow as tf
import tf_keras

__all__ = ["BertAdam"]


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
        if self._decays(var.name):
            update += self.weight_decay_rate * var
        return var.assign_sub(known["lr_t"] * update, use_locking=self._use_locking)

    def _decays(self, name):
        return not any(re.search(pattern, name) for pattern in self.exclude_from_weight_decay)

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
