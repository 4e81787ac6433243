"""Methods shared by all encoders of a long and a global input."""

import copy
import dataclasses
import importlib
import math
import os
import typing
from collections.abc import Sequence

from typing_extensions import Self

from etcmodel import shown_values
from etcmodel.models import features as features_lib
from etcmodel.models import pooling as pooling_lib
from etcmodel.models import text_data

__all__ = ["EncoderConveniences", "Pretrained"]

_SIZES = {  # The unit by entry of a config.
    "layers": ("num_hidden_layers", "encoder_layers", "num_layers"),
    "hidden units": ("hidden_size", "d_model"),
    "tokens in the vocabulary": ("vocab_size",),
}


class Pretrained:
    """A model that can be saved to a folder and loaded from it.

    Attributes:
        processor: `EtcProcessor`, or another object with a method `save_pretrained(directory)`,
            that turns texts into the model's inputs and is saved with the model; or None.
    """

    processor: typing.Any = None
    _config: typing.Any = None
    _made_with: typing.Any = None

    @property
    def config(self) -> typing.Any:
        """`EncoderConfig`. The weights fit the config as it was when the model was created."""
        return self._config

    @config.setter
    def config(self, config: typing.Any) -> None:
        self._config = config
        if self._made_with is None:
            self._made_with = copy.deepcopy(config)

    def __repr__(self) -> str:
        sizes = "".join(
            f", {count:,} {what.removesuffix('s') if count == 1 else what}"
            for what, count in self._sizes().items()
        )
        labels = getattr(self, "labels", ())
        named = f", labels {shown_values.listed([repr(x) for x in labels])}" if labels else ""
        reads = "" if self.processor is None else f", reads texts by {self.processor!r}"
        return f"<{type(self).__name__} {getattr(self, 'name', '')!r}{sizes}{named}{reads}>"

    def _sizes(self) -> dict[str, int]:
        """The sizes shown by `repr`: dict of name to number."""
        sizes: dict[str, int] = {}
        for what, names in _SIZES.items():
            found = [x for x in names if isinstance(getattr(self.config, x, None), int)]
            sizes |= {what: getattr(self.config, found[0])} if found else {}
        if getattr(self, "built", False):
            sizes["parameters"] = sum(
                math.prod(x.shape) for x in typing.cast(typing.Any, self).weights
            )
        return sizes

    def check_config(self) -> None:
        """Checks that the config has not changed since the model was created.

        Entries that a model reads at every call (`at_calls` of its config) may differ.

        Raises:
            ValueError: naming the entries that differ, and both values.
        """
        made_with, now = self._made_with, self._config
        if type(now) is not type(made_with):
            raise ValueError(
                f"`config` must be the `{type(made_with).__name__}` that the model was made with. "
                f"Received: {shown_values.shown(now)}"
            )
        if made_with is None:
            return
        now.check()
        names = [field.name for field in dataclasses.fields(now)]
        others = [
            f"`{name}` is {shown_values.shown(getattr(now, name))} and was "
            f"{shown_values.shown(getattr(made_with, name))}"
            for name in names
            if name not in now.at_calls and getattr(now, name) != getattr(made_with, name)
        ]
        if others:
            raise ValueError(
                f"The config was changed after the model was made with it: {', '.join(others)}. "
                "Make a new model with the new config, or take the change back."
            )

    def save_pretrained(
        self, directory: str | os.PathLike[str], processor: typing.Any = None
    ) -> None:
        """Saves the model and its processor: see `etcmodel.checkpoints.save_pretrained`.

        >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
        >>> etcmodel.LongformerForMaskedLM(config).save_pretrained("new_model")
        >>> sorted(tf.io.gfile.listdir("new_model"))
        ['config.json', 'head_config.json', 'model.safetensors']
        """
        _package().save_pretrained(self, directory, processor)

    @classmethod
    def from_pretrained(cls, directory: str | os.PathLike[str], **overrides: typing.Any) -> Self:
        """Loads a model of this class from a folder: see `etcmodel.checkpoints.from_pretrained`.

        >>> etcmodel.EtcForSequenceClassification.from_pretrained("my_model", local_radius=8)
        <EtcForSequenceClassification 'sequence_classification', 1 layer, 12 hidden units, 128
        tokens in the vocabulary, 4,802 parameters, labels 'neg', 'pos', reads texts by
        EtcProcessor(105 tokens)>
        """
        return _package().from_pretrained(directory, as_class=cls, **overrides)


def _package() -> typing.Any:
    """The package `etcmodel`, imported late: its loaders import the models."""
    return importlib.import_module("etcmodel")


class EncoderConveniences(Pretrained):
    """Methods of encoders that take the features of `models.features`."""

    def structure(
        self, features: typing.Any, relation_names: Sequence[str] = ()
    ) -> dict[str, typing.Any]:
        """Returns all arguments of a call, with defaults for missing features.

        Args:
            features: token ids [batch, long_len], or dict of features.
            relation_names: sequence of str.
        Returns:
            dict, for `model(**model.structure(ids))`. By default its `structure` has one document
            per row, masked padding, positions, and a global token for each sentence or block.
        Raises:
            ValueError: see `features.completed`.

        >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
        >>> sorted(etcmodel.EtcModel(config).structure([[2, 7, 8, 3]]))
        ['global_token_ids', 'structure', 'token_ids']
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
        """Returns embedding vectors of texts: see `models.pooling.embed`.

        Args:
            features: see there; or list of str, which the model's `processor` turns into features.
            pooling, normalize: see there.
            relation_names: see there; for texts the default is the processor's.
        Raises:
            ValueError: see there; if there is no processor, or it splits a text into several rows;
                or if the model has too few labels for the relations.

        >>> encoder = etcmodel.from_pretrained("my_model", as_class=etcmodel.EtcModel)
        >>> vectors = encoder.embed(["Good!", "It is good.", "Bad!"], normalize=True)
        >>> tf.matmul(vectors, vectors, transpose_b=True).numpy().round()
        array([[ 1.,  1., -1.],
               [ 1.,  1., -1.],
               [-1., -1.,  1.]], dtype=float32)
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
