"""Configs of models with an encoder and a decoder, with Hugging Face's names."""

import dataclasses
import typing

from etcmodel.models import hugging_face, json_config

__all__ = ["ONLY", "WITHOUT_EFFECT", "Seq2SeqConfig"]

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
ONLY = {
    **hugging_face.ONLY,
    "is_encoder_decoder": (True, None),
    # Layers that are skipped in training.
    "decoder_layerdrop": (0, None),
    "encoder_layerdrop": (0, None),
}


class Seq2SeqConfig(json_config.JsonConfig):
    """A config whose entries have Hugging Face's names.

    Attributes:
        ours: tuple of str, of the class. Entries that are not Hugging Face's: files include them
            where they are not the defaults.
    """

    ours: typing.ClassVar[tuple] = ()
    only: typing.ClassVar[dict] = ONLY

    def to_dict(self):
        """Returns the entries by name, with that by which Hugging Face marks encoder-decoders."""
        entries = super().to_dict()
        for field in dataclasses.fields(self):
            if field.name in self.ours and entries[field.name] == field.default:
                del entries[field.name]
        return {**entries, "is_encoder_decoder": True}
