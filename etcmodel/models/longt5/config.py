"""The configuration of a LongT5."""

import dataclasses
import typing

from etcmodel import shown_values
from etcmodel.models import hugging_face
from etcmodel.models.seq2seq import config as seq2seq_config

LOCAL, TRANSIENT_GLOBAL = "local", "transient-global"
_AT_LEAST_1 = (
    "vocab_size",
    "d_model",
    "d_kv",
    "d_ff",
    "num_layers",
    "num_decoder_layers",
    "num_heads",
    "local_radius",
    "global_block_size",
    "relative_attention_num_buckets",
    "relative_attention_max_distance",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongT5Config(seq2seq_config.Seq2SeqConfig):
    """Sizes and options of a `LongT5Model`, with the names and defaults of Hugging Face.

    The defaults apply to entries missing in a `config.json`; the released models have others.

    Attributes:
        vocab_size: int.
        d_model: int. Size of the hidden states.
        d_kv: int. Size per head.
        d_ff: int. Feed-forward units.
        num_layers: int. Of the encoder.
        num_decoder_layers: int or None. None for `num_layers`.
        num_heads: int.
        local_radius: int. Tokens attended to on each side in the encoder.
        global_block_size: int. Tokens per block of transient-global attention.
        relative_attention_num_buckets: int. Rows of the tables of position biases.
        relative_attention_max_distance: int. The distance at which the last bucket begins.
        dropout_rate: float.
        layer_norm_epsilon: float.
        initializer_factor: float. Factor of the initial weights of embeddings.
        feed_forward_proj: str. An activation, "relu" or "gelu" (exact), or "gated-" and one;
            "gated-gelu" is the tanh approximation.
        encoder_attention_type: "local" or "transient-global".
        pad_token_id: int. Replaces labels of -100 in decoder ids.
        eos_token_id: int.
        decoder_start_token_id: int or None. The first decoder id; if None, decoder ids must be
            given.
        tie_word_embeddings: bool. Whether logits are products with the token embeddings; else they
            have a matrix of their own.
        scale_decoder_outputs: bool or None. Whether the decoder's output is divided by
            sqrt(`d_model`) before the logits; None, as in older files: only if the embeddings are
            tied.
        grad_checkpointing_period: int. See `TransformerStack`; not of Hugging Face's.

    >>> config = etcmodel.LongT5Config(d_model=768, encoder_attention_type="transient-global")
    >>> config.d_model, config.local_radius, config.global_block_size
    (768, 127, 16)
    """

    model_type: typing.ClassVar[str] = "longt5"
    at_least_1: typing.ClassVar[tuple] = _AT_LEAST_1
    # Positions have no table; the others are parts of `feed_forward_proj`.
    without_effect: typing.ClassVar[frozenset] = hugging_face.WITHOUT_EFFECT | {
        "dense_act_fn",
        "is_gated_act",
        "n_positions",
    }
    only: typing.ClassVar[dict] = {**hugging_face.ONLY, "is_encoder_decoder": (True, False, None)}
    # Hugging Face's would read a None of the first as false.
    ours: typing.ClassVar[tuple] = ("scale_decoder_outputs", "grad_checkpointing_period")

    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    local_radius: int = 127
    global_block_size: int = 16
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    layer_norm_epsilon: float = 1e-6
    initializer_factor: float = 1.0
    feed_forward_proj: str = "relu"
    encoder_attention_type: str = LOCAL
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int | None = None
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None
    grad_checkpointing_period: int = 0

    @classmethod
    def from_dict(cls, given):
        """Like `JsonConfig.from_dict`.

        Raises:
            ValueError: see there; also if parts of `feed_forward_proj` that files repeat contradict
                it.
        """
        config = super().from_dict(given)
        for name, ours in (("is_gated_act", config.is_gated), ("dense_act_fn", config.dense_act)):
            if given.get(name, ours) not in (ours, None):
                raise ValueError(
                    f"`{name}` must be {ours!r}, as `feed_forward_proj` is "
                    f"{config.feed_forward_proj!r}. Received: {shown_values.shown(given[name])}"
                )
        return config

    # What every `EncoderConfig` has.
    hidden_size = property(lambda self: self.d_model)
    hidden_dropout_prob = property(lambda self: self.dropout_rate)
    initializer_range = property(lambda self: self.initializer_factor * self.d_model**-0.5)
    embedding_range = property(lambda self: self.initializer_factor)

    @property
    def decoder_layers(self):
        """int. Number of layers of the decoder."""
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers

    @property
    def is_gated(self):
        """bool. Whether feed-forward layers have a gate."""
        return self.feed_forward_proj.startswith("gated-")

    @property
    def dense_act(self):
        """str. Hugging Face's name of the feed-forward activation."""
        name = self.feed_forward_proj.removeprefix("gated-")
        return "gelu_new" if self.is_gated and name == "gelu" else name

    @property
    def activation(self):
        """The feed-forward activation: see `hugging_face.activation`."""
        return hugging_face.activation(self.dense_act)

    @property
    def blocks_of(self):
        """int or None. Tokens per block of the encoder's attention; None if it has no blocks."""
        return self.global_block_size if self.encoder_attention_type == TRANSIENT_GLOBAL else None

    @property
    def output_scale(self):
        """float. The factor by which the decoder's output is scaled before the logits."""
        is_scaled = self.scale_decoder_outputs
        is_scaled = self.tie_word_embeddings if is_scaled is None else is_scaled
        return self.d_model**-0.5 if is_scaled else 1.0

    def check(self):
        """Raises ValueError, naming the entry and its value, if the config is invalid."""
        super().check()
        buckets = self.relative_attention_num_buckets
        if buckets < 4 or buckets % 2 or self.relative_attention_max_distance <= buckets // 2:
            raise ValueError(
                "`relative_attention_num_buckets` must be even and at least 4, and "
                "`relative_attention_max_distance` more than half of it. Received: "
                f"{buckets}, {self.relative_attention_max_distance}"
            )
        if self.encoder_attention_type not in (LOCAL, TRANSIENT_GLOBAL):
            raise ValueError(
                f"`encoder_attention_type` must be {LOCAL!r} or {TRANSIENT_GLOBAL!r}. Received: "
                f"{shown_values.shown(self.encoder_attention_type)}"
            )
        self.activation  # noqa: B018  Refuses unknown names.
