"""The dense side inputs of global-local attention: masks and labels of all pairs in one value.

Layers with the signatures of the authors' release take eight tensors as arguments and pass them on
as a `DenseSideInputs`, which gives the attention the same rules as a
`ops.structure.GlobalLocalStructure`.
"""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.ops import argument_checks
from etcmodel.ops.attention import dense_rules
from etcmodel.ops.shapes import get_shape_list
from etcmodel.ops.structure import GlobalLocalStructure

WINDOW = "2*local_radius+1"
SIDE_INPUT_AXES = {
    "l2l_att_mask": f"batch long_len {WINDOW}",
    "g2g_att_mask": "batch global_len global_len",
    "l2g_att_mask": "batch long_len global_len",
    "g2l_att_mask": "batch global_len long_len",
    "l2l_relative_att_ids": f"batch long_len {WINDOW}",
    "g2g_relative_att_ids": "batch global_len global_len",
    "l2g_relative_att_ids": "batch long_len global_len",
    "g2l_relative_att_ids": "batch global_len long_len",
}


class DenseSideInputs(NamedTuple):
    """Masks (0/1 int or bool) and relative labels (int) of the four pieces; None where not given.

    Attributes:
        l2l_att_mask: [batch, long_len, 2 * local_radius + 1].
        g2g_att_mask: [batch, global_len, global_len].
        l2g_att_mask: [batch, long_len, global_len].
        g2l_att_mask: [batch, global_len, long_len].
        l2l_relative_att_ids: shaped as the mask of the same piece.
        g2g_relative_att_ids: likewise.
        l2g_relative_att_ids: likewise.
        g2l_relative_att_ids: likewise.

    >>> from etcmodel.layers.attention import DenseSideInputs
    >>> DenseSideInputs().is_empty, DenseSideInputs(g2g_att_mask=tf.ones([1, 2, 2])).is_empty
    (True, False)
    """

    l2l_att_mask: tf.Tensor | None = None
    g2g_att_mask: tf.Tensor | None = None
    l2g_att_mask: tf.Tensor | None = None
    g2l_att_mask: tf.Tensor | None = None
    l2l_relative_att_ids: tf.Tensor | None = None
    g2g_relative_att_ids: tf.Tensor | None = None
    l2g_relative_att_ids: tf.Tensor | None = None
    g2l_relative_att_ids: tf.Tensor | None = None

    @property
    def is_empty(self):
        """Whether there are no side inputs: all tokens within reach attend to each other."""
        return all(tensor is None for tensor in self)

    @property
    def has_labels(self):
        """Whether pairs have labels."""
        return any(x is not None for x in self[4:])

    def tensors_and_axes(self):
        """Returns (tensors, axes), two dicts by name, for `argument_checks.check_shapes`."""
        return self._asdict(), SIDE_INPUT_AXES

    def checked(self, relative_vocab_size):
        """Returns the side inputs with bool masks, after a check of all values: see `pairs_of`."""
        found = {name: x for name, x in self._asdict().items() if x is not None}
        for name, x in found.items():
            try:
                argument_checks.check_shapes({name: x}, SIDE_INPUT_AXES)
            except ValueError:
                continue  # The layer's own check follows, which knows the sizes of the others.
            if name.endswith("_mask"):
                found[name] = argument_checks.mask_of(name, x)
            elif relative_vocab_size is not None:
                found[name] = argument_checks.table_ids(
                    name, x, relative_vocab_size, "relative_vocab_size"
                )
        return self._replace(**found)

    def check_labels(self, vocab_size=None):
        """Raises ValueError if labels are given for one of two pieces that share a softmax."""
        del vocab_size  # `checked` has compared the labels with it.
        for one, other in (("l2l", "l2g"), ("g2g", "g2l")):
            names = [f"{piece}_relative_att_ids" for piece in (one, other)]
            if len({getattr(self, name) is None for name in names}) > 1:
                argument_checks.fail("Give both `{}` and `{}`, or neither.".format(*names))

    def l2l(self, local_radius, implementation="auto"):
        """`KeyRules` of long queries and long keys: see `ops.attention.local_attend`."""
        given = (self.l2l_att_mask, self.l2l_relative_att_ids)
        return dense_rules(*given, local_radius, implementation, prefix="l2l_")

    def l2g(self):
        """`KeyRules` of long queries and global keys."""
        return dense_rules(self.l2g_att_mask, self.l2g_relative_att_ids, prefix="l2g_")

    def global_keys(self, own, other):
        """The keys of global queries, global and then long ones: [(keys and values, `KeyRules`)].

        If only one of the two has a mask, all pairs with the other one may attend.
        """
        masks = [self.g2g_att_mask, self.g2l_att_mask]
        ids = [self.g2g_relative_att_ids, self.g2l_relative_att_ids]
        if sum(mask is None for mask in masks) == 1:
            batch, global_len = get_shape_list(own[0])[:2]
            lengths = (global_len, get_shape_list(other[0])[1])
            masks = [
                tf.fill([batch, global_len, length], True) if mask is None else mask
                for mask, length in zip(masks, lengths, strict=True)
            ]
        rules = dense_rules(_joined(masks, tf.bool), _joined(ids, tf.int32), prefix="global_")
        return [([tf.concat(x, axis=1) for x in zip(own, other, strict=True)], rules)]


def _joined(pieces, dtype):
    if pieces[0] is None:
        return None
    return tf.concat([tf.cast(piece, dtype) for piece in pieces], axis=2)


@tf.autograph.experimental.do_not_convert
def pairs_of(structure, *dense, relative_vocab_size):
    """Checks a call's structure or dense side inputs, whichever is given, and returns them.

    In a graph, masks and labels are checked when it runs; code compiled by XLA omits the checks.

    Args:
        structure: `GlobalLocalStructure` (or a list of its fields, see `GlobalLocalStructure.of`),
            `DenseSideInputs`, or None.
        *dense: the fields of `DenseSideInputs`, in their order.
        relative_vocab_size: int or None. Number of labels.
    Returns:
        `GlobalLocalStructure` or `DenseSideInputs`, whose masks are bool.
    Raises:
        ValueError: if both are given; naming the argument, if a mask has values other than 0 and 1,
            or an id is not a label.
    """
    given = DenseSideInputs(*dense)
    if structure is None:
        return given.checked(relative_vocab_size)
    if not given.is_empty:
        argument_checks.fail("Give `structure`, or masks and relative labels, not both.")
    if isinstance(structure, DenseSideInputs):
        return structure
    return GlobalLocalStructure.of(structure)
