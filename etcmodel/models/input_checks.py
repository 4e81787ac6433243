"""What `EtcModel` checks of its inputs, once a call."""

import tensorflow as tf
from absl import logging

from etcmodel.layers.attention import fused
from etcmodel.ops import argument_checks

__all__ = ["checked", "warn_of_bag_of_words"]

_AXES = {
    "token_ids": "batch long_len",
    "global_token_ids": "batch global_len",
    "segment_ids": "batch long_len",
    "global_segment_ids": "batch global_len",
    "position_ids": "batch? long_len",
    "global_position_ids": "batch? global_len",
    **fused.SIDE_INPUT_AXES,
    "long_embedding_adder": "batch long_len hidden_size",
    "global_embedding_adder": "batch global_len hidden_size",
}


@tf.autograph.experimental.do_not_convert
def checked(config, inputs, structure):
    """The inputs, once shapes, positions and links are checked.

    Args:
        config: `EtcConfig`.
        inputs: dict of the tensors that `EtcModel` was called with, by name; None where not given.
        structure: `ops.structure.GlobalLocalStructure` or None.
    Returns:
        (inputs, structure), the same; in a graph they are there only after the checks.
    Raises:
        ValueError: in one line that names the argument, what is wanted and what is found. For what
            only a running graph knows, it raises `tf.errors.InvalidArgumentError` with that line.
            Compiled by XLA a graph cannot raise: links to global tokens that do not exist then link
            nothing. (Nor do they where there is no global token at all; that is no error.)
    """
    for name in ("token_ids", "global_token_ids"):
        if inputs[name] is None:
            wanted = ", ".join(_AXES[name].split())
            argument_checks.fail(f"`{name}` must have shape [{wanted}]. Received: None")
    asserts = []
    sizes = {fused.WINDOW: 2 * config.local_radius + 1, "hidden_size": config.hidden_size}
    sizes = argument_checks.check_shapes(inputs, _AXES, sizes, asserts)
    _check_positions(config.max_absolute_position_embeddings, inputs, sizes, asserts)
    if structure is not None:
        _check_max_distance(structure.max_distance, config.relative_pos_max_distance)
        argument_checks.check_shapes(*structure.tensors_and_axes(), sizes, asserts)
        _check_links(structure, sizes["global_len"], asserts)
    if not asserts:
        return inputs, structure
    with tf.control_dependencies(asserts):
        return tf.nest.map_structure(_after, (inputs, structure))


def warn_of_bag_of_words(name):
    """Says what it means to call a model without masks, labels and structure."""
    logging.warning(
        "%s is called without structure, masks and relative labels. All tokens then see all that "
        "is within reach, padding too, and none knows its place: a bag of words. Pass `structure=` "
        "(see `input_utils.make_structure`), or masks and labels "
        "(`input_utils.make_global_local_transformer_side_inputs`).",
        name,
    )


def _after(x):
    return tf.identity(x) if tf.is_tensor(x) else x


def _check_positions(table_size, inputs, sizes, asserts):
    """Every token has a row in the table of positions, if there is one."""
    if not table_size:
        for name in ("position_ids", "global_position_ids"):
            if inputs[name] is not None:
                argument_checks.fail(
                    f"Position ids need `max_absolute_position_embeddings` above 0 in the config. "
                    f"Received: `{name}`"
                )
        return
    limit = f"`max_absolute_position_embeddings`, {table_size}"
    for side, axis in (("", "long_len"), ("global_", "global_len")):
        position_ids, length = inputs[f"{side}position_ids"], sizes.get(axis)
        if position_ids is not None:
            low, high = _extremes(position_ids)
            argument_checks.check(
                (low >= 0) & (high < table_size),
                f"`{side}position_ids` must be at least 0 and below {limit}. Received values from",
                low,
                "to",
                high,
                asserts=asserts,
            )
        elif length is not None:
            argument_checks.check(
                length <= table_size,
                f"`{side}token_ids` must have shape [batch, {axis}] with {axis} at most {limit}. "
                f"Received {axis}:",
                length,
                asserts=asserts,
            )


def _check_max_distance(received, wanted):
    if received != wanted:
        argument_checks.fail(
            "`structure.max_distance` must be the model's `relative_pos_max_distance`, "
            f"{wanted}. Received: {received}"
        )


def _check_links(structure, num_global, asserts):
    """Each link is -1, or the index of a global token."""
    if num_global is None or (isinstance(num_global, int) and num_global == 0):
        return
    num_global = tf.cast(num_global, tf.int64)
    for field in ("links", "label_links"):
        for number, ids in enumerate(getattr(structure, field)):
            low, high = _extremes(ids)
            argument_checks.check(
                ((low >= -1) & (high < num_global)) | tf.equal(num_global, 0),
                f"`structure.{field}[{number}]` must hold indices of global tokens, or -1 for no "
                "link. Received: values from",
                low,
                "to",
                high,
                "for",
                num_global,
                "global tokens",
                asserts=asserts,
            )


def _extremes(ids):
    """The least and the largest id, int64 scalars; without any id they are above and below all."""
    return tuple(tf.cast(reduce(ids), tf.int64) for reduce in (tf.reduce_min, tf.reduce_max))
