"""Checks the inputs of `EtcModel`, and of encoders of texts, once per call."""

import itertools

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.layers.attention import side_inputs
from etcmodel.ops import argument_checks

_AXES = {
    "token_ids": "batch long_len",
    "global_token_ids": "batch global_len",
    "segment_ids": "batch long_len",
    "global_segment_ids": "batch global_len",
    "position_ids": "batch? long_len",
    "global_position_ids": "batch? global_len",
    "long_embedding_adder": "batch long_len hidden_size",
    "global_embedding_adder": "batch global_len hidden_size",
}
# The config's entries for the sizes of the tables of ids.
_TABLES = {
    "token_ids": "vocab_size",
    "segment_ids": "segment_vocab_size",
    "position_ids": "max_absolute_position_embeddings",
}


@tf.autograph.experimental.do_not_convert
def checked(config, inputs, structure):
    """Checks shapes, ids and links, and returns the inputs.

    Args:
        config: `EtcConfig`.
        inputs: dict of name to tensor: the arguments of `EtcModel`; None if not given.
        structure: `ops.structure.GlobalLocalStructure`, `layers.attention.DenseSideInputs`, or
            None, which is returned as it is.
    Returns:
        (inputs, structure). In a graph these depend on the checks.
    Raises:
        ValueError: in one line that names the argument, what is expected and what was received.
            Values known only when a graph runs raise `tf.errors.InvalidArgumentError` instead. Code
            compiled by XLA cannot raise: there, ids out of range become other ids, any nonzero mask
            value counts as 1, and links to global tokens that do not exist have no effect. Links of
            inputs without any global token have no effect either, and are not an error.
    """
    for name in ("token_ids", "global_token_ids"):
        if inputs[name] is None:
            wanted = ", ".join(_AXES[name].split())
            argument_checks.fail(f"`{name}` must have shape [{wanted}]. Received: None")
    asserts = []
    sizes = {side_inputs.WINDOW: 2 * config.local_radius + 1, "hidden_size": config.hidden_size}
    sizes = argument_checks.check_shapes(inputs, _AXES, sizes, asserts)
    inputs = _with_checked_ids(config, inputs, asserts)
    _check_positions(config.max_absolute_position_embeddings, inputs, sizes, asserts)
    if isinstance(structure, side_inputs.DenseSideInputs):
        argument_checks.check_shapes(*structure.tensors_and_axes(), sizes, asserts)
    elif structure is not None:
        _check_agreement(structure, config)
        vocab_size = config.relative_vocab_size
        check_structure(structure, config.local_radius, vocab_size, sizes, asserts)
    if not asserts:
        return inputs, structure
    with tf.control_dependencies(asserts):
        return tf.nest.map_structure(
            lambda x: tf.identity(x) if tf.is_tensor(x) else x, (inputs, structure)
        )


@tf.autograph.experimental.do_not_convert
def checked_text(config, given, axes, asserts, sizes=()):
    """Checks the shapes of the arguments of another encoder's call, and its ids.

    Args:
        config: `EncoderConfig`.
        given: dict of the arguments by name, with `input_ids` and `inputs_embeds`, one of which is
            None, as any other may be.
        axes: dict of the arguments' axes; see `argument_checks.check_shapes`.
        asserts: list, to which a graph adds its checks; see `argument_checks.check`.
        sizes: entries of the config, besides `hidden_size`, that are sizes of axes.
    Returns:
        (given, (batch, length)): the arguments, with ids as tensors, and `token_type_ids` 0 where
        the encoder takes them and none are given; and int or scalar tensors.
    Raises:
        ValueError: see `checked`.
    """
    if (given["input_ids"] is None) == (given["inputs_embeds"] is None):
        argument_checks.fail("Give `input_ids` or `inputs_embeds`, one of them.")
    sizes = {name: getattr(config, name) for name in ("hidden_size", *sizes)}
    argument_checks.check_shapes(given, axes, sizes, asserts)
    given = dict(given)
    for name, entry in (("input_ids", "vocab_size"), ("token_type_ids", "type_vocab_size")):
        if given.get(name) is not None:
            num_rows = getattr(config, entry)
            words = f"{num_rows}, which is `{entry}`"
            given[name] = argument_checks.checked_ids(
                name, given[name], num_rows, words, asserts=asserts
            )
    name = "inputs_embeds" if given["input_ids"] is None else "input_ids"
    batch, length = tensor_utils.get_shape_list(tf.convert_to_tensor(given[name]))[:2]
    argument_checks.check_not_empty(name, length, asserts=asserts)
    if "token_type_ids" in axes and given["token_type_ids"] is None:
        given["token_type_ids"] = tf.zeros([1, length], tf.int32)
    return given, (batch, length)


def after(asserts, inputs, names=("input_ids", "token_type_ids", "position_ids")):
    """A named tuple of which these tensors, on which all others depend, are after the checks."""
    if not asserts:
        return inputs
    with tf.control_dependencies(asserts):
        found = {name: x for name in names if (x := getattr(inputs, name)) is not None}
        return inputs._replace(**{name: tf.identity(x) for name, x in found.items()})


def _with_checked_ids(config, inputs, asserts):
    """The inputs with the ids of tokens, segments and positions as checked tensors."""
    found = {}
    for kind, entry in _TABLES.items():
        for name in (kind, f"global_{kind}"):
            ids, num_rows = inputs[name], getattr(config, entry)
            if ids is not None and num_rows:
                found[name] = argument_checks.checked_ids(
                    name, ids, num_rows, f"`{entry}`, {num_rows}", asserts=asserts
                )
    return {**inputs, **found}


def _check_positions(table_size, inputs, sizes, asserts):
    """Checks that the table of positions, if any, has a row for each token."""
    if not table_size:
        for name in ("position_ids", "global_position_ids"):
            if inputs[name] is not None:
                argument_checks.fail(
                    f"Position ids need `max_absolute_position_embeddings` above 0 in the config. "
                    f"Received: `{name}`"
                )
        return
    limit = f"`max_absolute_position_embeddings`, {table_size}"
    for side, axis in (("", "long_len"), ("global_", "global_len")):
        position_ids, length = inputs[f"{side}position_ids"], sizes.get(axis)
        if position_ids is None and length is not None:
            argument_checks.check(
                length <= table_size,
                f"`{side}token_ids` must have shape [batch, {axis}] with {axis} at most {limit}. "
                f"Received {axis}:",
                length,
                asserts=asserts,
            )


def _check_agreement(structure, config):
    """Checks that a structure has the model's positions, and the hard masks of its config.

    One with further hard masks is taken: they were asked for, which no omission does.
    """
    received, wanted = structure.max_distance, config.relative_pos_max_distance
    if received != wanted:
        argument_checks.fail(
            "`structure.max_distance` must be the model's `relative_pos_max_distance`, "
            f"{wanted}. Received: {received}"
        )
    for name in ("use_hard_g2l_mask", "use_hard_l2g_mask"):
        if getattr(config, name) and not getattr(structure, name):
            argument_checks.fail(
                f"`structure.{name}` must be the `{name}` of the model's config, True: make the "
                f"structure with {name}=True, or the model with {name}=False. Received: False"
            )


def check_structure(structure, local_radius, vocab_size, sizes=None, asserts=None):
    """Checks a structure's lengths, indices of tokens and labels.

    Args:
        structure: `ops.structure.GlobalLocalStructure`.
        local_radius: int. Long tokens attended to on each side.
        vocab_size: int or None. Number of the model's relative labels.
        sizes: dict of known sizes of axes, or None; see `argument_checks.check_shapes`.
        asserts: list to which a graph's checks are appended; None in eager mode.
    Raises:
        ValueError: see `checked`.
    """
    sizes = {side_inputs.WINDOW: 2 * local_radius + 1, **(sizes or {})}
    if vocab_size is None and structure.has_labels:
        argument_checks.fail(
            "`structure.relations` must have no labels, since the model has none: its "
            "`relative_vocab_size` is None"
        )
    structure.check_labels(vocab_size)
    tensors, axes = structure.tensors_and_axes()
    argument_checks.check_shapes(tensors, axes, sizes, asserts)
    _check_values(tensors, asserts)
    sizes = structure.sizes(local_radius)
    for field, relation in structure.named_relations().items():
        is_wrong = relation.wrong(sizes, vocab_size)
        argument_checks.check_returned(f"{type(relation).__name__}.wrong", is_wrong, tf.bool)
        is_right = ~tf.reduce_any(is_wrong)
        if tf.executing_eagerly() and is_right:
            continue
        argument_checks.check(
            is_right,
            f"`{field}` must hold {relation.wish}. Received:",
            *_first(is_wrong, relation),
            *relation.limits(sizes, vocab_size),
            asserts=asserts,
        )


def _check_values(tensors, asserts):
    """Checks that ids of segments and examples are whole numbers, and masks 0 and 1."""
    for name, tensor in tensors.items():
        if tensor is not None and name.endswith("_mask"):
            kinds = ("as all others", "exempt")
            argument_checks.checked_mask(name, tensor, kinds, asserts=asserts)
        elif tensor is not None and tf.convert_to_tensor(tensor).dtype.is_floating:
            argument_checks.check_range(name, tensor, tf.int32.min, None, "", asserts=asserts)


def _first(is_wrong, relation):
    """The first wrong entry and its indices, such as [5, "in example", 1, "at token", 7]."""
    words, rank = ("in example", *relation.entry), is_wrong.shape.rank
    if len(words) != rank:  # A kind may do without words.
        words = ("in example", "at", *("and",) * rank)[:rank]
    lengths = tf.unstack(tf.shape(is_wrong), len(words))
    # With one more entry, since a graph gathers it even if no entry is wrong, or there are none.
    number = tf.argmax(_one_more(tf.cast(is_wrong, tf.int32), len(words)), output_type=tf.int32)
    entry = _one_more(tf.convert_to_tensor(relation.ids), len(words))[number]
    places = []
    for length in reversed(lengths):
        places.insert(0, number % tf.maximum(length, 1))
        number //= tf.maximum(length, 1)
    return [entry, *itertools.chain(*zip(words, places, strict=True))]


def _one_more(x, rank):
    """Flattens the first `rank` axes and appends an entry of zeros: [entries + 1, …]."""
    flat = tf.reshape(x, tf.concat([[tf.reduce_prod(tf.shape(x)[:rank])], tf.shape(x)[rank:]], 0))
    return tf.pad(flat, [[0, 1]] + [[0, 0]] * (len(x.shape) - rank))
