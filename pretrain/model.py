"""The pre-training model: `EtcModel` with heads for both tasks (paper, section 3.5)."""

import copy
import functools
import math

import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.layers import heads, initializers, sublayers
from etcmodel.models import encoders, input_utils, systems

__all__ = [
    "PretrainModel",
    "contrastive_loss",
    "make_text_model",
    "mlm_outputs",
    "plain_masked_lm",
    "pretraining_loss",
]

# The two losses of pre-training, over the whole batch of all devices (paper, section 3.5).


_NEVER = -1e9  # Logit of padding sentences.


def pretraining_loss(outputs, features, *, mlm_weight, cpc_weight, gather_negatives=True):
    """The weighted sum of both losses, and the accuracy of each task.

    All are means over the tokens and sentences of the global batch, not of one device, so that
    their mean over the devices does not depend on the number of devices.

    Args:
        outputs: of `PretrainModel`.
        features: dict of int32 `mlm_labels`, `mlm_mask` [batch, M]; with CPC `cpc_mask` [batch, C]
            and, while its weight rises, float32 `cpc_weight_share` [batch], all equal.
        mlm_weight, cpc_weight: float.
        gather_negatives: bool. Contrast sentences with those of all devices, not only of this one;
            means are then over all devices, too. With several devices, this works neither within
            gradient accumulation nor within XLA.
    Returns:
        dict of float32 scalars: "loss", "mlm_loss", "mlm_accuracy"; with CPC "cpc_loss",
        "cpc_accuracy" and "cpc_chance", the accuracy of guessing.
    """
    together = _replicas() if gather_negatives else None
    is_right = outputs["mlm_token_ids"] == features["mlm_labels"]
    parts = {
        "mlm_loss": _mean(outputs["mlm_loss"], features["mlm_mask"], together),
        "mlm_accuracy": _mean(tf.cast(is_right, tf.float32), features["mlm_mask"], together),
    }
    total = mlm_weight * parts["mlm_loss"]
    if "cpc_targets" in outputs:
        mask = tf.reshape(features["cpc_mask"], [-1])
        size = outputs["cpc_targets"].shape[-1]
        predictions = tf.reshape(outputs["cpc_predictions"], [-1, size])
        targets = tf.reshape(outputs["cpc_targets"], [-1, size])
        losses, is_right, chance = contrastive_loss(predictions, targets, mask, together)
        parts["cpc_loss"] = _mean(losses, mask, together)
        parts["cpc_accuracy"] = _mean(is_right, mask, together)
        parts["cpc_chance"] = chance
        if "cpc_weight_share" in features:
            cpc_weight *= tf.reduce_mean(features["cpc_weight_share"])
        total += cpc_weight * parts["cpc_loss"]
    return {"loss": total, **parts}


def contrastive_loss(predictions, targets, mask, replicas=None):
    """Noise contrastive estimation: which of the batch's sentences is the masked one?

    Source: Oord et al. 2018 (arXiv:1807.03748), section 2.3.

    Args:
        predictions: float32 [n, size].
        targets: float32 [n, size]. The i-th is the true target of the i-th prediction, the others
            are its negatives.
        mask: int [n]. 1 for real sentences; others are not used as negatives.
        replicas: `tf.distribute.ReplicaContext` whose devices' targets are also negatives, or None.
    Returns:
        (float32 [n] cross entropies; float32 [n], 1 where the true target has the highest logit;
        float32 scalar, the accuracy of guessing).
    """
    count, first = tf.shape(predictions)[0], 0
    if replicas is not None:
        # All devices have equally many rows; the masks mark the real ones.
        targets = replicas.all_gather(targets, axis=0)
        mask = replicas.all_gather(mask, axis=0)
        first = tf.cast(replicas.replica_id_in_sync_group, tf.int32) * count
    logits = tf.matmul(predictions, targets, transpose_b=True)  # [n, all targets]
    logits = tf.where(mask > 0, logits, _NEVER)
    labels = first + tf.range(count)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    is_right = tf.cast(tf.argmax(logits, -1, tf.int32) == labels, tf.float32)
    chance = 1.0 / tf.maximum(tf.cast(tf.reduce_sum(mask), tf.float32), 1.0)
    return losses, is_right, chance


def _replicas():
    """The replica context if there are several devices, else None."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context


def _mean(values, mask, replicas):
    """This device's part of the mean over real values, times the number of devices."""
    mask = tf.cast(mask, tf.float32)
    count = tf.reduce_sum(mask)
    if replicas is not None:
        count = replicas.all_reduce(tf.distribute.ReduceOp.MEAN, count)
    # Without real values, the result is 0 times something finite.
    return tf.reduce_sum(values * mask) / tf.maximum(count, 1e-6)


# Masked language models without global tokens, for pre-training.


class _ReadsWindows:
    """Calls a `MaskedLM` with a masked window of text, and returns what the loss needs.

    Call args:
        features: dict of int32 [batch, ...] as `masking.mask_window` makes it.
        training: bool.
    Returns:
        `mlm_loss` and `mlm_token_ids`: see `PretrainModel`.
    """

    @without_autograph
    def call(self, features, training=None):
        is_token = features["sentence_ids"] >= 0
        pad = self.encoder.config.pad_token_id  # Longformer needs it to count positions.
        batch = {
            "input_ids": tf.where(is_token, features["long_token_ids"], pad),
            "attention_mask": tf.cast(is_token, tf.int32),
        }
        hidden, _ = self.encode(batch, training)
        # Only tokens to predict: all logits would need most of the memory.
        logits = self.language_model(hidden, features["mlm_positions"])
        return mlm_outputs(logits, features["mlm_labels"])


@functools.cache
def _reads_windows(masked_lm):
    """Makes a class of the head that is called with windows."""
    return type(f"{masked_lm.__name__}OfWindows", (_ReadsWindows, masked_lm), {})


def _masked_lm(config):
    return systems.ability(config, "masked_lm", "Masked words are predicted")


def make_text_model(config):
    """Makes a new model for masked windows; no token is global.

    Args:
        config: `EncoderConfig` of a system with a `masked_lm`.
    Raises:
        ValueError: naming the systems that have one, if this has none.
    """
    return _reads_windows(_masked_lm(config))(config)


def plain_masked_lm(pretrained):
    """Converts the model, with the same encoder, to the class that `save_pretrained` writes.

    Args:
        pretrained: the result of `make_text_model`.
    """
    encoder = pretrained.encoder
    made = _masked_lm(encoder.config)(encoder)
    made.language_model.set_weights(pretrained.language_model.get_weights())
    return made


# ETC's model.


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
        self.mlm_head = heads.make_masked_lm(
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

    @without_autograph
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
