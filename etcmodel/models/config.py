"""The configuration of an `EtcModel`."""

import dataclasses
import json
import math
import numbers
import typing

import tensorflow as tf
from absl import logging

from etcmodel import tensor_utils
from etcmodel.models import downloads

__all__ = ["EtcConfig"]

# The least value of each number; those that may be None are checked where they are not.
_LEAST = {
    "vocab_size": 1,
    "segment_vocab_size": 1,
    "embedding_size": 1,
    "hidden_size": 1,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "local_radius": 1,
    "att_size_per_head": 1,
    "relative_pos_max_distance": 0,
    "relative_vocab_size": 1,
    "max_absolute_position_embeddings": 0,
    "intermediate_size": 1,
    "initializer_range": 0,
    "grad_checkpointing_period": 0,
}
_PROBABILITIES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
# Labels beside positions: between long and global tokens, of links, of other segments.
_NUM_OTHER_LABELS = 3

# Entries that every config of BERT's family has, and names of ETC's own that none of them has.
_BERT_ENTRIES = ("type_vocab_size", "max_position_embeddings")
_ETC_ENTRIES = ("segment_vocab_size", "local_radius", "relative_pos_max_distance")


@dataclasses.dataclass
class EtcConfig:
    """Sizes and options of an `EtcModel`, as in the `etc_config.json` of a checkpoint.

    Entries may be assigned; a model takes a copy, and checks it (`check`), when it is made.

    Attributes:
        vocab_size: int. Token ids are below it.
        segment_vocab_size: int. Segment (token type) ids are below it.
        embedding_size: int or None. Size of token embeddings, projected to `hidden_size` if it is
            another one; None for `hidden_size`.
        hidden_size: int.
        num_hidden_layers: int.
        num_attention_heads: int.
        local_radius: int. Long tokens visible on each side.
        att_size_per_head: int or None. None for `hidden_size / num_attention_heads`.
        relative_pos_max_distance: int. Relative positions are clipped here; 0 for none.
        relative_vocab_size: int or None. Number of relative labels, at least
            `2 * relative_pos_max_distance + 4`; None for none, which needs distance 0. With
            distance 0 and a number, the model has tables for a caller's own labels; structures and
            side inputs made with distance 0 have no labels.
        max_absolute_position_embeddings: int. Rows of the absolute position tables; 0 for none.
        intermediate_size: int. Feed-forward units.
        hidden_act: str. Feed-forward activation; "gelu" is its tanh approximation.
        hidden_dropout_prob: float.
        attention_probs_dropout_prob: float.
        initializer_range: float. Standard deviation of the initial weights.
        share_feed_forward_params: bool. See `GlobalLocalTransformerLayers`, as the next four.
        share_kv_projections: bool.
        share_qkv_projections: bool.
        share_att_output_projection: bool.
        use_pre_activation_order: bool.
        use_hard_g2l_mask: bool. See `make_global_local_transformer_side_inputs`.
        use_hard_l2g_mask: bool.
        grad_checkpointing_period: int. See `GlobalLocalTransformerLayers`.
    """

    vocab_size: int
    segment_vocab_size: int = 16
    embedding_size: int | None = None
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    local_radius: int = 84
    att_size_per_head: int | None = None
    relative_pos_max_distance: int = 12
    relative_vocab_size: int | None = 32
    max_absolute_position_embeddings: int = 0
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    share_feed_forward_params: bool = True
    share_kv_projections: bool = False
    share_qkv_projections: bool = True
    share_att_output_projection: bool = False
    use_pre_activation_order: bool = False
    use_hard_g2l_mask: bool = False
    use_hard_l2g_mask: bool = False
    grad_checkpointing_period: int = 0

    @classmethod
    def from_dict(cls, json_object):
        """A config from a dict; unknown entries are logged and ignored.

        Raises:
            ValueError: if `vocab_size` is missing, an entry is of a wrong type, or the dict is the
                config of a BERT or another model of Hugging Face's.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        _check_family(json_object)
        if "vocab_size" not in json_object:
            raise ValueError(f"The config has no `vocab_size`. It has: {sorted(json_object)}")
        unknown = sorted(set(json_object) - known)
        if unknown:
            logging.warning("Ignored unknown entries of the config: %s", ", ".join(unknown))
        for field in dataclasses.fields(cls):
            _check_type(field, json_object.get(field.name, field.default))
        return cls(**{name: value for name, value in json_object.items() if name in known})

    @classmethod
    def from_json_file(cls, json_file):
        """Reads a JSON file.

        Raises:
            ValueError: naming the file, if there is none, and the position, if it is not a JSON
                object with a `vocab_size`.
        """
        if not tf.io.gfile.exists(json_file):
            hint = downloads.download_hint(json_file)
            raise ValueError(f"There is no config file {str(json_file)!r}. {hint}")
        if tf.io.gfile.isdir(json_file):
            raise ValueError(f"{str(json_file)!r} is a directory: give the path of a config file.")
        with tf.io.gfile.GFile(json_file, "rb") as file:
            return cls.from_json_string(file.read(), source=json_file)

    @classmethod
    def from_json_string(cls, text, source="config"):
        """As `from_json_file`, from the text (str, or UTF-8); `source` names it in errors."""
        try:
            json_object = json.loads(text)
        except ValueError as error:  # No JSON, or no UTF-8.
            raise ValueError(f"{source} is not valid JSON: {error}") from None
        if not isinstance(json_object, dict):
            raise ValueError(f"{source} must hold a JSON object of the config's entries.")
        try:
            return cls.from_dict(json_object)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None

    def to_dict(self):
        """The entries by name."""
        return dataclasses.asdict(self)

    def to_json_string(self):
        """JSON text, sorted and indented, with a newline at the end."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"

    def check(self):
        """Checks that a model can be built.

        Raises:
            ValueError: naming the entries and their values, if an entry is of a wrong type or out
                of range, or entries do not fit each other.
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name != "hidden_act" or not callable(value):
                _check_type(field, value)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and not least <= value < math.inf:
                raise ValueError(f"`{name}` must be at least {least}. Received: {value}")
        for name in _PROBABILITIES:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"`{name}` must be at least 0 and below 1. Received: {getattr(self, name)}"
                )
        tensor_utils.get_activation(self.hidden_act)  # Refuses unknown names.
        if self.hidden_size % self.num_attention_heads and self.att_size_per_head is None:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_attention_heads`, or `att_size_per_head` "
                f"given. Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}"
            )
        self._check_labels()

    def _check_labels(self):
        distance, size = self.relative_pos_max_distance, self.relative_vocab_size
        if size is None:
            if distance:
                raise ValueError(
                    "`relative_pos_max_distance` must be 0 where `relative_vocab_size` is null: "
                    f"positions need labels. Received: relative_pos_max_distance={distance}"
                )
            return
        least = 2 * distance + 1 + _NUM_OTHER_LABELS
        if size < least:
            raise ValueError(
                "`relative_vocab_size` must be at least 2 * `relative_pos_max_distance` + 1 "
                f"positions + {_NUM_OTHER_LABELS} other labels = {least}. Received: "
                f"relative_vocab_size={size}, relative_pos_max_distance={distance}"
                + ("" if distance else "; null is for no labels")
            )


def _check_family(json_object):
    """Raises ValueError, saying what to call, for the config of another kind of model."""
    kind = json_object.get("model_type")
    is_of_bert = any(name in json_object for name in _BERT_ENTRIES)
    if "model_type" not in json_object:
        if not is_of_bert or any(name in json_object for name in _ETC_ENTRIES):
            return
        kind = "bert"
    raise ValueError(
        f"This is the config of a model of type {kind!r}, not of ETC. To lift the weights of BERT "
        "or RoBERTa into ETC, build `EtcModel(presets.preset('etc_base'))` or one of your own "
        "config and call `etcmodel.checkpoints.lift_bert(model, checkpoint)`, or run `python -m "
        "etcmodel.tools.convert_checkpoint --preset=etc_base --input=…`."
    )


def _check_type(field, value):
    """Raises ValueError, naming the entry of a config, if `value` is not of the field's type."""
    types = typing.get_args(field.type) or (field.type,)
    accepted = [_ACCEPTED.get(kind, kind) for kind in types]
    if not isinstance(value, tuple(accepted)) or (isinstance(value, bool) and bool not in types):
        wanted = " or ".join("null" if t is type(None) else t.__name__ for t in types)
        raise ValueError(f"`{field.name}` must be of type {wanted}. Received: {value!r}")


# Numbers of NumPy's are as good as Python's.
_ACCEPTED = {int: numbers.Integral, float: numbers.Real}
