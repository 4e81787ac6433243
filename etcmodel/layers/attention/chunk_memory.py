"""Attention within chunks, and to a memory that attends to all tokens (GMAT, PEGASUS-X)."""

import tf_keras

from etcmodel.layers import base, sublayers
from etcmodel.layers.attention.projected import ProjectedAttention
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.masks import KeyMask
from etcmodel.ops.reach import ALL, Chunk


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class ChunkMemoryAttention(ProjectedAttention):
    """Tokens attend to their chunk and to a memory, the memory to everything; one softmax each.

    Source: Gupta and Berant 2020 (arXiv:2006.03274), equation 3; with chunks whose borders move
    from layer to layer also Phang et al. 2022 (arXiv:2208.04347), section 3.2. The last chunk may
    be shorter than the others, and with a shift also the first one.

    Args:
        hidden_size, num_heads, size_per_head, **kwargs: see `ProjectedAttention`.
        chunk_size: int or None. Tokens per chunk; None: all tokens attend to each other.
        shift: int. How many tokens to the left the borders of the chunks are shifted: see
            `reach.Chunk`.
        has_own_memory_projections: bool. Whether the memory's queries, and the keys and values that
            they attend to, have projections of their own.
        has_own_memory_output: bool. Whether the memory's outputs have a projection of their own.
    Call args:
        inputs: float [batch, length, hidden_size].
        memory: float [batch, memory_length, hidden_size], or None.
        att_mask: 0/1 int [batch, length] or None. 0 for padding, which is not attended to.
        memory_mask: 0/1 int [batch, memory_length] or None. 0 for memory that is not attended to.
        training: bool.
    Returns:
        [tokens, memory], shaped as the inputs; without a memory, tokens alone.
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        size_per_head=None,
        *,
        chunk_size=None,
        shift=0,
        has_own_memory_projections=False,
        has_own_memory_output=False,
        **kwargs,
    ):
        super().__init__(hidden_size, num_heads, size_per_head, **kwargs)
        self.reach = ALL if chunk_size is None else Chunk(chunk_size, shift)
        self.chunk_size = chunk_size
        self.shift = shift
        self.has_own_memory_projections = has_own_memory_projections
        self.has_own_memory_output = has_own_memory_output
        self.memory_query, self.memory_key, self.memory_value = self.query, self.key, self.value
        self.memory_output_projection = self.output_projection
        if has_own_memory_projections:
            self.memory_query = self.make_projection("query", "memory_query")
            self.memory_key = self.make_projection("key", "memory_key")
            self.memory_value = self.make_projection("value", "memory_value")
        if has_own_memory_output:
            self.memory_output_projection = self.make_projection(
                "output_projection", "memory_output_projection"
            )

    def build(self, input_shape):
        of_memory = (self.memory_query, self.memory_key, self.memory_value)
        sublayers.build_all(self.hidden_size, *of_memory)
        sublayers.build_all(self.num_heads * self.size_per_head, self.memory_output_projection)
        super().build(input_shape)

    def call(self, inputs, memory=None, att_mask=None, memory_mask=None, training=None):
        own = self.keys_values(inputs)
        masks = () if att_mask is None else (KeyMask(att_mask),)
        queries, chunk = self.split(self.query(inputs)), KeySet(*own, self.reach, masks)
        if memory is None:
            return self.attend(queries, [chunk], training)
        (memory,) = sublayers.cast_all(self, memory)
        of_memory = self.keys_values(memory)
        memory_masks = () if memory_mask is None else (KeyMask(memory_mask),)
        tokens = self.attend(queries, [chunk, KeySet(*of_memory, masks=memory_masks)], training)
        if self.has_own_memory_projections:
            own, of_memory = (
                (self.split(self.memory_key(x)), self.split(self.memory_value(x)))
                for x in (inputs, memory)
            )
        key_sets = [KeySet(*own, masks=masks), KeySet(*of_memory, masks=memory_masks)]
        queries = self.split(self.memory_query(memory))
        seen = self.attend(queries, key_sets, training, output=self.memory_output_projection)
        return [tokens, seen]

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}
