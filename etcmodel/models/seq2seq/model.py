"""Encoder and decoder in one layer: the base of each system's models."""

import tensorflow as tf

from etcmodel.layers import EmbeddingLookup, base, sublayers
from etcmodel.models import conveniences
from etcmodel.models.heads import losses
from etcmodel.models.seq2seq import generating
from etcmodel.models.seq2seq import inputs as seq2seq_inputs

__all__ = [
    "ConditionalGeneration",
    "EncoderDecoder",
    "TokenStack",
    "make_token_embedding",
    "named",
    "tied_logits",
    "with_logits",
    "with_spans",
]

# The outputs of encoder-decoder models.


def named(encoded, decoded):
    """Merges the outputs of an encoder and of a decoder into one dict.

    Args:
        encoded, decoded: dict of the outputs by name.
    Returns:
        dict: names begin with `encoder_` or `decoder_`, except `cross_attentions`. The decoder's
        `last_hidden_state` is left out.
    """
    outputs = {f"encoder_{name}": value for name, value in encoded.items()}
    for name, value in decoded.items():
        if name != "last_hidden_state":
            outputs[name if name.startswith("cross") else f"decoder_{name}"] = value
    return outputs


def tied_logits(hidden, table):
    """Computes logits as products with the token embeddings.

    Args:
        hidden: float [..., size].
        table: variable [vocab_size, size].
    Returns:
        float32 [..., vocab_size].
    """
    *outer, size = hidden.shape.as_list()
    outer = tf.shape(hidden)[:-1] if None in outer else outer
    rows, table = tf.reshape(hidden, [-1, size]), tf.cast(table, hidden.dtype)
    logits = tf.matmul(rows, table, transpose_b=True)
    logits = tf.reshape(logits, tf.concat([outer, [table.shape[0]]], 0))
    return tf.cast(logits, tf.float32)


def with_logits(model, outputs, labels=None):
    """Turns the outputs of an `EncoderDecoder` into those of conditional generation.

    Args:
        model: object with a method `logits` of hidden states.
        outputs: dict, whose `last_hidden_state` is left out.
        labels: int [batch, target_length], or None.
    Returns:
        dict: `logits`, float32 [batch, target_length, vocab_size]; with labels `loss`, float32
        scalar, the mean over all labels; and the other outputs.
    """
    outputs = dict(outputs)
    logits = model.logits(outputs.pop("last_hidden_state"))
    loss = {} if labels is None else {"loss": seq2seq_inputs.loss(logits, labels)}
    return {"logits": logits, **loss, **outputs}


def with_spans(span, outputs, start_positions=None, end_positions=None):
    """Turns the outputs of an `EncoderDecoder` into those of extractive question answering.

    Args:
        span: `layers.heads.SpanLogits` of `start` and `end`.
        outputs: dict, whose `last_hidden_state` is left out.
        start_positions, end_positions: int [batch], or None. Those beyond the text are ignored.
    Returns:
        dict: `start_logits` and `end_logits`, float32 [batch, target_length]; with positions
        `loss`, float32 scalar, the mean of both losses; and the other outputs.
    Raises:
        ValueError: if only one of the two kinds of positions is given.
    """
    outputs = dict(outputs)
    logits = span(outputs.pop("last_hidden_state"))
    found = {f"{end}_logits": logits[end] for end in ("start", "end")}
    if (start_positions is None) != (end_positions is None):
        raise ValueError("Give `start_positions` and `end_positions`, or neither.")
    if start_positions is not None:
        loss = losses.PositionCrossentropy().call
        ends = loss(start_positions, logits["start"]), loss(end_positions, logits["end"])
        found["loss"] = tf.add_n([tf.reduce_mean(x) for x in ends]) / 2
    return {**found, **outputs}


# The base of encoders and decoders: token embeddings, which they may share.


class TokenStack(seq2seq_inputs.OptionalInput, base.Layer):
    """The base of an encoder or a decoder, which has a `config` and a `token_embedding`."""

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        return self.token_embedding.embedding_table

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}


def make_token_embedding(layer, initializer_range):
    """Creates the token embeddings of a layer with a `Seq2SeqConfig`: `EmbeddingLookup`.

    Args:
        layer: Keras layer with a `config`.
        initializer_range: float. Standard deviation of the initial weights.
    """
    return EmbeddingLookup(
        layer.config.vocab_size,
        layer.config.d_model,
        initializer_range=initializer_range,
        name="shared",
        dtype=layer.dtype_policy,
    )


# Encoder and decoder in one layer.


class EncoderDecoder(seq2seq_inputs.OptionalInput, conveniences.Pretrained, base.Layer):
    """An encoder-decoder without logits: ids of both to the decoder's hidden states.

    A system's class sets `config_class`, `encoder_class`, `decoder_class` and
    `make_token_embedding`, a function of the layer; or creates all parts in `make_parts`.

    Args:
        config: the system's config, or its dict.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds` or
            `encoder_output`.
        attention_mask: 0/1 int [batch, length], or None. 0 for padding. Without it, padding ids
            count as ordinary tokens.
        decoder_input_ids: int [batch, target_length], or None with `decoder_inputs_embeds`.
        decoder_attention_mask: 0/1 int [batch, target_length], or None. 0 for ids that no later one
            attends to.
        inputs_embeds: float [batch, length, d_model], or None: in place of the ids' embeddings,
            scaled if the system scales those.
        decoder_inputs_embeds: float [batch, target_length, d_model], or None: likewise.
        encoder_output: float [batch, length, d_model], or None: output of `encoder`, in place of
            ids.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory quadratic in the length.
        training: bool.
        **of_encoder: further arguments of the encoder.
    Returns:
        dict: `last_hidden_state`, the decoder's, float [batch, target_length, d_model];
        `encoder_last_hidden_state`, float [batch, length, d_model]; on request, tuples by layer of
        both, whose names begin with `encoder_` or `decoder_`, and `cross_attentions`: see the
        encoder and `seq2seq.decoder.Decoder`.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model.
    """

    config_class = encoder_class = decoder_class = make_token_embedding = None
    decoder_ids_of = "`labels`"  # As errors name it.

    def __init__(self, config, name, **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = self.config_class.of(config)
        self.make_parts()

    def make_parts(self):
        """Creates `shared`, the token embeddings, `encoder` and `decoder`."""
        self.shared = self.make_token_embedding()
        policy = {"dtype": self.dtype_policy}
        self.encoder = self.encoder_class(self.config, self.shared, **policy)
        self.decoder = self.decoder_class(self.config, self.shared, **policy)

    def build(self, input_shape):
        for layer in (self.shared, self.encoder, self.decoder):
            sublayers.build_sublayer(layer, tf.TensorShape([None, None]))
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        inputs_embeds=None,
        decoder_inputs_embeds=None,
        encoder_output=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
        **of_encoder,
    ):
        wanted = {
            "output_hidden_states": output_hidden_states,
            "output_attentions": output_attentions,
            "training": training,
        }
        encoded = {"last_hidden_state": encoder_output}
        if encoder_output is None:
            of_encoder = {"inputs_embeds": inputs_embeds, **of_encoder, **wanted}
            encoded = self.encoder(input_ids, attention_mask, **of_encoder)
        decoded = self.decoder(
            decoder_input_ids,
            encoded["last_hidden_state"],
            attention_mask,
            decoder_attention_mask,
            decoder_inputs_embeds,
            **wanted,
        )
        last = {"last_hidden_state": decoded["last_hidden_state"]}
        return last | named(encoded, decoded)

    def decoder_ids(self, labels, name="labels"):
        """Returns the decoder's ids for labels: int [batch, length].

        See `seq2seq.inputs.decoder_ids`.

        Raises:
            ValueError: see there; also if there are no labels.
        """
        if labels is None:
            raise ValueError(f"Give `decoder_input_ids`, or {self.decoder_ids_of} to make them of.")
        config = self.config
        return seq2seq_inputs.decoder_ids(
            labels, config.decoder_start_token_id, config.pad_token_id, name
        )

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.shared, tf.TensorShape([None, None]))
        return self.shared.embedding_table

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}


class ConditionalGeneration(generating.Generating):
    """Conditional generation: a mixin to list before an `EncoderDecoder` with a method `logits`.

    Call args:
        decoder_input_ids: int [batch, target_length], or None: made from the labels.
        labels: int [batch, target_length], or None. -100 is ignored.
        **kwargs: the other arguments of `EncoderDecoder`.
    Returns:
        dict: `logits`, float32 [batch, target_length, vocab_size]; with labels `loss`, float32
        scalar, the mean over all labels; and what `EncoderDecoder` returns, without
        `last_hidden_state`.
    Raises:
        ValueError: if there are neither decoder ids nor labels to make them from, or the config has
            no start token for these.
    """

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        labels=None,
        **arguments,
    ):
        if decoder_input_ids is None and arguments.get("decoder_inputs_embeds") is None:
            decoder_input_ids = self.decoder_ids(labels)
        outputs = super().call(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, **arguments
        )
        return with_logits(self, outputs, labels)
