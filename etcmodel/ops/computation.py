"""The forward and the backward pass of an attention.

Logits, the softmax and its gradient are float32. Matrix products have the dtype of the queries, or
float32 for float16 queries: its largest number is 65504, and below 6e-5 it loses the precision that
the probabilities of tens of thousands of keys and their gradients need.

Passes over the pairs of queries and keys cost as much as their products. So each key set has a
softmax of its own, by TensorFlow's kernel, which takes the fewest, and several sets are weighted by
their normalizers. These take two more passes; with one key set they are not computed, and the
backward pass takes the softmax again. XLA, compiling a whole function, fuses the passes itself.
"""

import dataclasses
import math

import tensorflow as tf

from etcmodel.ops import argument_checks
from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops.compilation import compiled_elementwise, is_compiled_whole
from etcmodel.ops.key_sets import Part
from etcmodel.ops.reach import SharedKeys
from etcmodel.ops.shapes import get_shape_list, slice_axis
from etcmodel.ops.tiles import current_tiling, heads_together, make_tiles


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


def computation_of(
    queries, key_sets, scale, query_positions, tiling, dropout_rate=0.0, seed=None, by_heads=False
):
    """Returns the `Computation` for `blockwise.attend`'s arguments and the seed of its dropout.

    With `by_heads`, a step may have only some of the heads.
    """
    tiling = tiling or current_tiling()
    batch, num_rows, num_heads, size = get_shape_list(queries)
    _check_own_queries(queries, key_sets)
    reaches = [key_set.reach for key_set in key_sets]
    num_keys = [key_set.num_keys for key_set in key_sets]

    def arranged(heads):
        tiles = make_tiles(num_rows, batch * heads, reaches, num_keys, tiling, query_positions)
        views = [r.view(tiles, keys) for r, keys in zip(reaches, num_keys, strict=True)]
        return tiles, views

    heads = num_heads
    tiles, all_views = arranged(heads)
    if by_heads and not is_compiled_whole() and _have_all_keys(key_sets, all_views):
        heads = heads_together(num_heads, batch, num_rows, sum(num_keys), tiling)
        tiles, all_views = arranged(heads)
    labels = [
        key_set.labels and _prepared(key_set.labels, view)
        for key_set, view in zip(key_sets, all_views, strict=True)
    ]
    return Computation(
        key_sets=key_sets,
        views=all_views,
        masks=[
            tuple(_prepared(mask, view) for mask in key_set.masks)
            for key_set, view in zip(key_sets, all_views, strict=True)
        ],
        labels=labels,
        tiles=tiles,
        num_heads=num_heads,
        group_heads=heads,
        scale=1 / math.sqrt(size) if scale is None else scale,
        dtype=tf.float32 if queries.dtype == tf.float16 else queries.dtype,
        dropout_rate=dropout_rate,
        seed=seed,
    )


def _check_own_queries(queries, key_sets):
    """Compares the shapes of sets' own queries to that of the call's, as far as they are known."""
    axes, name = "batch num_rows num_heads size_per_head", "KeySet.queries"
    for key_set in key_sets:
        if key_set.queries is not None:
            sizes = dict(zip(axes.split(), queries.shape, strict=True))
            argument_checks.check_shapes({name: key_set.queries}, {name: axes}, sizes)


def _have_all_keys(key_sets, views):
    """Whether each query has all keys of each set, and heads have nothing else of their own."""
    return all(
        isinstance(view, SharedKeys) and key_set.labels is None and key_set.queries is None
        for key_set, view in zip(key_sets, views, strict=True)
    )


def _prepared(part, view):
    """A mask or labels, prepared for a view."""
    prepared = part.prepare(view)
    if prepared is None:
        argument_checks.fail(
            f"`{type(part).__name__}.prepare` must return itself or its like, arranged for the "
            "view. Received: None"
        )
    return prepared


@dataclasses.dataclass(frozen=True)
class Computation:
    """The forward and backward pass over the key sets. Inside, tensors are [num_heads, batch, …].

    Attributes:
        key_sets: list of `key_sets.KeySet`.
        views, masks, labels: lists with an entry for each key set. Masks and labels are prepared
            for the views.
        tiles: `tiles.Tiles`.
        num_heads: int.
        group_heads: int or scalar tensor. The heads that are computed together; groups follow one
            after the other.
        scale: float. The factor by which logits are scaled.
        dtype: dtype of the matrix products.
        dropout_rate: float.
        seed: int [2], or None without dropout.
    """

    key_sets: list
    views: list
    masks: list
    labels: list
    tiles: object
    num_heads: int
    group_heads: object
    scale: float
    dtype: tf.DType
    dropout_rate: float
    seed: object

    def tensors(self):
        """The tensors with a gradient besides the queries: each set's keys, values and labels.

        They are already prepared; the gradient of the preparation is left to TensorFlow.
        """
        tensors = []
        for key_set, labels in zip(self.key_sets, self.labels, strict=True):
            tensors += [key_set.keys, key_set.values]
            if labels is not None:
                tensors += [tf.cast(x, self.dtype) for x in labels.tensors()]
            if key_set.queries is not None:
                tensors.append(key_set.queries)
        return tensors

    @property
    def num_groups(self):
        return self.num_heads // self.group_heads

    def cast(self, *tensors):
        return [tf.cast(x, self.dtype) for x in tensors]

    def forward(self, queries, *tensors):
        """Outputs [batch, num_rows, heads, size]; log normalizers [groups, steps, …] or None."""
        rows, parts = self._rows(queries * self.scale), self._parts(tensors)

        def of_group(group):
            own_rows, own_parts = self._of_heads(group, rows), self._parts_of_heads(group, parts)

            def run(number):
                step = self.tiles.step(number)
                taken = [part.gather(step) for part in own_parts]
                attend = self._by_weights if is_compiled_whole() else self._by_softmax
                seed = self._seed_of(group, number)
                results = attend(step.rows_of(own_rows, 2), taken, step, seed)
                return [_merge_tiles(x) for x in results], []

            return run_steps(run, self.tiles.num_steps, specs)[0], []

        specs = [self._spec(rows, self.key_sets[0].value_size, self.dtype)]
        if self._has_normalizers():
            specs.append(self._spec(rows, 1, tf.float32))
        (outputs, *normalizers), _ = run_steps(
            of_group, self.num_groups, [self._all_steps(x) for x in specs]
        )
        return self._restore(outputs), (normalizers[0] if normalizers else None)

    def _has_normalizers(self):
        return len(self.key_sets) > 1 or is_compiled_whole()

    def probs(self, step, queries, *tensors):
        """The probabilities of a step: list with [num_heads, batch, tiles, rows, window] by set."""
        rows = self._rows(queries * self.scale)
        taken = [part.gather(step) for part in self._parts(tensors)]
        weights, _, total = self._weights(step.rows_of(rows, 2), taken, step)
        return [x / total for x in weights]

    def _weights(self, queries, taken, step):
        """(exp(logits - top) by key set, top, sum of these weights for each query)."""
        logits = [part.logits(queries, step) for part in taken]
        top = _maximum([tf.reduce_max(x, -1, keepdims=True) for x in logits])
        weights = [tf.exp(x - top) for x in logits]
        return weights, top, tf.add_n([tf.reduce_sum(x, -1, keepdims=True) for x in weights])

    def _by_weights(self, queries, taken, step, seed):
        """(output, log normalizer) of a step.

        The weights are divided by their sum after the product with the values, which saves a pass.
        """
        weights, top, total = self._weights(queries, taken, step)
        dropped = self._dropped(weights, seed)
        output = tf.add_n([part.mix(x) for part, x in zip(taken, dropped, strict=True)])
        return output / tf.cast(total, self.dtype), top + tf.math.log(total)

    def _by_softmax(self, queries, taken, step, seed):
        """(output, log normalizer) of a step, or (output,) with one key set."""
        logits = [part.logits(queries, step) for part in taken]
        probs = [tf.nn.softmax(x) for x in logits]
        dropped = self._dropped(probs, seed)
        outputs = [part.mix(x) for part, x in zip(taken, dropped, strict=True)]
        if not self._has_normalizers():
            return outputs
        # A set's greatest probability is 1 over its sum of weights, the greatest of which is 1.
        tops = [tf.reduce_max(x, -1, keepdims=True) for x in logits]
        totals = [1 / tf.reduce_max(x, -1, keepdims=True) for x in probs]
        top = _maximum(tops)
        totals = [x * tf.exp(own - top) for x, own in zip(totals, tops, strict=True)]
        total = tf.add_n(totals)
        shares = [tf.cast(x / total, self.dtype) for x in totals]
        mixed = tf.add_n([x * y for x, y in zip(outputs, shares, strict=True)])
        return mixed, top + tf.math.log(total)

    def backward(self, arguments, outputs, normalizers, gradient):
        """The gradients of `arguments`: queries and `tensors()`."""
        queries, *tensors = arguments
        rows, parts = self._rows(queries * self.scale), self._parts(tensors)
        gradient_rows = self._rows(tf.cast(gradient, self.dtype))
        # For each query, the sum over its keys of probability times gradient.
        inner = tf.cast(gradient, tf.float32) * tf.cast(outputs, tf.float32)
        inner_rows = self._rows(tf.reduce_sum(inner, -1, keepdims=True))

        def of_group(group):
            own_rows = [self._of_heads(group, x) for x in (rows, gradient_rows, inner_rows)]
            own_parts = self._parts_of_heads(group, parts)

            def run(number):
                step = self.tiles.step(number)
                own = [step.rows_of(x, 2) for x in own_rows]
                normalizer = None
                if normalizers is not None:
                    normalizer = tf.reshape(normalizers[group, number], get_shape_list(own[-1]))
                return self._backward_step(
                    own_parts, own, normalizer, step, self._seed_of(group, number)
                )

            specs, zeros = self._gradient_specs(own_rows[0], own_parts)
            stacked, added = run_steps(run, self.tiles.num_steps, specs, zeros)
            return [*stacked, *added], []

        specs, zeros = self._gradient_specs(rows, parts)
        sums = [tf.TensorSpec([self._static_heads(), *x.shape[1:]], x.dtype) for x in zeros]
        (query_gradient, *others), _ = run_steps(
            of_group, self.num_groups, [*map(self._all_steps, specs), *sums]
        )
        query_gradient = self._restore(query_gradient) * self.scale
        others = [_merge_groups(x) for x in others]
        stacked, added = others[: len(specs) - 1], others[len(specs) - 1 :]
        return [query_gradient, *self._gradients_of_tensors(stacked, added)]

    def _backward_step(self, parts, rows, normalizer, step, seed):
        """Results of a backward step: those to stack, and those to add up."""
        queries, grads, inner = rows
        taken = [part.gather(step) for part in parts]
        logits = [part.logits(queries, step) for part in taken]
        query_gradients, stacked, added = [], [], []
        drop_bits = self._drop_bits(logits, seed)
        for whole, part, x, bits in zip(parts, taken, logits, drop_bits, strict=True):
            dropped, pair_gradients = _backward_pairs(
                tf.nn.softmax(x) if normalizer is None else x,
                part.values_product(grads),
                normalizer,
                inner,
                bits,
                dtype=self.dtype,
                rate=self.dropout_rate,
            )
            query_gradient, pieces, of_labels = part.gradients(
                queries, grads, dropped, pair_gradients, step
            )
            (added if part.view.piece_spec(whole.keys) is None else stacked).extend(pieces)
            for x, spec in zip(of_labels, self._label_specs(part), strict=True):
                (added if spec is None else stacked).append(x)
            if part.rows is None:
                query_gradients.append(query_gradient)
            else:
                stacked.append(_merge_tiles(query_gradient))
        query_gradients = query_gradients or [tf.zeros_like(queries)]
        return [_merge_tiles(tf.add_n(query_gradients)), *stacked], added

    def _gradient_specs(self, rows, parts):
        """Results of a backward step: specs of those to stack, zeros for those to add up."""
        specs, zeros = [self._spec(rows, rows.shape[-1], self.dtype)], []
        for part in parts:
            for x in (part.keys, part.values):
                spec = part.view.piece_spec(x)
                if spec is None:
                    zeros.append(tf.zeros_like(x, tf.float32))
                else:
                    specs.append(spec)
            for x, spec in zip(part.label_tensors(), self._label_specs(part), strict=True):
                if spec is None:
                    zeros.append(tf.zeros_like(x, tf.float32))
                else:
                    specs.append(spec)
            if part.rows is not None:
                specs.append(specs[0])
        return specs, zeros

    def _label_specs(self, part):
        """Specs of a step's gradients of label tensors; None for those that are added up."""
        rows = self.tiles.step_rows if isinstance(self.tiles.step_rows, int) else None
        return [part.labels.piece_spec(x, rows) for x in part.label_tensors()]

    def _gradients_of_tensors(self, stacked, added):
        """In the order of `tensors()`."""
        stacked, added, gradients = iter(stacked), iter(added), []
        for key_set, view, labels in zip(self.key_sets, self.views, self.labels, strict=True):
            source = added if view.piece_spec(key_set.keys) is None else stacked
            for _ in range(2):
                gradients.append(tf.transpose(view.join(next(source)), [1, 2, 0, 3]))
            if labels is not None:
                rows = self.tiles.step_rows if isinstance(self.tiles.step_rows, int) else None
                specs = [labels.piece_spec(x, rows) for x in labels.tensors()]
                gradients += labels.join([next(added if x is None else stacked) for x in specs])
            if key_set.queries is not None:  # Their heads are in one group.
                gradients.append(self._restore(next(stacked)[tf.newaxis]) * self.scale)
        return gradients

    def _restore(self, x):
        """[groups, steps, heads, batch, rows, size] to [batch, num_rows, all heads, size]."""
        x = tf.transpose(x, [3, 1, 4, 0, 2, 5])
        batch, *_, size = get_shape_list(x)
        x = tf.reshape(x, [batch, self.tiles.num_places, self.num_heads, size])
        return self.tiles.restore(x)

    def _static_heads(self):
        return self.group_heads if isinstance(self.group_heads, int) else None

    def _spec(self, rows, size, dtype):
        """The spec of a step's result [heads, batch, rows, size], as far as sizes are known."""
        length = self.tiles.step_rows
        length = length if isinstance(length, int) else None
        return tf.TensorSpec([self._static_heads(), rows.shape[1], length, size], dtype)

    def _all_steps(self, spec):
        """The spec of what `run_steps` stacks."""
        steps = self.tiles.num_steps
        return tf.TensorSpec([steps if isinstance(steps, int) else None, *spec.shape], spec.dtype)

    def _of_heads(self, group, x):
        """A group's heads of [heads, …]."""
        if isinstance(group, int):  # The only one.
            return x
        return slice_axis(x, 0, group * self.group_heads, self.group_heads)

    def _parts_of_heads(self, group, parts):
        return [
            dataclasses.replace(
                part,
                keys=self._of_heads(group, part.keys),
                values=self._of_heads(group, part.values),
            )
            for part in parts
        ]

    def _seed_of(self, group, number):
        """The number of a step for `_drop_bits`."""
        return group * self.tiles.num_steps + number

    def _rows(self, x):
        """[batch, num_rows, heads, size] to [heads, batch, places, size]."""
        return tf.transpose(self.tiles.arrange(x), [2, 0, 1, 3])

    def _parts(self, tensors):
        tensors, parts = iter(tensors), []
        has_one_step = isinstance(self.tiles.num_steps, int) and self.tiles.num_steps == 1
        shares_bias = has_one_step and self.group_heads is not self.num_heads
        for key_set, view, masks, labels in zip(
            self.key_sets, self.views, self.masks, self.labels, strict=True
        ):
            keys, values = (view.arrange(key_set.by_head(next(tensors)), 2) for _ in range(2))
            if labels is not None:
                labels = labels.for_steps([next(tensors) for _ in labels.tensors()])
            rows = None if key_set.queries is None else self._rows(next(tensors) * self.scale)
            part = Part(view, masks, labels, self.scale, keys, values, rows=rows)
            parts.append(part.with_bias(self.tiles.step(0)) if shares_bias else part)
        return parts

    def _dropped(self, weights, seed):
        """The weights after dropout, by key set."""
        if not self.dropout_rate:
            return [tf.cast(x, self.dtype) for x in weights]
        bits = self._drop_bits(weights, seed)
        return [
            _drop(x, y, dtype=self.dtype, rate=self.dropout_rate)
            for x, y in zip(weights, bits, strict=True)
        ]

    def _drop_bits(self, logits, number):
        """Random bits for the pairs of each key set; Nones without dropout."""
        if not self.dropout_rate:
            return [None] * len(logits)
        fold_in = tf.random.experimental.stateless_fold_in
        seeds = [fold_in(self.seed, number * len(logits) + i) for i in range(len(logits))]
        return [dropout_ops.random_bits(x, seed) for x, seed in zip(logits, seeds, strict=True)]


@compiled_elementwise
def _drop(weights, bits, *, dtype, rate):
    return tf.cast(dropout_ops.keep(weights, bits, rate), dtype)


@compiled_elementwise
def _backward_pairs(pairs, weight_gradients, normalizer, inner, bits, *, dtype, rate):
    """(weights after dropout, gradient of the logits).

    `pairs` are the logits, or without `normalizer` the probabilities.
    """
    probs = pairs if normalizer is None else tf.exp(pairs - normalizer)
    weight_gradients = dropout_ops.keep(tf.cast(weight_gradients, tf.float32), bits, rate)
    pair_gradients = probs * (weight_gradients - inner)
    return tf.cast(dropout_ops.keep(probs, bits, rate), dtype), tf.cast(pair_gradients, dtype)


def _maximum(tensors):
    top = tensors[0]
    for x in tensors[1:]:
        top = tf.maximum(top, x)
    return top


def _merge_tiles(x):
    """[heads, batch, tiles, rows, size] to [heads, batch, tiles * rows, size]."""
    num_heads, batch, tiles, rows, size = get_shape_list(x)
    return tf.reshape(x, [num_heads, batch, tiles * rows, size])


def _merge_groups(x):
    """[groups, heads, …] to [all heads, …]; without groups [1, …] to […]."""
    shape = get_shape_list(x)
    return x[0] if x.shape[0] == 1 else tf.reshape(x, [shape[0] * shape[1], *shape[2:]])
