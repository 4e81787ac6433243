"""Sliding windows with Transformer-XL's relative positions, for Longformer's language models."""

import tf_keras

from etcmodel.layers import initializers
from etcmodel.layers.attention.sliding_window import SlidingWindowAttention
from etcmodel.ops.sinusoids import SinusoidPositions

__all__ = ["RelativeWindowAttention"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RelativeWindowAttention(SlidingWindowAttention):
    """Sliding-window attention whose logits also depend on the distance of query and key.

    Source: Beltagy et al. 2020 (arXiv:2004.05150), appendix B, with the positions of Dai et al.
    2019 (arXiv:1901.02860), section 3.3: see `ops.sinusoid_positions`. Global tokens, which causal
    layers cannot have, are attended to without a distance.

    Args: see `SlidingWindowAttention`, also for the call.
    Raises:
        ValueError: see there; also if `hidden_size`, the size of the sinusoids, is odd.
    """

    def __init__(self, hidden_size, num_heads, radius, **kwargs):
        super().__init__(hidden_size, num_heads, radius, **kwargs)
        if hidden_size % 2:
            raise ValueError(
                f"`hidden_size` must be even: half of it are sines. Received: {hidden_size}"
            )
        self.position_projection = self.content_bias = self.position_bias = None

    def build(self, input_shape):
        by_head = (self.num_heads, self.hidden_size // self.num_heads)
        shapes = {
            "position_projection": (self.hidden_size, *by_head),
            "content_bias": by_head,
            "position_bias": by_head,
        }
        for name, shape in shapes.items():
            weight = self.add_weight(
                name=name,
                shape=shape,
                initializer=initializers.fresh_or_default(self.initializer),
                # Rounded weights would blur far distances, which differ little.
                experimental_autocast=False,
            )
            setattr(self, name, weight)
        super().build(input_shape)

    def positions(self):
        return SinusoidPositions(self.position_projection, self.content_bias, self.position_bias)
