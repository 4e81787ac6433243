"""Configs of models with an encoder and a decoder, with Hugging Face's names."""

import typing

from etcmodel import shown_values
from etcmodel.models import hugging_face, json_config

# In BART's family: about heads, about older versions of `generate`, and a copy of `encoder_layers`.
WITHOUT_EFFECT = hugging_face.WITHOUT_EFFECT | {
    "classif_dropout",
    "force_bos_token_to_be_generated",
    "num_hidden_layers",
    # About distillation.
    "replacing_rate",
    "save_step",
    "student_decoder_layers",
    "student_encoder_layers",
}
# The entries of BART's family that are at least 1.
BART_SIZES = (
    "vocab_size",
    "d_model",
    *(
        f"{side}_{size}"
        for side in ("encoder", "decoder")
        for size in ("layers", "ffn_dim", "attention_heads")
    ),
)
ONLY = {
    **hugging_face.ONLY,
    "is_encoder_decoder": (True, None),
    # Layers that are skipped in training.
    "decoder_layerdrop": (0, None),
    "encoder_layerdrop": (0, None),
}


class Seq2SeqConfig(json_config.JsonConfig):
    """A config whose entries have Hugging Face's names."""

    only: typing.ClassVar[dict] = ONLY

    def to_dict(self):
        """Returns the entries by name, with that by which Hugging Face marks encoder-decoders."""
        return {**super().to_dict(), "is_encoder_decoder": True}

    @property
    def embedding_scale(self):
        """float. The factor by which token embeddings are scaled."""
        return 1.0

    @property
    def embedding_range(self):
        """float. Standard deviation of the initial token embeddings."""
        return self.initializer_range


class BartConfig(Seq2SeqConfig):
    """A config with the entries of BART's family."""

    without_effect: typing.ClassVar[frozenset] = WITHOUT_EFFECT
    # Some of the family have entries for these.
    normalize_before: typing.ClassVar[bool] = True  # Layers normalize their inputs.
    scale_embedding: typing.ClassVar[bool] = False
    use_bias: typing.ClassVar[bool] = False  # Of attention's projections.
    tie_word_embeddings: typing.ClassVar[bool] = True
    layer_norm_eps: typing.ClassVar[float] = 1e-5

    # What every `EncoderConfig` has.
    hidden_size = property(lambda self: self.d_model)
    hidden_dropout_prob = property(lambda self: self.dropout)
    initializer_range = property(lambda self: self.init_std)

    @classmethod
    def from_dict(cls, given):
        """Like `JsonConfig.from_dict`.

        Raises:
            ValueError: see there; also if `num_hidden_layers` contradicts `encoder_layers`, or the
                default of the latter.
        """
        layers, copy = given.get("encoder_layers"), given.get("num_hidden_layers")
        if layers is None and "encoder_layers" not in cls.needed:
            layers = cls.encoder_layers
        if None not in (layers, copy) and layers != copy:
            raise ValueError(
                "`num_hidden_layers` must be as `encoder_layers`, which it replaces in Hugging "
                f"Face's library. Received: {shown_values.shown(copy)} and "
                f"{shown_values.shown(layers)}"
                + ("" if "encoder_layers" in given else ", the default")
            )
        return super().from_dict(given)

    @property
    def activation(self):
        """The feed-forward activation: see `hugging_face.activation`."""
        return hugging_face.activation(self.activation_function)

    def stack_options(self):
        """Arguments of `layers.stack.TransformerStack`, but for the sizes: dict."""
        return {
            "hidden_act": self.activation,
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.attention_dropout,
            "initializer_range": self.init_std,
            "use_pre_activation_order": self.normalize_before,
            "grad_checkpointing_period": self.grad_checkpointing_period,
            "layer_norm_epsilon": self.layer_norm_eps,
        }

    @property
    def embedding_scale(self):
        return self.d_model**0.5 if self.scale_embedding else 1.0

    def check(self):
        super().check()
        self.check_multiple("d_model", "encoder_attention_heads", "decoder_attention_heads")
        if not self.tie_word_embeddings:
            raise ValueError(
                "`tie_word_embeddings` must be true: models of type "
                f"{self.model_type!r} have no output matrix of their own."
            )
        self.activation  # noqa: B018  Refuses unknown names.
