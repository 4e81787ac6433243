"""GenBERT with a GMAT as its encoder: encoder and decoder share one BERT's weights.

Source: Gupta and Berant 2020 (arXiv:2006.03274), section 3.2 and appendix A.1.
"""

import dataclasses
import typing

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, sublayers
from etcmodel.models.gmat.config import GmatConfig
from etcmodel.models.gmat.decoder import GmatDecoder, Transform
from etcmodel.models.gmat.modeling import GmatModel
from etcmodel.models.seq2seq import config as seq2seq_config
from etcmodel.models.seq2seq import inputs, model, names
from etcmodel.models.seq2seq import outputs as outputs_lib

__all__ = ["GmatEncoder", "GmatForConditionalGeneration", "GmatSeq2SeqConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GmatSeq2SeqConfig(seq2seq_config.Seq2SeqConfig, GmatConfig):
    """Sizes and options of a `GmatForConditionalGeneration`.

    Attributes:
        decoder_start_token_id: int or None. The first decoder id.
        eos_token_id: int or None. The last one.
        others: see `GmatConfig`. There is no compression, and at least two token types: 0 for the
            encoder, 1 for the decoder.
    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.GmatSeq2SeqConfig.of_encoder(etcmodel.GmatConfig(), eos_token_id=1032)
    >>> config.model_type, config.eos_token_id, config.num_memory_tokens
    ('gmat_seq2seq', 1032, 64)
    """

    model_type: typing.ClassVar[str] = "gmat_seq2seq"

    decoder_start_token_id: int | None = None
    eos_token_id: int | None = None

    @classmethod
    def of_encoder(cls, config, **entries):
        """Creates the config of a model from the `GmatConfig` of its encoder.

        Args:
            config: `GmatConfig`.
            **entries: entries with other values, or that `GmatConfig` lacks.

        >>> config = etcmodel.GmatConfig(num_memory_tokens=32)
        >>> etcmodel.GmatSeq2SeqConfig.of_encoder(config, eos_token_id=1032).num_memory_tokens
        32
        """
        return cls.from_dict({**config.to_dict(), **entries})

    def encoder_config(self):
        """Returns the `GmatConfig` of the encoder.

        >>> type(etcmodel.GmatSeq2SeqConfig().encoder_config()).__name__
        'GmatConfig'
        """
        names_of_fields = [field.name for field in dataclasses.fields(GmatConfig)]
        return GmatConfig(**{name: getattr(self, name) for name in names_of_fields})

    def check(self):
        super().check()
        if self.num_compression_layers:
            raise ValueError(
                "`num_compression_layers` must be 0: a decoder has the layers of an encoder "
                f"without compression. Received: {self.num_compression_layers}"
            )
        if self.type_vocab_size < 2:
            raise ValueError(
                "`type_vocab_size` must be at least 2, as decoder ids have token type 1. "
                f"Received: {self.type_vocab_size}"
            )


class GmatEncoder(inputs.OptionalInput, base.Layer):
    """The encoder: token ids to the hidden states that the decoder attends to.

    Args:
        config: `GmatSeq2SeqConfig`.
        name: name of the layer.
    Call args: see `GmatModel`, without `memory_ids` and `memory_mask`.
    Returns:
        dict: `last_hidden_state`, float [batch, length + num_memory_tokens, hidden_size], of the
        tokens and then of the memory; and what else `GmatModel` returns on request.
    """

    def __init__(self, config, name="encoder", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = config
        self.gmat = GmatModel(config.encoder_config(), dtype=self.dtype_policy)
        self.transform = Transform(config, dtype=self.dtype_policy)

    def build(self, input_shape):
        for layer in (self.gmat, self.transform):
            sublayers.build_sublayer(layer, input_shape)
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        hidden, memory, *extras = self.gmat(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
            training=training,
        )
        states = hidden if memory is None else tf.concat([hidden, memory], axis=1)
        outputs = {"last_hidden_state": self.transform(states)}
        return outputs | {name: tuple(x) for found in extras for name, x in found.items()}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GmatForConditionalGeneration(model.ConditionalGeneration, model.EncoderDecoder):
    """GenBERT over a GMAT: generates a text from a long text with one stack of layers.

    In self-attention a decoder token attends to itself and to all tokens before it; with the same
    weights it attends to the encoder's tokens and memory. Encoder and decoder each have a dense
    layer of their own after the last one; logits are products with the token embeddings. With
    untied projections (`has_own_memory_projections`), those of the memory are the only weights that
    the decoder does not use.

    Args:
        config: `GmatSeq2SeqConfig` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.ConditionalGeneration`, `GmatEncoder` and `GmatDecoder`.
    Returns:
        dict: see there.
    Raises:
        ValueError: see there.

    >>> config = etcmodel.GmatSeq2SeqConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.GmatForConditionalGeneration(config)
    >>> model([[5, 6, 7]], decoder_input_ids=[[2, 8]])["logits"].shape
    TensorShape([1, 2, 30522])
    """

    config_class = GmatSeq2SeqConfig
    encoder_arguments = ("token_type_ids", "position_ids")
    architecture = "GmatForConditionalGeneration"
    naming = names.Naming()

    def __init__(
        self,
        config: GmatSeq2SeqConfig | dict,
        name: str = "gmat_for_conditional_generation",
        **kwargs,
    ):
        super().__init__(config, name, **kwargs)

    def make_parts(self):
        self.encoder = GmatEncoder(self.config, dtype=self.dtype_policy)
        self.decoder = GmatDecoder(self.encoder, dtype=self.dtype_policy)

    shared = property(lambda self: self.encoder.gmat.embeddings.word_embeddings)

    def build(self, input_shape):
        sublayers.build_sublayer(self.encoder, input_shape)  # First, since it has the variables.
        self.logits_bias = self.add_weight(
            name="logits_bias", shape=(self.config.vocab_size,), initializer="zeros"
        )
        super().build(input_shape)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., hidden_size]: float32 [..., vocab_size]."""
        logits = outputs_lib.tied_logits(hidden, self.shared.embedding_table)
        return logits + tf.cast(self.logits_bias, tf.float32)

    @property
    def max_generated_length(self):
        """int. One more than the number of positions: the last token is never an input."""
        return self.config.max_length + 1
