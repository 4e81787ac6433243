"""Runs the steps of an attention one after the other."""

import tensorflow as tf

__all__ = ["run_steps"]


def run_steps(step, num_steps, specs, zeros=()):
    """Calls `step` with each number from 0 to `num_steps - 1`.

    The specs of its results are given, so that a graph can run it in a loop, with its operations
    only once in the graph for any number of steps.

    Args:
        step: function of a step's number to (tensors to stack, float32 tensors to add up).
        num_steps: int or scalar tensor.
        specs: list of `tf.TensorSpec` of the tensors to stack.
        zeros: list of zero tensors with the shapes of the tensors to add up.
    Returns:
        (stacked tensors, with a new first axis of steps; sums): two lists.
    """
    if isinstance(num_steps, int) and num_steps == 1:
        stacked, sums = step(0)
        return [x[tf.newaxis] for x in stacked], sums

    arrays = [
        tf.TensorArray(spec.dtype, size=num_steps, element_shape=spec.shape) for spec in specs
    ]

    def body(number, arrays, sums):
        stacked, more = step(number)
        arrays = [array.write(number, x) for array, x in zip(arrays, stacked, strict=True)]
        return number + 1, arrays, [x + y for x, y in zip(sums, more, strict=True)]

    _, arrays, sums = tf.while_loop(
        lambda number, *_: number < num_steps,
        body,
        [tf.constant(0), arrays, list(zeros)],
        parallel_iterations=1,
    )
    return [array.stack() for array in arrays], sums
