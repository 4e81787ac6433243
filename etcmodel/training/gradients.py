"""The mean gradient of one device's batch, computed at once or in parts."""

import tensorflow as tf

from etcmodel.ops import dropout as dropout_ops

__all__ = ["mean_gradients"]


def mean_gradients(loss_fn, variables, features, *, num_parts, seed, scale_loss=tf.identity):
    """Gradients of the mean loss over a batch that is processed in `num_parts` parts.

    Args:
        loss_fn: function from features to a dict of scalars, each a mean over its examples; the
            gradients are those of "loss".
        variables: list of trainable variables.
        features: dict of tensors [batch, ...].
        num_parts: int. Must divide the batch size. The parts run one after the other, so that only
            the activations of one part are in memory.
        seed: int32 [2]. Seed of the batch, from which each part derives its dropout seed.
        scale_loss: function applied to the loss before it is differentiated.
    Returns:
        (list of dense tensors, one per variable, or None if the loss does not depend on it; dict of
        the mean scalars).
    """

    def part_gradients(part):
        seed_of_part = tf.random.experimental.stateless_fold_in(seed, part)
        with tf.GradientTape() as tape, dropout_ops.seed_scope(seed_of_part):
            losses = loss_fn(_part_of(features, part, num_parts))
            objective = scale_loss(losses["loss"])
        return [_dense(gradient) for gradient in tape.gradient(objective, variables)], losses

    # The first part is outside the loop, since it shows which gradients exist.
    gradients, losses = part_gradients(0)
    if num_parts == 1:
        return gradients, losses
    names = sorted(losses)
    used = [i for i, gradient in enumerate(gradients) if gradient is not None]

    def add_part(part, *sums):
        more_gradients, more_losses = part_gradients(part)
        more = [more_gradients[i] for i in used] + [more_losses[name] for name in names]
        return part + 1, *(total + term for total, term in zip(sums, more, strict=True))

    _, *sums = tf.while_loop(
        lambda part, *_: part < num_parts,
        add_part,
        [1, *(gradients[i] for i in used), *(losses[name] for name in names)],
        parallel_iterations=1,
    )
    means = [total / num_parts for total in sums]
    for i, mean in zip(used, means, strict=False):
        gradients[i] = mean
    return gradients, dict(zip(names, means[len(used) :], strict=True))


def _part_of(features, part, num_parts):
    """The features [batch / num_parts, ...] of one part."""
    if num_parts == 1:
        return features

    def part_of(x):
        size = -1 if x.shape[0] is None else x.shape[0] // num_parts
        # [batch, ...] -> [num_parts, batch / num_parts, ...]
        return tf.reshape(x, tf.concat([[num_parts, size], tf.shape(x)[1:]], axis=0))[part]

    return tf.nest.map_structure(part_of, features)


def _dense(gradient):
    """A dense gradient, in which rows looked up several times are summed, as the norm needs."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.convert_to_tensor(gradient)
    return gradient
