"""The configuration of an `EtcModel`."""

import dataclasses
import typing
from collections.abc import Mapping

from absl import logging
from typing_extensions import Self

from etcmodel import shown_values
from etcmodel.models import hugging_face, json_config
from etcmodel.ops.relation_labels import RelationLabels

LIFTING_ADVICE = (
    "To lift the weights of BERT or RoBERTa into ETC, build "
    "`EtcModel(presets.preset('etc_base'))` or one of your own config and call "
    "`etcmodel.checkpoints.lift_bert(model, checkpoint)`, or run `python -m "
    "etcmodel.tools.convert_checkpoint --preset=etc_base --input=…`."
)

_AT_LEAST_1 = (
    "vocab_size",
    "segment_vocab_size",
    "embedding_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "local_radius",
    "att_size_per_head",
    "relative_vocab_size",
    "intermediate_size",
)
# What default structures are made of.
_AT_CALLS = ("pad_token_id", "global_token_id", "default_segment_id", "global_block_length")

# Entries that all configs of BERT's family have and ETC does not read, and ETC's that none of them
# has.
_BERT_ENTRIES = ("type_vocab_size", "max_position_embeddings")
_ETC_ENTRIES = ("segment_vocab_size", "local_radius", "relative_pos_max_distance")


@dataclasses.dataclass
class EtcConfig(json_config.JsonConfig):
    """Sizes and options of an `EtcModel`, as in the `etc_config.json` of a checkpoint.

    Entries may be assigned. A model copies its config and checks it (`check`) when it is created.

    Attributes:
        vocab_size: int. Token ids are below it.
        segment_vocab_size: int. Segment (token type) ids are below it.
        embedding_size: int or None. Size of token embeddings, which are projected to `hidden_size`
            if the sizes differ; None for `hidden_size`.
        hidden_size: int.
        num_hidden_layers: int.
        num_attention_heads: int.
        local_radius: int. Long tokens attended to on each side.
        att_size_per_head: int or None. None for `hidden_size / num_attention_heads`.
        relative_pos_max_distance: int. Relative positions are clipped to it; 0 for none.
        relative_vocab_size: int or None. Number of relative labels, at least
            `2 * relative_pos_max_distance + 4`. None for no labels, which needs a
            `relative_pos_max_distance` of 0. With a number and distance 0, the label tables are for
            the labels of dense inputs and of relations only.
        max_absolute_position_embeddings: int. Rows of the absolute position tables; 0 for none.
        intermediate_size: int. Feed-forward units.
        hidden_act: str. Feed-forward activation; "gelu" is its tanh approximation.
        hidden_dropout_prob: float.
        attention_probs_dropout_prob: float.
        initializer_range: float. Standard deviation of the initial weights.
        share_feed_forward_params: bool. See `GlobalLocalTransformerLayers`.
        share_kv_projections: likewise.
        share_qkv_projections: likewise.
        share_att_output_projection: likewise.
        use_pre_activation_order: likewise.
        use_hard_g2l_mask: bool. See `make_global_local_transformer_side_inputs`.
        use_hard_l2g_mask: likewise.
        grad_checkpointing_period: int. See `GlobalLocalTransformerLayers`.
        layer_norm_epsilon: float. What layer normalization adds to the variance.
        pad_token_id: int. The token that default structures (`models.features`) mask as padding.
        global_token_id: int. The token of default global inputs.
        default_segment_id: int. Segment of long tokens whose segment is not given.
        global_block_length: int. Number of long tokens for each token of a default global input
            (the paper's "fixed blocks"); 0 for an empty global input.

    The last five entries are not in the authors' release. `to_dict` includes them only where they
    differ from the values fixed there.

    >>> config = etcmodel.EtcConfig(vocab_size=30522, num_hidden_layers=6, local_radius=42)
    >>> config.hidden_size, config.num_hidden_layers, config.relation_labels("cites")["cites"]
    (768, 6, 28)
    """

    model_type: typing.ClassVar[str] = "etc"
    at_least_1: typing.ClassVar[tuple[str, ...]] = _AT_LEAST_1
    without_effect: typing.ClassVar[frozenset[str]] = hugging_face.WITHOUT_EFFECT | {*_BERT_ENTRIES}
    ours: typing.ClassVar[tuple[str, ...]] = ("layer_norm_epsilon", *_AT_CALLS)
    at_calls: typing.ClassVar[tuple[str, ...]] = _AT_CALLS

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
    layer_norm_epsilon: float = 1e-12
    pad_token_id: int = 0
    global_token_id: int = 1
    default_segment_id: int = 1
    global_block_length: int = 16

    def __post_init__(self) -> None:
        """Nothing: what is assigned later is checked with the rest."""

    @classmethod
    def from_dict(cls, json_object: Mapping[str, typing.Any]) -> Self:
        """Creates a config from a dict; unknown entries only log a warning, as in the release.

        >>> etcmodel.EtcConfig.from_dict({"vocab_size": 128, "hidden_size": 12}).hidden_size
        12
        """
        _check_family(json_object)
        known = {field.name for field in dataclasses.fields(cls)}
        known |= {*cls.without_effect, *cls.only, "model_type"}
        if unknown := sorted(set(json_object) - known):
            logging.warning("Ignored unknown entries of the config: %s", ", ".join(unknown))
        return cls.of_entries({x: json_object[x] for x in json_object if x in known})

    @classmethod
    def of_entries(cls, json_object: Mapping[str, typing.Any]) -> Self:
        """Like `JsonConfig.from_dict`; checks each entry by itself, and `check` checks the whole.

        Raises:
            ValueError: see there; also if the dict is the config of BERT or of another Hugging Face
                model.
        """
        _check_family(json_object)
        config = super().from_dict(json_object)
        config.check_entries()
        return config

    def to_dict(self) -> dict[str, typing.Any]:
        """Returns the entries as a dict, without the model's type, as in the release's files.

        >>> etcmodel.EtcConfig(vocab_size=128).to_dict()["local_radius"]
        84
        """
        entries = super().to_dict()
        del entries["model_type"]
        # Entries may have been assigned since they were checked.
        return {name: json_config.python_numbers(value) for name, value in entries.items()}

    def check(self) -> None:
        """Checks that a model can be built. NumPy's numbers become Python's.

        Raises:
            ValueError: naming the entries and their values, if an entry has a wrong type or is out
                of range, or entries contradict each other.
        """
        # Functions are allowed, as in the release.
        self.check_entries(but=("hidden_act",) if callable(self.hidden_act) else ())
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(
                f"`pad_token_id` must be below `vocab_size`={self.vocab_size}. "
                f"Received: {self.pad_token_id}"
            )
        from etcmodel import tensor_utils  # With TensorFlow, which takes seconds to import.

        tensor_utils.get_activation(self.hidden_act)  # Refuses unknown names.
        if self.hidden_size % self.num_attention_heads and self.att_size_per_head is None:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_attention_heads`, or `att_size_per_head` "
                f"given. Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}"
            )
        self.check_labels()

    def relation_labels(self, *names: str) -> RelationLabels:
        """Returns the meaning of each row of the relative-label tables.

        Args:
            *names: str. Names of relations, which are assigned the free labels in this order.
        Returns:
            `ops.relation_labels.RelationLabels`, used as in
            `config.relation_labels("cites")["cites"]`.
        Raises:
            ValueError: if there are not enough free labels.

        >>> labels = etcmodel.EtcConfig(vocab_size=128).relation_labels("cites", "is_cited_by")
        >>> labels["cites"], labels["is_cited_by"]
        (28, 29)
        """
        return RelationLabels(self.relative_pos_max_distance, self.relative_vocab_size or 0, names)

    def check_labels(self) -> None:
        """Raises ValueError if the tables of labels are too small for the relative positions."""
        distance, size = self.relative_pos_max_distance, self.relative_vocab_size
        if size is None:
            if distance:
                raise ValueError(
                    "`relative_pos_max_distance` must be 0 where `relative_vocab_size` is null: "
                    f"positions need labels. Received: relative_pos_max_distance={distance}"
                )
            return
        labels = RelationLabels(distance)
        if size < labels.num_reserved:
            raise ValueError(
                "`relative_vocab_size` must be at least 2 * `relative_pos_max_distance` + 1 "
                f"positions + {labels.num_reserved - labels.num_positions} other labels = "
                f"{labels.num_reserved}. Received: "
                f"relative_vocab_size={size}, relative_pos_max_distance={distance}"
                + ("" if distance else "; null is for no labels")
            )


def _check_family(json_object: Mapping[str, typing.Any]) -> None:
    """Raises ValueError, naming the right loader, for the config of another kind of model."""
    kind = json_object.get("model_type")
    if kind == EtcConfig.model_type:
        return
    is_of_bert = any(name in json_object for name in _BERT_ENTRIES)
    if "model_type" not in json_object:
        if not is_of_bert or any(name in json_object for name in _ETC_ENTRIES):
            return
        kind = "bert"
    raise ValueError(
        f"This is the config of a model of type {shown_values.shown(kind)}, not of ETC. "
        f"{LIFTING_ADVICE}"
    )
