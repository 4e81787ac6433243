"""Transformer layers with sliding windows, for Longformer and LED's encoder."""

from etcmodel.layers import initializers, stack
from etcmodel.layers.attention.sliding_window import SlidingWindowAttention
from etcmodel.layers.observation import run_observed

__all__ = ["SlidingWindowLayers"]


class SlidingWindowLayers(stack.TransformerStack):
    """Transformer layers with sliding-window attention, each with its own window.

    Args:
        stream: `stack.Stream`. The sizes.
        radii: sequence of int, by layer. Tokens attended to on each side.
        num_attention_heads: int.
        dilations: sequence by layer of `SlidingWindowAttention`'s `dilation`; None for no gaps.
        is_causal: bool.
        **kwargs: of `TransformerStack`.
    Call args:
        inputs: float [batch, length, hidden_size].
        training: bool.
        **attention: arguments of `SlidingWindowAttention`.
    Returns:
        float [batch, length, hidden_size].
    Attributes:
        attention_class: `SlidingWindowAttention`, or a subclass's replacement for it.
    """

    attention_class = SlidingWindowAttention

    def __init__(
        self, stream, radii, num_attention_heads, *, dilations=None, is_causal=False, **kwargs
    ):
        super().__init__(len(radii), num_attention_heads, **kwargs)
        self.stream = stream
        self.radii = tuple(radii)
        self.dilations = tuple(dilations or [1] * len(radii))
        self.is_causal = is_causal
        self.attention_layers = self.attention_blocks()
        self.feed_forward_layers = self.feed_forward_blocks()

    @property
    def streams(self):
        return (self.stream,)

    def make_attention(self, index):
        return self.attention_class(
            self.stream.hidden_size,
            self.num_attention_heads,
            self.radii[index],
            dilation=self.dilations[index],
            is_causal=self.is_causal,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer=initializers.fresh(self.initializer),
            dtype=self.dtype_policy,
        )

    def steps(self, index):
        return (
            stack.Step(self.attention_layers[index], options="attention"),
            stack.Step(self.feed_forward_layers[index]),
        )

    def call(self, inputs, training=None, **attention):
        (output,) = self.run([inputs], training, attention=attention)
        return output

    def observed(self, inputs, training=None, *, with_attentions=False, **attention):
        """Like a call, but returns all hidden states, and attention probabilities on request.

        Args:
            inputs, training, **attention: see the call.
            with_attentions: bool. Whether to compute the probabilities of all pairs of tokens.
        Returns:
            (states, attentions): list of float [batch, length, hidden_size], the input and the
            output of each layer; and a dict of lists by layer, empty without probabilities:
            `attentions` and, if there may be global tokens, `global_attentions`, as returned by
            `SlidingWindowAttention.attention_probs`.
        """
        states, _ = run_observed(self, [inputs], training, attention=attention)
        states = [hidden for (hidden,) in states]
        if not with_attentions:
            return states, {}
        local, of_globals = zip(
            *(
                block.inner_layer.attention_probs(hidden, **attention)
                for block, hidden in zip(self.attention_layers, states[:-1], strict=True)
            ),
            strict=True,
        )
        attentions = {"attentions": list(local)}
        if of_globals[0] is not None:
            attentions["global_attentions"] = list(of_globals)
        return states, attentions
