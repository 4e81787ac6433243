"""What may attend to what in a global-local input, and as what: told by structure, not by pair.

From a `GlobalLocalStructure` the attention derives masks and relative labels for the pairs that it
is computing (paper, sections 3.2 and 3.4), so that no tensor over all pairs ever exists. With
k = `max_distance`, labels are 0 to 2k for relative positions within the long and within the global
input, 2k + 1 between a long and a global token, 2k + 2 where these two are linked, and 2k + 3
between global tokens of different segments.
"""

from typing import NamedTuple

import tensorflow as tf

from etcmodel import feature_utils, tensor_utils
from etcmodel.ops import argument_checks, windows
from etcmodel.ops import labels as labels_ops
from etcmodel.ops import masks as masks_ops

__all__ = ["GlobalLocalStructure", "KeyRules"]


_AXES = {
    "long_segment_ids": "batch long_len",
    "long_example_ids": "batch long_len",
    "global_example_ids": "batch global_len",
    "global_segment_ids": "batch global_len",
    "ignore_hard_g2l_mask": "batch? global_len",
    "ignore_hard_l2g_mask": "batch? long_len",
}


class KeyRules(NamedTuple):
    """Masks and the label spread (or None) of one kind of keys."""

    masks: tuple
    spread: object


class GlobalLocalStructure(NamedTuple):
    """The structure of a batch. Ids are int; padding is a segment and an example of its own.

    Attributes:
        long_segment_ids: [batch, long_len]. Long tokens see long tokens of their segment.
        long_example_ids: [batch, long_len]. Long and global tokens see each other, and global
            tokens one another, within an example.
        global_example_ids: [batch, global_len].
        links: tuple of [batch, long_len]. Indices of global tokens that each long token is linked
            to, such as that of its sentence; -1 for none. `EtcModel` refuses any other index that
            is none of a global token (see `input_checks`), which the functions here and code
            compiled by XLA do not: there it links nothing.
        label_links: tuple of [batch, long_len]. Further links, which hard masks do not follow.
        global_segment_ids: [batch, global_len] or None. Global tokens of different segments get one
            label instead of a position.
        ignore_hard_g2l_mask: bool or 0/1 int [batch or 1, global_len] or None. Global tokens that
            see long tokens not linked to them even so.
        ignore_hard_l2g_mask: bool or 0/1 int [batch or 1, long_len] or None. Likewise.
        max_distance: int, the model's `relative_pos_max_distance`. Positions are clipped here;
            0 for no labels.
        use_hard_g2l_mask: bool. Global tokens see only the long tokens that are linked to them.
        use_hard_l2g_mask: bool. Long tokens see only the global tokens that they are linked to.
    """

    long_segment_ids: tf.Tensor
    long_example_ids: tf.Tensor
    global_example_ids: tf.Tensor
    links: tuple = ()
    label_links: tuple = ()
    global_segment_ids: tf.Tensor | None = None
    ignore_hard_g2l_mask: tf.Tensor | None = None
    ignore_hard_l2g_mask: tf.Tensor | None = None
    max_distance: int = 0
    use_hard_g2l_mask: bool = False
    use_hard_l2g_mask: bool = False

    def tensors_and_axes(self):
        """Tensors and their axes by name, as `argument_checks.check_shapes` takes them."""
        tensors = {name: getattr(self, name) for name in _AXES}
        axes = dict(_AXES)
        for field in ("links", "label_links"):
            for number, ids in enumerate(getattr(self, field)):
                tensors[f"{field}[{number}]"], axes[f"{field}[{number}]"] = ids, "batch long_len"
        return tuple(
            {f"structure.{name}": x for name, x in named.items()} for named in (tensors, axes)
        )

    @classmethod
    def of(cls, structure):
        """`structure` as it is, or from a list of its fields in their order.

        Keras writes the arguments of a functional model's layers as JSON, which makes a list of a
        structure, nested lists of its constant tensors, and lists of its tuples.

        Raises:
            ValueError: if it is neither, nor None.
        """
        if structure is None or isinstance(structure, cls):
            return structure
        if not isinstance(structure, (list, tuple)) or len(structure) > len(cls._fields):
            argument_checks.fail(
                f"`structure` must be a GlobalLocalStructure. Received: {type(structure).__name__}"
            )
        fields = dict(zip(cls._fields, structure, strict=False))
        for name, value in fields.items():
            if name in ("links", "label_links"):
                fields[name] = tuple(map(_tensor_of, value))
            else:
                fields[name] = _tensor_of(value)
        return cls(**fields)

    def l2l(self, layout):
        """`KeyRules` of long queries in a layout with windows, and long keys."""
        query_ids, key_ids = layout.pad(self.long_segment_ids), self.long_segment_ids
        if not layout.is_whole:
            key_ids = windows.pad_axis(query_ids, 1, before=layout.margin, after=layout.margin)
        mask = masks_ops.SegmentMask(query_ids, key_ids, windowed=True)
        spread = None
        if self.max_distance:
            spread = labels_ops.OffsetSpread(layout, self.max_distance)
        return KeyRules((mask,), spread)

    def l2g(self, layout):
        """`KeyRules` of long queries and global keys."""
        links, labelled = self._links(layout=layout)
        masks = [masks_ops.SegmentMask(layout.pad(self.long_example_ids), self.global_example_ids)]
        if self.use_hard_l2g_mask:
            masks.append(masks_ops.LinkMask(links, layout.pad(self.ignore_hard_l2g_mask)))
        return KeyRules(tuple(masks), self._link_spread(labelled))

    def g2g(self, layout):
        """`KeyRules` of global queries and global keys."""
        rows = layout.pad(self.global_example_ids)
        mask = masks_ops.SegmentMask(rows, self.global_example_ids)
        ids = self.g2g_labels()
        if ids is None:
            return KeyRules((mask,), None)
        return KeyRules((mask,), labels_ops.IdSpread(layout.pad(ids)))

    def g2l(self, layout):
        """`KeyRules` of global queries and long keys."""
        links, labelled = self._links()
        masks = [masks_ops.SegmentMask(layout.pad(self.global_example_ids), self.long_example_ids)]
        if self.use_hard_g2l_mask:
            masks.append(masks_ops.LinkMask(links, layout.pad(self.ignore_hard_g2l_mask)))
        return KeyRules(tuple(masks), self._link_spread(labelled))

    def g2g_labels(self):
        """int32 [batch, global_len, global_len], or None without labels."""
        if not self.max_distance:
            return None
        batch, global_len = tensor_utils.get_shape_list(self.global_example_ids)
        if isinstance(global_len, int) and global_len == 0:
            return tf.zeros([batch, 0, 0], tf.int32)
        generator = feature_utils.RelativePositionGenerator(self.max_distance)
        labels = generator.make_relative_att_ids(global_len, batch)
        if self.global_segment_ids is None:
            return labels
        return feature_utils.overwrite_relative_att_ids_outside_segments(
            labels, self.global_segment_ids, overwrite_value=2 * self.max_distance + 3
        )

    def _links(self, layout=None):
        """Links that masks follow, links that labels follow; for global queries without layout."""
        num_global = tensor_utils.get_shape_list(self.global_example_ids)[1]

        def links(ids):
            ids = [tf.saturate_cast(x, tf.int32) for x in ids]  # Not wrapped to another token's.
            if layout is not None:
                ids = [
                    windows.pad_axis(x, 1, after=layout.padded_rows - layout.num_rows, value=-1)
                    for x in ids
                ]
            return masks_ops.Links(tuple(ids), num_global, by_global=layout is None)

        return links(self.links), links((*self.links, *self.label_links))

    def _link_spread(self, labelled):
        if not self.max_distance:
            return None
        first = 2 * self.max_distance + 1
        return labels_ops.LinkSpread(labelled, (first, first + 1))


def _tensor_of(value):
    """Nested lists as a tensor; anything else as it is."""
    return tf.constant(value, tf.int32) if isinstance(value, (list, tuple)) else value
