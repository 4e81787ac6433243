"""The pre-training model: `EtcModel` with heads for both tasks (paper, section 3.5)."""

import copy
import math

import tensorflow as tf
import tf_keras

from etcmodel.layers import initializers, masked_lm, sublayers
from etcmodel.models import encoders, input_utils

__all__ = ["PretrainModel", "mlm_outputs"]


class PretrainModel(tf_keras.Model):
    """Predicts masked tokens, and the encodings of masked sentences.

    The language model's head is tied to the token embeddings. For contrastive predictive coding
    (paper, appendix B), the same encoder also encodes each masked sentence by itself, without the
    mask; the global token of this encoding is to be predicted from the global token of the masked
    sentence, by a bilinear form of both, normalized. With `cpc_projection_size`, both are projected
    and compared by cosine similarity instead. The heads are float32 under any policy.

    Args:
        encoder_config: `EncoderConfig`. With absolute positions, windows must hold one document.
        use_cpc: bool. Whether to encode the masked sentences.
        sentence_global_token_id: int. The global token of a sentence.
        cpc_projection_size: int. Size of the projections; 0 for a bilinear form without them.
        cpc_temperature: float, above 0. Divisor of the logits.
        **kwargs: arguments of the Keras model.
    Call args:
        features: dict of int32 [batch, ...] as `masking.mask_window` makes it.
        training: bool.
    Returns:
        dict of float32 `mlm_loss` [batch, M], cross entropy of each token to predict, and int32
        `mlm_token_ids` [batch, M], the most likely token; with CPC, if there is room for masked
        sentences, float32 `cpc_predictions` and `cpc_targets` [batch, C, hidden_size], or [batch,
        C, cpc_projection_size], whose products are the logits.
    """

    def __init__(
        self,
        encoder_config,
        *,
        use_cpc=True,
        sentence_global_token_id=1,
        cpc_projection_size=0,
        cpc_temperature=1.0,
        **kwargs,
    ):
        super().__init__(**{"name": "pretrain", "dtype": "float32", **kwargs})
        self.encoder_config = copy.copy(encoder_config)  # The caller may still change theirs.
        self.use_cpc = use_cpc
        self.sentence_global_token_id = sentence_global_token_id
        self.cpc_projection_size = cpc_projection_size
        self.cpc_temperature = cpc_temperature
        self.etc_model = encoders.make_global_local_encoder(encoder_config)
        self.mlm_head = None
        self.cpc_weights = self.cpc_target_weights = None

    def build(self, input_shape=None):
        config = self.encoder_config
        sublayers.build_sublayer(self.etc_model, None)
        self.mlm_head = masked_lm.make_masked_lm(
            self.etc_model.get_token_embedding_table(),
            config.hidden_size,
            activation=config.hidden_act,
            initializer_range=config.initializer_range,
        )
        if self.use_cpc:
            self.cpc_weights = self._add_cpc_weights("cpc_weights")
            if self.cpc_projection_size:
                self.cpc_target_weights = self._add_cpc_weights("cpc_target_weights")
        self.built = True

    def _add_cpc_weights(self, name):
        config = self.encoder_config
        return self.add_weight(
            name=name,
            shape=(config.hidden_size, self.cpc_projection_size or config.hidden_size),
            initializer=initializers.default_initializer(config.initializer_range),
        )

    def call(self, features, training=None):
        long_output, global_output = self.etc_model(
            features["long_token_ids"],
            features["global_token_ids"],
            structure=self._structure(
                features["long_breakpoints"],
                features["global_breakpoints"],
                features["sentence_ids"],
            ),
            training=training,
        )
        logits = self.mlm_head(long_output, features["mlm_positions"])  # [batch, M, vocab_size]
        outputs = mlm_outputs(logits, features["mlm_labels"])
        if self.use_cpc and features["cpc_sentences"].shape[1] != 0:
            outputs["cpc_predictions"] = self._predict_sentences(
                global_output, features["cpc_sentences"]
            )
            outputs["cpc_targets"] = self._encode_sentences(
                features["cpc_token_ids"], features["cpc_lengths"], training
            )
        return outputs

    def _structure(self, long_breakpoints, global_breakpoints, sentence_ids):
        config = self.encoder_config
        return input_utils.make_structure(
            long_breakpoints,
            global_breakpoints,
            sentence_ids,
            config.relative_pos_max_distance,
            use_hard_g2l_mask=config.use_hard_g2l_mask,
            use_hard_l2g_mask=config.use_hard_l2g_mask,
        )

    def _predict_sentences(self, global_output, sentences):
        """float32 [batch, C, size]: from the global tokens of the masked sentences."""
        hidden = _normalized(tf.gather(global_output, sentences, batch_dims=1))
        predictions = tf.matmul(hidden, self.cpc_weights)
        if self.cpc_projection_size:
            return tf.math.l2_normalize(predictions, -1) / self.cpc_temperature
        # Scaled like attention logits.
        return predictions / (math.sqrt(self.encoder_config.hidden_size) * self.cpc_temperature)

    def _encode_sentences(self, token_ids, lengths, training):
        """float32 [batch, C, size]: the encoder on [batch, C, S] tokens of sentences."""
        num_sentences, length = token_ids.shape[1:]
        token_ids = tf.reshape(token_ids, [-1, length])  # [batch * C, S]
        lengths = tf.reshape(lengths, [-1, 1])
        positions = tf.range(length)
        is_last = tf.cast(positions == lengths - 1, tf.int32)  # [batch * C, S]
        _, global_output = self.etc_model(
            token_ids,
            tf.fill(tf.shape(lengths), self.sentence_global_token_id),
            structure=self._structure(
                long_breakpoints=is_last,
                global_breakpoints=tf.ones_like(lengths),
                sentence_ids=tf.where(positions < lengths, 0, -1),
            ),
            training=training,
        )
        shape = [-1, num_sentences, self.encoder_config.hidden_size]
        targets = _normalized(tf.reshape(global_output, shape))
        if self.cpc_projection_size:
            targets = tf.math.l2_normalize(tf.matmul(targets, self.cpc_target_weights), -1)
        return targets


def mlm_outputs(logits, labels):
    """The outputs of a masked language model that its loss and metrics need.

    Args:
        logits: float32 [batch, M, vocab_size].
        labels: int32 [batch, M].
    Returns:
        dict of [batch, M]: see `PretrainModel`.
    """
    return {
        "mlm_loss": tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits),
        "mlm_token_ids": tf.argmax(logits, -1, tf.int32),
    }


def _normalized(hidden):
    """float32, with mean 0 and variance 1.

    With `use_pre_activation_order`, outputs are sums over all layers: their products are so large
    at first that their loss would dominate the language model's.
    """
    hidden = tf.cast(hidden, tf.float32)
    mean, variance = tf.nn.moments(hidden, -1, keepdims=True)
    return (hidden - mean) * tf.math.rsqrt(variance + 1e-12)
