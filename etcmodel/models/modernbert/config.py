"""Configs of ModernBERT (Warner et al. 2024), in the old and the new form of `config.json`."""

import dataclasses
import types
import typing

from etcmodel.models import hugging_face, json_config
from etcmodel.models.config import EtcConfig
from etcmodel.shown_values import shown

FULL, SLIDING = "full_attention", "sliding_attention"  # Hugging Face's names of kinds of layers.
_EVERY = 3  # The default of `global_attn_every_n_layers`.
# The entry with the base of each kind's rotary frequencies, in files of transformers 4.
_THETAS = types.MappingProxyType({FULL: "global_rope_theta", SLIDING: "local_rope_theta"})
_ROPE, _ROPE_TYPE = "rope_parameters", "default"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModernBertConfig(json_config.JsonConfig):
    """Sizes and options of a `ModernBertModel`, by Hugging Face's names.

    Files of transformers 4 have `global_attn_every_n_layers`, `global_rope_theta` and
    `local_rope_theta`, those of transformers 5 `layer_types` and `rope_parameters`, which count if
    a file has both. `to_dict` writes both.

    Attributes:
        vocab_size: int. Token ids are below it.
        hidden_size: int.
        intermediate_size: int. Feed-forward units, after the gate.
        num_hidden_layers: int.
        num_attention_heads: int.
        hidden_activation: str. Feed-forward activation; "gelu" is the exact one.
        max_position_embeddings: int. The length that the model was made for; there is no limit.
        initializer_range: float. Standard deviation of the initial weights, before the cut.
        initializer_cutoff_factor: ignored; kept for Hugging Face. Initial weights are at most 2
            deviations, as in all released files.
        norm_eps: float. What layer normalization adds to the variance.
        norm_bias: bool. Whether layer normalization has biases.
        pad_token_id: int or None. Below `vocab_size`.
        eos_token_id, bos_token_id, cls_token_id, sep_token_id: int or None.
        global_rope_theta, local_rope_theta: float. Bases of the rotary frequencies in layers of
            full attention, and with windows.
        attention_bias: bool. Whether attention's projections have biases.
        attention_dropout: float. Dropout rate of attention probabilities and of attention's output.
        layer_types: sequence with "full_attention" or "sliding_attention" for each layer, which
            counts. It is kept only if no `global_attn_every_n_layers` gives the same; `layer_kinds`
            are the kinds in either case.
        global_attn_every_n_layers: int, or None with such `layer_types`. Every n-th layer is full,
            from the first one on; by default every third.
        local_attention: int. A token of a layer with windows attends to half of it, rounded down,
            on each side, and to itself.
        embedding_dropout: float.
        mlp_bias: bool. Whether feed-forward layers have biases.
        mlp_dropout: float. Dropout rate of the gated units.
        decoder_bias: bool. Whether the masked language model's logits have biases.
        classifier_pooling: str. "cls" or "mean": the vector of a text for its classification.
        classifier_dropout: float. Dropout rate before the logits of labels.
        classifier_bias: bool. Whether the dense layer of the heads has a bias.
        classifier_activation: str. Activation of that layer.
        deterministic_flash_attn: ignored; kept for Hugging Face.
        sparse_prediction: bool. Whether `ModernBertForMaskedLM` gives logits only where there are
            labels, if it gets them.
        sparse_pred_ignore_index: int. The label of places without logits then.
        tie_word_embeddings: bool. Whether the masked language model's output weights are the
            token embeddings.
        skip_padding: bool. Whether nothing is computed for the padding at the ends of texts, so
            that a batch costs as much as its tokens. Their outputs are the same; those of padding
            are 0, which matters where losses read padding, as Hugging Face's do. Then the pooling
            "cls" reads the first token that is not padding.
        grad_checkpointing_period: int. See `TransformerStack`.

    The last two are not Hugging Face's; `to_dict` includes them where they are not the defaults.

    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.ModernBertConfig(num_hidden_layers=4, local_attention=64)
    >>> config.layer_kinds.index("full_attention", 1), config.radius
    (3, 32)
    """

    model_type: typing.ClassVar[str] = "modernbert"
    at_least_1: typing.ClassVar[tuple] = (
        *json_config.BERT_SIZES,
        "global_attn_every_n_layers",
        "local_attention",
    )
    ours: typing.ClassVar[tuple] = ("skip_padding", "grad_checkpointing_period")
    at_calls: typing.ClassVar[tuple] = ("skip_padding",)
    # In files of several versions; Hugging Face's model does not read them.
    without_effect: typing.ClassVar[frozenset] = hugging_face.WITHOUT_EFFECT | {
        "causal_mask",
        "hidden_dropout_prob",
        "is_causal",
        "layer_norm_eps",
        "reference_compile",
        "repad_logits_with_grad",
        "rope_theta",
        "type_vocab_size",
    }
    only: typing.ClassVar[dict] = {
        **hugging_face.ONLY,
        "position_embedding_type": ("absolute", "sans_pos", "rotary", "rope", None),  # No effect.
        "rope_scaling": (None,),
    }

    vocab_size: int = 50368
    hidden_size: int = 768
    intermediate_size: int = 1152
    num_hidden_layers: int = 22
    num_attention_heads: int = 12
    hidden_activation: str = "gelu"
    max_position_embeddings: int = 8192
    initializer_range: float = 0.02
    initializer_cutoff_factor: float = 2.0
    norm_eps: float = 1e-5
    norm_bias: bool = False
    pad_token_id: int | None = 50283
    eos_token_id: int | None = 50282
    bos_token_id: int | None = 50281
    cls_token_id: int | None = 50281
    sep_token_id: int | None = 50282
    global_rope_theta: float = 160_000.0
    local_rope_theta: float = 10_000.0
    attention_bias: bool = False
    attention_dropout: float = 0.0
    layer_types: tuple | None = None
    global_attn_every_n_layers: int | None = None
    local_attention: int = 128
    embedding_dropout: float = 0.0
    mlp_bias: bool = False
    mlp_dropout: float = 0.0
    decoder_bias: bool = True
    classifier_pooling: typing.Literal["cls", "mean"] = "cls"
    classifier_dropout: float = 0.0
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    deterministic_flash_attn: bool = False
    sparse_prediction: bool = False
    sparse_pred_ignore_index: int = -100
    tie_word_embeddings: bool = True
    skip_padding: bool = False
    grad_checkpointing_period: int = 0

    def __post_init__(self):
        if isinstance(self.layer_types, list):
            object.__setattr__(self, "layer_types", tuple(self.layer_types))
        self.check_entries(but=("sparse_pred_ignore_index",))
        if self.layer_types is not None:
            self._check_kinds()
        every = self.global_attn_every_n_layers
        if self.layer_types is None:
            object.__setattr__(self, "global_attn_every_n_layers", every or _EVERY)
        elif (found := _period(self.layer_types, every)) is not None:
            object.__setattr__(self, "global_attn_every_n_layers", found)
            object.__setattr__(self, "layer_types", None)
        self.check()

    @classmethod
    def from_dict(cls, given):
        """Like `JsonConfig.from_dict`, from both forms of the file."""
        replaced = {*_THETAS.values(), "global_attn_every_n_layers"}
        for field in dataclasses.fields(cls):  # Also of those that others replace.
            if field.name in replaced and given.get(field.name) is not None:
                least = int(field.name in cls.at_least_1)
                json_config.check_entry(field, given[field.name], least)
        entries = _without_rope_parameters(given)
        if "layer_types" in entries:
            every = entries.pop("global_attn_every_n_layers", None)
            if _period(entries["layer_types"], every) == every:
                entries["global_attn_every_n_layers"] = every
        return super().from_dict(entries)

    def to_dict(self):
        """The entries by name, with `model_type`, in both forms of the file."""
        entries = super().to_dict()
        entries[_ROPE] = {
            kind: {"rope_theta": float(entries[name]), "rope_type": _ROPE_TYPE}
            for kind, name in _THETAS.items()
        }
        entries["layer_types"] = self.layer_kinds
        if self.global_attn_every_n_layers is None:
            del entries["global_attn_every_n_layers"]
        return entries

    def check(self):
        self.check_entries(but=("sparse_pred_ignore_index",))
        if type(self.sparse_pred_ignore_index) is not int:
            raise ValueError(
                "`sparse_pred_ignore_index` must be of type int. Received: "
                f"{shown(self.sparse_pred_ignore_index)}"
            )
        self.check_multiple("hidden_size", "num_attention_heads")
        if self.hidden_size // self.num_attention_heads % 2:
            raise ValueError(
                "`hidden_size` divided by `num_attention_heads` must be even, since positions turn "
                f"pairs of numbers. Received: {self.hidden_size}, {self.num_attention_heads}"
            )
        if self.layer_types is not None and self.global_attn_every_n_layers is not None:
            raise ValueError(
                f"`global_attn_every_n_layers`, {self.global_attn_every_n_layers}, does not give "
                "these `layer_types`. To change the layers give `layer_types` and "
                f"`global_attn_every_n_layers=None`. Received: {shown(list(self.layer_types))}"
            )
        for name in _THETAS.values():
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be positive. Received: {getattr(self, name)}")
        if self.pad_token_id is not None and self.pad_token_id >= self.vocab_size:
            raise ValueError(
                f"`pad_token_id` must be below `vocab_size`, {self.vocab_size}. Received: "
                f"{self.pad_token_id}"
            )
        for name in ("hidden_activation", "classifier_activation"):
            hugging_face.activation(getattr(self, name))  # Refuses unknown names.

    def _check_kinds(self):
        kinds = self.layer_types
        is_known = all(kind in (FULL, SLIDING) for kind in kinds)
        if not is_known or len(kinds) != self.num_hidden_layers:
            raise ValueError(
                f"`layer_types` must be {FULL!r} or {SLIDING!r} for each of "
                f"{self.num_hidden_layers} layers. Received: {shown(list(kinds))}"
            )

    @property
    def layer_kinds(self):
        """tuple of str. "full_attention" or "sliding_attention", by layer."""
        if self.layer_types is not None:
            return self.layer_types
        return _regular(self.num_hidden_layers, self.global_attn_every_n_layers)

    @property
    def radius(self):
        """int. Tokens that layers with windows attend to on each side."""
        return self.local_attention // 2

    @property
    def type_vocab_size(self):
        """int. There are no token types."""
        return 1

    @property
    def thetas(self):
        """dict of the kinds of layers to the bases of their rotary frequencies."""
        return {kind: float(getattr(self, name)) for kind, name in _THETAS.items()}

    @property
    def hidden_dropout_prob(self):
        """float. The dropout rate of heads, by the name that other systems have for it."""
        return self.classifier_dropout

    @property
    def activation(self):
        """str. `hidden_activation` by the name that it has in `tensor_utils.get_activation`."""
        return hugging_face.ACTIVATIONS.get(self.hidden_activation, self.hidden_activation)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EtcModernBertConfig(ModernBertConfig):
    """Sizes and options of an `EtcModernBertModel`: ModernBERT's, and those of ETC's structure.

    Attributes: see `ModernBertConfig`, whose `skip_padding` must be False, and `EtcConfig` for

        segment_vocab_size: int. Here the segments' vectors begin as zeros.
        relative_pos_max_distance: int. Of global tokens to each other; those of the text have
            rotary positions.
        relative_vocab_size: int or None. None: relations may be hard masks, and have no labels.
        use_hard_g2l_mask, use_hard_l2g_mask: bool.
        global_token_id: int. By default `cls_token_id`, or without one 0.
        global_block_length: int.

    >>> config = etcmodel.EtcModernBertConfig(num_hidden_layers=4, use_hard_g2l_mask=True)
    >>> config.global_token_id, config.relation_labels("cites")["cites"]
    (50281, 28)
    """

    model_type: typing.ClassVar[str] = "etc_modernbert"
    at_least_1: typing.ClassVar[tuple] = (
        *ModernBertConfig.at_least_1,
        "segment_vocab_size",
        "relative_vocab_size",
    )
    at_calls: typing.ClassVar[tuple] = ("pad_token_id", "global_token_id", "global_block_length")
    # What ETC's programs read of a config, and is so here.
    max_absolute_position_embeddings: typing.ClassVar[int] = 0
    use_pre_activation_order: typing.ClassVar[bool] = True

    segment_vocab_size: int = 16
    relative_pos_max_distance: int = 12
    relative_vocab_size: int | None = 32
    use_hard_g2l_mask: bool = False
    use_hard_l2g_mask: bool = False
    global_token_id: int | None = None
    global_block_length: int = 16

    relation_labels = EtcConfig.relation_labels
    check_labels = EtcConfig.check_labels

    def __post_init__(self):
        if self.global_token_id is None:
            object.__setattr__(self, "global_token_id", self.cls_token_id or 0)
        super().__post_init__()

    def check(self):
        super().check()
        self.check_labels()
        if self.skip_padding:
            raise ValueError(
                "`skip_padding` must be false with global tokens, which would be packed as well. "
                "The programs' --skip_padding leaves out what is padding in a whole batch."
            )
        if self.global_token_id >= self.vocab_size:
            raise ValueError(
                f"`global_token_id` must be below `vocab_size`, {self.vocab_size}. Received: "
                f"{self.global_token_id}"
            )

    @property
    def local_radius(self):
        """int. `radius` by ETC's name."""
        return self.radius

    @property
    def hidden_act(self):
        """str. `activation` by ETC's name."""
        return self.activation


def _regular(number, every):
    """The kinds of a number of layers, of which every n-th is full."""
    return tuple(SLIDING if x % every else FULL for x in range(number))


def _period(kinds, likely):
    """The `global_attn_every_n_layers` that gives these kinds, `likely` if it does; or None."""
    if not isinstance(kinds, (list, tuple)):
        return None
    kinds = tuple(kinds)
    second = kinds.index(FULL, 1) if FULL in kinds[1:] else max(len(kinds), 1)
    candidates = (x for x in (likely, _EVERY, second) if x)
    return next((x for x in candidates if _regular(len(kinds), x) == kinds), None)


def _without_rope_parameters(given):
    """The entries of a file, with the bases of frequencies under their older names."""
    entries = {x: y for x, y in given.items() if not (x in (_ROPE, "layer_types") and y is None)}
    by_kind = entries.pop(_ROPE, {})
    if not isinstance(by_kind, dict) or not set(by_kind) <= set(_THETAS):
        raise ValueError(
            f"`{_ROPE}` must have parameters by kind of layer, {FULL!r} and {SLIDING!r}. Received: "
            f"{shown(by_kind)}"
        )
    for kind, parameters in by_kind.items():
        known = {"rope_theta", "rope_type"}
        is_known = isinstance(parameters, dict) and set(parameters) <= known
        if not is_known or parameters.get("rope_type", _ROPE_TYPE) != _ROPE_TYPE:
            raise ValueError(
                f"`{_ROPE}` must have `rope_theta`, and the `rope_type` {_ROPE_TYPE!r}, since "
                f"there is nothing else here. Received for {kind!r}: {shown(parameters)}"
            )
        if "rope_theta" in parameters:
            entries[_THETAS[kind]] = parameters["rope_theta"]
    return entries
