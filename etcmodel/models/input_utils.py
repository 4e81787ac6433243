"""Side inputs of `GlobalLocalTransformerLayers`: masks and relative labels from structure.

Labels, with k = `relative_pos_max_distance`: 0 to 2k relative positions within the long or within
the global input; 2k + 2 a long token and the global token of its sentence (both directions);
2k + 1 any other pair of a long and a global token. Pairs in different examples are masked.
"""

import base64
import dataclasses
import os

import tensorflow as tf

from etcmodel import feature_utils

__all__ = [
    "GlobalLocalTransformerSideInputs",
    "add_side_input_features",
    "create_bytes_feature",
    "create_float_feature",
    "create_int_feature",
    "get_feature",
    "get_model_config",
    "get_repeated_values",
    "make_fixed_block_side_inputs",
    "make_global_local_transformer_side_inputs",
    "make_global_local_transformer_side_inputs_from_example_ids",
]


@dataclasses.dataclass
class GlobalLocalTransformerSideInputs:
    """The eight side inputs of `GlobalLocalTransformerLayers`; labels may be None.

    Masks are int32, 1 where attention is allowed; labels are int32. l2l tensors are local:
    [batch, long_len, 2 * local_radius + 1]; the others [batch, query_len, key_len].
    """

    l2l_att_mask: tf.Tensor | None
    g2g_att_mask: tf.Tensor | None
    l2g_att_mask: tf.Tensor | None
    g2l_att_mask: tf.Tensor | None
    l2l_relative_att_ids: tf.Tensor | None
    g2g_relative_att_ids: tf.Tensor | None
    l2g_relative_att_ids: tf.Tensor | None
    g2l_relative_att_ids: tf.Tensor | None

    def to_dict(self, exclude_none_values=False):
        """The side inputs by name, without those that are None if asked."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if exclude_none_values:
            fields = {name: value for name, value in fields.items() if value is not None}
        return fields


def make_global_local_transformer_side_inputs(
    long_breakpoints,
    global_breakpoints,
    sentence_ids,
    local_radius,
    relative_pos_max_distance,
    use_hard_g2l_mask=False,
    use_hard_l2g_mask=False,
    name=None,
):
    """Side inputs for packed examples that end at breakpoints.

    Args:
        long_breakpoints: int [batch, long_len]. 1 at the last long token of each example.
        global_breakpoints: int [batch, global_len]. 1 at the last global token of each example.
        sentence_ids: int [batch, long_len]. Index of the global token of each token's sentence.
        local_radius: int. Long tokens visible on each side.
        relative_pos_max_distance: int. 0 makes all labels None.
        use_hard_g2l_mask: bool. Global tokens see only the long tokens of their sentence.
        use_hard_l2g_mask: bool. Long tokens see only the global token of their sentence.
        name: name of the operation.
    Returns:
        `GlobalLocalTransformerSideInputs`.
    """
    with tf.name_scope(name or "make_global_local_transformer_side_inputs"):
        return make_global_local_transformer_side_inputs_from_example_ids(
            long_example_ids=feature_utils.segment_ids_from_breakpoints(long_breakpoints),
            global_example_ids=feature_utils.segment_ids_from_breakpoints(global_breakpoints),
            sentence_ids=sentence_ids,
            local_radius=local_radius,
            relative_pos_max_distance=relative_pos_max_distance,
            use_hard_g2l_mask=use_hard_g2l_mask,
            use_hard_l2g_mask=use_hard_l2g_mask,
        )


def make_global_local_transformer_side_inputs_from_example_ids(
    long_example_ids,
    global_example_ids,
    sentence_ids,
    local_radius,
    relative_pos_max_distance,
    use_hard_g2l_mask=False,
    use_hard_l2g_mask=False,
    name=None,
):
    """As `make_global_local_transformer_side_inputs`, from the number of each token's example.

    Args:
        long_example_ids: int [batch, long_len]. Tokens with different numbers do not see each
            other; padding is an example of its own (0, say).
        global_example_ids: int [batch, global_len].
        sentence_ids: see `make_global_local_transformer_side_inputs`, as the other arguments.
        local_radius: int.
        relative_pos_max_distance: int.
        use_hard_g2l_mask: bool.
        use_hard_l2g_mask: bool.
        name: name of the operation.
    Returns:
        `GlobalLocalTransformerSideInputs`.
    """
    with tf.name_scope(name or "make_global_local_transformer_side_inputs_from_example_ids"):
        long_example_ids = tf.convert_to_tensor(long_example_ids)
        global_example_ids = tf.convert_to_tensor(global_example_ids)
        linked = linked_pairs([sentence_ids], tf.shape(global_example_ids)[1])
        l2g_att_mask = same_example_mask(long_example_ids, global_example_ids)
        l2g_labels = l2g_relative_att_ids(linked, relative_pos_max_distance)
        return GlobalLocalTransformerSideInputs(
            l2l_att_mask=feature_utils.make_local_segmented_att_mask(
                long_example_ids, local_radius
            ),
            g2g_att_mask=feature_utils.make_segmented_att_mask(global_example_ids),
            l2g_att_mask=harden(l2g_att_mask, linked) if use_hard_l2g_mask else l2g_att_mask,
            g2l_att_mask=transpose(
                harden(l2g_att_mask, linked) if use_hard_g2l_mask else l2g_att_mask
            ),
            l2l_relative_att_ids=position_labels(
                long_example_ids, relative_pos_max_distance, local_radius
            ),
            g2g_relative_att_ids=position_labels(global_example_ids, relative_pos_max_distance),
            l2g_relative_att_ids=l2g_labels,
            g2l_relative_att_ids=transpose(l2g_labels),
        )


def make_fixed_block_side_inputs(
    input_mask,
    num_tokens_per_block,
    local_radius,
    relative_pos_max_distance,
    use_hard_g2l_mask=False,
    use_hard_l2g_mask=False,
    global_token_id=1,
    name=None,
):
    """Side inputs with one global token per block of long tokens (paper, "fixed blocks").

    Args:
        input_mask: int [batch, long_len]. 1 for real tokens, which come first, 0 for padding.
        num_tokens_per_block: int, at least 1.
        local_radius: int.
        relative_pos_max_distance: int. 0 makes all labels None.
        use_hard_g2l_mask: bool.
        use_hard_l2g_mask: bool.
        global_token_id: int. Id of the global tokens.
        name: name of the operation.
    Returns:
        (`GlobalLocalTransformerSideInputs`, global_token_ids): the latter is int32
        [batch, global_len], 0 where a block has only padding; global_len is
        long_len / num_tokens_per_block, rounded up.
    Raises:
        ValueError: if `num_tokens_per_block` is below 1.
    """
    if num_tokens_per_block < 1:
        raise ValueError(
            f"`num_tokens_per_block` must be positive. Received: {num_tokens_per_block}"
        )
    with tf.name_scope(name or "make_fixed_block_side_inputs"):
        input_mask = tf.cast(input_mask, tf.int32)
        # A block is real if its first token is: real tokens come first.
        global_example_ids = input_mask[:, ::num_tokens_per_block]
        blocks = tf.range(tf.shape(input_mask)[1]) // num_tokens_per_block
        side_inputs = make_global_local_transformer_side_inputs_from_example_ids(
            long_example_ids=input_mask,
            global_example_ids=global_example_ids,
            sentence_ids=tf.broadcast_to(blocks, tf.shape(input_mask)),
            local_radius=local_radius,
            relative_pos_max_distance=relative_pos_max_distance,
            use_hard_g2l_mask=use_hard_g2l_mask,
            use_hard_l2g_mask=use_hard_l2g_mask,
        )
        return side_inputs, global_example_ids * global_token_id


def linked_pairs(links, global_len):
    """Which long token is linked to which global token.

    Args:
        links: list of int [batch, long_len]: indices of global tokens; others (-1) link nothing.
        global_len: int or scalar tensor.
    Returns:
        bool [batch, long_len, global_len].
    """
    columns = tf.range(global_len)
    pairs = [tf.equal(tf.cast(ids, tf.int32)[:, :, tf.newaxis], columns) for ids in links]
    return tf.reduce_any(tf.stack(pairs), axis=0)


def same_example_mask(query_example_ids, key_example_ids):
    """int32 [batch, query_len, key_len]: 1 where both have the same number."""
    same = tf.equal(query_example_ids[:, :, tf.newaxis], key_example_ids[:, tf.newaxis, :])
    return tf.cast(same, tf.int32)


def harden(att_mask, linked):
    """Keeps of an int32 mask only the linked pairs."""
    return att_mask * tf.cast(linked, tf.int32)


def transpose(pairs):
    """[batch, a, b] to [batch, b, a]; None stays None."""
    return None if pairs is None else tf.transpose(pairs, [0, 2, 1])


def l2g_relative_att_ids(linked, relative_pos_max_distance):
    """Labels of long-global pairs: 2k + 2 where linked, else 2k + 1 (None if k is 0)."""
    if relative_pos_max_distance <= 0:
        return None
    return 2 * relative_pos_max_distance + 1 + tf.cast(linked, tf.int32)


def position_labels(tokens, relative_pos_max_distance, local_radius=None):
    """Relative position labels for `tokens` [batch, len] (None if the distance is 0).

    Returns:
        int32 [batch, len, len], or [batch, len, 2 * local_radius + 1] with a radius.
    """
    if relative_pos_max_distance <= 0:
        return None
    generator = feature_utils.RelativePositionGenerator(relative_pos_max_distance)
    shape = tf.shape(tokens)
    # Static sizes keep static shapes where they are known.
    batch_size, seq_len = (
        static if static is not None else shape[axis]
        for axis, static in enumerate(tokens.shape.as_list())
    )
    if local_radius is None:
        return generator.make_relative_att_ids(seq_len, batch_size)
    return generator.make_local_relative_att_ids(seq_len, local_radius, batch_size)


def add_side_input_features(model_config, features):
    """Adds the side inputs to the features of a batch.

    Args:
        model_config: `EtcConfig`.
        features: dict with int [batch, ...] `long_breakpoints`, `global_breakpoints` and
            `sentence_ids`.
    Returns:
        A new dict: the features, and the side inputs by name.
    """
    side_inputs = make_global_local_transformer_side_inputs(
        long_breakpoints=features["long_breakpoints"],
        global_breakpoints=features["global_breakpoints"],
        sentence_ids=features["sentence_ids"],
        local_radius=model_config.local_radius,
        relative_pos_max_distance=model_config.relative_pos_max_distance,
        use_hard_g2l_mask=model_config.use_hard_g2l_mask,
        use_hard_l2g_mask=model_config.use_hard_l2g_mask,
    )
    return {**features, **side_inputs.to_dict(exclude_none_values=True)}


def get_model_config(model_dir, source_file=None, source_base64=None, write_from_source=True):
    """Reads an `EtcConfig`, and keeps a copy in `model_dir`.

    Args:
        model_dir: directory of the model. Its `etc_config.json` is read if no source is given.
        source_file: path of a JSON file.
        source_base64: the JSON text, base64-encoded.
        write_from_source: whether to write a given source to `model_dir/etc_config.json`.
    Returns:
        `EtcConfig`.
    Raises:
        ValueError: if both sources are given.
    """
    from etcmodel.models import modeling  # modeling builds on this module's labels

    if source_file is not None and source_base64 is not None:
        raise ValueError("Give `source_file` or `source_base64`, not both.")
    path = os.path.join(model_dir, "etc_config.json")
    if source_base64 is not None:
        text = base64.b64decode(source_base64).decode("utf-8")
    else:
        with tf.io.gfile.GFile(source_file or path) as file:
            text = file.read()
    config = modeling.EtcConfig.from_json_string(text, source=source_file or path)
    if write_from_source and (source_file is not None or source_base64 is not None):
        tf.io.gfile.makedirs(model_dir)
        with tf.io.gfile.GFile(path + ".tmp", "w") as file:
            file.write(text)
        tf.io.gfile.rename(path + ".tmp", path, overwrite=True)
    return config


def create_int_feature(values):
    """A `tf.train.Feature` of integers."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=list(values)))


def create_float_feature(values):
    """A `tf.train.Feature` of floats."""
    return tf.train.Feature(float_list=tf.train.FloatList(value=list(values)))


def create_bytes_feature(values):
    """A `tf.train.Feature` of byte strings; text is encoded as UTF-8."""
    encoded = [value.encode("utf-8") if isinstance(value, str) else value for value in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))


def get_repeated_values(feature_name, example):
    """All values of a feature of a `tf.train.Example`.

    Raises:
        ValueError: if the example lacks the feature.
    """
    if feature_name not in example.features.feature:
        raise ValueError(f"The tf.train.Example has no feature {feature_name!r}.")
    feature = example.features.feature[feature_name]
    kind = feature.WhichOneof("kind")
    return getattr(feature, kind).value if kind else []


def get_feature(feature_name, example):
    """The first value of a feature of a `tf.train.Example`."""
    return get_repeated_values(feature_name, example)[0]
