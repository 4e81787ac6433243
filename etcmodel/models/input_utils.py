"""Builds structures from compact features; helpers for `tf.train.Example`s and configs."""

import base64
import os

import tensorflow as tf
from absl import logging

from etcmodel import atomic_files, feature_utils, tensor_utils
from etcmodel.models.config import EtcConfig
from etcmodel.models.side_inputs import GlobalLocalTransformerSideInputs, side_inputs_of
from etcmodel.ops import argument_checks
from etcmodel.ops.structure import GlobalLocalStructure

__all__ = [
    "MODEL_CONFIG_FILENAME",
    "GlobalLocalTransformerSideInputs",
    "add_side_input_features",
    "create_bytes_feature",
    "create_float_feature",
    "create_int_feature",
    "get_assignment_map_from_checkpoint",
    "get_feature",
    "get_model_config",
    "get_repeated_values",
    "make_fixed_block_side_inputs",
    "make_fixed_block_structure",
    "make_global_local_transformer_side_inputs",
    "make_global_local_transformer_side_inputs_from_example_ids",
    "make_structure",
    "make_structure_from_example_ids",
]


def get_assignment_map_from_checkpoint(
    variables, ckpt_path, variable_scope="", ckpt_variable_scope=""
):
    """Pairs variables with those of the same name in a checkpoint, relative to two scopes.

    `tf.train.load_variable(ckpt_path, name)` reads the value to assign. To load whole encoders,
    with a report of what was found, see `etcmodel.checkpoints`.

    Args:
        variables: sequence of tf.Variable.
        ckpt_path: str. Prefix of a checkpoint whose variables have names (TF1's format).
        variable_scope: str, empty or ending with "/". Variables outside this scope are left out.
        ckpt_variable_scope: str. The same for the variables of the checkpoint.
    Returns:
        dict of name in the checkpoint to variable, for variables that are in both.
    Raises:
        ValueError: if a scope does not end with "/", or there is no such checkpoint.

    >>> from etcmodel import checkpoints
    >>> from etcmodel.models import input_utils
    >>> path, _ = checkpoints.convert("my_model", "released", "released")
    >>> weights = etcmodel.from_pretrained("my_model", as_class=etcmodel.EtcModel).weights
    >>> len(input_utils.get_assignment_map_from_checkpoint(weights, path)) == len(weights)
    True
    """
    scopes = {"variable_scope": variable_scope, "ckpt_variable_scope": ckpt_variable_scope}
    for argument, scope in scopes.items():
        if scope and not scope.endswith("/"):
            raise ValueError(f'`{argument}` must end with "/". Received: {scope!r}')
    try:
        in_checkpoint = [name for name, _ in tf.train.list_variables(ckpt_path)]
    except (tf.errors.NotFoundError, tf.errors.DataLossError, ValueError) as error:
        raise ValueError(f"There is no checkpoint {str(ckpt_path)!r}: {error}") from None
    named = ((variable.name.removesuffix(":0"), variable) for variable in variables)
    by_name = {
        name.removeprefix(variable_scope): variable
        for name, variable in named
        if name.startswith(variable_scope)
    }
    return {
        name: by_name[name.removeprefix(ckpt_variable_scope)]
        for name in in_checkpoint
        if name.startswith(ckpt_variable_scope)
        and name.removeprefix(ckpt_variable_scope) in by_name
    }


# Creates and reads the features of `tf.train.Example`s.


def create_int_feature(values):
    """Creates a `tf.train.Feature` of integers.

    >>> from etcmodel.models import input_utils
    >>> input_utils.create_int_feature([2, 7]).int64_list.value
    [2, 7]
    """
    return tf.train.Feature(int64_list=tf.train.Int64List(value=list(values)))


def create_float_feature(values):
    """Creates a `tf.train.Feature` of floats.

    >>> from etcmodel.models import input_utils
    >>> input_utils.create_float_feature([0.5]).float_list.value
    [0.5]
    """
    return tf.train.Feature(float_list=tf.train.FloatList(value=list(values)))


def create_bytes_feature(values):
    """Creates a `tf.train.Feature` of byte strings; text is encoded as UTF-8.

    >>> from etcmodel.models import input_utils
    >>> input_utils.create_bytes_feature(["pos"]).bytes_list.value
    [b'pos']
    """
    encoded = [value.encode("utf-8") if isinstance(value, str) else value for value in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))


def get_repeated_values(feature_name, example):
    """Returns all values of a feature of a `tf.train.Example`.

    Raises:
        ValueError: if the example lacks the feature.

    >>> from etcmodel.models import input_utils
    >>> features = tf.train.Features(feature={"ids": input_utils.create_int_feature([2, 7])})
    >>> input_utils.get_repeated_values("ids", tf.train.Example(features=features))
    [2, 7]
    """
    if feature_name not in example.features.feature:
        raise ValueError(f"The tf.train.Example has no feature {feature_name!r}.")
    feature = example.features.feature[feature_name]
    kind = feature.WhichOneof("kind")
    return getattr(feature, kind).value if kind else []


def get_feature(feature_name, example):
    """Returns the first value of a feature of a `tf.train.Example`.

    >>> from etcmodel.models import input_utils
    >>> features = tf.train.Features(feature={"label": input_utils.create_int_feature([2, 7])})
    >>> input_utils.get_feature("label", tf.train.Example(features=features))
    2
    """
    return get_repeated_values(feature_name, example)[0]


MODEL_CONFIG_FILENAME = "etc_config.json"


@tf.autograph.experimental.do_not_convert
def make_structure(
    long_breakpoints,
    global_breakpoints,
    sentence_ids,
    relative_pos_max_distance,
    use_hard_g2l_mask=False,
    use_hard_l2g_mask=False,
):
    """Makes the structure of packed examples, from breakpoints at their ends.

    Args:
        long_breakpoints: int [batch, long_len]. 1 at the last long token of each example.
        global_breakpoints: int [batch, global_len]. 1 at the last global token of each example.
        sentence_ids: int [batch, long_len]. Index of the global token of each token's sentence, or
            -1. `EtcModel` refuses other indices that have no global token.
        relative_pos_max_distance: int, the model's; 0 for no labels.
        use_hard_g2l_mask: bool. Whether global tokens attend only to the long tokens of their
            sentence.
        use_hard_l2g_mask: bool. Whether long tokens attend only to the global token of their
            sentence.
    Returns:
        `GlobalLocalStructure`.
    Raises:
        ValueError: naming the argument, if breakpoints are not 0 and 1, or ids are not whole
            numbers. Values known only when a graph runs raise `tf.errors.InvalidArgumentError`
            instead; code compiled by XLA cannot raise.
    """
    return make_structure_from_example_ids(
        feature_utils.segment_ids_from_breakpoints(long_breakpoints, name="long_breakpoints"),
        feature_utils.segment_ids_from_breakpoints(global_breakpoints, name="global_breakpoints"),
        sentence_ids,
        relative_pos_max_distance,
        use_hard_g2l_mask,
        use_hard_l2g_mask,
    )


@tf.autograph.experimental.do_not_convert
def make_structure_from_example_ids(
    long_example_ids,
    global_example_ids,
    sentence_ids,
    relative_pos_max_distance,
    use_hard_g2l_mask=False,
    use_hard_l2g_mask=False,
):
    """Makes the structure of packed examples like `make_structure`, from each token's example id.

    Args:
        long_example_ids: int [batch, long_len]. Tokens with different ids do not attend to each
            other; padding has another id than the examples, such as 0.
        global_example_ids: int [batch, global_len].
        sentence_ids: see `make_structure`.
        relative_pos_max_distance: likewise.
        use_hard_g2l_mask: likewise.
        use_hard_l2g_mask: likewise.
    Returns:
        `GlobalLocalStructure`.
    Raises:
        ValueError: see `make_structure`.

    >>> from etcmodel.models import input_utils
    >>> structure = input_utils.make_structure_from_example_ids([[1, 1, 0]], [[1]], [[0, 0, 0]], 12)
    >>> model = etcmodel.from_pretrained("my_model", as_class=etcmodel.EtcModel)
    >>> model([[2, 7, 0]], [[1]], structure=structure)[0].shape
    TensorShape([1, 3, 12])
    """
    long_example_ids = argument_checks.whole_ids("long_example_ids", long_example_ids)
    long_example_ids = tf.cast(long_example_ids, tf.int32)
    global_example_ids = argument_checks.whole_ids("global_example_ids", global_example_ids)
    sentence_ids = argument_checks.whole_ids("sentence_ids", sentence_ids)
    return GlobalLocalStructure(
        long_segment_ids=long_example_ids,
        long_example_ids=long_example_ids,
        global_example_ids=tf.cast(global_example_ids, tf.int32),
        links=(tf.saturate_cast(sentence_ids, tf.int32),),
        max_distance=max(relative_pos_max_distance, 0),
        use_hard_g2l_mask=use_hard_g2l_mask,
        use_hard_l2g_mask=use_hard_l2g_mask,
    )


def make_fixed_block_structure(
    input_mask,
    num_tokens_per_block,
    relative_pos_max_distance,
    use_hard_g2l_mask=False,
    use_hard_l2g_mask=False,
    global_token_id=1,
):
    """Makes the structure with one global token per block of long tokens (paper, "fixed blocks").

    Args:
        input_mask: int [batch, long_len]. 1 for real tokens, 0 for padding.
        num_tokens_per_block: int, at least 1.
        relative_pos_max_distance: int, the model's; 0 for no labels.
        use_hard_g2l_mask: bool. See `make_structure`.
        use_hard_l2g_mask: likewise.
        global_token_id: int. Id of the global tokens.
    Returns:
        (`GlobalLocalStructure`, global_token_ids). The ids are int32 [batch, global_len], 0 for a
        block of padding alone; global_len is long_len / num_tokens_per_block, rounded up.
    Raises:
        ValueError: if `num_tokens_per_block` is below 1, or the mask has values other than 0 and 1.
    """
    if num_tokens_per_block < 1:
        raise ValueError(
            f"`num_tokens_per_block` must be positive. Received: {num_tokens_per_block}"
        )
    kinds = feature_utils.INPUT_MASK_KINDS
    input_mask = tf.cast(argument_checks.mask_of("input_mask", input_mask, kinds), tf.int32)
    blocked_mask = tensor_utils.split_into_blocks(input_mask, num_tokens_per_block, axis=1)
    global_example_ids = tf.reduce_max(
        blocked_mask, axis=-1
    )  # A block with any real token is real.
    blocks = tf.range(tf.shape(input_mask)[1]) // num_tokens_per_block
    structure = make_structure_from_example_ids(
        input_mask,
        global_example_ids,
        tf.broadcast_to(blocks, tf.shape(input_mask)),
        relative_pos_max_distance,
        use_hard_g2l_mask,
        use_hard_l2g_mask,
    )
    return structure, global_example_ids * global_token_id


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
    """Makes dense side inputs for `local_radius`: `make_structure` as masks and labels.

    >>> from etcmodel.models import input_utils
    >>> inputs = input_utils.make_global_local_transformer_side_inputs(
    ...     [[0, 0, 1]], [[0, 1]], [[0, 0, 1]], local_radius=1, relative_pos_max_distance=3
    ... )
    >>> inputs.l2l_att_mask.numpy().tolist(), inputs.l2g_relative_att_ids.shape
    ([[[0, 1, 1], [1, 1, 1], [1, 1, 0]]], TensorShape([1, 3, 2]))
    """
    with tf.name_scope(name or "make_global_local_transformer_side_inputs"):
        structure = make_structure(
            long_breakpoints,
            global_breakpoints,
            sentence_ids,
            relative_pos_max_distance,
            use_hard_g2l_mask,
            use_hard_l2g_mask,
        )
        return side_inputs_of(structure, local_radius)


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
    """Makes dense side inputs: `make_structure_from_example_ids` as masks and labels.

    Returns `GlobalLocalTransformerSideInputs`.

    >>> from etcmodel.models import input_utils
    >>> inputs = input_utils.make_global_local_transformer_side_inputs_from_example_ids(
    ...     [[1, 1, 2]], [[1, 2]], [[0, 0, 1]], local_radius=1, relative_pos_max_distance=3
    ... )
    >>> inputs.l2l_att_mask.numpy().tolist()
    [[[0, 1, 1], [1, 1, 0], [0, 1, 0]]]
    """
    with tf.name_scope(name or "make_global_local_transformer_side_inputs_from_example_ids"):
        structure = make_structure_from_example_ids(
            long_example_ids,
            global_example_ids,
            sentence_ids,
            relative_pos_max_distance,
            use_hard_g2l_mask,
            use_hard_l2g_mask,
        )
        return side_inputs_of(structure, local_radius)


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
    """Makes dense side inputs: `make_fixed_block_structure` as masks and labels.

    Returns:
        (`GlobalLocalTransformerSideInputs`, global_token_ids).

    >>> from etcmodel.models import input_utils
    >>> inputs, ids = input_utils.make_fixed_block_side_inputs([[1, 1, 1, 0]], 2, 1, 3)
    >>> inputs.l2l_att_mask.shape, ids.numpy()
    (TensorShape([1, 4, 3]), array([[1, 1]], dtype=int32))
    """
    with tf.name_scope(name or "make_fixed_block_side_inputs"):
        structure, global_token_ids = make_fixed_block_structure(
            input_mask,
            num_tokens_per_block,
            relative_pos_max_distance,
            use_hard_g2l_mask,
            use_hard_l2g_mask,
            global_token_id,
        )
        return side_inputs_of(structure, local_radius), global_token_ids


def add_side_input_features(model_config, features):
    """Adds dense side inputs to the features of a batch.

    Args:
        model_config: `EtcConfig`.
        features: dict with int [batch, ...] `long_breakpoints`, `global_breakpoints` and
            `sentence_ids`.
    Returns:
        A new dict with the features and the side inputs.

    >>> from etcmodel.models import input_utils
    >>> features = {"sentence_ids": [[0, 0, 1]], "global_breakpoints": [[0, 1]]}
    >>> features["long_breakpoints"] = [[0, 0, 1]]
    >>> added = input_utils.add_side_input_features(etcmodel.EtcConfig(128), features)
    >>> added["l2g_att_mask"].shape
    TensorShape([1, 3, 2])
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
    """Reads a model's `EtcConfig`; for a new model, copies it from a source.

    Args:
        model_dir: directory of the model. If it has an `etc_config.json`, the config is read from
            that file, and sources are ignored.
        source_file: path of a JSON file.
        source_base64: the JSON text, base64-encoded.
        write_from_source: whether to write the source's config to `model_dir/etc_config.json`.
    Returns:
        `EtcConfig`.
    Raises:
        ValueError: if both sources are given, there is no config, or a source's is invalid
            (`EtcConfig.check`).

    >>> from etcmodel.models import input_utils
    >>> config = input_utils.get_model_config("new_run", source_file="my_model/config.json")
    >>> config.hidden_size, tf.io.gfile.listdir("new_run")
    (12, ['etc_config.json'])
    """
    if source_file and source_base64:
        raise ValueError("Give `source_file` or `source_base64`, not both.")
    path = os.path.join(model_dir, MODEL_CONFIG_FILENAME)
    if tf.io.gfile.exists(path):
        if source_file or source_base64:
            logging.info("The model has a config, which is used, not the source's: %s", path)
        return EtcConfig.from_json_file(path)
    if source_base64:
        config = EtcConfig.from_json_string(base64.b64decode(source_base64), "source_base64")
    elif source_file:
        config = EtcConfig.from_json_file(source_file)
    else:
        raise ValueError(f"There is no {path!r}: give `source_file` or `source_base64`.")
    config.check()  # Before it is written: afterwards, sources are ignored.
    if write_from_source:
        atomic_files.write_text(path, [config.to_json_string()])
    return config
