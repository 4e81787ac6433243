"""Configs of models with an encoder and a decoder, with Hugging Face's names."""

import dataclasses

from etcmodel.models import json_config

__all__ = ["Seq2SeqConfig"]


class Seq2SeqConfig(json_config.JsonConfig):
    """A config whose entries have Hugging Face's names; what else a `config.json` has is left out.

    Attributes:
        ours: tuple of str, of the class. Entries that are not Hugging Face's: files have them where
            they are not the defaults.
    """

    ours = ()

    @classmethod
    def from_dict(cls, given):
        """As `JsonConfig.from_dict`; entries that the model has no use for are ignored.

        Raises:
            ValueError: as there, or if the entries are of a decoder alone (`is_decoder`).
        """
        if given.get("is_decoder"):
            raise ValueError(
                "`is_decoder` must be false: the model has an encoder and a decoder. Received: "
                f"{given['is_decoder']!r}"
            )
        known = {field.name for field in dataclasses.fields(cls)}
        return super().from_dict({name: x for name, x in given.items() if name in known})

    def to_dict(self):
        """The entries by name, and that by which Hugging Face knows such models."""
        entries = super().to_dict()
        for field in dataclasses.fields(self):
            if field.name in self.ours and entries[field.name] == field.default:
                del entries[field.name]
        return {**entries, "is_encoder_decoder": True}
