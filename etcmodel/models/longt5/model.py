"""LongT5 for conditional generation: encoder, decoder and logits (Guo et al. 2022)."""

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.models import conveniences
from etcmodel.models.longt5 import names, parts
from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.longt5.decoder import T5Decoder
from etcmodel.models.longt5.encoder import LongT5Encoder
from etcmodel.models.seq2seq import generating, inputs
from etcmodel.models.seq2seq import labels as labels_lib
from etcmodel.models.seq2seq import outputs as outputs_lib

__all__ = ["LongT5Model"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5Model(generating.Generating, inputs.OptionalInput, conveniences.Pretrained, base.Layer):
    """A text of any length to another text.

    Args:
        config: `LongT5Config` or its dict.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds` or
            `encoder_output`.
        attention_mask: 0/1 int [batch, length], or None. 0 for padding. Without it ids of padding
            are tokens as others.
        decoder_input_ids: int [batch, target_length], or None: made of the labels.
        decoder_attention_mask: 0/1 int [batch, target_length], or None. 0 for ids that no later
            one sees.
        labels: int [batch, target_length], or None. -100 where there is none.
        inputs_embeds: float [batch, length, d_model], or None: in place of embeddings of the ids.
        encoder_output: float [batch, length, d_model], or None: of `encoder`, in place of the ids.
        output_hidden_states: bool.
        output_attentions: bool. They take memory of the square of the length.
        training: bool.
    Returns:
        dict: `logits`, float32 [batch, target_length, vocab_size]; with labels `loss`, float32
        scalar, the mean over all labels; `encoder_last_hidden_state`, float [batch, length,
        d_model]; where they are asked for, tuples by layer: `encoder_hidden_states`,
        `decoder_hidden_states`, `encoder_attentions`, `decoder_attentions`, `cross_attentions`: see
        `LongT5Encoder` and `T5Decoder`.
    Raises:
        ValueError: if there are neither decoder ids nor labels to make them of, or the config has
            no start token for these.
    """

    def __init__(self, config, name="longt5", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = LongT5Config.of(config)
        self.shared = parts.make_token_embedding(self)
        policy = {"dtype": self.dtype_policy}
        self.encoder = LongT5Encoder(self.config, self.shared, **policy)
        self.decoder = T5Decoder(self.config, self.shared, **policy)
        self.lm_head = None
        if not self.config.tie_word_embeddings:
            self.lm_head = dense.Dense(
                self.config.vocab_size,
                use_bias=False,
                kernel_initializer=initializers.default_initializer(self.config.initializer_range),
                name="lm_head",
                **policy,
            )

    def build(self, input_shape):
        ids = tf.TensorShape([None, None])
        hidden = tf.TensorShape([None, None, self.config.d_model])
        own = ((self.shared, ids), (self.encoder, ids), (self.decoder, ids))
        for layer, shape in (*own, (self.lm_head, hidden)):
            if layer is not None:
                sublayers.build_sublayer(layer, shape)
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        labels=None,
        inputs_embeds=None,
        encoder_output=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        wanted = {
            "output_hidden_states": output_hidden_states,
            "output_attentions": output_attentions,
            "training": training,
        }
        encoded = {"last_hidden_state": encoder_output}
        if encoder_output is None:
            encoded = self.encoder(input_ids, attention_mask, inputs_embeds, **wanted)
        if decoder_input_ids is None:
            decoder_input_ids = self.decoder_ids(labels)
        decoded = self.decoder(
            decoder_input_ids,
            encoded["last_hidden_state"],
            attention_mask,
            decoder_attention_mask,
            **wanted,
        )
        logits = self.logits(decoded["last_hidden_state"])
        outputs = {"logits": logits}
        if labels is not None:
            outputs["loss"] = labels_lib.loss(logits, labels)
        return outputs | outputs_lib.named(encoded, decoded)

    def decoder_ids(self, labels):
        """The decoder's ids for labels: see `seq2seq.labels.decoder_ids`."""
        if labels is None:
            raise ValueError("Give `decoder_input_ids`, or `labels` to make them of.")
        return labels_lib.decoder_ids(
            labels, self.config.decoder_start_token_id, self.config.pad_token_id
        )

    def logits(self, hidden):
        """float32 [..., vocab_size] of the decoder's output, float [..., d_model]."""
        hidden *= tf.cast(self.config.output_scale, hidden.dtype)
        if self.lm_head is not None:
            return tf.cast(self.lm_head(hidden), tf.float32)
        return outputs_lib.tied_logits(hidden, self.shared.embedding_table)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.shared, tf.TensorShape([None, None]))
        return self.shared.embedding_table

    architecture = "LongT5ForConditionalGeneration"
    naming = names.NAMING

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        return names.weights(self)

    @staticmethod
    def config_for(config, source):
        """The config that says what a file has.

        Args:
            config: `LongT5Config`, of the file beside it.
            source: `checkpoints.sources.Source`.
        Returns:
            `LongT5Config`. The logits have a matrix of their own if the file has one that is not
            the token embeddings, whatever its config says.
        """
        table = next((x for x in ("shared.weight", *names.TABLE_ALIASES) if x in source.shapes), "")
        is_tied = not table or "lm_head.weight" not in source.shapes
        is_tied = is_tied or np.array_equal(source.read("lm_head.weight"), source.read(table))
        is_scaled = config.output_scale != 1
        return dataclasses.replace(
            config, tie_word_embeddings=is_tied, scale_decoder_outputs=is_scaled
        )

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}
