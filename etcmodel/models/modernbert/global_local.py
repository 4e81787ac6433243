"""ModernBERT's layers with ETC's structure: global tokens, and relations as labels and masks."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import EmbeddingLookup, sublayers
from etcmodel.layers.attention.rotary import GlobalRotaryAttention
from etcmodel.models import conveniences, input_checks
from etcmodel.models.modernbert import modeling
from etcmodel.models.modernbert.config import FULL, SLIDING, EtcModernBertConfig
from etcmodel.ops import argument_checks, rotary
from etcmodel.ops.structure import GlobalLocalStructure


class EtcModernBertLayers(modeling.ModernBertLayers):
    """The layers of an `EtcModernBertModel`.

    Args: see `ModernBertLayers`.
    Call args:
        inputs: float [batch, long_len + global_len, hidden_size].
        attention: dict of the kinds of layers to the arguments of `GlobalRotaryAttention`.
        training: bool.
    Returns:
        float, shaped as `inputs`.
    """

    def make_attention(self, index):
        vocab_size = self.config.relative_vocab_size
        return super().make_attention(index, GlobalRotaryAttention, relative_vocab_size=vocab_size)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class EtcModernBertModel(conveniences.EncoderConveniences, modeling.ModernBertParts):
    """ModernBERT with ETC's global input: token ids of both inputs to hidden states.

    Global tokens go through the same layers as the text, with the same weights: all of them are
    ModernBERT's but the vectors of segments, which begin as zeros, and those of relative labels.
    In every layer the tokens of the text attend to all global tokens beside their window, or
    beside each other, and global tokens attend to all tokens. Global tokens have no rotary
    positions (see `GlobalRotaryAttention`); labels tell how far they are from each other, and what
    they are to the text. Without global tokens the hidden states are those of `ModernBertModel`.

    Args:
        config: `EtcModernBertConfig` (or its dict).
        name: name of the layer.
        use_one_hot_embeddings: bool. Whether to look up embeddings by matrix products.
    Call args:
        token_ids: int [batch, long_len].
        global_token_ids: int [batch, global_len].
        segment_ids: int [batch, long_len], or None: no segment's vector is added.
        global_segment_ids: int [batch, global_len], or None.
        long_embedding_adder: float [batch, long_len, hidden_size], or None. Added to embeddings.
        global_embedding_adder: float [batch, global_len, hidden_size], or None.
        structure: `ops.structure.GlobalLocalStructure`, such as `input_utils` and `multihop_utils`
            make; or None: all tokens, padding too, are of one text, and none are linked. Labels
            are then those of distances of global tokens, and `cross` between them and the text;
            hard masks of the config are not applied, of which the first such call logs a warning.
            Relations between tokens of the text are refused.
        training: bool.
    Returns:
        (long_output, global_output): float [batch, long_len, hidden_size] and
        [batch, global_len, hidden_size].
    Raises:
        ValueError: if inputs are inconsistent with each other or the model: see
            `input_checks.checked`, also for errors in graphs.

    >>> config = etcmodel.EtcModernBertConfig(hidden_size=24, num_hidden_layers=1)
    >>> model = etcmodel.EtcModernBertModel(config)
    >>> long_output, global_output = model(**model.structure([[50281, 7, 8, 50282]]))
    >>> long_output.shape, global_output.shape
    (TensorShape([1, 4, 24]), TensorShape([1, 1, 24]))
    """

    config_class = EtcModernBertConfig
    layers_class = EtcModernBertLayers

    def __init__(
        self,
        config: EtcModernBertConfig | dict,
        name: str = "etc_modernbert",
        use_one_hot_embeddings: bool = False,
        **kwargs,
    ):
        super().__init__(config, name, use_one_hot_embeddings, **kwargs)
        self.use_one_hot_embeddings = use_one_hot_embeddings
        self.segment_emb_lookup = EmbeddingLookup(
            self.config.segment_vocab_size,
            self.config.hidden_size,
            initializer_range=0.0,
            use_one_hot_lookup=use_one_hot_embeddings,
            name="segment_emb_lookup",
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        sublayers.build_sublayer(self.segment_emb_lookup, None)
        super().build(input_shape)

    def call(
        self,
        token_ids,
        global_token_ids,
        segment_ids=None,
        global_segment_ids=None,
        long_embedding_adder=None,
        global_embedding_adder=None,
        structure=None,
        training=None,
    ):
        inputs = {
            "token_ids": token_ids,
            "global_token_ids": global_token_ids,
            "segment_ids": segment_ids,
            "global_segment_ids": global_segment_ids,
            "position_ids": None,
            "global_position_ids": None,
            "long_embedding_adder": long_embedding_adder,
            "global_embedding_adder": global_embedding_adder,
        }
        structure = GlobalLocalStructure.of(structure)
        if structure is not None:
            _check_relations(structure)
        inputs, structure = input_checks.checked(self.config, inputs, structure)
        if structure is None:
            structure = self._structure_of_one_text(inputs)
        embedded = [self._embed(inputs, side) for side in ("long", "global")]
        length = tf.shape(embedded[0])[1] if embedded[0].shape[1] is None else embedded[0].shape[1]
        embedded = self.embedding_norm(tf.concat(embedded, axis=1))
        hidden = self.layers(
            self.embedding_dropout(embedded, training=training),
            self._attention(length, structure),
            training=training,
        )
        hidden = self.finish(hidden, training)
        return hidden[:, :length], hidden[:, length:]

    def _structure_of_one_text(self, inputs):
        """The structure of checked inputs that come without one."""
        masks = ("use_hard_g2l_mask", "use_hard_l2g_mask")
        if ignored := [f"`{name}`" for name in masks if getattr(self.config, name)]:
            self._warn_once(
                f"is called without structure: no token is linked, and {' and '.join(ignored)} of "
                "its config not applied. Pass `structure=` (see `input_utils.make_structure`)."
            )
        names = ("token_ids", "global_token_ids")
        long, global_ = (tf.ones_like(inputs[name], tf.int32) for name in names)
        distance = self.config.relative_pos_max_distance
        return GlobalLocalStructure(long, long, global_, max_distance=distance)

    def _embed(self, inputs, side):
        """Embeddings of the "long" or "global" input: float [batch, len, hidden_size]."""
        prefix = "" if side == "long" else "global_"
        embedded = self.tok_embeddings(inputs[f"{prefix}token_ids"])
        if (segment_ids := inputs[f"{prefix}segment_ids"]) is not None:
            embedded += self.segment_emb_lookup(segment_ids)
        if (adder := inputs[f"{side}_embedding_adder"]) is not None:
            embedded += tf.cast(adder, embedded.dtype)
        return embedded

    def _attention(self, length, structure):
        """The arguments of attention layers, by kind."""
        config, structure = self.config, structure.with_pairs(local_radius=1)  # Of the text none.
        positions, size = tf.range(length)[tf.newaxis], config.hidden_size
        size //= config.num_attention_heads
        return {
            kind: {
                "turns": rotary.turns_at(positions, size, config.thetas[kind]),
                "structure": structure,
            }
            for kind in (FULL, SLIDING)
            if kind in config.layer_kinds
        }

    def get_config(self):
        return {**super().get_config(), "use_one_hot_embeddings": self.use_one_hot_embeddings}


def _check_relations(structure):
    if of_text := structure.relations_between("l2l"):
        argument_checks.fail(
            f"Relation {of_text[0].name!r} is between tokens of the text, which have rotary "
            "positions here. Relate global tokens, or the text to global tokens"
        )


# ModernBERT's names, and those of what it lacks.
_TABLES = rf"{modeling.ATTENTION}/self_attention/(\w+)_labels/relative_(emb|bias)_table"
WEIGHTS = modeling.WEIGHTS._replace(
    names=(
        *modeling.WEIGHTS.names,
        ("segment_emb_lookup/embedding_table", "model.embeddings.segment_embeddings.weight"),
        (_TABLES, rf"{modeling.IN_LAYER}.attn.\2_labels.\3"),
    ),
)
