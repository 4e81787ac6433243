"""The dense side inputs of `GlobalLocalTransformerLayers`: masks and labels over all pairs.

They are the form in which the authors' release describes structure, and what `EtcModel` takes from
callers who have masks or labels of their own. Labels are as in `ops.structure`.
"""

import dataclasses

import tensorflow as tf

from etcmodel import feature_utils, tensor_utils

__all__ = ["GlobalLocalTransformerSideInputs", "side_inputs_of"]


@dataclasses.dataclass
class GlobalLocalTransformerSideInputs:
    """The eight side inputs of `GlobalLocalTransformerLayers`; labels may be None.

    Masks are int32, 1 where attention is allowed; labels are int32. l2l tensors are local:
    [batch, long_len, 2 * local_radius + 1]; the others [batch, query_len, key_len].
    """

    l2l_att_mask: tf.Tensor | None
    g2g_att_mask: tf.Tensor | None
    l2g_att_mask: tf.Tensor | None
    g2l_att_mask: tf.Tensor | None
    l2l_relative_att_ids: tf.Tensor | None
    g2g_relative_att_ids: tf.Tensor | None
    l2g_relative_att_ids: tf.Tensor | None
    g2l_relative_att_ids: tf.Tensor | None

    def to_dict(self, exclude_none_values=False):
        """The side inputs by name, without those that are None if asked."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if exclude_none_values:
            fields = {name: value for name, value in fields.items() if value is not None}
        return fields


def side_inputs_of(structure, local_radius):
    """The pairs that a structure stands for.

    Args:
        structure: `ops.structure.GlobalLocalStructure`.
        local_radius: int. Long tokens visible on each side.
    Returns:
        `GlobalLocalTransformerSideInputs`.
    """
    linked = _linked_pairs(structure, structure.links)
    labelled = _linked_pairs(structure, (*structure.links, *structure.label_links))
    l2g_att_mask = _same(structure.long_example_ids, structure.global_example_ids)
    g2l_att_mask = _transpose(l2g_att_mask)
    if structure.use_hard_l2g_mask:
        l2g_att_mask = _harden(l2g_att_mask, linked, structure.ignore_hard_l2g_mask)
    if structure.use_hard_g2l_mask:
        g2l_linked = _transpose(linked)
        g2l_att_mask = _harden(g2l_att_mask, g2l_linked, structure.ignore_hard_g2l_mask)
    l2l_labels = l2g_labels = g2l_labels = None
    if structure.max_distance:
        batch, long_len = tensor_utils.get_shape_list(structure.long_segment_ids)
        generator = feature_utils.RelativePositionGenerator(structure.max_distance)
        l2l_labels = generator.make_local_relative_att_ids(long_len, local_radius, batch)
        l2g_labels = 2 * structure.max_distance + 1 + tf.cast(labelled, tf.int32)
        g2l_labels = _transpose(l2g_labels)
    return GlobalLocalTransformerSideInputs(
        l2l_att_mask=feature_utils.make_local_segmented_att_mask(
            structure.long_segment_ids, local_radius
        ),
        g2g_att_mask=feature_utils.make_segmented_att_mask(structure.global_example_ids),
        l2g_att_mask=l2g_att_mask,
        g2l_att_mask=g2l_att_mask,
        l2l_relative_att_ids=l2l_labels,
        g2g_relative_att_ids=structure.g2g_labels(),
        l2g_relative_att_ids=l2g_labels,
        g2l_relative_att_ids=g2l_labels,
    )


def _linked_pairs(structure, links):
    """bool [batch, long_len, global_len]: which long token is linked to which global token."""
    long_len = tensor_utils.get_shape_list(structure.long_example_ids)[1]
    batch, global_len = tensor_utils.get_shape_list(structure.global_example_ids)
    linked = tf.zeros([batch, long_len, global_len], tf.bool)
    for ids in links:
        linked |= tf.equal(tf.saturate_cast(ids, tf.int32)[:, :, tf.newaxis], tf.range(global_len))
    return linked


def _same(query_ids, key_ids):
    """int32 [batch, query_len, key_len]: 1 where both have the same id."""
    return tf.cast(tf.equal(query_ids[:, :, tf.newaxis], key_ids[:, tf.newaxis]), tf.int32)


def _harden(att_mask, linked, ignored_rows):
    """Keeps of each row only the linked pairs, but leaves the ignored rows as they are."""
    hard = att_mask * tf.cast(linked, tf.int32)
    if ignored_rows is None:
        return hard
    return tf.where(tf.cast(ignored_rows, tf.bool)[:, :, tf.newaxis], att_mask, hard)


def _transpose(pairs):
    """[batch, a, b] to [batch, b, a]."""
    return tf.transpose(pairs, [0, 2, 1])
