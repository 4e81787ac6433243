"""Attention probabilities of chosen layers, heads and queries, as sparse arrays."""

import dataclasses
import functools

import numpy as np

from etcmodel.inspection import calls, observed
from etcmodel.layers.observation import SIDES, watching
from etcmodel.models import systems
from etcmodel.ops import blockwise

__all__ = [
    "MEAN",
    "SIDES",
    "Attention",
    "attention",
    "cross_attention",
    "of_etc",
    "of_etc_modernbert",
    "of_tokens_first",
]

_ROWS = 256  # Queries processed at a time, with their probabilities for all keys in memory.
MEAN = -1  # As a head: the mean over all heads.


@dataclasses.dataclass(frozen=True)
class Attention:
    """The nonzero attention probabilities of one layer, for the queries of one side.

    The arrays have equal lengths, with one entry per pair of query and key and per head. Entries of
    the same query and head are consecutive, the most probable key first.

    Attributes:
        layer: int, from 0.
        query_side: 'long' or 'global'.
        query: int32. Position of the query.
        head: int32; `MEAN` for the mean over all heads.
        key_side: int32. Index into `SIDES`.
        key: int32. Position of the key on its side.
        probability: float32.
        num_keys: tuple of int. Number of keys on each of `SIDES`.

    >>> from etcmodel import inspection
    >>> model = etcmodel.from_pretrained("my_model")
    >>> batch = model.processor("Good!")
    >>> (one,) = inspection.attention(model, batch, heads=[0], queries={"long": [1]})
    >>> one.key.tolist(), [inspection.SIDES[side] for side in one.key_side]
    ([0, 1, 2, 3, 0, 1], ['long', 'long', 'long', 'long', 'global', 'global'])
    """

    layer: int
    query_side: str
    query: np.ndarray
    head: np.ndarray
    key_side: np.ndarray
    key: np.ndarray
    probability: np.ndarray
    num_keys: tuple

    def dense(self, query, head):
        """Probabilities of one query and head: dict from the keys' side to float32 [num_keys]."""
        chosen = (self.query == query) & (self.head == head)
        rows = {}
        for number, (side, size) in enumerate(zip(SIDES, self.num_keys, strict=True)):
            here = chosen & (self.key_side == number)
            rows[side] = np.zeros(size, np.float32)
            rows[side][self.key[here]] = self.probability[here]
        return rows


def attention(model, inputs, *, layers=None, heads=None, queries=None, top=None, example=0):
    """What tokens attend to: the attention probabilities of the model.

    They are taken from the model's own computation in one ordinary call without dropout: the same
    key sets, masks, labels and tiles (`ops.blockwise.probs_of_steps`). Memory grows with the chosen
    queries and their windows, not with the square of the length. If the model calls its encoder
    several times, the last call counts.

    Args:
        model: `EtcModel`, `EtcModernBertModel`, Longformer, BigBird, ModernBERT, GMAT, LED, LongT5
            or PEGASUS-X, or a model that contains one; for a model with a decoder, the encoder's
            attention is returned. The global side is GMAT's memory, PEGASUS-X's global tokens, or
            LongT5's block sums, which are keys only; global tokens of Longformer and LED are on the
            long side. For these two, GMAT and BigBird, the probabilities come from
            `output_attentions`, whose memory grows with the square of the length for the last two.
        inputs: dict. See `hidden_states`.
        layers: sequence of int, from 0; by default all.
        heads: sequence of int, may include `MEAN`; by default all heads, without the mean.
        queries: dict from 'long' and 'global' to a sequence of positions; a missing side has no
            queries. By default all tokens.
        top: int or None. Number of keys to keep per query and head, the most probable ones.
        example: int. Row of the batch.
    Returns:
        list of `Attention`: for each layer, in the given order, one for the long and one for the
        global queries, if any are chosen.
    Raises:
        ValueError: if a layer, head, query or example is not there, the model holds no such
            encoder, inside a `tf.function`, or as the model.

    >>> from etcmodel import inspection
    >>> model = etcmodel.from_pretrained("my_model")
    >>> found = inspection.attention(model, model.processor("It is good."), heads=[0], top=3)
    >>> [(one.layer, one.query_side, len(one.probability)) for one in found]
    [(0, 'long', 18), (0, 'global', 6)]
    """
    calls.check_eager()
    encoder = calls.encoder_of(model)
    watched = calls.of_parts("watched")
    if not isinstance(encoder, (*watched, *observed.kinds())):
        able = {x.model_type for name in ("watched", "observed") for x in systems.having(name)}
        raise ValueError(
            f"Attention is shown of models of `model_type` {', '.join(map(repr, sorted(able)))}. "
            f"Received: {encoder.config.model_type!r}"
        )
    sizes = calls.sizes_of(encoder)
    layers, look = _choose(sizes, layers, heads, _by_side(queries), top, example)
    kind = next((kind for kind in watched if isinstance(encoder, kind)), None)
    if kind is not None:
        blocks, see = watched[kind](calls.stack_of(model))
        with watching({x: blocks[x] for x in layers}, functools.partial(see, look)):
            calls.call_encoder(model, inputs)
    else:
        found = observed.probabilities(model, inputs)
        for layer, side in found.rows:
            if layer in layers:
                look.at_rows(layer, side, found)
    return look.told(layers)


def cross_attention(model, inputs, *, layers=None, heads=None, queries=None, top=None, example=0):
    """What a decoder's tokens attend to in the encoder's output, in the form of `attention`.

    The encoder's tokens are the long side; for a GMAT, its memory follows them. The decoder's
    tokens are the global side, with all the queries and no keys. The decoder's self-attention, a
    separate softmax, is not included.

    Args:
        model: LED, LongT5, PEGASUS-X or `GmatForConditionalGeneration`, or a model that holds one.
        inputs: dict. See `hidden_states`; `decoder_input_ids` or `labels` are the decoder's.
        layers, heads, top, example: see `attention`; they are the decoder's.
        queries: sequence of int. Positions of the decoder's tokens; by default all.
    Returns:
        list of `Attention` in the order of the layers.
    Raises:
        ValueError: if a layer, head, query or example is not there, the model has no such decoder,
            inside a `tf.function`, or as the model.

    >>> from etcmodel import inspection
    >>> model = etcmodel.LongT5Model(etcmodel.LongT5Config(d_model=8, num_layers=1))
    >>> inputs = {"input_ids": [[7, 8, 1]], "decoder_input_ids": [[0, 5]]}
    >>> (one,) = inspection.cross_attention(model, inputs, heads=[inspection.MEAN])
    >>> one.query_side, one.query.tolist(), one.key.tolist()
    ('global', [0, 0, 0, 1, 1, 1], [0, 2, 1, 0, 2, 1])
    """
    calls.check_eager()
    decoder = calls.decoder_layers_of(model)
    sizes = decoder.num_hidden_layers, decoder.num_attention_heads
    queries = {"long": (), "global": queries}
    layers, look = _choose(sizes, layers, heads, queries, top, example)
    blocks = {layer: decoder.attentions(layer)[1] for layer in layers}
    with watching(blocks, functools.partial(_see_encoder, look)):
        calls.call_decoder(model, inputs)
    return look.told(layers)


def _choose(sizes, layers, heads, queries, top, example):
    """(layers, `_Look`) of the arguments of `attention`."""
    if top is not None and top < 1:
        raise ValueError(f"`top` must be at least 1. Received: {top}")
    num_layers, num_heads = sizes
    layers = _chosen("layers", layers, num_layers)
    return layers, _Look(_chosen("heads", heads, num_heads, MEAN), queries, top, example)


@dataclasses.dataclass(frozen=True)
class _Look:
    """What to record, from the arguments of `attention`; and the records, by layer and side."""

    heads: list
    queries: dict
    top: int | None
    example: int
    seen: dict = dataclasses.field(default_factory=dict)

    def at_attention(self, layer, side, keys, queries, key_sets, options):
        """Records an attention from its call arguments; `keys` are the `_Keys` of its sets."""
        calls.check_eager()
        _chosen("example", [self.example], queries.shape[0])
        rows = _chosen(f"queries['{side}']", self.queries[side], queries.shape[1])
        if rows:
            steps = blockwise.probs_of_steps(queries, key_sets, rows, **options)
            sizes = [key_set.num_keys for key_set in key_sets]
            self._keep(layer, side, keys, sizes, steps)

    def at_rows(self, layer, side, found):
        """Records a layer's attention from an `observed.Probabilities`."""
        _chosen("example", [self.example], found.batch)
        num_keys = dict(zip(SIDES, found.num_keys, strict=True))
        queries = _chosen(f"queries['{side}']", self.queries[side], num_keys[side])

        def steps():
            for start in range(0, len(queries), _ROWS):
                chosen = queries[start : start + _ROWS]
                by_side = found.rows[layer, side](chosen)
                yield (
                    np.array(chosen),
                    [
                        (np.tile(np.arange(num_keys[x]), (len(chosen), 1)), by_side[x])
                        for x in SIDES
                    ],
                )

        if queries:
            self._keep(layer, side, _Keys(found.num_keys), found.num_keys, steps())

    def told(self, layers):
        """The recorded `Attention`s, in the order of the layers: list."""
        wanted = [(layer, side) for layer in layers for side in SIDES]
        return [self.seen[key] for key in wanted if key in self.seen]

    def _keep(self, layer, side, keys, sizes, steps):
        parts = [self._entries(keys, sizes, *step) for step in steps]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        self.seen[layer, side] = Attention(layer, side, *columns, keys.numbers)

    def _entries(self, all_keys, sizes, positions, by_set):
        """Columns of `Attention` from one step of `blockwise.probs_of_steps`.

        The concatenated keys of all sets are the keys of the two sides.
        """
        starts = np.cumsum([0, *sizes[:-1]])
        keys = [
            np.where((keys >= 0) & (keys < size), keys + start, -1)
            for (keys, _), size, start in zip(by_set, sizes, starts, strict=True)
        ]
        keys = np.concatenate(keys, -1)[:, np.newaxis].repeat(len(self.heads), 1)
        probs = self._of_heads(np.concatenate([x[:, self.example] for _, x in by_set], -1))
        order = np.argsort(-probs, axis=-1, kind="stable")[..., : self.top]
        probs = np.take_along_axis(probs, order, -1)
        keys = np.take_along_axis(keys, order, -1)
        queries, heads = (
            np.broadcast_to(x, keys.shape)
            for x in (positions[:, np.newaxis, np.newaxis], np.array(self.heads)[:, np.newaxis])
        )
        key_sides, keys = all_keys.places(keys)
        kept = (probs > 0) & (keys >= 0)
        ids = (np.asarray(x[kept], np.int32) for x in (queries, heads, key_sides, keys))
        return *ids, probs[kept]

    def _of_heads(self, probs):
        """[rows, all heads, keys] to [rows, chosen heads, keys]."""
        mean = probs.mean(1, keepdims=True)
        return np.concatenate([probs, mean], 1)[:, self.heads]  # `MEAN` selects the last one.


@dataclasses.dataclass(frozen=True)
class _Keys:
    """The keys of one softmax: their number on each of `SIDES`, and the side that comes first."""

    numbers: tuple
    first: int = 0

    def places(self, keys):
        """Converts key numbers to (index into `SIDES`, position on that side); -1 stays."""
        num_first = self.numbers[self.first]
        is_first = keys < num_first
        sides = np.where(is_first, self.first, 1 - self.first)
        return sides, np.where(is_first, keys, keys - num_first)


def _see_etc(look, layer, side, inputs, queries, key_sets, options):
    """ETC's attention, in which the keys of the queries' own side come first."""
    keys = _Keys(tuple(x.shape[1] for x in inputs), SIDES.index(side))
    look.at_attention(layer, side, keys, queries, key_sets, options)


def _see_own_side_first(look, layer, side, _, queries, key_sets, options):
    """The attention of both sides' tokens in one block, with key sets in the order of ETC's."""
    own, other = (key_set.num_keys for key_set in key_sets)
    numbers = (own, other) if side == "long" else (other, own)
    keys = _Keys(numbers, SIDES.index(side))
    look.at_attention(layer, side, keys, queries, key_sets, options)


def _see_tokens_first(look, layer, side, _, queries, key_sets, options):
    """An attention to tokens, and to the global side if there is one."""
    num_tokens, *others = (key_set.num_keys for key_set in key_sets)
    keys = _Keys((num_tokens, sum(others)))
    look.at_attention(layer, side, keys, queries, key_sets, options)


def _see_encoder(look, layer, _, inputs, queries, key_sets, options):
    """A decoder's attention to the encoder."""
    keys = _Keys((key_sets[0].num_keys, inputs.shape[1]))
    look.at_attention(layer, "global", keys, queries, key_sets, options)


def of_etc(stack):
    """See `systems.System.watched`."""
    return stack.fused_att_layers, _see_etc


def of_etc_modernbert(stack):
    """See `systems.System.watched`."""
    return stack.attention_layers, _see_own_side_first


def of_tokens_first(stack):
    """See `systems.System.watched`."""
    return stack.attention_layers, _see_tokens_first


def _by_side(queries):
    """Positions by side, None for all."""
    if queries is None:
        return dict.fromkeys(SIDES)
    if unknown := sorted(set(queries) - set(SIDES)):
        raise ValueError(f"`queries` must be a dict of {SIDES} to positions. Received: {unknown}")
    return {side: queries.get(side, ()) for side in SIDES}


def _chosen(name, numbers, size, *special):
    """The numbers as a list, all of them by default; raises ValueError for one out of range."""
    if numbers is None:
        return list(range(size))
    for number in numbers:
        if number not in range(size) and number not in special:
            also = "".join(f", or {x}" for x in special)
            raise ValueError(f"`{name}` must be from 0 to {size - 1}{also}. Received: {number}")
    return list(map(int, numbers))
