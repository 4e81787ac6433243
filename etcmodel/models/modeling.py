"""The ETC encoder and its configuration (paper, section 3)."""

import dataclasses
import json
import typing

import tensorflow as tf
import tf_keras
from absl import logging

from etcmodel import tensor_utils
from etcmodel.layers import (
    EmbeddingLookup,
    GlobalLocalTransformerLayers,
    RecomputingDropout,
    base,
    helpers,
)
from etcmodel.models import input_checks
from etcmodel.ops.structure import GlobalLocalStructure

__all__ = ["EtcConfig", "EtcModel"]


@dataclasses.dataclass
class EtcConfig:
    """Sizes and options of an `EtcModel`, as in the `etc_config.json` of a checkpoint.

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
        relative_vocab_size: int. Number of relative labels, at least
            `2 * relative_pos_max_distance + 4`.
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
    relative_vocab_size: int = 32
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
            ValueError: if `vocab_size` is missing or an entry is of a wrong type.
        """
        known = {field.name for field in dataclasses.fields(cls)}
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
            ValueError: naming file and position, if it is not a JSON object with a `vocab_size`.
        """
        with tf.io.gfile.GFile(json_file) as file:
            return cls.from_json_string(file.read(), source=json_file)

    @classmethod
    def from_json_string(cls, text, source="config"):
        """As `from_json_file`, from the text; `source` names it in errors."""
        try:
            json_object = json.loads(text)
        except json.JSONDecodeError as error:
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
        """Raises ValueError, naming the entries, if no model can be built from this config."""
        if self.hidden_size % self.num_attention_heads and self.att_size_per_head is None:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_attention_heads`, or `att_size_per_head` "
                f"given. Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}"
            )
        least = 2 * self.relative_pos_max_distance + 4
        if self.relative_pos_max_distance > 0 and self.relative_vocab_size < least:
            raise ValueError(
                "`relative_vocab_size` must be at least 2 * `relative_pos_max_distance` + 1 "
                f"positions + 3 other labels = {least}. Received: relative_vocab_size="
                f"{self.relative_vocab_size}, relative_pos_max_distance="
                f"{self.relative_pos_max_distance}"
            )


def _check_type(field, value):
    """Raises ValueError, naming the entry of a config, if `value` is not of the field's type."""
    types = typing.get_args(field.type) or (field.type,)
    accepted = (*types, int) if float in types else types
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in types):
        wanted = " or ".join("null" if t is type(None) else t.__name__ for t in types)
        raise ValueError(f"`{field.name}` must be of type {wanted}. Received: {value!r}")


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class EtcModel(base.Layer):
    """The ETC encoder: token ids of a long and a global input to hidden states.

    Args:
        config: `EtcConfig` (or its dict).
        is_training: bool or None. False turns dropout off for good, None leaves it to the
            `training` argument of the call, True makes that argument's default True.
        use_one_hot_embeddings: bool. Looks embeddings up by matrix products.
        use_one_hot_relative_embeddings: bool. The same for relative labels.
        name: name of the layer; variables of released checkpoints begin with the default.
    Call args:
        token_ids: int [batch, long_len].
        global_token_ids: int [batch, global_len].
        segment_ids: int [batch, long_len]; by default 1.
        global_segment_ids: int [batch, global_len]; by default 0.
        position_ids: int [batch or 1, long_len]; by default 0, 1, 2 … Only with
            `max_absolute_position_embeddings`.
        global_position_ids: int [batch or 1, global_len]; likewise.
        l2l_att_mask: 0/1 int or bool [batch, long_len, 2 * local_radius + 1], or None. For this
            and the next seven see `input_utils.make_global_local_transformer_side_inputs`.
        g2g_att_mask: 0/1 int or bool [batch, global_len, global_len], or None.
        l2g_att_mask: 0/1 int or bool [batch, long_len, global_len], or None.
        g2l_att_mask: 0/1 int or bool [batch, global_len, long_len], or None.
        l2l_relative_att_ids: int, shaped as the mask of the same piece, or None.
        g2g_relative_att_ids: likewise.
        l2g_relative_att_ids: likewise.
        g2l_relative_att_ids: likewise.
        long_embedding_adder: float [batch, long_len, hidden_size], or None. Added to embeddings.
        global_embedding_adder: float [batch, global_len, hidden_size], or None.
        training: bool.
        att_implementation: 'auto', 'sparse' or 'full'; see `ops.attention.local_attend`.
        structure: `ops.structure.GlobalLocalStructure` in place of masks and labels, or None.
            `input_utils` and `multihop_utils` make it; it is the fast way in.
    Returns:
        (long_output, global_output): float [batch, long_len, hidden_size] and
        [batch, global_len, hidden_size].
    Raises:
        ValueError: if the config cannot be (`EtcConfig.check`); if positions are given without
            tables for them, or inputs do not fit each other or the model (see
            `input_checks.checked`, also for what graphs raise).

    Without masks, labels and structure the input is a bag of words, as in the authors' release: all
    may attend to all within reach, padding too, and no token knows its place. The first such call
    of a model without position tables logs a warning.
    """

    def __init__(
        self,
        config,
        is_training=None,
        use_one_hot_embeddings=False,
        use_one_hot_relative_embeddings=False,
        name="etc_document_bert",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # As in `EmbeddingLookup`: the first argument is ids.
        self.config = EtcConfig.from_dict(config) if isinstance(config, dict) else config
        self.config.check()
        self.is_training = is_training
        self.use_one_hot_embeddings = use_one_hot_embeddings
        self.use_one_hot_relative_embeddings = use_one_hot_relative_embeddings
        self._has_warned = False
        self._make_embeddings()
        self.global_local_transformer_layers = self._make_transformer()

    def _make_embeddings(self):
        config = self.config
        lookup = self._lookup
        self.token_emb_lookup = lookup(
            "token_emb_lookup",
            config.vocab_size,
            embedding_size=config.embedding_size or config.hidden_size,
            projection_size=config.hidden_size,
        )
        self.segment_emb_lookup = lookup("segment_emb_lookup", config.segment_vocab_size)
        self.position_emb_lookup_long = self.position_emb_lookup_global = None
        if config.max_absolute_position_embeddings:
            size = config.max_absolute_position_embeddings
            self.position_emb_lookup_long = lookup("position_emb_lookup_long", size)
            self.position_emb_lookup_global = lookup("position_emb_lookup_global", size)
        self.long_emb_layer_norm = self._layer_norm("long_emb_layer_norm")
        self.global_emb_layer_norm = self._layer_norm("global_emb_layer_norm")
        self.embedding_dropout = RecomputingDropout(
            config.hidden_dropout_prob, name="embedding_dropout", dtype=self.dtype_policy
        )

    def _lookup(self, name, vocab_size, embedding_size=None, projection_size=0):
        return EmbeddingLookup(
            vocab_size,
            embedding_size or self.config.hidden_size,
            projection_size=projection_size,
            initializer_range=self.config.initializer_range,
            use_one_hot_lookup=self.use_one_hot_embeddings,
            name=name,
            dtype=self.dtype_policy,
        )

    def _layer_norm(self, name):
        return helpers.LayerNormalization(
            axis=-1, epsilon=1e-12, name=name, dtype=self.dtype_policy
        )

    def _make_transformer(self):
        config = self.config
        return GlobalLocalTransformerLayers(
            long_hidden_size=config.hidden_size,
            global_hidden_size=config.hidden_size,
            num_hidden_layers=config.num_hidden_layers,
            num_attention_heads=config.num_attention_heads,
            local_radius=config.local_radius,
            att_size_per_head=config.att_size_per_head,
            long_intermediate_size=config.intermediate_size,
            global_intermediate_size=config.intermediate_size,
            hidden_act=tensor_utils.get_activation(config.hidden_act),
            hidden_dropout_prob=config.hidden_dropout_prob,
            attention_probs_dropout_prob=config.attention_probs_dropout_prob,
            initializer_range=config.initializer_range,
            relative_vocab_size=(
                config.relative_vocab_size if config.relative_pos_max_distance > 0 else None
            ),
            share_feed_forward_params=config.share_feed_forward_params,
            share_kv_projections=config.share_kv_projections,
            share_qkv_projections=config.share_qkv_projections,
            share_att_output_projection=config.share_att_output_projection,
            use_pre_activation_order=config.use_pre_activation_order,
            use_one_hot_lookup=self.use_one_hot_relative_embeddings,
            grad_checkpointing_period=config.grad_checkpointing_period,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        ids = tf.TensorShape([None, None])
        hidden = tf.TensorShape([None, None, self.config.hidden_size])
        for layer, shape in (
            (self.token_emb_lookup, ids),
            (self.segment_emb_lookup, ids),
            (self.position_emb_lookup_long, ids),
            (self.position_emb_lookup_global, ids),
            (self.long_emb_layer_norm, hidden),
            (self.global_emb_layer_norm, hidden),
            (self.global_local_transformer_layers, hidden),
        ):
            if layer is not None:
                helpers.build_sublayer(layer, shape)
        super().build(input_shape)

    def call(
        self,
        token_ids,
        global_token_ids,
        segment_ids=None,
        global_segment_ids=None,
        position_ids=None,
        global_position_ids=None,
        l2l_att_mask=None,
        g2g_att_mask=None,
        l2g_att_mask=None,
        g2l_att_mask=None,
        l2l_relative_att_ids=None,
        g2g_relative_att_ids=None,
        l2g_relative_att_ids=None,
        g2l_relative_att_ids=None,
        long_embedding_adder=None,
        global_embedding_adder=None,
        training=None,
        att_implementation="auto",
        structure=None,
    ):
        structure = GlobalLocalStructure.of(structure)
        if self.is_training is not None:
            training = self.is_training and (training is None or training)
        side_inputs = {
            "l2l_att_mask": l2l_att_mask,
            "g2g_att_mask": g2g_att_mask,
            "l2g_att_mask": l2g_att_mask,
            "g2l_att_mask": g2l_att_mask,
            "l2l_relative_att_ids": l2l_relative_att_ids,
            "g2g_relative_att_ids": g2g_relative_att_ids,
            "l2g_relative_att_ids": l2g_relative_att_ids,
            "g2l_relative_att_ids": g2l_relative_att_ids,
        }
        inputs = {
            "token_ids": token_ids,
            "global_token_ids": global_token_ids,
            "segment_ids": segment_ids,
            "global_segment_ids": global_segment_ids,
            "position_ids": position_ids,
            "global_position_ids": global_position_ids,
            "long_embedding_adder": long_embedding_adder,
            "global_embedding_adder": global_embedding_adder,
            **side_inputs,
        }
        inputs, structure = input_checks.checked(self.config, inputs, structure)
        side_inputs = {name: inputs[name] for name in side_inputs}
        if structure is None and all(x is None for x in side_inputs.values()):
            self._warn_of_bag_of_words()
        long_embeddings = self._embed(
            inputs["token_ids"],
            inputs["segment_ids"],
            inputs["position_ids"],
            inputs["long_embedding_adder"],
            self.position_emb_lookup_long,
            default_segment=1,
        )
        global_embeddings = self._embed(
            inputs["global_token_ids"],
            inputs["global_segment_ids"],
            inputs["global_position_ids"],
            inputs["global_embedding_adder"],
            self.position_emb_lookup_global,
            default_segment=0,
        )
        long_embeddings = self.embedding_dropout(
            self.long_emb_layer_norm(long_embeddings), training=training
        )
        global_embeddings = self.embedding_dropout(
            self.global_emb_layer_norm(global_embeddings), training=training
        )
        long_output, global_output = self.global_local_transformer_layers(
            long_embeddings,
            global_embeddings,
            **side_inputs,
            structure=structure,
            att_implementation=att_implementation,
            training=training,
        )
        return long_output, global_output

    def _warn_of_bag_of_words(self):
        """Once, if the model has no absolute positions, which make it more than that."""
        if not self._has_warned and not self.config.max_absolute_position_embeddings:
            self._has_warned = True
            input_checks.warn_of_bag_of_words(self.name)

    def _embed(self, token_ids, segment_ids, position_ids, adder, position_lookup, default_segment):
        """Sum of the embeddings: float [batch, len, hidden_size]."""
        if segment_ids is None:
            segment_ids = tf.fill(tf.shape(token_ids), default_segment)
        embeddings = self.token_emb_lookup(token_ids) + self.segment_emb_lookup(segment_ids)
        if position_lookup is not None:
            if position_ids is None:
                position_ids = tf.range(tf.shape(token_ids)[1])[tf.newaxis]
            embeddings += position_lookup(position_ids)
        if adder is not None:
            embeddings += tf.cast(adder, embeddings.dtype)
        return embeddings

    # The names by which users of the authors' release know the parts. As properties they stay out
    # of the checkpoints, which know each part once.
    token_embedding = global_token_embedding = property(lambda self: self.token_emb_lookup)
    segment_embedding = property(lambda self: self.segment_emb_lookup)
    position_embedding = property(lambda self: self.position_emb_lookup_long)
    global_position_embedding = property(lambda self: self.position_emb_lookup_global)
    token_embedding_norm = property(lambda self: self.long_emb_layer_norm)
    global_token_embedding_norm = property(lambda self: self.global_emb_layer_norm)
    token_embedding_dropout = property(lambda self: self.embedding_dropout)
    global_token_embedding_dropout = property(lambda self: self.embedding_dropout)
    global_local_transformer = property(lambda self: self.global_local_transformer_layers)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, embedding_size]."""
        if not self.built:
            helpers.build_sublayer(self, None)
        return self.token_emb_lookup.embedding_table

    def get_config(self):
        return {
            **super().get_config(),
            "config": self.config.to_dict(),
            "is_training": self.is_training,
            "use_one_hot_embeddings": self.use_one_hot_embeddings,
            "use_one_hot_relative_embeddings": self.use_one_hot_relative_embeddings,
        }
