"""The Natural Questions model: an encoder with a head for each end of the answers (paper, 4.2)."""

import copy
import functools

import tensorflow as tf
import tf_keras

from etcmodel import feature_utils
from etcmodel.autograph import without_autograph
from etcmodel.layers import heads, sublayers
from etcmodel.models import encoders, input_utils, padding, token_classifiers

from .config import ANSWER_TYPES
from .features import GLOBAL_FEATURES, LONG_FEATURES

__all__ = ["POSITIONS", "NqModel", "loss", "text_features"]

# The ends of the short and the long answer, in the order of the head's outputs.
POSITIONS = ("sa_start", "sa_end", "la_start", "la_end")


class NqModel(tf_keras.Model):
    """Scores each long token as an end of the short or long answer, and the type of the answer.

    The type comes from the long CLS token, which also stands for "no answer in this window" among
    the positions. The heads are float32 under any policy. An encoder of one sequence, such as
    Longformer, reads the long input alone.

    Args:
        encoder_config: `EncoderConfig` of a system with a global input, or one that classifies
            tokens.
        mask_long_output: bool. Exclude positions outside the page and the CLS token.
        skip_padding: bool. Exclude padding from the positions, and do not encode positions that are
            padding in the whole batch (`models.padding`).
        cls_token_id, sep_token_id: int. For `mask_long_output`: the page is between the first two
            SEP.
        **kwargs: arguments of the Keras model.
    Call args:
        features: dict of int [batch, long_len] `token_ids`, `sentence_ids`, `long_breakpoints` and
            int [batch, global_len] `global_token_ids`, `global_breakpoints`; others are ignored.
        training: bool.
    Returns:
        dict of float32 `answer_type_logits` [batch, 5] and for each of `POSITIONS` float32
        `<name>_logits` [batch, long_len], the k best in `<name>_pred` (int32, positions) and
        `<name>_logit`, both [batch, k], k = min(50, long_len), and the CLS token's
        `<name>_logit0` [batch].
    """

    def __init__(
        self,
        encoder_config,
        *,
        mask_long_output=False,
        skip_padding=False,
        cls_token_id=101,
        sep_token_id=102,
        **kwargs,
    ):
        super().__init__(**{"name": "nq", "dtype": "float32", **kwargs})
        self.encoder_config = copy.copy(encoder_config)  # The caller may still change theirs.
        self.mask_long_output = mask_long_output
        self.skip_padding = skip_padding
        self.cls_token_id = cls_token_id
        self.sep_token_id = sep_token_id
        self.etc_model = (
            encoders.make_global_local_encoder(encoder_config)
            if encoders.has_global_input(encoder_config)
            else token_classifiers.make_token_encoder(encoder_config, "NQ is answered")
        )
        options = {"initializer_range": encoder_config.initializer_range, "dtype": "float32"}
        self.long_head = heads.SpanLogits(POSITIONS, name="positions", **options)
        self.answer_type_head = heads.TokenLogits(len(ANSWER_TYPES), name="types", **options)
        # Only to give its weights the same prefix as in the release's checkpoints.
        self.long_head_scope = tf_keras.layers.Layer(name="cls/nq", dtype="float32")

    def build(self, input_shape=None):
        sublayers.build_sublayer(self.etc_model, None)
        hidden_size = self.encoder_config.hidden_size
        with tf.name_scope(self.long_head_scope.name):  # The names that a run's checkpoints tell.
            self.long_head.build_in(self.long_head_scope, "long_output_", hidden_size)
        self.answer_type_head.build_in(self, "answer_type_output_", hidden_size)
        self.built = True

    @without_autograph
    def call(self, features, training=None):
        allowed = self._page_or_cls(features["token_ids"]) if self.mask_long_output else None
        if self.skip_padding:
            is_real = _is_real(features, "long_breakpoints")
            allowed = is_real if allowed is None else allowed & is_real
        has_global_input = encoders.has_global_input(self.encoder_config)
        read = self._global_local_output if has_global_input else self._text_output
        long_output = read(features, training)
        outputs = {"answer_type_logits": self.answer_type_head(long_output[:, 0])}
        for name, position_logits in self.long_head(long_output, allowed=allowed).items():
            top_logits, top_positions = heads.top_positions(position_logits)
            outputs[f"{name}_logits"] = position_logits
            outputs[f"{name}_pred"] = top_positions
            outputs[f"{name}_logit"] = top_logits
            outputs[f"{name}_logit0"] = position_logits[:, 0]
        return outputs

    def _text_output(self, features, training):
        """float [batch, long_len, hidden_size], of an encoder of one sequence."""
        is_real = _is_real(features, "long_breakpoints")
        return token_classifiers.hidden_states(
            self.etc_model,
            text_features(features["token_ids"], is_real),
            training=training,
            skip_padding=self.skip_padding,
        )

    def _global_local_output(self, features, training):
        """Likewise, of an encoder of a long and a global input."""
        encode = functools.partial(self._encode, training=training)
        if not self.skip_padding:
            return encode(features)[0]
        masks = [_is_real(features, x) for x in ("long_breakpoints", "global_breakpoints")]
        axes = (LONG_FEATURES, GLOBAL_FEATURES)
        return padding.encode_without_padding(encode, features, *masks, axes)[0]

    def _encode(self, features, training):
        return self.etc_model(
            features["token_ids"],
            features["global_token_ids"],
            training=training,
            structure=self._structure(features),
        )

    def _structure(self, features):
        config = self.encoder_config
        return input_utils.make_structure(
            long_breakpoints=features["long_breakpoints"],
            global_breakpoints=features["global_breakpoints"],
            sentence_ids=features["sentence_ids"],
            relative_pos_max_distance=config.relative_pos_max_distance,
            use_hard_g2l_mask=config.use_hard_g2l_mask,
            use_hard_l2g_mask=config.use_hard_l2g_mask,
        )

    def _page_or_cls(self, token_ids):
        """bool [batch, long_len]. True for CLS and for tokens between the first two SEP."""
        is_sep = tf.equal(token_ids, self.sep_token_id)
        num_sep = tf.cumsum(tf.cast(is_sep, tf.int32), axis=1)
        is_page = tf.equal(num_sep, 1) & ~is_sep
        return is_page | tf.equal(token_ids, self.cls_token_id)


def _is_real(features, breakpoints):
    return feature_utils.segment_ids_from_breakpoints(features[breakpoints]) > 0


def text_features(token_ids, is_real):
    """The features of `token_classifiers.hidden_states` for an encoder of one sequence.

    CLS, the question and its SEP are the first segment, and global in Longformer; the page is the
    second. The last token is SEP, too, which tells its id.

    Args:
        token_ids: int [batch, long_len].
        is_real: bool [batch, long_len].
    Returns:
        dict of int32 [batch, long_len].
    """
    last = tf.reduce_sum(tf.cast(is_real, tf.int32), axis=1, keepdims=True) - 1
    sep_ids = tf.gather(token_ids, tf.maximum(last, 0), batch_dims=1)  # [batch, 1]
    is_sep = tf.cast(tf.equal(token_ids, sep_ids), tf.int32)
    is_page = is_real & (tf.cumsum(is_sep, axis=1, exclusive=True) > 0)
    return {
        "token_ids": token_ids,
        "segment_ids": tf.cast(is_page, tf.int32),
        "example_ids": tf.cast(is_real, tf.int32),
        "global_attention_mask": tf.cast(is_real & ~is_page, tf.int32),
    }


def loss(outputs, features):
    """Mean of the cross entropies of the four positions and the answer type.

    Args:
        outputs: of `NqModel`.
        features: dict of int32 [batch] labels: one for each of `POSITIONS`, a long position, and
            `answer_type`; a negative one adds nothing.
    Returns:
        dict of float32 scalars: "loss", and its parts by name.
    """
    means = {
        f"{name}_loss": _mean_cross_entropy(features[name], outputs[f"{name}_logits"])
        for name in (*POSITIONS, "answer_type")
    }
    return {"loss": tf.add_n(list(means.values())) / len(means), **means}


def _mean_cross_entropy(labels, logits):
    """Mean softmax cross entropy over the batch; 0 where the label is negative."""
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.maximum(labels, 0), logits=logits
    )
    return tf.reduce_mean(tf.where(labels >= 0, cross_entropy, 0.0))
