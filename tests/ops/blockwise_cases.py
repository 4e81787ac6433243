"""Random and fixed cases of attention over sets of keys, and what they are compared with."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf
from hypothesis import Phase, settings
from hypothesis import strategies as st

from etcmodel.ops import blockwise, compilation, labels, masks, offsets, pair_values
from etcmodel.ops import structure as links
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.reach import ALL, Chunk, Window
from etcmodel.ops.tiles import Tiling
from tests.ops import plain_key_sets

# Cases are small as they are: shrinking one that fails takes minutes.
PHASES = (Phase.explicit, Phase.generate)


EXAMPLES = settings(max_examples=15, phases=PHASES)


BATCH, HEADS, SIZE, VALUE_SIZE, NUM_LABELS = 2, 2, 3, 4, 9


tilings = st.builds(
    Tiling,
    rows=st.none() | st.just("all") | st.integers(1, 12),
    logits=st.sampled_from([1, 200, 2000, 1 << 22]),
)


@dataclasses.dataclass
class Case:
    """Queries and key sets; the sets' tensors are float32 or what `cast` makes of them."""

    queries: tf.Tensor
    key_sets: list
    scale: float | None = None

    def tensors(self):
        """What has a gradient."""
        tensors = [self.queries]
        for key_set in self.key_sets:
            tensors += [key_set.keys, key_set.values]
            if key_set.labels is not None:
                tensors += key_set.labels.tensors()
            if key_set.queries is not None:
                tensors.append(key_set.queries)
        return tensors

    def of(self, tensors):
        """The case with these in place of `tensors()`."""
        queries, *rest = tensors
        rest, key_sets = iter(rest), []
        for key_set in self.key_sets:
            new = {"keys": next(rest), "values": next(rest)}
            if key_set.labels is not None:
                own = [next(rest) for _ in key_set.labels.tensors()]
                new["labels"] = with_tensors(key_set.labels, own)
            if key_set.queries is not None:
                new["queries"] = next(rest)
            key_sets.append(dataclasses.replace(key_set, **new))
        return Case(queries, key_sets, self.scale)


def with_tensors(its_labels, tensors):
    """Labels with these in place of `tensors()`."""
    if isinstance(its_labels, labels.PairBiases):
        values = dataclasses.replace(its_labels.values, values=tensors[0])
        return labels.PairBiases(values)
    return dataclasses.replace(its_labels, tables=its_labels.tables.of(tensors))


def floats(rng, *shape):
    return tf.constant(rng.normal(size=shape), tf.float32)


def ints(rng, low, high, *shape):
    return tf.constant(rng.integers(low, high, shape), tf.int32)


def draw_tables(draw, rng):
    embeddings, biases = floats(rng, NUM_LABELS, HEADS, SIZE), floats(rng, NUM_LABELS, HEADS)
    kinds = [(embeddings, biases), (embeddings, None), (None, biases)]
    return labels.LabelTables(*kinds[draw(st.integers(0, 2))])


def offset_values(rng, low, high, reach, num_rows):
    values = rng.integers(low, high, [BATCH, num_rows, reach.left + reach.right + 1])
    if high == 2:
        values[:, :, reach.left] = 1  # A query is allowed its own key.
    return pair_values.ByOffset(tf.constant(values, tf.int32), reach.left)


def dense_values(rng, low, high, num_rows, num_keys):
    values = rng.integers(low, high, [BATCH, num_rows, num_keys])
    if high == 2:
        own = np.arange(min(num_rows, num_keys))
        values[:, own, own] = 1
    return pair_values.Dense(tf.constant(values, tf.int32))


def draw_biases(draw, rng, reach, num_rows, num_keys):
    """Of all pairs or by offset, of each head and example or of all."""
    outer = draw(st.sampled_from([1, BATCH])), draw(st.sampled_from([1, HEADS]))
    if isinstance(reach, Window) and draw(st.booleans()):
        values = floats(rng, *outer, num_rows, reach.left + reach.right + 1)
        return labels.PairBiases(pair_values.ByOffset(values, reach.left))
    return labels.PairBiases(pair_values.Dense(floats(rng, *outer, num_rows, num_keys)))


def draw_labels(draw, rng, reach, num_rows, num_keys):
    kinds = ["none", "offset", "link", "id", "one-hot id", "offset id", "biases"]
    kind = draw(st.sampled_from(kinds))
    if kind == "none" or (kind == "offset id" and not isinstance(reach, Window)):
        return None
    if kind == "biases":
        return draw_biases(draw, rng, reach, num_rows, num_keys)
    tables = draw_tables(draw, rng)
    if kind == "offset":
        functions = [
            offsets.ClippedOffsets(draw(st.integers(0, 4))),
            offsets.LogBuckets(8, draw(st.integers(5, 12))),
            offsets.CausalLogBuckets(8, draw(st.integers(5, 12))),
        ]
        return labels.OffsetLabels(tables, functions[draw(st.integers(0, 2))])
    if kind == "link":
        relations = [
            ((draw_links(draw, rng, num_rows, num_keys),), draw(st.integers(0, NUM_LABELS - 1)))
            for _ in range(draw(st.integers(0, 3)))
        ]
        if relations and draw(st.booleans()):
            more = draw_links(draw, rng, num_rows, num_keys)
            relations[0] = ((*relations[0][0], more), relations[0][1])
        return labels.LinkLabels(tables, draw(st.integers(0, NUM_LABELS - 1)), tuple(relations))
    if kind == "offset id":
        return labels.IdLabels(tables, offset_values(rng, 0, NUM_LABELS, reach, num_rows))
    kind = labels.IdLabels if kind == "id" else labels.OneHotIdLabels
    return kind(tables, dense_values(rng, 0, NUM_LABELS, num_rows, num_keys))


def draw_links(draw, rng, num_rows, num_keys):
    if draw(st.booleans()):
        return links.LinksOfQueries(ints(rng, -1, num_keys + 1, BATCH, num_rows))
    return links.LinksOfKeys(ints(rng, -1, num_rows + 1, BATCH, num_keys))


def draw_masks(draw, rng, reach, num_rows, num_keys, is_first):
    """Masks; those of the first set allow each query its own key."""
    segments = ints(rng, 0, 2, BATCH, num_rows)
    kinds = {
        "causal": masks.CausalMask(),
        "dense": masks.ValueMask(dense_values(rng, 0, 2, num_rows, num_keys)),
    }
    if num_rows == num_keys:
        kinds["segments"] = masks.SegmentMask(segments, segments)
    if isinstance(reach, Window):
        kinds["offsets"] = masks.ValueMask(offset_values(rng, 0, 2, reach, num_rows))
    if not is_first:
        ignored = ints(rng, 0, 2, BATCH, num_rows) if draw(st.booleans()) else None
        kinds["keys"] = masks.KeyMask(ints(rng, 0, 2, BATCH, num_keys))
        kinds["links"] = masks.LinkMask(
            tuple(
                draw_links(draw, rng, num_rows, num_keys) for _ in range(draw(st.integers(0, 2)))
            ),
            ignored,
        )
    names = draw(st.lists(st.sampled_from(sorted(kinds)), max_size=2, unique=True))
    return tuple(kinds[name] for name in names)


@st.composite
def cases(draw, max_rows=20):
    """One to three key sets; of those that move the rows, all do it in the same way."""
    num_rows = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    dilation = draw(st.sampled_from([1, 1, 2, 3]))
    windows = st.builds(
        Window, left=st.integers(0, 7), right=st.integers(0, 7), dilation=st.just(dilation)
    )
    chunks = st.builds(Chunk, size=st.integers(1, 9))
    staggered = st.integers(2, 9).map(lambda size: Chunk(size, size // 2))
    family = draw(st.sampled_from([windows, chunks, staggered] if dilation == 1 else [windows]))
    key_sets = []
    for index in range(draw(st.integers(1, 3))):
        reach = draw(family) if index == 0 else ALL
        num_keys = num_rows if index == 0 else draw(st.integers(0, 6))
        has_own_queries = draw(st.booleans())
        key_sets.append(
            KeySet(
                floats(rng, BATCH, num_keys, HEADS, SIZE),
                floats(rng, BATCH, num_keys, HEADS, VALUE_SIZE),
                reach,
                draw_masks(draw, rng, reach, num_rows, num_keys, index == 0),
                draw_labels(draw, rng, reach, num_rows, num_keys),
                floats(rng, BATCH, num_rows, HEADS, SIZE) if has_own_queries else None,
            )
        )
    scale = draw(st.sampled_from([None, 1.0]))
    return Case(floats(rng, BATCH, num_rows, HEADS, SIZE), key_sets, scale)


def run(case, attend=blockwise.attend, **options):
    """The output, then the gradients of `case.tensors()`."""
    sources = case.tensors()
    with tf.GradientTape() as tape:
        tape.watch(sources)
        of = case.of(sources)
        output = attend(of.queries, of.key_sets, scale=case.scale, **options)
        target = tf.reduce_sum(tf.sin(tf.cast(output, tf.float64)))
    gradients = tape.gradient(target, sources, unconnected_gradients="zero")
    return [output, *map(tf.convert_to_tensor, gradients)]


def assert_close(actual, expected, tolerance=2e-5):
    """Within a share of the largest expected number, or of 1."""
    for x, y in zip(actual, expected, strict=True):
        x, y = (tf.cast(z, tf.float64).numpy() for z in (x, y))
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * max(1, np.abs(y).max(initial=0)))


def fixed_cases():
    """One case of each reach, with masks and labels of every kind among them."""
    rng = np.random.default_rng(1)
    num_rows, num_side = 23, 4
    tables = labels.LabelTables(
        floats(rng, NUM_LABELS, HEADS, SIZE), floats(rng, NUM_LABELS, HEADS)
    )
    only_biases = labels.LabelTables(biases=tables.biases)
    segments = tf.constant(np.cumsum(rng.random([BATCH, num_rows]) < 0.2, axis=1), tf.int32)
    linked = links.LinksOfQueries(ints(rng, -1, num_side, BATCH, num_rows))
    side = KeySet(
        floats(rng, BATCH, num_side, HEADS, SIZE),
        floats(rng, BATCH, num_side, HEADS, VALUE_SIZE),
        masks=(masks.LinkMask((linked,), ints(rng, 0, 2, BATCH, num_rows)),),
        labels=labels.LinkLabels(tables, 0, (((linked,), 3),)),
    )
    firsts = {
        "window": (Window(3, 5), (masks.SegmentMask(segments, segments),), tables),
        "one-sided": (Window(6, 0), (), only_biases),
        "dilated": (Window(2, 2, dilation=3), (masks.CausalMask(),), tables),
        "chunks": (Chunk(5), (masks.SegmentMask(segments, segments),), tables),
        "staggered chunks": (Chunk(6, shift=3), (), only_biases),
        "all": (ALL, (masks.CausalMask(),), only_biases),
    }
    for name, (reach, its_masks, its_tables) in firsts.items():
        own = KeySet(
            floats(rng, BATCH, num_rows, HEADS, SIZE),
            floats(rng, BATCH, num_rows, HEADS, VALUE_SIZE),
            reach,
            its_masks,
            labels.OffsetLabels(its_tables, offsets.LogBuckets(8, 7)),
        )
        yield name, Case(floats(rng, BATCH, num_rows, HEADS, SIZE), [own, side])
        if name == "window":
            own_queries = floats(rng, BATCH, num_rows, HEADS, SIZE)
            turned = [own, dataclasses.replace(side, queries=own_queries)]
            yield "queries by set", Case(floats(rng, BATCH, num_rows, HEADS, SIZE), turned)
            by_offset = pair_values.ByOffset(floats(rng, 1, HEADS, num_rows, 9), left=3)
            dense = pair_values.Dense(floats(rng, BATCH, 1, num_rows, num_side))
            biased = [
                dataclasses.replace(own, labels=labels.PairBiases(by_offset)),
                dataclasses.replace(side, labels=labels.PairBiases(dense)),
            ]
            yield "biases of pairs", Case(floats(rng, BATCH, num_rows, HEADS, SIZE), biased)


CASES = dict(fixed_cases())


TILING = Tiling(rows=4, logits=500)


@functools.cache
def expected(name):
    return run(CASES[name], plain_key_sets.attend)


def forget_lengths(x):
    """The same numbers, in a shape of which only heads and sizes are known when tracing."""
    return tf.compat.v1.placeholder_with_default(x, [None, None, *x.shape[2:]])


def fused(mode, function):
    """A function that computes in a fusion scope."""

    def call(*arguments, **options):
        with compilation.fusion_scope(mode):
            return function(*arguments, **options)

    return call
