"""Checks the features of a batch and completes them to the arguments of an encoder's call.

A batch is a dict of int arrays or tensors by name, with the batch axis first; only token ids are
required. By default each row is one document, padding is masked, and there are positions and a
global token for each sentence or block of tokens, as the encoder's config says.

| name | shape | meaning, and the default |
| --- | --- | --- |
| `token_ids` | [batch, long_len] | required |
| `global_token_ids` | [batch, global_len] | one per sentence in `links`, or else one per block; \
each example begins a block |
| `segment_ids`, `global_segment_ids` | as the ids | `default_segment_id` of the config, and 0 |
| `position_ids`, `global_position_ids` | as the ids | 0, 1, 2 … from the first \
token of each example |
| `example_ids`, `global_example_ids` | as the ids | 0 is padding, 1, 2 … are the examples in a \
row; by default 1 where the id is not `pad_token_id` |
| `links` | [batch, long_len] | index of each token's global token, or -1; without \
`global_token_ids` below long_len |
| `links/<name>` | [batch, num_pairs, 2] | further (long, global) pairs; -1, -1 is padding |
| `edges/<name>` | [batch, num_pairs, 2] | (from, to) pairs of global tokens, likewise |
| `long_edges/<name>` | [batch, num_pairs, 2] | pairs of long tokens within the local radius |

Another kind of relation (`ops.relations.Relation`) has a feature of the name and the axes that it
declares. Relations are named in `relation_names`, whose order determines their labels. `labels` and
`labels/<name>` are for losses and are ignored here.
"""

import dataclasses

import tensorflow as tf

from etcmodel.models import input_utils, padding
from etcmodel.ops import argument_checks, relations


def num_of_links(links, given="links"):
    """Number of global tokens that are linked to: the length of the global input.

    Args:
        links: int32 [batch, len].
        given: str. The name of the feature that the links come from, for the message.
    Raises:
        ValueError: in a function that XLA compiles, since the number must be known there.
    """
    if tf.__internal__.get_enclosing_xla_context() is not None:
        argument_checks.fail(
            f"`global_token_ids` must be given beside `{given}` in a function that XLA compiles, "
            "such as with `jit_compile`: without them, the length of the global input is not known "
            "there"
        )
    return tf.maximum(tf.reduce_max(links) + 1, 0)


def blocks(example_ids, block_length):
    """Links each block of tokens to a global token: (links, number); none if the length is 0.

    Blocks are counted from the first token, so that leading padding has no effect. Each row is one
    example: see `blocks_of_examples`.
    """
    shape = tf.shape(example_ids)
    if not block_length:
        return tf.fill(shape, -1), 0
    # An int if it is known: compiled code needs it.
    length = shape[1] if example_ids.shape[1] is None else example_ids.shape[1]
    is_token = example_ids > 0
    blocks = padding.places_from_first_real(is_token) // block_length
    return tf.where(is_token, blocks, -1), -(-length // block_length)


def blocks_of_examples(example_ids, block_length):
    """Like `blocks`, for rows with several examples, each of which begins a new block.

    The number is that of the row with the most blocks, but no less than for one example per row.

    Raises:
        ValueError: see `num_of_links`.
    """
    links, least = blocks(example_ids, block_length)
    if not block_length:
        return links, least
    is_token = example_ids > 0
    is_first = is_token & tf.equal(places_in_runs(example_ids) % block_length, 0)
    links = tf.where(is_token, tf.cumsum(tf.cast(is_first, tf.int32), axis=1) - 1, -1)
    return links, tf.maximum(num_of_links(links, "example_ids"), least)


def examples_of_links(links, example_ids, num_global):
    """Finds the example of each global token by its links: int32 [batch, num_global]."""
    batch = tf.shape(links)[0]
    rows = tf.range(batch)[:, tf.newaxis] * num_global
    ids = tf.math.unsorted_segment_max(
        example_ids, tf.where(links >= 0, rows + links, -1), batch * num_global
    )
    # Tokens without a link leave the least int there.
    return tf.maximum(tf.reshape(ids, [batch, num_global]), 0)


def places_in_runs(example_ids):
    """Counts 0, 1, 2 … in each run of equal ids: int32 [batch, len]."""
    batch, length = tf.unstack(tf.shape(example_ids))
    places = tf.broadcast_to(tf.range(length), [batch, length])
    is_new = tf.not_equal(example_ids[:, 1:], example_ids[:, :-1])
    runs = tf.cumsum(tf.pad(tf.cast(is_new, tf.int32), [[0, 0], [1, 0]]), axis=1)[:, :length]
    runs += tf.range(batch)[:, tf.newaxis] * length  # A number of its own for each run.
    last = tf.fill([batch * length], length)  # ONNX has this minimum, and none of segments.
    begins = tf.tensor_scatter_nd_min(last, runs[:, :, tf.newaxis], places)
    return places - tf.gather(begins, runs)


_AXES = {
    "token_ids": "batch long_len",
    "global_token_ids": "batch global_len",
    "segment_ids": "batch long_len",
    "global_segment_ids": "batch global_len",
    "position_ids": "batch long_len",
    "global_position_ids": "batch global_len",
    "example_ids": "batch long_len",
    "global_example_ids": "batch global_len",
    "links": "batch long_len",
}


@dataclasses.dataclass(frozen=True)
class EncoderInputs:
    """The arguments of an encoder's call, and further features of the batch.

    Attributes:
        arguments: dict of the call's arguments by name, including `structure`.
        example_ids: int32 [batch, long_len]; 0 is padding.
        global_example_ids: int32 [batch, global_len].
        links: int32 [batch, long_len]. Index of each token's global token, or -1.
        extras: dict of name to int32 tensor. Features for the head only.
    """

    arguments: dict
    example_ids: tf.Tensor
    global_example_ids: tf.Tensor
    links: tf.Tensor
    extras: dict = dataclasses.field(default_factory=dict)

    @property
    def mask(self):
        """Mask of the long tokens that are not padding: bool [batch, long_len]."""
        return self.example_ids > 0

    @property
    def global_mask(self):
        """Mask of the global tokens that are not padding: bool [batch, global_len]."""
        return self.global_example_ids > 0


def _kinds():
    """The kinds of relations that batches may have, by their features."""
    return {kind.feature: kind for kind in relations.KINDS.values() if kind.feature}


def _axes_of(name, axes):
    """The axes of a feature: from `axes`, or by its kind of relation."""
    return axes[name] if name in axes else _kinds()[name.partition("/")[0]].axes


def shape_of(name, extra_axes=None):
    """Returns the shape of a feature without the batch axis: list of int or None.

    Args:
        name: str. Its name in a batch. Of an unknown one, the shape is that of ids.
        extra_axes: see `completed`.

    >>> from etcmodel.models import features
    >>> features.shape_of("token_ids"), features.shape_of("edges/cites")
    ([None], [None, 2])
    """
    kind = _kinds().get(name.partition("/")[0])
    known = {**_AXES, **(extra_axes or {})}
    _, *axes = known.get(name, kind.axes if kind else "batch length").split()
    return [int(axis) if axis.isdecimal() else None for axis in axes]


def is_label(name):
    """Returns whether a feature contains labels, which are for losses only."""
    return name.partition("/")[0] == "labels"


@tf.autograph.experimental.do_not_convert
def completed(features, config, relation_names=(), extra_axes=None):
    """Completes the given features to all inputs of an encoder.

    Args:
        features: dict of name to int array or tensor, as above; or token ids [batch, long_len].
        config: `EncoderConfig`.
        relation_names: sequence of str. Names of relations, in the order of their labels.
        extra_axes: dict of the names of further, optional features to their axes, such as
            "batch long_len".
    Returns:
        `EncoderInputs` with the `arguments` of `EtcModel`.
    Raises:
        ValueError: in one line that names the feature, what is expected and what was received, if a
            feature is unknown or missing, has a wrong shape or type, or ids are out of range; in a
            function that XLA compiles also for `links`, or for blocks in `example_ids`, without
            `global_token_ids`. Values known only when a graph runs raise
            `tf.errors.InvalidArgumentError` instead; code compiled by XLA cannot raise.
    """
    axes = {**_AXES, **(extra_axes or {})}
    given = _tensors(features, axes)
    asserts = []
    axes = {name: _axes_of(name, axes) for name in given}
    argument_checks.check_shapes(given, axes, asserts=asserts)
    _check_dtypes(given)
    given = {name: tf.saturate_cast(ids, tf.int32) for name, ids in given.items()}
    _check_ranges(given, config, asserts)
    with tf.control_dependencies(asserts):
        given = {name: tf.identity(ids) for name, ids in given.items()} if asserts else given
    extras = {name: given.pop(name) for name in extra_axes or () if name in given}
    return _complete(given, config, tuple(relation_names), extras)


def _tensors(features, axes):
    """dict of the features, without labels, as tensors."""
    if not hasattr(features, "items"):
        features = {"token_ids": features}
    if "token_ids" not in features:
        hint = " (`input_ids`?)" if "input_ids" in features else ""
        argument_checks.fail(f"There is no feature `token_ids`{hint}. Received: {list(features)}")
    kinds = _kinds()
    for name in features:
        kind, slash, relation = name.partition("/")
        is_known = name in axes or (slash and relation and kind in kinds)
        if not is_known and not is_label(name):
            known = ", ".join([*axes, *(f"{kind}/<name>" for kind in kinds)])
            argument_checks.fail(f"There is no feature of the name `{name}`. There are: {known}")
    return {name: _tensor(name, x, axes) for name, x in features.items() if not is_label(name)}


def _tensor(name, value, axes):
    if tf.is_tensor(value):  # Also ragged and sparse ones; shapes are checked next.
        return value
    try:
        return tf.convert_to_tensor(value)
    except (ValueError, TypeError, tf.errors.InvalidArgumentError):
        wanted = ", ".join(_axes_of(name, axes).replace("*", "").split())
        argument_checks.fail(
            f"`{name}` must have shape [{wanted}], padded. Received: what no tensor can be made "
            "of, such as rows of different lengths"
        )


def _check_dtypes(given):
    for name, ids in given.items():
        if not ids.dtype.is_integer:
            argument_checks.fail(f"`{name}` must be integers. Received: {ids.dtype.name}")


def _setting(config, name, default):
    """An entry of the config, or the default for configs without such an entry."""
    return getattr(config, name, default)


def _check_ranges(given, config, asserts):
    limits = {"token_ids": "vocab_size", "segment_ids": "segment_vocab_size", "example_ids": None}
    for name, ids in given.items():
        field = name.removeprefix("global_")
        if field in limits:
            entry = limits[field]
            limit = _setting(config, entry, None) if entry else None
            words = f"`{entry}` of the config, {limit}"
            argument_checks.check_range(name, ids, 0, limit, words, asserts=asserts)
    has_own_global_side = "global_token_ids" in given and "global_example_ids" not in given
    if has_own_global_side and "example_ids" in given:
        ids, words = given["example_ids"], "2, one example a row, without `global_example_ids`"
        argument_checks.check_range("example_ids", ids, 0, 2, words, asserts=asserts)
    if "links" in given:
        is_free = "global_token_ids" not in given
        number = tf.shape(given["token_ids" if is_free else "global_token_ids"])[1]
        words = "the number of global tokens"
        if is_free:
            words = "the number of long tokens, without `global_token_ids`"
        argument_checks.check_range("links", given["links"], -1, number, words, asserts=asserts)


def _complete(given, config, relation_names, extras):
    token_ids = given["token_ids"]
    example_ids = given.get("example_ids")
    if example_ids is None:
        pad_token_id = _setting(config, "pad_token_id", 0)
        example_ids = tf.cast(tf.not_equal(token_ids, pad_token_id), tf.int32)
    links, global_ids, global_example_ids = _global_side(given, config, example_ids)
    max_distance = _setting(config, "relative_pos_max_distance", 0)
    structure = input_utils.make_structure_from_example_ids(
        example_ids,
        global_example_ids,
        links,
        max_distance,
        use_hard_g2l_mask=_setting(config, "use_hard_g2l_mask", False),
        use_hard_l2g_mask=_setting(config, "use_hard_l2g_mask", False),
    )
    structure = _with_relations(structure, given, config, relation_names)
    arguments = {
        "token_ids": token_ids,
        "global_token_ids": global_ids,
        "segment_ids": given.get("segment_ids"),
        "global_segment_ids": given.get("global_segment_ids"),
        **_position_ids(given, config, example_ids, global_example_ids),
        "structure": structure,
    }
    arguments = {name: value for name, value in arguments.items() if value is not None}
    return EncoderInputs(arguments, example_ids, global_example_ids, links, extras)


def _global_side(given, config, example_ids):
    """(links, global_token_ids, global_example_ids), as given or by default."""
    links, global_ids = given.get("links"), given.get("global_token_ids")
    if global_ids is not None:
        return _given_global_side(links, global_ids, given, config)
    for name in given:
        kind = _kinds().get(name.partition("/")[0]) if "/" in name else None
        if name.startswith("global_") or (kind and kind.piece != "l2l"):
            argument_checks.fail(f"`{name}` needs `global_token_ids`, which are not given")
    if links is None:
        # With ids alone, a row is one example, whose length determines the number of blocks.
        make = blocks_of_examples if "example_ids" in given else blocks
        links, num_global = make(example_ids, _setting(config, "global_block_length", 0))
    else:
        num_global = num_of_links(links)
    global_example_ids = examples_of_links(links, example_ids, num_global)
    global_ids = tf.where(
        global_example_ids > 0,
        _setting(config, "global_token_id", 1),
        _setting(config, "pad_token_id", 0),
    )
    return links, global_ids, global_example_ids


def _given_global_side(links, global_ids, given, config):
    if links is None:
        if _setting(config, "use_hard_g2l_mask", False):
            argument_checks.fail(
                "`links` must be given beside `global_token_ids`: the config's `use_hard_g2l_mask` "
                "lets global tokens see what is linked to them alone (as in the paper's presets; "
                "they see all with use_hard_g2l_mask=False)"
            )
        links = tf.fill(tf.shape(given["token_ids"]), -1)
    global_example_ids = given.get("global_example_ids")
    if global_example_ids is None:
        pad_token_id = _setting(config, "pad_token_id", 0)
        global_example_ids = tf.cast(tf.not_equal(global_ids, pad_token_id), tf.int32)
    return links, global_ids, global_example_ids


def _position_ids(given, config, example_ids, global_example_ids):
    """Position ids as given, or counted so that each example of a row begins at 0."""
    positions = {name: given.get(name) for name in ("position_ids", "global_position_ids")}
    if not _setting(config, "max_absolute_position_embeddings", 0):
        return positions
    has_examples = "example_ids" in given
    if positions["position_ids"] is None:
        count = places_in_runs if has_examples else _places_of_one_example
        positions["position_ids"] = count(example_ids)
    if positions["global_position_ids"] is None:
        has_default_global_side = has_examples and "global_token_ids" not in given
        has_examples = "global_example_ids" in given or has_default_global_side
        count = places_in_runs if has_examples else _places_of_one_example
        positions["global_position_ids"] = count(global_example_ids)
    return positions


def _places_of_one_example(example_ids):
    return padding.places_from_first_real(example_ids > 0)


def _with_relations(structure, given, config, relation_names):
    labels = config.relation_labels(*relation_names) if relation_names else {}
    for feature, pairs in given.items():
        kind, slash, name = feature.partition("/")
        if not slash:
            continue
        if name not in relation_names:
            argument_checks.fail(
                f"`{feature}` is of no relation of the model, whose `relation_names` are "
                f"{list(relation_names)}"
            )
        structure = structure.with_relations(_kinds()[kind](pairs, name, labels[name]))
    return structure
