"""GMAT (Gupta and Berant 2020, arXiv:2006.03274): chunks of text that share a global memory."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, sublayers
from etcmodel.models import conveniences
from etcmodel.models.gmat import inputs as inputs_lib
from etcmodel.models.gmat import layers as layers_lib
from etcmodel.models.gmat.config import GmatConfig
from etcmodel.models.gmat.embeddings import GmatEmbeddings
from etcmodel.ops import argument_checks

__all__ = ["GmatConfig", "GmatModel"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GmatModel(conveniences.Pretrained, base.Layer):
    """The GMAT encoder: tokens attend within chunks and to a memory, which attends to all tokens.

    Texts may have any length up to the number of positions; the last chunk may be shorter. With
    `num_compression_layers` in the config, the last layers get the text from the memory alone:
    `compress` and `decompress` are the two halves of the call.

    Args:
        config: `GmatConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length], or a dict of the arguments; or None with `inputs_embeds`.
        attention_mask: 0/1 int or bool [batch, length], or None. 0 for padding.
        token_type_ids: int [batch or 1, length]; by default 0.
        position_ids: int [batch or 1, length]; by default 0, 1, 2 …
        inputs_embeds: float [batch, length, hidden_size], in place of embeddings of `input_ids`.
        memory_ids: int [batch, num_memory_tokens], or None. Tokens whose embeddings replace the
            learned memory, such as the first tokens of a question (section 4.2).
        memory_mask: 0/1 int or bool [batch, num_memory_tokens], or None. 0 for unused memory, such
            as behind a short question.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory for all pairs of tokens, and time.
        training: bool.
    Returns:
        (hidden, memory): float [batch, length, hidden_size] and
        [batch, num_memory_tokens, hidden_size], which is None without a memory. If more is
        requested, a third output is a dict: `hidden_states` and `memory_states`, lists of the
        embeddings and each layer's output; `attentions` and `memory_attentions`, lists by layer of
        float32 [batch, num_heads, length, length + num_memory_tokens] and [batch, num_heads,
        num_memory_tokens, length + num_memory_tokens], 0 where there is no attention. With
        compression, `hidden_states` are those before and in the compressor, then those before and
        in the decompressor; layers of the memory alone have no keys but the memory.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model, or a position is out of
            range. In a graph, values known only at run time raise `tf.errors.InvalidArgumentError`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> hidden, memory = etcmodel.GmatModel(config)([[2, 7, 8, 3]])
    >>> hidden.shape, memory.shape
    (TensorShape([1, 4, 12]), TensorShape([1, 64, 12]))
    """

    def __init__(self, config: GmatConfig | dict, name: str = "gmat", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        if isinstance(config, dict):
            config = GmatConfig.from_dict(config)
        if not isinstance(config, GmatConfig):
            raise ValueError(f"`config` must be a `GmatConfig` or its dict. Received: {config!r}")
        self.config = config
        self.embeddings = GmatEmbeddings(config, dtype=self.dtype_policy)
        both = layers_lib.BOTH if config.num_memory_tokens else layers_lib.TOKENS
        self.layers = self.compressor = self.memory_layers = self.decompressor = None
        if config.num_compression_layers:
            self.compressor = self._stack("compressor", config.num_compression_layers, both)
            if config.num_memory_layers:
                self.memory_layers = self._stack(
                    "memory_layers", config.num_memory_layers, layers_lib.MEMORY
                )
            self.decompressor = self._stack("decompressor", config.num_decompression_layers, both)
        else:
            self.layers = self._stack("layers", config.num_hidden_layers, both)

    def _stack(self, name, num_layers, of):
        return layers_lib.GmatLayers(
            self.config, num_layers, of, name=name, dtype=self.dtype_policy
        )

    @property
    def stacks(self):
        """list of `GmatLayers`, in the order of the layers."""
        found = (self.layers, self.compressor, self.memory_layers, self.decompressor)
        return [layers for layers in found if layers is not None]

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        for layer in (self.embeddings, *self.stacks):
            sublayers.build_sublayer(layer, tf.TensorShape([None, None, self.config.hidden_size]))
        super().build(input_shape)

    def __call__(self, input_ids=None, *args, **kwargs):
        if hasattr(input_ids, "items"):
            return self(**{**input_ids, **kwargs})
        return super().__call__(input_ids, *args, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        memory_ids=None,
        memory_mask=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        if (input_ids is None) == (inputs_embeds is None):
            argument_checks.fail("Give `input_ids` or `inputs_embeds`, one of them.")
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
            "memory_ids": memory_ids,
            "memory_mask": memory_mask,
        }
        inputs = inputs_lib.checked(self.config, given)
        run = layers_lib.Runs(training, output_hidden_states, output_attentions)
        if self.compressor is None:
            hidden = run(self.layers, self._embedded(inputs, training), inputs)
        else:
            hidden = self._decompressed(self._compressed(inputs, run), inputs, run)
        hidden, memory = hidden if len(hidden) == 2 else (hidden[0], None)
        extras = run.outputs()
        return (hidden, memory, extras) if extras else (hidden, memory)

    def _embedded(self, inputs, training):
        """The input of the first layer: list of tokens and, if there is one, memory."""
        hidden = [self.embeddings.tokens(inputs, training)]
        if self.config.num_memory_tokens:
            hidden.append(self.embeddings.memory(inputs, training))
        return hidden

    def _compressed(self, inputs, run):
        """The memory after the layers that process it alone."""
        _, memory = run(self.compressor, self._embedded(inputs, run.training), inputs)
        if self.memory_layers is not None:
            (memory,) = run(self.memory_layers, [memory], inputs)
        return memory

    def _decompressed(self, memory, inputs, run):
        hidden = [self.embeddings.decompressor_input(inputs, run.training), memory]
        return run(self.decompressor, hidden, inputs)

    def compress(self, input_ids, attention_mask=None, training=None, **arguments):
        """Compresses a text into its memory (paper, section 2.2); see `decompress`.

        Args:
            input_ids, attention_mask, training, **arguments: as in a call.
        Returns:
            float [batch, num_memory_tokens, hidden_size].
        Raises:
            ValueError: if the model has no compression; see also the call.

        >>> sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_memory_tokens": 4}
        >>> model = etcmodel.GmatModel(etcmodel.GmatConfig(num_compression_layers=1, **sizes))
        >>> model.compress([[2, 7, 8, 3]]).shape
        TensorShape([1, 4, 12])
        """
        self._check_compression()
        given = {"input_ids": input_ids, "attention_mask": attention_mask, **arguments}
        inputs = inputs_lib.checked(self.config, given)
        return self._compressed(inputs, layers_lib.Runs(training))

    def decompress(self, memory, attention_mask, training=None, **arguments):
        """Recomputes a text's hidden states from its memory.

        Args:
            memory: float [batch, num_memory_tokens, hidden_size], from `compress`.
            attention_mask: 0/1 int [batch, length]. Gives the length of the text; 0 for padding.
            training: bool.
            **arguments: `token_type_ids`, `position_ids` and `memory_mask` as in a call.
        Returns:
            (hidden, memory): as in a call.
        Raises:
            ValueError: if the model has no compression; see also the call.

        >>> sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_memory_tokens": 4}
        >>> model = etcmodel.GmatModel(etcmodel.GmatConfig(num_compression_layers=1, **sizes))
        >>> memory = model.compress([[2, 7, 8, 3]])
        >>> hidden, _ = model.decompress(memory, attention_mask=[[1, 1, 1, 1]])
        >>> hidden.shape
        TensorShape([1, 4, 12])
        """
        self._check_compression()
        inputs = inputs_lib.checked(self.config, {"attention_mask": attention_mask, **arguments})
        memory = inputs_lib.checked_memory(self.config, memory, inputs.batch)
        return tuple(self._decompressed(memory, inputs, layers_lib.Runs(training)))

    def _check_compression(self):
        if self.compressor is None:
            raise ValueError(f"{self.name!r} has no compression: `num_compression_layers` is 0.")
        if not self.built:
            sublayers.build_sublayer(self, None)

    def get_token_embedding_table(self):
        """Returns the table of token embeddings: variable [vocab_size, hidden_size]."""
        if not self.built:
            sublayers.build_sublayer(self, None)
        return self.embeddings.word_embeddings.embedding_table

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}
