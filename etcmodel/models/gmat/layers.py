"""Transformer layers over tokens and a memory (Gupta and Berant 2020, section 2)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import stack
from etcmodel.layers.attention.chunk_memory import ChunkMemoryAttention
from etcmodel.layers.observation import run_observed
from etcmodel.layers.wrappers import ResidualBlock
from etcmodel.models.gmat.config import GmatConfig

__all__ = ["BOTH", "MEMORY", "TOKENS", "GmatLayers", "Runs", "stack_options"]

TOKENS, MEMORY, BOTH = ("tokens",), ("memory",), ("tokens", "memory")


def stack_options(config):
    """Returns the arguments of `TransformerStack` for a `GmatConfig`: dict."""
    return {
        "num_attention_heads": config.num_attention_heads,
        "hidden_act": tensor_utils.get_activation(config.activation),
        "hidden_dropout_prob": config.hidden_dropout_prob,
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob,
        "initializer_range": config.initializer_range,
        "grad_checkpointing_period": config.grad_checkpointing_period,
        "layer_norm_epsilon": config.layer_norm_eps,
    }


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GmatLayers(stack.TransformerStack):
    """Transformer layers that tokens and memory share, except for untied projections.

    Args:
        config: `GmatConfig` or its dict.
        num_layers: int.
        of: `BOTH`, `TOKENS` alone, within their chunks, or `MEMORY` alone, which attends to itself.
        name: name of the layer.
    Call args:
        hidden: list of float [batch, length, hidden_size], one for each stream of the layers.
        att_mask: 0/1 int [batch, length] or None. Of tokens.
        memory_mask: 0/1 int [batch, memory_length] or None. Of the memory.
        training: bool.
    Returns:
        list, shaped like `hidden`.
    """

    def __init__(self, config, num_layers, of=BOTH, name="layers", **kwargs):
        config = GmatConfig.from_dict(config) if isinstance(config, dict) else config
        super().__init__(num_layers, name=name, **stack_options(config), **kwargs)
        self.config = config
        self.of = tuple(of)
        self.attention_layers = [self._attention_block(index) for index in range(num_layers)]
        self.feed_forward_layers = self.feed_forward_blocks()

    @property
    def streams(self):
        sizes = self.config.hidden_size, self.config.intermediate_size
        return tuple(stack.Stream(name, *sizes) for name in self.of)

    def make_attention(self, index):
        config = self.config
        return ChunkMemoryAttention(
            config.hidden_size,
            config.num_attention_heads,
            chunk_size=None if self.of == MEMORY else config.chunk_size,
            has_own_memory_projections=config.has_own_memory_projections and self.of == BOTH,
            has_own_memory_output=config.has_own_memory_output and self.of == BOTH,
            use_bias=True,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer_range=self.initializer_range,
            dtype=self.dtype_policy,
        )

    def _attention_block(self, index):
        """Like `attention_blocks`, but all streams share one normalization."""
        return ResidualBlock(
            inner_layer=self.make_attention(index),
            normalization_layer=[self.make_normalization("layer_norm")] * len(self.of),
            dropout_probability=self.hidden_dropout_prob,
            name=f"attention_layer_{index}",
            dtype=self.dtype_policy,
        )

    def steps(self, index):
        streams = tuple(range(len(self.of)))
        feed_forward = self.feed_forward_layers[index]
        return (
            stack.Step(self.attention_layers[index], streams=streams, options="attention"),
            *(stack.Step(feed_forward, streams=(number,)) for number in streams),
        )

    def call(self, hidden, att_mask=None, memory_mask=None, training=None):
        return self.run(hidden, training, attention=self.masks(att_mask, memory_mask))

    def masks(self, att_mask, memory_mask):
        """The arguments of all attention layers: dict, with the masks of tokens and memory."""
        if self.of == MEMORY:
            return {"att_mask": memory_mask}
        return {"att_mask": att_mask, **({"memory_mask": memory_mask} if self.of == BOTH else {})}

    def get_config(self):
        return {
            **tf_keras.layers.Layer.get_config(self),
            "config": self.config.to_dict(),
            "num_layers": self.num_hidden_layers,
            "of": list(self.of),
        }


class Runs:
    """Runs hidden states through several stacks of layers, and keeps what is requested.

    Args:
        training: bool.
        with_states, with_attentions: bool. What to keep.
    """

    def __init__(self, training, with_states=False, with_attentions=False):
        self.training = training
        self._kept = {}
        self._with_states, self._with_attentions = with_states, with_attentions

    def __call__(self, layers, hidden, inputs):
        """Calls a `GmatLayers` with the masks of an `inputs.Inputs`: list, shaped like `hidden`."""
        masks = (inputs.attention_mask, inputs.memory_mask)
        if not (self._with_states or self._with_attentions):
            return layers(hidden, *masks, training=self.training)
        states, calls = run_observed(
            layers,
            hidden,
            self.training,
            with_attentions=self._with_attentions,
            attention=layers.masks(*masks),
        )
        if self._with_states:
            self._keep(layers, "states", states)
        if self._with_attentions:
            self._keep(layers, "attentions", [[tf.concat(x, -1) for x in call] for call in calls])
        return states[-1]

    def _keep(self, layers, what, by_layer):
        for of, values in zip(layers.of, zip(*by_layer, strict=True), strict=True):
            name = (
                f"memory_{what}" if of == "memory" else {"states": "hidden_states"}.get(what, what)
            )
            known = self._kept.setdefault(name, [])
            # The memory passes on from one stack to the next.
            known += values[1:] if name == "memory_states" and known else values

    def outputs(self):
        """dict of lists by name."""
        return self._kept
