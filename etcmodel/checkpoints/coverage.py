"""Checks whether a checkpoint has all weights that an encoder needs, and which it may lack."""

import dataclasses
import math
import re
from collections.abc import Mapping

import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

from etcmodel.checkpoints import names as names_lib
from etcmodel.models import encoders


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """The report of loading a checkpoint.

    Attributes:
        checkpoint: path of the checkpoint.
        loaded: the model's variables that got the checkpoint's values.
        not_in_checkpoint: variables of the model that kept their initial values.
        unused: entries of the checkpoint that the model does not use.
        training_state: unused entries that are expected: optimizer slots and `global_step`.
        origins: for each variable in `loaded` whose entry has another name, that entry.
        notes: further information, such as tables of which only some rows were loaded.
        warnings: possible problems. Excluded is what is always missing when such a checkpoint is
            loaded into such a model, such as heads of a new task or relative labels, which BERT
            lacks.

    >>> from etcmodel import checkpoints
    >>> model = etcmodel.from_pretrained("my_model")
    >>> print(checkpoints.initialize(model, "my_model/model.safetensors"))
    my_model/model.safetensors: 32 variables loaded, 0 left at their initial values, 0 entries
    not used, 0 entries of training state skipped
    """

    checkpoint: str
    loaded: tuple[str, ...]
    not_in_checkpoint: tuple[str, ...]
    unused: tuple[str, ...]
    training_state: tuple[str, ...]
    origins: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self):
        lines = [
            f"{self.checkpoint}: {len(self.loaded)} variables loaded, "
            f"{len(self.not_in_checkpoint)} left at their initial values, "
            f"{len(self.unused)} entries not used, "
            f"{len(self.training_state)} entries of training state skipped"
        ]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  initial value: {name}" for name in self.not_in_checkpoint]
        lines += [f"  not used: {name}" for name in self.unused]
        return "\n".join(lines)

    def table(self):
        """A table of what was loaded; per line the checkpoint's entry and the model's variable."""
        rows = [(self.origins.get(name, name), name) for name in self.loaded]
        rows += [("(initial value)", name) for name in self.not_in_checkpoint]
        rows += [(name, "(not used)") for name in self.unused]
        rows += [(name, "(training state, not used)") for name in self.training_state]
        width = max(len(origin) for origin, _ in rows)
        lines = [f"{origin:<{width}} -> {name}" for origin, name in rows]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


# What an encoder needs, and what it may lack.


LABEL_TABLE = re.compile(r"(?:.*/)?relative_(?:emb|bias)_table")
_GLOBAL_NORM = re.compile(
    r"(?:.*/)?(?:global_emb_layer_norm|fused_att_layer_\d+/layer_norm_1"
    r"|global_feed_forward_layer_\d+/layer_norm)/\w+"
)
_NUMBERED = re.compile(r"((?:.*/)?(?:fused_att|\w*feed_forward)_layer_(\d+))(?:/.*)?")
_MAX_NAMED = 4


def may_be_missing(name):
    """Returns whether a checkpoint may lack an encoder's weight, as those of other systems do.

    These are the tables of relative labels and the global side's layer normalization.
    """
    return bool(LABEL_TABLE.fullmatch(name) or _GLOBAL_NORM.fullmatch(name))


def missing_layers(names, found):
    """Finds the layers of which a checkpoint has no weights.

    Args:
        names: iterable of str. An encoder's variables, in the release's names.
        found: container of those in the checkpoint.
    Returns:
        list of str: paths of layers; a transformer layer that is missing as a whole is listed once.
    """
    members = {}
    for name in names:
        if not may_be_missing(name):
            members.setdefault(name.rpartition("/")[0], []).append(name)
    is_lost = {path: not any(x in found for x in inside) for path, inside in members.items()}
    is_whole = {}
    for path, lost in is_lost.items():
        is_whole[_numbered(path)] = is_whole.get(_numbered(path), True) and lost
    lost = [path for path in members if is_lost[path]]
    return list(dict.fromkeys(_numbered(x) if is_whole[_numbered(x)] else x for x in lost))


def _numbered(path):
    """The path of the transformer layer around a layer, or the layer's own."""
    match = _NUMBERED.fullmatch(path)
    return match.group(1) if match else path


def _num_layers(names):
    numbers = (_NUMBERED.fullmatch(name) for name in names)
    return 1 + max((int(match.group(2)) for match in numbers if match), default=-1)


def check_layers(source, model, found):
    """Checks that a checkpoint has weights of each layer of the model's encoder, if it has one.

    Args:
        source: `Source`.
        model: a built `Encoder`, or a model that may contain one.
        found: container of the names of the model's variables that the checkpoint has.
    Raises:
        ValueError: naming the layers without any weights.
    """
    names = names_lib.encoder_variables(model)
    if lost := missing_layers(names, found):
        there, needed = _num_layers(found), _num_layers(names)
        number = f" It has {there} transformer layers, the model {needed}." * (there != needed)
        raise ValueError(
            f"{source.path!r} has no weights for {_listed(lost)}.{number} Give the config that "
            "belongs to the checkpoint."
        )


def _listed(names):
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more layers" if more > 0 else "")


def encoder_shapes(config):
    """Returns an encoder's variable shapes by the release's names; nothing is allocated.

    Args:
        config: `EncoderConfig`.
    """
    return {name: tuple(variable.shape) for name, variable in _variables(config).items()}


def num_parameters(config):
    """Returns the number of an encoder's parameters, of which nothing is allocated: int.

    Args:
        config: `EncoderConfig`.

    >>> from etcmodel.checkpoints import coverage
    >>> from etcmodel.models import presets
    >>> coverage.num_parameters(presets.preset("etc_base"))
    165825024
    """
    distinct = {id(variable): variable for variable in _variables(config).values()}
    return sum(math.prod(variable.shape) for variable in distinct.values())


def _variables(config):
    """An encoder's variables by the release's names, without values."""
    # Not in a `tf.Graph`: Keras would turn the layers' classes, and so all existing models, into
    # those of TF1.
    with tf.variable_creator_scope(_make_without_value):
        return names_lib.release_names(encoders.build_encoder(config))


def _make_without_value(next_creator, *, name, shape, dtype, **options):
    return resource_variable_ops.UninitializedVariable(name=name, shape=shape, dtype=dtype)


def check_config(source, config):
    """Checks that a checkpoint matches a config, weight by weight.

    Args:
        source: `Source`. May contain more than the encoder.
        config: `EncoderConfig`.
    Returns:
        tuple of str: the weights of the encoder that the checkpoint lacks and may lack.
    Raises:
        ValueError: naming the weights, and both shapes, if one has another shape, is missing, or
            does not belong to the encoder.
    """
    by_config = encoder_shapes(config)
    # Arrays below another one belong to it, such as an optimizer's slots.
    stray = [
        name
        for name in source.shapes
        if names_lib.is_in_encoder(name)
        and name not in by_config
        and name.rpartition("/")[0] not in source.shapes
    ]
    wrong = [
        f"{name}: {_shape(by_config, name)} by the config, {_shape(source.shapes, name)} in the "
        "checkpoint"
        for name in (*by_config, *stray)
        if _shape(by_config, name) != _shape(source.shapes, name)
        and (name in source.shapes or not may_be_missing(name))
    ]
    if wrong:
        raise ValueError(f"{source.path!r} does not fit the config:\n  " + "\n  ".join(wrong))
    return tuple(name for name in by_config if name not in source.shapes)


def _shape(shapes, name):
    return str(list(shapes[name])) if name in shapes else "not there"


def check_restored(status, model, path):
    """Checks the result of `tf.train.Checkpoint.restore`; unused label tables may be missing.

    Models without relative positions once had no tables for labels of a caller's own; their
    checkpoints are as good as new ones.

    Args:
        status: the result of restoring a checkpoint of `model` and possibly more.
        model: built model.
        path: str. Path prefix of the checkpoint.
    Raises:
        ValueError: naming the weights, if the checkpoint lacks others; if it lacks something else
            that should be restored.

    >>> from etcmodel import checkpoints
    >>> model = etcmodel.from_pretrained("my_model")
    >>> path = tf.train.Checkpoint(model=model).save("ckpt")
    >>> status = tf.train.Checkpoint(model=model).restore(path)
    >>> checkpoints.check_restored(status, model, path) is None
    True
    """
    try:
        status.assert_existing_objects_matched()
    except AssertionError as error:
        matched = tf.train.CheckpointView(path).match(tf.train.Checkpoint(model=model))
        found = {id(variable) for variable in matched.values()}
        variables = names_lib.release_names(model)
        missing = [name for name, variable in variables.items() if id(variable) not in found]
        needed = [name for name in missing if not is_without_use(name, model)]
        if needed:
            raise ValueError(
                f"{path!r} lacks weights of the model: {_listed(needed)}. It is of another model."
            ) from None
        if not missing:
            raise ValueError(
                f"{path!r} holds weights without the state of a training run (the step, the "
                "optimizer): no run can go on from it. To begin with its weights, give it as "
                "--init_checkpoint, and another output_dir."
            ) from error


def is_without_use(name, model):
    """Whether a variable is a relative-label table in a model without relative positions."""
    is_table = LABEL_TABLE.fullmatch(name) and names_lib.encoder_variables(model)
    return is_table and is_without_positions(model)


def is_without_positions(model):
    """Returns whether a model's encoder has structures without relative labels."""
    config = names_lib.encoder_of(model).config
    return getattr(config, "relative_pos_max_distance", None) == 0
