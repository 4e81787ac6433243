"""Methods that all encoders of a long and a global input share."""

import importlib
import os
import typing
from collections.abc import Sequence

from etcmodel.models import features as features_lib
from etcmodel.models import pooling as pooling_lib
from etcmodel.models import text_data

__all__ = ["EncoderConveniences", "Pretrained"]


class Pretrained:
    """A model that can be saved in a folder and loaded from it.

    Attributes:
        processor: `EtcProcessor`, or another object with a method `save_pretrained(directory)`,
            that turns texts into the model's input and is saved with it; or None.
    """

    processor: typing.Any = None

    def save_pretrained(
        self, directory: str | os.PathLike[str], processor: typing.Any = None
    ) -> None:
        """Writes the model and its processor: see `etcmodel.checkpoints.save_pretrained`."""
        _package().save_pretrained(self, directory, processor)

    @classmethod
    def from_pretrained(
        cls, directory: str | os.PathLike[str], **overrides: typing.Any
    ) -> typing.Self:
        """Loads a model of this class: see `etcmodel.checkpoints.from_pretrained`."""
        return _package().from_pretrained(directory, as_class=cls, **overrides)


def _package() -> typing.Any:
    """The package `etcmodel`, imported late: its loaders import the models."""
    return importlib.import_module("etcmodel")


class EncoderConveniences(Pretrained):
    """Methods of encoders that take features as in `models.features`."""

    config: typing.Any

    def structure(
        self, features: typing.Any, relation_names: Sequence[str] = ()
    ) -> dict[str, typing.Any]:
        """All arguments of a call; what the features lack is added.

        Args:
            features: token ids [batch, long_len], or dict of features.
            relation_names: sequence of str.
        Returns:
            dict, for `model(**model.structure(ids))`. By default its `structure` has one document
            in each row, masked padding, positions, and a global token for each sentence or block.
        Raises:
            ValueError: see `features.completed`.
        """
        return features_lib.completed(features, self.config, relation_names).arguments

    def embed(
        self,
        features: typing.Any,
        pooling: str = "mean",
        *,
        relation_names: Sequence[str] = (),
        normalize: bool = False,
    ) -> typing.Any:
        """Vectors of texts: see `models.pooling.embed`.

        Args:
            features: see there; or list of str, of which the model's `processor` makes them.
            pooling, normalize: see there.
            relation_names: see there; for texts by default those of the processor.
        Raises:
            ValueError: as there; if there is no processor, or one that cuts a text into rows; or if
                the model has no labels for so many relations.
        """
        if isinstance(features, (list, tuple)) and all(isinstance(x, str) for x in features):
            if self.processor is None:
                raise ValueError(
                    "Texts need a processor: set `model.processor`, or give token ids."
                )
            text_data.check_one_row(self.processor, "the batch, `model.processor(texts)`")
            relation_names = relation_names or getattr(self.processor, "relation_names", ())
            features = self.processor(list(features))
        return pooling_lib.embed(
            self, features, pooling, relation_names=relation_names, normalize=normalize
        )
