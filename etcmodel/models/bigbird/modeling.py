"""BigBird (Zaheer et al. 2020): encoder, heads and their weights in Hugging Face files."""

from typing import NamedTuple

import tensorflow as tf
import tf_keras

from etcmodel.layers import (
    DenseLayers,
    initializers,
    normalization,
    stack,
)
from etcmodel.layers.attention.block_sparse import BlockSparseAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models import input_checks, processed_batches, sequence_classifiers, span_readers
from etcmodel.models.bigbird.config import ORIGINAL_FULL, BigBirdConfig
from etcmodel.models.heads import base as head_base
from etcmodel.models.heads import losses, of_text
from etcmodel.models.longformer import modeling as longformer
from etcmodel.models.systems import Weights, dense_names, logits_names, norm_names
from etcmodel.ops import argument_checks, block_sparse

_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "token_type_ids": "batch? length",
    "position_ids": "batch? length",
    "random_blocks": "num_hidden_layers num_attention_heads blocks num_random_blocks",
}


class Inputs(NamedTuple):
    """Inputs of one call.

    Attributes:
        input_ids: int32 [batch, length], or None.
        inputs_embeds: float [batch, length, hidden_size], or None: one of the two.
        token_type_ids: int [batch or 1, length].
        position_ids: int [batch or 1, length].
        attention: dict of the arguments of `BlockSparseAttention`.
    """

    input_ids: tf.Tensor | None
    inputs_embeds: tf.Tensor | None
    token_type_ids: tf.Tensor
    position_ids: tf.Tensor
    attention: dict


@tf.autograph.experimental.do_not_convert
def checked(config, given):
    """Checks the arguments of a model's call and returns its `Inputs`.

    Args:
        config: `BigBirdConfig`.
        given: dict of the arguments of the call by name; None if not given.
    Raises:
        ValueError: in one line that names the argument, what is wanted and what is found. In a
            graph, values known only at run time raise `tf.errors.InvalidArgumentError` with that
            line. Code compiled by XLA cannot raise.
    """
    asserts = []
    sizes = ("num_hidden_layers", "num_attention_heads", "num_random_blocks")
    given, (_, length) = input_checks.checked_text(config, given, _AXES, asserts, sizes)
    positions, limit = given["position_ids"], config.max_position_embeddings
    positions = argument_checks.checked_ids(
        "position_ids",
        tf.range(length)[tf.newaxis] if positions is None else positions,
        limit,
        f"{limit}, the rows of the table of positions and the most tokens of a text",
        asserts=asserts,
    )
    attention = attention_of(config, given, length, asserts)
    ids, embeds, types = map(given.get, ("input_ids", "inputs_embeds", "token_type_ids"))
    return input_checks.after(asserts, Inputs(ids, embeds, types, positions, attention))


def attention_of(config, given, length, asserts):
    """Derives the arguments of the attention layers.

    Args:
        config: with `pattern_by_length` and the settings of blocks, as `BigBirdConfig`.
        given: dict of `attention_mask` and `random_blocks`, which may be None.
        length: int or scalar tensor.
        asserts: list, to which a graph adds its checks; see `argument_checks.check`.
    Returns:
        dict of `token_mask`, `lengths` and `random_blocks`: see `BlockSparseAttention`.
    Raises:
        ValueError: see `checked`.
    """
    token_mask = given["attention_mask"]
    if token_mask is not None:
        kinds = ("padding", "token")
        token_mask = argument_checks.checked_mask(
            "attention_mask", token_mask, kinds, asserts=asserts
        )
    lengths = None
    if config.pattern_by_length and token_mask is not None:
        lengths = tf.reduce_max(tf.where(token_mask, 1 + tf.range(length), 0), axis=1)
    random_blocks = given["random_blocks"]
    if random_blocks is not None:
        random_blocks = _checked_blocks(config, random_blocks, length, asserts)
    return {"token_mask": token_mask, "lengths": lengths, "random_blocks": random_blocks}


def _checked_blocks(config, random_blocks, length, asserts):
    """Random blocks as a tensor, if there is any use for them."""
    if config.attention_type == ORIGINAL_FULL or not config.num_random_blocks:
        return None
    num_blocks = block_sparse.num_blocks_of(length, config.block_size)
    random_blocks = argument_checks.checked_ids(
        "random_blocks",
        random_blocks,
        num_blocks,
        f"{num_blocks}, the number of blocks of this input",
        asserts=asserts,
    )
    rows = tf.shape(random_blocks)[2]
    argument_checks.check(
        tf.equal(rows, num_blocks - 2) | (length <= config.longest_full),
        "`random_blocks` must be of all blocks but the first and the last. Received: number of "
        "rows, number of blocks of this input:",
        rows,
        num_blocks,
        asserts=asserts,
    )
    # In a graph the size may not be known.
    random_blocks = tf.ensure_shape(random_blocks, [None, None, None, config.num_random_blocks])
    return tf.cast(random_blocks, tf.int32)


class BigBirdLayers(stack.TransformerStack):
    """BigBird's transformer layers.

    Args:
        config: `BigBirdConfig`.
        **kwargs: of the Keras layer.
    Call args:
        inputs: float [batch, length, hidden_size].
        training: bool.
        **attention: arguments of `BlockSparseAttention`.
    Returns:
        float [batch, length, hidden_size].
    """

    def __init__(self, config, **kwargs):
        super().__init__(config.num_hidden_layers, **config.stack_options(), **kwargs)
        self.config = config
        self.make_blocks()

    @property
    def streams(self):
        return (stack.Stream("tokens", self.config.hidden_size, self.config.intermediate_size),)

    def make_attention(self, index):
        config = self.config
        is_full = config.attention_type == ORIGINAL_FULL
        # Layers that differ in nothing but their weights may run as a loop.
        is_alike = is_full or not config.num_random_blocks
        return BlockSparseAttention(
            config.hidden_size,
            self.num_attention_heads,
            block_size=None if is_full else config.block_size,
            num_random_blocks=config.num_random_blocks,
            max_length=config.max_length,
            layer_number=0 if is_alike else index,
            is_seeded_always=config.is_seeded_always,
            use_bias=config.use_bias,
            use_output_bias=True,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer_range=self.initializer_range,
            name="self_attention",
            dtype=self.dtype_policy,
        )

    def observed(self, inputs, training=None, *, with_attentions=False, **attention):
        """Like a call, but returns all hidden states, and attention probabilities on request.

        Args:
            inputs, training, **attention: see the call.
            with_attentions: bool. Whether to compute the probabilities of all pairs of tokens.
        Returns:
            (states, attentions): list of float [batch, length, hidden_size], the input and the
            output of each layer; and a dict, empty without probabilities: `attentions`, a list by
            layer of `BlockSparseAttention.attention_probs`.
        """
        states, _ = run_observed(self, [inputs], training, attention=attention)
        states = [hidden for (hidden,) in states]
        if not with_attentions:
            return states, {}
        pairs = zip(self.attention_layers, states[:-1], strict=True)
        probs = [
            block.inner_layer.attention_probs(hidden, training=training, **attention)
            for block, hidden in pairs
        ]
        return states, {"attentions": probs}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdModel(longformer.BertWithPooler):
    """The BigBird encoder: token ids to hidden states, as in Hugging Face's `BigBirdModel`.

    Inputs of up to `config.longest_full` tokens have full attention, longer ones that of
    `ops.block_sparse`. By default the length of the padded batch decides which, and where the last
    block is, to which all attend: a text's values then depend on its padding, as in Hugging Face's
    library. With `pattern_by_length` they do not.

    Args:
        config: `BigBirdConfig` (or its dict).
        add_pooling_layer: bool. Whether to add BERT's pooler.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds`.
        attention_mask: 0/1 int, float or bool [batch, length], or None. 0 is padding.
        token_type_ids: int [batch or 1, length]; by default 0.
        position_ids: int [batch or 1, length]; by default 0, 1, 2, …, whatever is padding.
        inputs_embeds: float [batch, length, hidden_size], in place of embeddings of `input_ids`.
        random_blocks: int [num_hidden_layers, num_attention_heads, blocks - 2, num_random_blocks],
            or None. The blocks of keys that each block but the first and the last attends to once
            more; `blocks` is `length / block_size`, rounded up. By default those of
            `ops.block_sparse.seeded_blocks` in training, otherwise all are the first block (see
            `BigBirdConfig.is_seeded_always`). Without effect in full attention.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory for all pairs of tokens, and time.
        training: bool.
    Returns:
        (hidden, pooled): float [batch, length, hidden_size] and [batch, hidden_size], which is None
        without a pooler. If more is requested, a third output is a dict: `hidden_states`, a list of
        the embeddings and each layer's output; `attentions`, a list by layer of float32
        [batch, num_heads, length, length], in which a block that counts several times has the
        probability of once.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model: see `checked`,
            also for what graphs raise.

    >>> config = etcmodel.BigBirdConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.BigBirdModel(config)
    >>> hidden, pooled = model([[65, 7, 8, 66]])
    >>> hidden.shape, pooled.shape
    (TensorShape([1, 4, 12]), TensorShape([1, 12]))
    """

    config_class, layers_class = BigBirdConfig, BigBirdLayers

    def __init__(
        self,
        config: BigBirdConfig | dict,
        add_pooling_layer: bool = True,
        name: str = "big_bird",
        **kwargs,
    ):
        super().__init__(config, add_pooling_layer, name, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        random_blocks=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
            "random_blocks": random_blocks,
        }
        inputs = checked(self.config, given)
        embedded = self._embed(inputs, training)
        wanted = (output_hidden_states, output_attentions)
        return self.outputs(embedded, inputs.attention, wanted, training)

    def _embed(self, inputs, training):
        """Embeddings: float [batch, length, hidden_size]."""
        if inputs.input_ids is None:
            embeddings = tf.cast(inputs.inputs_embeds, self.compute_dtype)
        else:
            embeddings = self.word_embeddings(inputs.input_ids)
        if self.config.rescale_embeddings:
            embeddings *= self.config.hidden_size**0.5
        embeddings += self.token_type_embeddings(inputs.token_type_ids)
        embeddings += self.position_embeddings(inputs.position_ids)
        return self.embedding_norm(self.embedding_dropout(embeddings, training=training))

    def pair_counts(self, given, length):
        """How often pairs of tokens count in the softmax of an evaluation, by layer: list.

        Args:
            given: dict of arguments of a call by name.
            length: int.
        Returns:
            list of int32 tensors: see `ops.block_sparse.pair_counts`.
        """
        names = ("attention_mask", "random_blocks")
        given = {name: given.get(name) for name in names}
        attention = attention_of(self.config, given, length, [])
        del attention["token_mask"]
        blocks = self.layers.attention_layers
        return [block.inner_layer.pair_counts(length, **attention) for block in blocks]


# BigBird with heads, like Hugging Face's classes of the same names.


class BigBirdHead(of_text.TextHead):
    """The base of BigBird's heads.

    Args:
        encoder: `BigBirdModel`, or `BigBirdConfig`, from which a model is created.
        dropout: float or None. Dropout rate of the head; None for the config's
            `classifier_dropout`, or without one for its `hidden_dropout_prob`, which question
            answering always has.
        **kwargs: of `TextHead`.
    Call args: see `TextHead`; the arguments are those of `BigBirdModel`.
    """

    encoder_class = BigBirdModel
    needs_pooler = True  # In Hugging Face's files of most heads, whether they use it or not.
    uses_pooler = False

    @classmethod
    def make_encoder(cls, config):
        return BigBirdModel(config, add_pooling_layer=cls.needs_pooler)

    def default_dropout(self):
        rate = self.encoder.config.classifier_dropout
        return super().default_dropout() if rate is None else rate


@head_base.register_head
class BigBirdForMaskedLM(BigBirdHead, of_text.MaskedLM):
    """Masked language model over a BigBird: see `MaskedLM`.

    >>> config = etcmodel.BigBirdConfig(hidden_size=12, num_hidden_layers=1)
    >>> etcmodel.BigBirdForMaskedLM(config)([[65, 4, 8, 66]]).shape
    TensorShape([1, 4, 50358])
    """

    head_type = "big_bird_masked_lm"


@head_base.register_head
class BigBirdForPreTraining(BigBirdHead, of_text.MaskedLM):
    """Masked language model over a BigBird that also tells whether a second text follows the first.

    Released checkpoints have this head; `BigBirdForMaskedLM` reads them, too. Labels are those of
    `MaskedLM` as `prediction_logits`, and int [batch], 0 if it follows, as
    `seq_relationship_logits`.

    Returns:
        dict of `prediction_logits`, float32 [batch, length, vocab_size], and
        `seq_relationship_logits`, float32 [batch, 2].

    >>> config = etcmodel.BigBirdConfig(hidden_size=12, num_hidden_layers=1)
    >>> etcmodel.BigBirdForPreTraining(config)([[65, 8, 66]])["seq_relationship_logits"].shape
    TensorShape([1, 2])
    """

    head_type = "big_bird_pre_training"
    uses_pooler = True

    def make_head(self):
        super().make_head()
        self.relationship = self.token_logits(2, name="seq_relationship")

    def head(self, hidden, other, training):
        return {
            "prediction_logits": super().head(hidden, other, training),
            "seq_relationship_logits": self.relationship(other),
        }

    def default_loss(self):
        return {
            "prediction_logits": losses.MeanCrossentropy(),
            "seq_relationship_logits": losses.SparseCrossentropy(),
        }

    def default_metrics(self):
        return {name: [losses.SparseAccuracy()] for name in self.default_loss()}


@head_base.register_head
class BigBirdForSequenceClassification(BigBirdHead, of_text.SequenceClassification):
    """Text classifier or regression over a BigBird: see `SequenceClassification`.

    >>> config = etcmodel.BigBirdConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.BigBirdForSequenceClassification(config, labels=["neg", "pos"])
    >>> model([[65, 7, 8, 66]]).shape
    TensorShape([1, 2])
    """

    head_type = "big_bird_sequence_classification"

    @property
    def dense_activation(self):
        return self.encoder.config.activation


@head_base.register_head
class BigBirdForTokenClassification(BigBirdHead, of_text.TokenClassification):
    """Token classifier over a BigBird: see `TokenClassification`.

    >>> config = etcmodel.BigBirdConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.BigBirdForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> model([[65, 7, 8, 66]]).shape
    TensorShape([1, 4, 3])
    """

    head_type = "big_bird_token_classification"


_IN_QUESTION = -1e6  # Added to the logits of the question, as in Hugging Face's library.


@head_base.register_head
class BigBirdForQuestionAnswering(BigBirdHead, of_text.QuestionAnswering):
    """Extractive question answering over a BigBird: see `QuestionAnswering`.

    The question comes first. Its length, with the special tokens around it, is `question_lengths`,
    int [batch] or [batch, 1]; by default the place behind the first `sep_token_id` in `input_ids`,
    or 1 without any. No answer is in the question, but the first token stands for none. Unless
    `token_type_ids` are given, those of the question are 0 and the others 1.

    >>> config = etcmodel.BigBirdConfig(hidden_size=12, num_hidden_layers=1)
    >>> logits = etcmodel.BigBirdForQuestionAnswering(config)([[65, 7, 66, 8, 9, 66]])
    >>> (logits["start"].numpy() > -1e5).astype(int)
    array([[1, 0, 0, 1, 1, 1]])
    """

    head_type = "big_bird_question_answering"
    needs_pooler = False

    def default_dropout(self):
        return self.encoder.config.hidden_dropout_prob

    def make_head(self):
        config = self.encoder.config
        initializer = initializers.default_initializer(config.initializer_range)
        self.transform = self.built_on_hidden(
            DenseLayers(
                [config.intermediate_size, config.hidden_size],
                activation=config.activation,
                kernel_initializer=initializer,
                name="qa_transform",
                dtype="float32",
            )
        )
        self.transform_norm = self.built_on_hidden(
            normalization.LayerNormalization(
                axis=-1, epsilon=config.layer_norm_eps, name="qa_norm", dtype="float32"
            )
        )
        super().make_head()

    def encode(self, batch, training):
        """Like `TextHead.encode`; the second output marks the question, bool, or is None."""
        batch = dict(batch)
        lengths, ids = batch.pop("question_lengths", None), batch.get("input_ids")
        if lengths is None and ids is None:
            hidden, _, *observed = super().encode(batch, training)
            return (hidden, None, *observed)
        if lengths is None:
            is_separator = tf.equal(tf.convert_to_tensor(ids), self.encoder.config.sep_token_id)
            # Without separators the first place is the greatest, too.
            lengths = 1 + tf.argmax(tf.cast(is_separator, tf.int32), axis=1, output_type=tf.int32)
        source = tf.convert_to_tensor(batch["inputs_embeds"] if ids is None else ids)
        places = tf.range(tf.shape(source)[1])
        is_question = places < tf.reshape(tf.cast(lengths, tf.int32), [-1, 1])
        if batch.get("token_type_ids") is None and self.encoder.config.type_vocab_size > 1:
            batch["token_type_ids"] = tf.cast(~is_question, tf.int32)
        hidden, _, *observed = super().encode(batch, training)
        return (hidden, is_question & (places > 0), *observed)

    def head(self, hidden, other, training):
        hidden = tf.cast(hidden, tf.float32)
        transformed = self.transform(self.dropout(hidden, training=training), training=training)
        transformed = self.dropout(transformed, training=training)
        logits = self.span(self.transform_norm(transformed + hidden))
        if other is None:
            return logits
        bias = tf.where(other, _IN_QUESTION, 0.0)
        return {end: x + bias for end, x in logits.items()}


@head_base.register_head
class BigBirdForMultipleChoice(BigBirdHead, of_text.MultipleChoice):
    """Multiple choice over a BigBird: see `MultipleChoice`.

    >>> config = etcmodel.BigBirdConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.BigBirdForMultipleChoice(config)
    >>> model([[[65, 7, 66, 5, 66], [65, 7, 66, 6, 66]]]).shape  # One question, two choices.
    TensorShape([1, 2])
    """

    head_type = "big_bird_multiple_choice"
    uses_pooler = True


# Heads for batches of `EtcProcessor`, for the programs of tasks.


class BigBirdClassifier(processed_batches.ReadsProcessed, BigBirdForSequenceClassification):
    """`BigBirdForSequenceClassification` for batches of `EtcProcessor`."""


class BigBirdSpanReader(span_readers.ReadsProcessed, BigBirdForQuestionAnswering):
    """`BigBirdForQuestionAnswering` for batches of `EtcProcessor`, which tell the question."""

    def read(self, features):
        is_question = (features["example_ids"] > 0) & (features["segment_ids"] < 1)
        lengths = tf.reduce_sum(tf.cast(is_question, tf.int32), axis=1)
        return {**super().read(features), "question_lengths": lengths}


bigbird_classifier = sequence_classifiers.of_first_token(BigBirdClassifier)


# The names of BigBird's weights in Hugging Face's files.


_LAYER = r"big_bird/layers/{}_layer_(\d+)"
_ATTENTION, _FEED_FORWARD = _LAYER.format("attention"), _LAYER.format("feed_forward")
_IN_LAYER = r"bert.encoder.layer.\1"


_NAMES = (
    (
        r"big_bird/(word|position|token_type)_embeddings/embedding_table",
        r"bert.embeddings.\1_embeddings.weight",
    ),
    *norm_names("big_bird/embedding_norm", "bert.embeddings.LayerNorm"),
    *dense_names(
        rf"{_ATTENTION}/self_attention/(query|key|value)", rf"{_IN_LAYER}.attention.self.\2"
    ),
    *dense_names(
        f"{_ATTENTION}/self_attention/output_projection", f"{_IN_LAYER}.attention.output.dense"
    ),
    *norm_names(f"{_ATTENTION}/layer_norm", f"{_IN_LAYER}.attention.output.LayerNorm"),
    *dense_names(f"{_FEED_FORWARD}/dense_layers/layer_0", f"{_IN_LAYER}.intermediate.dense"),
    *dense_names(f"{_FEED_FORWARD}/dense_layers/layer_1", f"{_IN_LAYER}.output.dense"),
    *norm_names(f"{_FEED_FORWARD}/layer_norm", f"{_IN_LAYER}.output.LayerNorm"),
    *dense_names("big_bird/pooler", "bert.pooler"),
    *dense_names("mlm/transform/dense", "cls.predictions.transform.dense"),
    *norm_names("mlm/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
    ("mlm/bias", "cls.predictions.bias"),
    *logits_names("seq_relationship", "cls.seq_relationship"),
    *dense_names("classifier_dense", "classifier.dense"),
    *logits_names("classifier_out", "classifier.out_proj"),
    *logits_names("classifier", "classifier"),
    *dense_names("qa_transform/layer_0", "qa_classifier.intermediate.dense"),
    *dense_names("qa_transform/layer_1", "qa_classifier.output.dense"),
    *norm_names("qa_norm", "qa_classifier.output.LayerNorm"),
    *logits_names("qa_outputs", "qa_classifier.qa_outputs"),
)


def _encoder_options(names, head_class):
    """Arguments of `BigBirdModel`: a pooler if a head must have one, or keeps that of the file."""
    has_pooler = any("pooler." in name for name in names)
    if head_class is not None and issubclass(head_class, BigBirdHead):
        has_pooler = head_class.uses_pooler or (head_class.needs_pooler and has_pooler)
    return {"add_pooling_layer": has_pooler}


WEIGHTS = Weights(
    prefix="bert.",
    names=_NAMES,
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    obsolete=("bert.embeddings.position_ids",),  # The numbers from 0 on.
    encoder_options=_encoder_options,
)
