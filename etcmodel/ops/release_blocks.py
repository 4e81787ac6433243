"""The authors' release's local attention, equal to it also for queries without allowed keys.

For all other queries the results are those of a window. The release divides the input into blocks
of `radius + 1` queries, each of which attends to its own block and both neighbors, or to the whole
input. It masks pairs outside the window like any other pair, with -10,000. So a query without any
allowed key averages over three blocks (with zeros beyond the ends of the input), or over all keys.
"""

import dataclasses

import tensorflow as tf

from etcmodel.ops import views
from etcmodel.ops.masks import MASKED_LOGIT
from etcmodel.ops.reach import Window
from etcmodel.ops.shapes import get_shape_list

__all__ = ["ReleaseBlocks", "ReleaseWhole", "clip_to_sequence"]


@dataclasses.dataclass(frozen=True)
class ReleaseWhole(Window):
    """A window whose other pairs are masked (-10,000), not absent; for one tile of all rows."""

    outside = MASKED_LOGIT


@dataclasses.dataclass(frozen=True)
class ReleaseBlocks(ReleaseWhole):
    """The same with the release's blocks; both sides of the window have the same width."""

    @property
    def wanted_rows(self):
        return self.left + 1

    def most_rows_together(self, tile_rows):
        return 0

    def tile_rows(self, rows):
        return self.wanted_rows

    def keys_per_row(self, tile_rows, num_keys):
        return 3 * self.wanted_rows

    def view(self, tiles, num_keys):
        block = self.wanted_rows
        return views.WindowedKeys(self, tiles, num_keys, left=block, right=block)


def clip_to_sequence(local, local_radius):
    """Sets the entries of positions beyond the ends to 0, in [batch, long_len, window]."""
    long_len = get_shape_list(local)[1]
    position = tf.range(long_len)[:, tf.newaxis] + tf.range(-local_radius, local_radius + 1)
    return local * tf.cast((position >= 0) & (position < long_len), local.dtype)
