"""What attention over key sets is used for and refuses: decoding, and arguments that do not fit."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import blockwise, labels, masks, pair_values
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.reach import ALL, Chunk, Reach, Window
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


@pytest.mark.parametrize(
    "reaches",
    [
        (Chunk(4), Chunk(6)),
        (Chunk(6, 2), Chunk(4, 2), Window(2, 0)),
        (Window(2, 1, 3), Window(0, 4, 3), ALL),
    ],
)
def test_several_sets_reach_their_keys_in_any_tiles(reaches):
    case = CASES["all"]
    keys, values = case.key_sets[0].keys, case.key_sets[0].values
    key_sets = [KeySet(keys, values, reach) for reach in reaches]
    plain = plain_key_sets.attend(case.queries, key_sets)
    for rows in (3, 4, 8):
        output = blockwise.attend(case.queries, key_sets, tiling=Tiling(rows=rows))
        np.testing.assert_allclose(output, plain, atol=1e-5)


class TestRefusals:
    @pytest.mark.parametrize("tiling", [None, Tiling(rows=2)])
    @pytest.mark.parametrize(
        ("reaches", "message"),
        [
            ((Window(1, 1, 2), Window(1, 1, 3)), r"one dilation\. Received: \[2, 3\]"),
            ((Window(1, 1, 3), ALL, Window(1, 1)), r"one dilation\. Received: \[1, 3\]"),
            ((Chunk(4), Window(1, 1, 3)), r"one dilation\. Received: \[1, 3\]"),
            ((Chunk(4), Chunk(4, 2)), r"one shift\. Received: \[0, 2\]"),
        ],
    )
    def test_orders_of_rows_that_differ(self, reaches, message, tiling):
        x = tf.zeros([1, 8, 1, 2])
        with pytest.raises(ValueError, match=message):
            blockwise.attend(x, [KeySet(x, x, reach) for reach in reaches], tiling=tiling)

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

    @pytest.mark.parametrize(
        ("base", "methods", "message"),
        [
            (Reach, {"see": None}, "abstract class Own .*sees"),  # A slip of the pen.
            (masks.Mask, {"prepare": None}, "abstract class Own .*allowed"),
            (masks.Mask, {"allowed": None}, "abstract class Own .*prepare"),
        ],
    )
    def test_a_class_that_lacks_a_method(self, base, methods, message):
        with pytest.raises(TypeError, match=message):
            type("Own", (base,), methods)()

    @pytest.mark.parametrize(
        ("base", "methods", "message"),
        [
            (Reach, {"sees": lambda _, queries, keys: keys - queries}, "sees` must return bool.* "),
            (
                masks.Mask,
                {"prepare": lambda self, view: self, "allowed": lambda *_: tf.zeros([1, 1, 1, 8])},
                "allowed` must return bool. Received: float32",
            ),
            (
                masks.Mask,
                {"prepare": lambda *_: None, "allowed": None},
                "prepare` must return itself or its like, .* Received: None",
            ),
            (labels.Labels, {}, "prepare` must return itself or its like, .* Received: None"),
        ],
    )
    def test_what_a_class_of_ones_own_may_not_return(self, base, methods, message):
        own, x = type("Own", (base,), methods)(), tf.zeros([1, 8, 1, 2])
        part = {Reach: {"reach": own}, masks.Mask: {"masks": (own,)}}.get(base, {"labels": own})
        with pytest.raises(ValueError, match=f"^`Own.{message}"):
            blockwise.attend(x, [KeySet(x, x, **part)])

    def test_values_by_offset_where_offsets_differ_from_tile_to_tile(self):
        x = tf.zeros([1, 8, 1, 2])
        mask = masks.ValueMask(pair_values.ByOffset(tf.ones([1, 8, 3], tf.int32), left=1))
        with pytest.raises(ValueError, match="Values by offset .* All"):
            blockwise.attend(x, [KeySet(x, x, ALL, (mask,))], tiling=Tiling(rows=2, logits=1))
