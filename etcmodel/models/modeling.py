"""The ETC encoder (paper, section 3)."""

import copy

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import (
    EmbeddingLookup,
    GlobalLocalTransformerLayers,
    RecomputingDropout,
    base,
    normalization,
    sublayers,
)
from etcmodel.layers.attention.side_inputs import DenseSideInputs, pairs_of
from etcmodel.models import conveniences, input_checks
from etcmodel.models.config import EtcConfig

__all__ = ["EtcConfig", "EtcModel"]

_BAG_OF_WORDS = (
    "is called without structure, masks and relative labels. All tokens then see all that is "
    "within reach, padding too, and none knows its place: a bag of words. Pass `structure=` (see "
    "`input_utils.make_structure`), or masks and labels "
    "(`input_utils.make_global_local_transformer_side_inputs`)."
)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class EtcModel(conveniences.EncoderConveniences, base.Layer):
    """The ETC encoder: token ids of a long and a global input to hidden states.

    Args:
        config: `EtcConfig` (or its dict). The model keeps a copy in `config`.
        is_training: bool or None. None: the call's `training` argument controls dropout. False:
            dropout is never applied. True: `training` defaults to True.
        use_one_hot_embeddings: bool. Whether to look up embeddings by matrix products.
        use_one_hot_relative_embeddings: bool. The same for relative labels.
        name: name of the layer; variables of released checkpoints begin with the default name.
    Call args:
        token_ids: int [batch, long_len].
        global_token_ids: int [batch, global_len].
        segment_ids: int [batch, long_len]; by default the config's `default_segment_id`, 1.
        global_segment_ids: int [batch, global_len]; by default 0.
        position_ids: int [batch or 1, long_len]; by default 0, 1, 2 … Only with
            `max_absolute_position_embeddings`.
        global_position_ids: int [batch or 1, global_len]; likewise.
        l2l_att_mask: 0/1 int, bool or float [batch, long_len, 2 * local_radius + 1], or None; 1
            where attention is allowed. This and the next seven are made by
            `input_utils.make_global_local_transformer_side_inputs`.
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
        structure: `ops.structure.GlobalLocalStructure` in place of masks and labels, which is
            faster; or None. Made by `input_utils` and `multihop_utils`.
    Returns:
        (long_output, global_output): float [batch, long_len, hidden_size] and
        [batch, global_len, hidden_size].
    Raises:
        ValueError: if the config is invalid (`EtcConfig.check`); if positions are given without
            tables for them; if masks have values other than 0 and 1; or if inputs are inconsistent
            with each other or the model (see `input_checks.checked`, also for errors in graphs).

    Without masks, labels and structure the input is a bag of words, as in the authors' release: all
    tokens within reach attend to each other, including padding, without positions. The first such
    call of a model without position tables logs a warning. The method `structure` builds the
    arguments of a call from token ids: `model(**model.structure(ids))`.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcModel(config)
    >>> long_output, global_output = model(**model.structure([[2, 7, 8, 3]]))
    >>> long_output.shape, global_output.shape
    (TensorShape([1, 4, 12]), TensorShape([1, 1, 12]))
    """

    def __init__(
        self,
        config: EtcConfig | dict,
        is_training: bool | None = None,
        use_one_hot_embeddings: bool = False,
        use_one_hot_relative_embeddings: bool = False,
        name: str = "etc_document_bert",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # As in `EmbeddingLookup`: the first argument is ids.
        if isinstance(config, dict):
            config = EtcConfig.of_entries(config)
        if not isinstance(config, EtcConfig):
            raise ValueError(f"`config` must be an `EtcConfig` or its dict. Received: {config!r}")
        # A copy, since the caller may change the config for other models.
        self.config = copy.copy(config)
        self.config.check()
        self.is_training = is_training
        self.use_one_hot_embeddings = use_one_hot_embeddings
        self.use_one_hot_relative_embeddings = use_one_hot_relative_embeddings
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
        return normalization.LayerNormalization(
            axis=-1, epsilon=self.config.layer_norm_epsilon, name=name, dtype=self.dtype_policy
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
            relative_vocab_size=config.relative_vocab_size,
            share_feed_forward_params=config.share_feed_forward_params,
            share_kv_projections=config.share_kv_projections,
            share_qkv_projections=config.share_qkv_projections,
            share_att_output_projection=config.share_att_output_projection,
            use_pre_activation_order=config.use_pre_activation_order,
            use_one_hot_lookup=self.use_one_hot_relative_embeddings,
            grad_checkpointing_period=config.grad_checkpointing_period,
            layer_norm_epsilon=config.layer_norm_epsilon,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        sublayers.build_all(
            self.config.hidden_size,
            self.token_emb_lookup,
            self.segment_emb_lookup,
            self.position_emb_lookup_long,
            self.position_emb_lookup_global,
            self.long_emb_layer_norm,
            self.global_emb_layer_norm,
            self.global_local_transformer_layers,
        )
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
        if self.is_training is not None:
            training = self.is_training and (training is None or training)
        inputs = {
            "token_ids": token_ids,
            "global_token_ids": global_token_ids,
            "segment_ids": segment_ids,
            "global_segment_ids": global_segment_ids,
            "position_ids": position_ids,
            "global_position_ids": global_position_ids,
            "long_embedding_adder": long_embedding_adder,
            "global_embedding_adder": global_embedding_adder,
        }
        pairs = pairs_of(
            structure,
            l2l_att_mask,
            g2g_att_mask,
            l2g_att_mask,
            g2l_att_mask,
            l2l_relative_att_ids,
            g2g_relative_att_ids,
            l2g_relative_att_ids,
            g2l_relative_att_ids,
            relative_vocab_size=self.config.relative_vocab_size,
        )
        inputs, pairs = input_checks.checked(self.config, inputs, pairs)
        is_bag_of_words = isinstance(pairs, DenseSideInputs) and pairs.is_empty
        if is_bag_of_words and not self.config.max_absolute_position_embeddings:
            self._warn_once(_BAG_OF_WORDS)
        long_output, global_output = self.global_local_transformer_layers(
            self._embed(inputs, "long", self.config.default_segment_id, training),
            self._embed(inputs, "global", 0, training),
            structure=pairs,
            att_implementation=att_implementation,
            training=training,
        )
        return long_output, global_output

    def _embed(self, inputs, side, default_segment, training):
        """Embeddings of the "long" or "global" input: float [batch, len, hidden_size]."""
        prefix = "" if side == "long" else "global_"
        token_ids, segment_ids = inputs[f"{prefix}token_ids"], inputs[f"{prefix}segment_ids"]
        if segment_ids is None:
            segment_ids = tf.fill(tf.shape(token_ids), default_segment)
        embeddings = self.token_emb_lookup(token_ids) + self.segment_emb_lookup(segment_ids)
        position_lookup = getattr(self, f"position_emb_lookup_{side}")
        if position_lookup is not None:
            position_ids = inputs[f"{prefix}position_ids"]
            if position_ids is None:
                position_ids = tf.range(tf.shape(token_ids)[1])[tf.newaxis]
            embeddings += position_lookup(position_ids)
        adder = inputs[f"{side}_embedding_adder"]
        if adder is not None:
            embeddings += tf.cast(adder, embeddings.dtype)
        layer_norm = getattr(self, f"{side}_emb_layer_norm")
        return self.embedding_dropout(layer_norm(embeddings), training=training)

    # The names of the parts in the authors' release. As properties they are not tracked, so that
    # checkpoints contain each part once.
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
        """The table of token embeddings: variable [vocab_size, embedding_size].

        >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
        >>> etcmodel.EtcModel(config).get_token_embedding_table().shape
        TensorShape([128, 12])
        """
        sublayers.build_sublayer(self, None)
        return self.token_emb_lookup.embedding_table

    def get_config(self):
        return {
            **super().get_config(),
            **base.config_entries(self, __class__),
            "config": self.config.to_dict(),
        }
