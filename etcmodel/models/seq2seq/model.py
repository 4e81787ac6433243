"""Encoder and decoder in one layer, and the layers of each: the base of each system's models."""

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.layers import (
    EmbeddingLookup,
    RecomputingDropout,
    base,
    feed_forward,
    heads,
    stack,
    sublayers,
)
from etcmodel.models import conveniences
from etcmodel.models.heads import losses
from etcmodel.models.seq2seq import generating
from etcmodel.models.seq2seq import inputs as seq2seq_inputs
from etcmodel.models.systems import Weights, dense_names, norm_names
from etcmodel.ops import argument_checks


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


def finished(layer, states, with_states=False, training=None):
    """The outputs of an encoder or a decoder, without attentions.

    Args:
        layer: the encoder or decoder, with a method `finish`.
        states: sequence of float [batch, length, size]: the output of the last layer, before it
            those of the others, and first the embeddings, if these are to be returned.
        with_states: bool. Whether they are.
        training: bool.
    Returns:
        dict: `last_hidden_state`, the finished output; on request `hidden_states`, a tuple of all
        states, the last one finished.
    """
    last = layer.finish(states[-1], training)
    hidden_states = {"hidden_states": (*states[:-1], last)} if with_states else {}
    return {"last_hidden_state": last, **hidden_states}


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


class TokenStack(base.TokenLayer):
    """The base of an encoder or, listed after `seq2seq.decoder.Decoder`, of a decoder.

    Args:
        config: the system's config, or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with another stack.
        name: name of the layer; by default the `side`.
        **kwargs: of the Keras layer.
    Attributes:
        side: of the class: "encoder" or "decoder".
        layers_class: of the class: a `TransformerStack`, created from the config.
        positions_entry: of the class: the config's entry for the number of rows of the table of
            positions; None if there is none.
        final_norm: of the class: the name of the normalization of the last layer's output, or None.
    """

    side = "encoder"
    layers_class = positions_entry = None
    final_norm = "layer_norm"

    def __init__(self, config, token_embedding=None, name=None, **kwargs):
        super().__init__(config, name or self.side, **kwargs)
        policy = {"dtype": self.dtype_policy}
        self.token_embedding = token_embedding or make_token_embedding(self)
        self.make_positions()
        rate = self.config.hidden_dropout_prob
        self.dropout = RecomputingDropout(rate, name="dropout", **policy)
        self.layers = self.layers_class(self.config, **policy)
        if self.final_norm is not None:
            setattr(self, self.final_norm, self.layers.make_normalization(self.final_norm))

    def make_positions(self):
        """Creates what `add_positions` needs."""
        self.position_embedding = None
        if self.positions_entry is not None:
            self.position_embedding = EmbeddingLookup(
                getattr(self.config, self.positions_entry),
                self.config.d_model,
                initializer_range=self.config.init_std,
                name="position_embedding",
                dtype=self.dtype_policy,
            )

    def parts(self):
        """The layers with variables, in the order in which they are built: list."""
        final_norm = self.final_norm and getattr(self, self.final_norm)
        return [self.token_embedding, self.position_embedding, self.layers, final_norm]

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        sublayers.build_all(self.config.d_model, *self.parts())
        super().build(input_shape)

    def embedded(
        self,
        input_ids,
        attention_mask,
        inputs_embeds,
        position_ids=None,
        training=None,
        is_mask_binary=True,
    ):
        """Checks and embeds the arguments of an encoder's call: see `seq2seq.inputs.of_encoder`.

        Returns:
            (float [batch, length, d_model], the mask as a tensor or None).
        """
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
            "position_ids": position_ids,
        }
        sizes = (self.config.d_model, self.config.vocab_size)
        given = seq2seq_inputs.of_encoder(given, *sizes, is_mask_binary)
        ids, embeddings = given["input_ids"], given["inputs_embeds"]
        hidden = self.embed(ids, embeddings, 0, training, given["position_ids"])
        return hidden, given["attention_mask"]

    def embed(self, ids, embeddings, start=0, training=None, position_ids=None):
        """Embeds ids for the first layer.

        Args:
            ids: int [batch, length], or None with embeddings.
            embeddings: float [batch, length, d_model], or None. Used without scaling.
            start: int or int32 scalar. The position of the first id.
            training: bool.
            position_ids: int [batch or 1, length], or None for consecutive ones.
        Returns:
            float [batch, length, d_model].
        Raises:
            ValueError: unless either ids or embeddings are given; if there are more tokens than
                positions; in a graph `tf.errors.InvalidArgumentError`.
        """
        if (ids is None) == (embeddings is None):
            raise ValueError("Give ids, or embeddings in their place, and not both.")
        hidden = self.token_embedding(ids) if embeddings is None else embeddings
        hidden = tf.cast(hidden, self.compute_dtype)
        if embeddings is None and self.config.embedding_scale != 1:
            hidden *= self.config.embedding_scale
        if position_ids is None:
            position_ids = (start + tf.range(tensor_utils.get_shape_list(hidden)[1]))[tf.newaxis]
        return self.dropout(self.add_positions(hidden, position_ids), training=training)

    def add_positions(self, hidden, position_ids):
        """Adds embeddings of positions, int [batch or 1, length], to those of tokens."""
        entry = self.positions_entry
        limit = getattr(self.config, entry)
        position_ids = argument_checks.in_range(
            "position_ids", position_ids, 0, limit, f"{limit}, which is `{entry}`"
        )
        return hidden + self.position_embedding(position_ids)

    def finish(self, hidden, training=None):
        """Returns the output, from that of the layers."""
        return hidden if self.final_norm is None else getattr(self, self.final_norm)(hidden)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        return self.token_embedding.embedding_table


def make_token_embedding(layer):
    """Creates the token embeddings of a layer with a `Seq2SeqConfig`: `EmbeddingLookup`."""
    return EmbeddingLookup(
        layer.config.vocab_size,
        layer.config.d_model,
        initializer_range=layer.config.embedding_range,
        name="shared",
        dtype=layer.dtype_policy,
    )


class BartLayers(base.Configured, stack.TransformerStack):
    """The base of the layers of an encoder or a decoder with a `BartConfig`.

    Args:
        config: a `config_class`, an attribute of the class, or its dict.
        name: name of the layer.
        **kwargs: of the Keras layer.
    """

    config_class = None
    side = "encoder"  # Or "decoder", which decides the sizes.

    def __init__(self, config, name="layers", **kwargs):
        self.config = config = self.config_class.of(config)
        sizes = self.of_side("layers"), self.of_side("attention_heads")
        super().__init__(*sizes, name=name, **config.stack_options(), **kwargs)
        self.make_blocks()

    def of_side(self, name):
        """The config's entry of this name for the side."""
        return getattr(self.config, f"{self.side}_{name}")

    @property
    def streams(self):
        return (self.stream("tokens"),)

    def stream(self, name):
        """A `Stream` of the side's sizes."""
        return stack.Stream(name, self.config.d_model, self.of_side("ffn_dim"))

    def make_feed_forward(self, index, stream):
        return feed_forward.FeedForward(
            stream.hidden_size,
            stream.intermediate_size,
            self.hidden_act,
            dropout_prob=self.config.activation_dropout,
            initializer_range=self.initializer_range,
            dtype=self.dtype_policy,
        )

    def attention_options(self):
        """Constructor arguments of all attention layers."""
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.num_attention_heads,
            "use_bias": self.config.use_bias,
            "att_dropout_prob": self.attention_probs_dropout_prob,
            "initializer_range": self.initializer_range,
            "dtype": self.dtype_policy,
        }


_PROJECTIONS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output_projection": "out_proj",
}


def bart_weights(root, names, side="(encoder|decoder)", **options):
    """The `Weights` of a system of BART's family, in Hugging Face's files.

    Args:
        root: str. What the names of an encoder-decoder's weights in files begin with.
        names: tuple of (pattern, replacement): see `Weights`. Names besides those of the token
            embeddings, the decoder's attention, the feed-forward layers and normalization in
            layers.
        side: str. Pattern of what the names of the encoder's or decoder's variables begin with.
        **options: of `Weights`.
    """
    own, cross, rest = (
        rf"{side}/layers/{kind}_layer_(\d+)"
        for kind in ("attention", "cross_attention", "feed_forward")
    )
    layer, table = rf"{root}.\1.layers.\2", f"{root}.shared.weight"
    # Other names of the token embeddings in older files.
    copies = (
        *(f"{root}.{x}.embed_tokens.weight" for x in ("encoder", "decoder")),
        "lm_head.weight",
    )
    return Weights(
        prefix=f"{root}.",  # In files of models for conditional generation.
        names=(
            (side.replace("(encoder|decoder)", "shared/embedding_table"), table),
            *(
                pair
                for block, their_block in ((own, "self_attn"), (cross, "encoder_attn"))
                for name, theirs in _PROJECTIONS.items()
                for pair in dense_names(
                    f"{block}/attention/{name}", f"{layer}.{their_block}.{theirs}"
                )
            ),
            *norm_names(f"{own}/layer_norm(?:_0)?", f"{layer}.self_attn_layer_norm"),
            *norm_names(f"{cross}/layer_norm", f"{layer}.encoder_attn_layer_norm"),
            *dense_names(f"{rest}/feed_forward/inner", f"{layer}.fc1"),
            *dense_names(f"{rest}/feed_forward/output", f"{layer}.fc2"),
            *norm_names(f"{rest}/layer_norm", f"{layer}.final_layer_norm"),
            *names,
        ),
        copies=dict.fromkeys(copies, table),
        **{"aliases": {table: copies}, **options},
    )


class EncoderDecoder(conveniences.Pretrained, base.TokenLayer):
    """An encoder-decoder without logits: ids of both to the decoder's hidden states.

    A system's class sets `config_class`, `encoder_class` and `decoder_class`, or creates all parts
    in `make_parts`.

    Args:
        config: the system's config, or its dict.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds` or
            `encoder_output`.
        attention_mask: 0/1 int [batch, length], or None. 0 for padding. Without it, padding ids
            count as ordinary tokens.
        decoder_input_ids: int [batch, target_length], or None with `decoder_inputs_embeds`, or for
            `input_ids`, shifted by one position, in systems that read these again.
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

    encoder_class = decoder_class = None
    reads_again = False  # Whether the decoder by default reads the encoder's input.

    def __init__(self, config, name, **kwargs):
        super().__init__(config, name, **kwargs)
        self.make_parts()

    def make_parts(self):
        """Creates `shared`, the token embeddings, `encoder` and `decoder`."""
        self.shared = make_token_embedding(self)
        policy = {"dtype": self.dtype_policy}
        self.encoder = self.encoder_class(self.config, self.shared, **policy)
        self.decoder = self.decoder_class(self.config, self.shared, **policy)

    def build(self, input_shape):
        sublayers.build_all(None, self.shared, self.encoder, self.decoder)
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
        if self.reads_again and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.decoder_ids(input_ids, "input_ids")
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
            source = "`labels` or `input_ids`" if self.reads_again else "`labels`"
            raise ValueError(f"Give `decoder_input_ids`, or {source} to make them of.")
        config = self.config
        return seq2seq_inputs.decoder_ids(
            labels, config.decoder_start_token_id, config.pad_token_id, name
        )

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.shared, tf.TensorShape([None, None]))
        return self.shared.embedding_table


class ConditionalGeneration(generating.Generating):
    """Conditional generation: a mixin to list before an `EncoderDecoder`.

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
        needs_ids = decoder_input_ids is None and arguments.get("decoder_inputs_embeds") is None
        if needs_ids and (labels is not None or not self.reads_again):
            decoder_input_ids = self.decoder_ids(labels)
        outputs = super().call(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, **arguments
        )
        return with_logits(self, outputs, labels)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        return tied_logits(hidden, self.get_token_embedding_table())


class LogitsBias:
    """A mixin to list before the bases of a model for conditional generation: a bias, not trained.

    Files of Hugging Face's models have it, mostly with zeros.
    """

    def build(self, input_shape):
        self.logits_bias = self.add_weight(
            name="final_logits_bias",
            shape=(1, self.config.vocab_size),
            initializer="zeros",
            trainable=False,
        )
        super().build(input_shape)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        logits = tied_logits(hidden, self.get_token_embedding_table())
        return logits + tf.cast(self.logits_bias[0], tf.float32)


class QuestionAnswering:
    """Extractive question answering by the decoder: a mixin to list before an `EncoderDecoder`.

    Args:
        config: of the other base.
        name: name of the layer.
        **kwargs: of the other base.
    Call args:
        input_ids, attention_mask, **arguments: of the other base.
        start_positions, end_positions: int [batch], or None. Those beyond the text are ignored.
    Returns:
        dict: see `with_spans`.
    Raises:
        ValueError: see there and the other base.
    """

    def __init__(self, config, name, **kwargs):
        super().__init__(config, name, **kwargs)
        self.span = heads.SpanLogits(
            ("start", "end"), self.config.init_std, name="qa_outputs", dtype="float32"
        )

    def build(self, input_shape):
        sublayers.build_all(self.config.d_model, self.span)
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        start_positions=None,
        end_positions=None,
        **arguments,
    ):
        outputs = super().call(input_ids, attention_mask, **arguments)
        return with_spans(self.span, outputs, start_positions, end_positions)
