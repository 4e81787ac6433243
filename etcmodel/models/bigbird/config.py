"""The configuration of a BigBird (Zaheer et al. 2020)."""

import dataclasses
import typing

from etcmodel.models import hugging_face, json_config

BLOCK_SPARSE, ORIGINAL_FULL = "block_sparse", "original_full"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BigBirdConfig(json_config.BertConfig):
    """Sizes and options of a `BigBirdModel`, by Hugging Face's names and with its defaults.

    Attributes:
        vocab_size: int. Token ids are below it.
        hidden_size: int.
        num_hidden_layers: int.
        num_attention_heads: int.
        intermediate_size: int. Feed-forward units.
        hidden_act: str. Feed-forward activation; "gelu" is the exact one here, "gelu_new" its tanh
            approximation.
        hidden_dropout_prob: float.
        attention_probs_dropout_prob: float. In full attention alone.
        max_position_embeddings: int. The most tokens of a text.
        type_vocab_size: int. Token type ids are below it.
        initializer_range: float. Standard deviation of the initial weights.
        layer_norm_eps: float. What layer normalization adds to the variance.
        pad_token_id, bos_token_id, eos_token_id, sep_token_id: int.
        attention_type: "block_sparse" or "original_full".
        block_size: int. Tokens per block.
        num_random_blocks: int. Random blocks that a block attends to.
        use_bias: bool. Whether queries, keys and values have biases.
        rescale_embeddings: bool. Whether token embeddings are multiplied by sqrt(`hidden_size`).
        classifier_dropout: float or None. Dropout rate of heads, but of question answering's; None
            for `hidden_dropout_prob`.
        tie_word_embeddings: ignored; kept for Hugging Face.
        pattern_by_length: bool. Whether the attention of a text depends on its own length alone:
            its last block is that of its last token, and it has full attention if it is short. By
            default, as in Hugging Face's library, the length of the padded batch decides both.
        is_seeded_always: bool. Whether random blocks are those of training in evaluation, too, as
            in the authors' code. By default, as in Hugging Face's library, all of them are then
            the first block.
        grad_checkpointing_period: int. See `TransformerStack`.

    The last three are not Hugging Face's; `to_dict` includes them where they are not the defaults.

    Raises:
        ValueError: naming the entry, if it has a wrong type or is out of range.

    >>> config = etcmodel.BigBirdConfig(num_hidden_layers=2, block_size=32)
    >>> config.longest_full  # Longer inputs have sparse attention.
    352
    """

    model_type: typing.ClassVar[str] = "big_bird"
    at_least_1: typing.ClassVar[tuple] = (
        *json_config.BERT_SIZES,
        "max_position_embeddings",
        "type_vocab_size",
        "block_size",
    )
    ours: typing.ClassVar[tuple] = (
        "pattern_by_length",
        "is_seeded_always",
        "grad_checkpointing_period",
    )

    vocab_size: int = 50358
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 4096
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    bos_token_id: int = 1
    eos_token_id: int = 2
    sep_token_id: int = 66
    attention_type: typing.Literal["block_sparse", "original_full"] = BLOCK_SPARSE
    block_size: int = 64
    num_random_blocks: int = 3
    use_bias: bool = True
    rescale_embeddings: bool = False
    classifier_dropout: float | None = None
    tie_word_embeddings: bool = True
    pattern_by_length: bool = False
    is_seeded_always: bool = False
    grad_checkpointing_period: int = 0

    @property
    def max_length(self):
        """int. The most tokens of a text."""
        return self.max_position_embeddings

    @property
    def longest_full(self):
        """int or None. Longer inputs have sparse attention; None if none has."""
        if self.attention_type == ORIGINAL_FULL:
            return None
        return (5 + 2 * self.num_random_blocks) * self.block_size

    @property
    def activation(self):
        """function. That of `hidden_act`."""
        return hugging_face.activation(self.hidden_act)
