"""Attention in chunks of queries, with a backward pass that computes the probabilities again.

Neither pass holds more than one chunk of logits. The forward pass keeps, beside inputs and output,
the logarithm of each query's normaliser, from which the backward pass gets the probabilities back
in one step; dropout draws from a seed, so that both passes see the same mask.

Logits, softmax and its gradient are float32. Matrix products are of the type of the queries, but
float32 for float16 queries: weights are divided by their sum after they met the values, so that
bfloat16 and float32, which have the range, need no pass over all pairs for it. float16 has no room
for such sums (its largest number is 65504), nor for the probabilities of tens of thousands of keys
and their gradients (it rounds below 6e-5 ever more coarsely).
"""

import dataclasses
import math

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops import masks as masks_ops
from etcmodel.ops import products, windows
from etcmodel.ops.compilation import compiled_elementwise

__all__ = ["KeyGroup", "attend"]


@dataclasses.dataclass(frozen=True)
class KeyGroup:
    """Keys of one kind, and what the queries are to them.

    Attributes:
        keys: float [batch, num_keys, num_heads, size_per_head].
        values: float [batch, num_keys, num_heads, value_size_per_head].
        masks: tuple of masks (`masks.DenseMask`, …), all of which must allow a pair.
        spread: None, or how labels are spread to pairs (`labels.OffsetSpread`, …).
        emb_table: float [num_labels, num_heads, size_per_head], with `spread`.
        bias_table: float [num_labels, num_heads], with `spread`.
        is_local: bool. Whether the keys are seen through the layout's windows; there are then as
            many as queries.
    """

    keys: tf.Tensor
    values: tf.Tensor
    masks: tuple = ()
    spread: object = None
    emb_table: tf.Tensor | None = None
    bias_table: tf.Tensor | None = None
    is_local: bool = False

    def adder(self, chunk):
        """What the masks add to the logits of a chunk."""
        if self.is_local:
            return masks_ops.local_adder(self.masks, chunk)
        return masks_ops.full_adder(self.masks, chunk, tensor_utils.get_shape_list(self.keys)[1])


def attend(queries, groups, layout, dropout_rate=0.0):
    """Every query over the keys of all groups, in one softmax.

    Args:
        queries: float [batch, num_rows, num_heads, size_per_head].
        groups: list of `KeyGroup`.
        layout: `layout.Layout` of the queries.
        dropout_rate: float. Dropout of attention probabilities.
    Returns:
        float [batch, num_rows, num_heads, value_size_per_head].
    """
    seed = dropout_ops.new_seed() if dropout_rate else None
    queries = tf.convert_to_tensor(queries)
    product_dtype = tf.float32 if queries.dtype == tf.float16 else queries.dtype
    tensors = []
    for group in groups:
        tensors += [group.keys, group.values]
        if group.spread is not None:
            # Here, so that the gradient of taking rows is left to TensorFlow.
            tables = (group.emb_table, group.bias_table)
            tensors += [tf.cast(group.spread.table_rows(t), product_dtype) for t in tables]
    batch, num_rows, num_heads, _ = tensor_utils.get_shape_list(queries)
    value_size = tensor_utils.get_shape_list(groups[0].values)[-1]

    def cast(*tensors):
        return [tf.cast(x, product_dtype) for x in tensors]

    # The casts are inside: the backward pass keeps the arguments as they are, and only the outputs
    # before they are rounded, since gradients of labels are small differences of large sums.
    @tf.custom_gradient
    def run(*arguments):
        computation = _Computation(groups, layout, dropout_rate, seed)
        queries, *tensors = cast(*arguments)
        outputs, normalisers = computation.forward(queries, tensors)
        outputs = tf.reshape(outputs, [batch, layout.padded_rows, num_heads, value_size])
        outputs = outputs[:, :num_rows]

        def grad(gradient):
            # Nothing is computed again before it is needed: it would only fill memory.
            with tf.control_dependencies([gradient]):
                queries, *tensors = cast(*arguments)
                gradients = computation.backward(queries, tensors, outputs, normalisers, gradient)
            return [tf.cast(x, of.dtype) for x, of in zip(gradients, arguments, strict=True)]

        return tf.cast(outputs, arguments[0].dtype), grad

    return run(queries, *tensors)


class _Computation:
    """Both passes over given groups. Inside, tensors are [num_heads, batch, …]."""

    def __init__(self, groups, layout, dropout_rate, seed):
        self.groups = groups
        self.layout = layout
        self.dropout_rate = dropout_rate
        self.seed = seed

    def forward(self, queries, tensors):
        """Output [batch, chunks, chunk_rows, heads, size], log normalisers [chunks, heads, …]."""
        rows = self._rows(queries, scale=True)
        parts = self._parts(tensors)

        def step(index):
            chunk = self.layout.chunk(index)
            queries = chunk.rows_of(rows, 2)
            taken = [part.take(chunk) for part in parts]
            logits = [part.logits(queries, chunk) for part in taken]
            top = _maximum([tf.reduce_max(x, -1, keepdims=True) for x in logits])
            weights = [_exp(x, top) for x in logits]
            total = tf.add_n([tf.reduce_sum(x, -1, keepdims=True) for x in weights])
            dropped = self._dropped(weights, index, rows.dtype)
            output = tf.add_n(
                [part.mix(x) for part, x in zip(taken, dropped, strict=True)]
            ) / tf.cast(total, rows.dtype)
            return [_merge_blocks(output), _merge_blocks(top + tf.math.log(total))], []

        value_size = parts[0].values.shape[-1]
        specs = [self._spec(rows, value_size, rows.dtype), self._spec(rows, 1, tf.float32)]
        (outputs, normalisers), _ = _run_chunks(step, self.layout, specs)
        # [chunks, heads, batch, rows, size] to the order of the model.
        return tf.transpose(outputs, [2, 0, 3, 1, 4]), normalisers

    def backward(self, queries, tensors, outputs, normalisers, gradient):
        """The gradients of `queries` and `tensors`."""
        rows = self._rows(queries, scale=True)
        parts = self._parts(tensors)
        gradient_rows = self._rows(tf.cast(gradient, queries.dtype))
        # Sum over keys of probability times its gradient, of each query.
        inner = tf.reduce_sum(
            tf.cast(gradient, tf.float32) * tf.cast(outputs, tf.float32), -1, keepdims=True
        )
        inner_rows = self._rows(inner)

        def step(index):
            chunk = self.layout.chunk(index)
            queries, grads, inner = (chunk.rows_of(x, 2) for x in (rows, gradient_rows, inner_rows))
            normaliser = tf.reshape(normalisers[index], tensor_utils.get_shape_list(inner))
            taken = [part.take(chunk) for part in parts]
            logits = [part.logits(queries, chunk) for part in taken]
            query_gradients, by_chunk, sums = [], [], []
            for part, x, bits in zip(taken, logits, self._drop_bits(logits, index), strict=True):
                dropped, pair_gradients = _backward_pairs(
                    x,
                    part.values_product(grads),
                    normaliser,
                    inner,
                    bits,
                    dtype=rows.dtype,
                    rate=self.dropout_rate,
                )
                query_gradient, key_gradients, table_gradients = part.gradients(
                    queries, grads, dropped, pair_gradients, chunk
                )
                query_gradients.append(query_gradient)
                (by_chunk if part.group.is_local else sums).extend(key_gradients)
                sums.extend(table_gradients)
            return [_merge_blocks(tf.add_n(query_gradients)), *by_chunk], sums

        by_chunk, sums = _run_chunks(step, self.layout, *self._gradient_specs(rows, parts))
        query_gradient = tf.transpose(by_chunk[0], [2, 0, 3, 1, 4])
        query_gradient = self._unpad(query_gradient) * _scale(queries)
        return self._assemble(query_gradient, by_chunk[1:], sums, tensors)

    def _assemble(self, query_gradient, by_chunk, sums, tensors):
        """Gradients in the order of the arguments."""
        by_chunk, sums, tensors = iter(by_chunk), iter(sums), iter(tensors)
        result = [query_gradient]
        for group in self.groups:
            source = by_chunk if group.is_local else sums
            for _ in range(2):
                x = next(source)
                x = self._join_windows(x) if group.is_local else tf.transpose(x, [1, 2, 0, 3])
                result.append(tf.cast(x, next(tensors).dtype))
            if group.spread is not None:
                embs, biases = next(sums), next(sums)
                result.append(tf.cast(tf.transpose(embs, [1, 0, 2]), next(tensors).dtype))
                result.append(tf.cast(tf.transpose(biases), next(tensors).dtype))
        return result

    def _join_windows(self, x):
        """[chunks, heads, batch, rows + 2 * margin, size] to [batch, num_rows, heads, size]."""
        layout = self.layout
        if layout.is_whole:
            return tf.transpose(x[0], [1, 2, 0, 3])
        x = tf.transpose(x, [2, 1, 0, 3, 4])
        x = windows.overlap_add(x, layout.chunk_rows, layout.margin, layout.block_len)
        return tf.transpose(x[:, :, layout.margin : layout.margin + layout.num_rows], [0, 2, 1, 3])

    def _unpad(self, x):
        """[batch, chunks, rows, heads, size] to [batch, num_rows, heads, size]."""
        batch, _, _, num_heads, size = tensor_utils.get_shape_list(x)
        x = tf.reshape(x, [batch, self.layout.padded_rows, num_heads, size])
        return x[:, : self.layout.num_rows]

    def _gradient_specs(self, rows, parts):
        """Of what a chunk gives in the backward pass: specs to stack, zeros to add up from."""
        specs, zeros = [self._spec(rows, rows.shape[-1], rows.dtype)], []
        for part in parts:
            for x in (part.keys, part.values):
                if part.group.is_local:
                    extra = 2 * (self.layout.margin or 0)
                    specs.append(self._spec(rows, x.shape[-1], rows.dtype, extra))
                else:
                    zeros.append(tf.zeros_like(x, tf.float32))
            if part.group.spread is not None:
                zeros += [tf.zeros_like(x, tf.float32) for x in (part.embs, part.biases)]
        return specs, zeros

    def _spec(self, rows, size, dtype, extra=0):
        """Of a chunk's result: [heads, batch, chunk_rows + extra, size], as far as it is known."""
        length = self.layout.chunk_rows
        length = length + extra if isinstance(length, int) else None
        return tf.TensorSpec([*rows.shape[:2], length, size], dtype)

    def _rows(self, x, scale=False):
        """[batch, num_rows, heads, size] to [heads, batch, padded_rows, size]."""
        x = self.layout.pad(x * _scale(x) if scale else x)
        return tf.transpose(x, [2, 0, 1, 3])

    def _parts(self, tensors):
        tensors = iter(tensors)
        parts = []
        for group in self.groups:
            keys, values = (self._keys(group, next(tensors)) for _ in range(2))
            embs = biases = None
            if group.spread is not None:
                embs = tf.transpose(next(tensors), [1, 0, 2])
                biases = tf.transpose(next(tensors))
            parts.append(_Part(group, keys, values, embs, biases))
        return parts

    def _keys(self, group, x):
        """Keys or values as [heads, batch, num_keys, size], padded if windows are taken of them."""
        layout = self.layout
        if group.is_local and not layout.is_whole:
            after = layout.padded_rows - layout.num_rows + layout.margin
            x = windows.pad_axis(x, 1, before=layout.margin, after=after)
        return tf.transpose(x, [2, 0, 1, 3])

    def _dropped(self, weights, index, dtype):
        """Weights as they meet the values: some of them dropped, the others scaled up."""
        if not self.dropout_rate:
            return [tf.cast(x, dtype) for x in weights]
        bits = self._drop_bits(weights, index)
        return [
            _drop(x, y, dtype=dtype, rate=self.dropout_rate)
            for x, y in zip(weights, bits, strict=True)
        ]

    def _drop_bits(self, logits, index):
        """Random bits for the pairs of each group, or Nones."""
        if not self.dropout_rate:
            return [None] * len(logits)
        fold_in = tf.random.experimental.stateless_fold_in
        seeds = [fold_in(self.seed, index * len(logits) + i) for i in range(len(logits))]
        return [dropout_ops.random_bits(x, seed) for x, seed in zip(logits, seeds, strict=True)]


@dataclasses.dataclass(frozen=True)
class _Part:
    """A group's tensors: keys and values [heads, batch, num_keys, size], or those of a chunk.

    Of a chunk they are [heads, batch, blocks, window, size], with one block where all queries share
    the keys.
    """

    group: KeyGroup
    keys: tf.Tensor
    values: tf.Tensor
    embs: tf.Tensor | None
    biases: tf.Tensor | None

    def take(self, chunk):
        if self.group.is_local:
            keys, values = (chunk.windows_of(x, 2) for x in (self.keys, self.values))
        else:
            keys, values = (tf.expand_dims(x, 2) for x in (self.keys, self.values))
        return dataclasses.replace(self, keys=keys, values=values)

    def logits(self, queries, chunk):
        """float32 [heads, batch, blocks, block_len, keys]."""
        logits = products.rows_by_keys(queries, self.keys)
        adder = self.group.adder(chunk)
        if self.group.spread is None:
            return _add(logits, adder)
        spread = self.group.spread
        scores = [products.by_label(queries, x, transpose=True) for x in spread.split(self.embs)]
        biases = tf.cast(self.biases, tf.float32) * _scale(queries)
        biases = [x[:, tf.newaxis, tf.newaxis, tf.newaxis] for x in spread.split(biases)]
        return spread.add(logits, scores, biases, adder, chunk)

    def mix(self, weights):
        """The values, weighted: [heads, batch, blocks, block_len, size]."""
        return products.pairs_by_keys(weights, self.values)

    def values_product(self, gradients):
        """The gradient of the weights from that of the output."""
        return products.rows_by_keys(gradients, self.values)

    def gradients(self, queries, output_gradients, weights, pair_gradients, chunk):
        """Gradients: of the queries; of keys and values; of the label tables."""
        query_gradient = products.pairs_by_keys(pair_gradients, self.keys)
        key_gradients = [
            self._collect_keys(products.pairs_by_rows(pairs, rows, self.keys), chunk)
            for pairs, rows in ((pair_gradients, queries), (weights, output_gradients))
        ]
        if self.group.spread is None:
            return query_gradient, key_gradients, []
        spread, num_labels = self.group.spread, tensor_utils.get_shape_list(self.embs)[1]
        emb_gradients, bias_gradients = [], []
        by_label = spread.collect(pair_gradients, chunk, num_labels)
        for scores, embs in zip(by_label, spread.split(self.embs), strict=True):
            scores = tf.cast(scores, queries.dtype)
            query_gradient += products.by_label(scores, embs)
            emb_gradients.append(tf.cast(products.label_by_size(scores, queries), tf.float32))
            bias_gradients.append(tf.reduce_sum(tf.cast(scores, tf.float32), [1, 2, 3]))
        biases = _scale(queries) * tf.concat(bias_gradients, 1)
        return query_gradient, key_gradients, [tf.concat(emb_gradients, 1), biases]

    def _collect_keys(self, x, chunk):
        """From windows back to keys: [heads, batch, keys, size]."""
        if self.group.is_local and not chunk.layout.is_whole:
            return windows.overlap_add(x, chunk.layout.block_len, chunk.layout.margin)
        return tf.cast(x[:, :, 0], tf.float32)


def _run_chunks(step, layout, specs, zeros=()):
    """Runs `step` for each chunk.

    What it returns is said beforehand, so that its operations are in the graph once, in the loop.

    Args:
        step: function of a chunk's index to (tensors to stack, float32 tensors to add up).
        layout: `Layout`.
        specs: list of `tf.TensorSpec` of the tensors to stack.
        zeros: list of zeros as the tensors to add up.
    Returns:
        The same two lists; the former with a first axis of chunks.
    """
    num_chunks = layout.num_chunks
    if isinstance(num_chunks, int) and num_chunks == 1:
        stacked, sums = step(0)
        return [x[tf.newaxis] for x in stacked], sums

    arrays = [
        tf.TensorArray(spec.dtype, size=num_chunks, element_shape=spec.shape) for spec in specs
    ]

    def body(index, arrays, sums):
        stacked, more = step(index)
        arrays = [array.write(index, x) for array, x in zip(arrays, stacked, strict=True)]
        return index + 1, arrays, [x + y for x, y in zip(sums, more, strict=True)]

    _, arrays, sums = tf.while_loop(
        lambda index, *_: index < num_chunks,
        body,
        [tf.constant(0), arrays, list(zeros)],
        parallel_iterations=1,
    )
    return [array.stack() for array in arrays], sums


@compiled_elementwise
def _add(logits, adder):
    return tf.cast(logits, tf.float32) + adder


@compiled_elementwise
def _exp(logits, top):
    return tf.exp(logits - top)


@compiled_elementwise
def _drop(weights, bits, *, dtype, rate):
    return tf.cast(dropout_ops.keep(weights, bits, rate), dtype)


@compiled_elementwise
def _backward_pairs(logits, weight_gradients, normaliser, inner, bits, *, dtype, rate):
    """Weights as they met the values, and the gradient of the logits."""
    probs = tf.exp(logits - normaliser)
    weight_gradients = dropout_ops.keep(tf.cast(weight_gradients, tf.float32), bits, rate)
    pair_gradients = probs * (weight_gradients - inner)
    return tf.cast(dropout_ops.keep(probs, bits, rate), dtype), tf.cast(pair_gradients, dtype)


def _scale(queries):
    return 1 / math.sqrt(queries.shape[-1])


def _maximum(tensors):
    top = tensors[0]
    for x in tensors[1:]:
        top = tf.maximum(top, x)
    return top


def _merge_blocks(x):
    """[heads, batch, blocks, block_len, size] to [heads, batch, rows, size]."""
    num_heads, batch, blocks, block_len, size = tensor_utils.get_shape_list(x)
    return tf.reshape(x, [num_heads, batch, blocks * block_len, size])
