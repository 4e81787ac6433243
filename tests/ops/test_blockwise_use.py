"""What attention over key sets is used for and refuses: decoding, and arguments that do not fit."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import blockwise, masks, pair_values
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.reach import ALL, Chunk, Window
from etcmodel.ops.tiles import Tiling
from tests.ops import plain_key_sets
from tests.ops.blockwise_cases import CASES


class TestDecoding:
    """One query after the other, over prepared keys."""

    def test_the_last_queries_over_prepared_keys_are_those_of_the_whole(self):
        case = CASES["all"]
        whole = blockwise.attend(case.queries, case.key_sets)
        prepared = [case.key_sets[0].prepare()]
        alone = blockwise.attend(case.queries, case.key_sets[:1])
        for start in range(0, 23, 7):
            positions = tf.range(start, min(start + 7, 23))
            some = tf.gather(case.queries, positions, axis=1)
            output = blockwise.attend(some, prepared, query_positions=positions)
            np.testing.assert_allclose(output, tf.gather(alone, positions, axis=1), atol=1e-6)
        assert np.abs(whole - alone).max() > 0.1

    def test_in_tiles(self):
        case = CASES["all"]
        positions = tf.range(3, 20)
        some = tf.gather(case.queries, positions, axis=1)
        output = blockwise.attend(
            some, case.key_sets[:1], query_positions=positions, tiling=Tiling(rows=4, logits=300)
        )
        plain = plain_key_sets.attend(some, case.key_sets[:1], positions=positions)
        np.testing.assert_allclose(output, plain, atol=1e-5)

    def test_keys_by_the_place_of_the_query_are_refused(self):
        case = CASES["window"]
        with pytest.raises(ValueError, match="`query_positions` .* Window"):
            blockwise.attend(case.queries, case.key_sets[:1], query_positions=tf.range(23) + 1)


class TestRefusals:
    def test_dilations_that_differ(self):
        x = tf.zeros([1, 8, 1, 2])
        key_sets = [KeySet(x, x, Window(1, 1, dilation)) for dilation in (2, 3)]
        with pytest.raises(ValueError, match=r"one dilation\. Received: \[2, 3\]"):
            blockwise.attend(x, key_sets, tiling=Tiling(rows=2))

    def test_a_window_over_keys_that_are_not_as_many_as_the_queries(self):
        with pytest.raises(ValueError, match="as many keys as queries.* 9 .* 8"):
            blockwise.attend(
                tf.zeros([1, 8, 1, 2]),
                [KeySet(tf.zeros([1, 9, 1, 2]), tf.zeros([1, 9, 1, 2]), Window(1, 1))],
            )

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Window(-1, 1), "must not be negative"),
            (lambda: Window(1, 1, dilation=0), "`dilation` must be at least 1"),
            (lambda: Chunk(0), "`size` must be at least 1"),
            (lambda: Chunk(4, shift=4), "`shift` at least 0 and below"),
            (lambda: Tiling(rows=0), "`rows` must be a positive number"),
            (lambda: Tiling(logits=0), "`logits` positive"),
        ],
    )
    def test_numbers_out_of_range(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()

    def test_values_by_offset_where_offsets_differ_from_tile_to_tile(self):
        x = tf.zeros([1, 8, 1, 2])
        mask = masks.ValueMask(pair_values.ByOffset(tf.ones([1, 8, 3], tf.int32), left=1))
        with pytest.raises(ValueError, match="Values by offset .* All"):
            blockwise.attend(x, [KeySet(x, x, ALL, (mask,))], tiling=Tiling(rows=2, logits=1))
