"""The dense side inputs of `GlobalLocalTransformerLayers`: masks and labels of all pairs.

This is how the authors' release describes structure. `EtcModel` accepts it for masks or labels that
no structure yields. Labels are numbered as in `ops.relation_labels`.
"""

import dataclasses

import tensorflow as tf

from etcmodel import feature_utils
from etcmodel.ops import structure as structure_lib


@dataclasses.dataclass
class GlobalLocalTransformerSideInputs:
    """The eight side inputs of `GlobalLocalTransformerLayers`; labels may be None.

    Masks are int32, 1 where attention is allowed; labels are int32. l2l tensors are local:
    [batch, long_len, 2 * local_radius + 1]; the others [batch, query_len, key_len].

    >>> from etcmodel.models import input_utils
    >>> masks, labels = [tf.ones([1, 2, 2])] * 4, [None] * 4
    >>> inputs = input_utils.GlobalLocalTransformerSideInputs(*masks, *labels)
    >>> inputs.l2g_att_mask.shape, inputs.l2g_relative_att_ids
    (TensorShape([1, 2, 2]), None)
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
        """Returns the side inputs as a dict, optionally without those that are None.

        >>> from etcmodel.models import input_utils
        >>> masks, labels = [tf.ones([1, 2, 2])] * 4, [None] * 4
        >>> inputs = input_utils.GlobalLocalTransformerSideInputs(*masks, *labels)
        >>> list(inputs.to_dict(exclude_none_values=True))
        ['l2l_att_mask', 'g2g_att_mask', 'l2g_att_mask', 'g2l_att_mask']
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if exclude_none_values:
            fields = {name: value for name, value in fields.items() if value is not None}
        return fields


def side_inputs_of(structure, local_radius):
    """Computes the masks and labels of all pairs from a structure.

    Args:
        structure: `ops.structure.GlobalLocalStructure`.
        local_radius: int. Long tokens attended to on each side.
    Returns:
        `GlobalLocalTransformerSideInputs`.
    """
    l2l_att_mask = feature_utils.make_local_segmented_att_mask(
        structure.long_segment_ids, local_radius
    )
    l2l_att_mask = _harden(l2l_att_mask, structure_lib.hard_l2l(structure, local_radius))
    g2g_att_mask = feature_utils.make_segmented_att_mask(structure.global_example_ids)
    g2g_att_mask = _harden(g2g_att_mask, structure_lib.hard_g2g(structure))
    l2g_att_mask = _same(structure.long_example_ids, structure.global_example_ids)
    g2l_att_mask = _transpose(l2g_att_mask)
    linked = structure_lib.hard_l2g(structure)
    if linked is None:
        linked = tf.zeros_like(l2g_att_mask, tf.bool)
    if structure.use_hard_l2g_mask:
        l2g_att_mask = _harden(l2g_att_mask, linked, structure.ignore_hard_l2g_mask)
    if structure.use_hard_g2l_mask:
        g2l_linked = _transpose(linked)
        g2l_att_mask = _harden(g2l_att_mask, g2l_linked, structure.ignore_hard_g2l_mask)
    l2g_labels = structure_lib.l2g_labels(structure)
    return GlobalLocalTransformerSideInputs(
        l2l_att_mask=l2l_att_mask,
        g2g_att_mask=g2g_att_mask,
        l2g_att_mask=l2g_att_mask,
        g2l_att_mask=g2l_att_mask,
        l2l_relative_att_ids=structure_lib.l2l_labels(structure, local_radius),
        g2g_relative_att_ids=structure_lib.g2g_labels(structure),
        l2g_relative_att_ids=l2g_labels,
        g2l_relative_att_ids=None if l2g_labels is None else _transpose(l2g_labels),
    )


def _same(query_ids, key_ids):
    """Marks pairs with the same id: 0/1 int32 [batch, query_len, key_len]."""
    return tf.cast(tf.equal(query_ids[:, :, tf.newaxis], key_ids[:, tf.newaxis]), tf.int32)


def _harden(att_mask, linked, ignored_rows=None):
    """Masks pairs that are not linked, if the mask is hard, except in ignored rows."""
    if linked is None:
        return att_mask
    hard = att_mask * tf.cast(linked, tf.int32)
    if ignored_rows is None:
        return hard
    return tf.where(tf.cast(ignored_rows, tf.bool)[:, :, tf.newaxis], att_mask, hard)


def _transpose(pairs):
    """Transposes [batch, a, b] to [batch, b, a]."""
    return tf.transpose(pairs, [0, 2, 1])
