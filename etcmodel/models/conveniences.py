"""Methods shared by all encoders of a long and a global input."""

import copy
import dataclasses
import gc
import importlib
import math
import os
import typing
import weakref
from collections.abc import Sequence

from absl import logging
from typing_extensions import Self

from etcmodel import shown_values
from etcmodel.layers import base
from etcmodel.models import features as features_lib
from etcmodel.models import pooling as pooling_lib
from etcmodel.models import resizing, text_data

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
    _part_of: typing.Any = None  # Weak reference to a model with a head over this one.
    _num_resized = 0  # Part of what identifies a traced function of the model.

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

    def resize_token_embeddings(
        self,
        new_num_tokens: int | None = None,
        pad_to_multiple_of: int | None = None,
        *,
        seed: int = 0,
    ) -> typing.Any:
        """Changes the number of the model's tokens, in place: its table, output table and biases.

        Tokens that stay keep their rows. New rows are drawn as in Hugging Face's library: around
        the mean of all old rows, with a billionth of their covariance, so that a new token is about
        as probable as the average one; biases around their mean likewise, but those that are not
        trained get 0. The config's `vocab_size` follows. A function that was traced with the model
        before, such as a `tf.function` of one's own, keeps the old table: trace it anew.

        Args:
            new_num_tokens: int. None: as many as the tokens of the model's `processor`, but not
                fewer than now.
            pad_to_multiple_of: int or None. The number is rounded up to a multiple of it.
            seed: int. Of new rows.
        Returns:
            The table of token embeddings: variable [number of tokens, embedding_size].
        Raises:
            ValueError: if the config does not allow this number, as when a special token has a
                higher id; if the model is a part of a model with a head, which must be resized
                instead; or if its optimizer has been used: then `compile` it anew first.

        >>> model = etcmodel.from_pretrained("my_model")
        >>> model.resize_token_embeddings(136).shape, model.config.vocab_size
        (TensorShape([136, 12]), 136)
        """
        if new_num_tokens is None:
            needed = getattr(self.processor, "vocab_size", 0)
            new_num_tokens = max(needed, self.config.vocab_size)
        if pad_to_multiple_of is not None:
            base.check_at_least_1(
                new_num_tokens=new_num_tokens, pad_to_multiple_of=pad_to_multiple_of
            )
            new_num_tokens = -(-new_num_tokens // pad_to_multiple_of) * pad_to_multiple_of
        if (owner := self._owner()) is not None:
            raise ValueError(
                f"{getattr(self, 'name', '')!r} is a part of {owner.name!r}, whose outputs may "
                "depend on the number of tokens, too: resize that model."
            )
        resizing.resize(self, new_num_tokens, seed)
        self._num_resized += 1
        model = typing.cast(typing.Any, self)
        has_table = model if hasattr(model, "get_token_embedding_table") else model.encoder
        return has_table.get_token_embedding_table()

    def _become_part_of(self, model: typing.Any) -> None:
        """Remembers the model with a head over this one, as long as it exists."""
        self._part_of = weakref.ref(model)

    def _owner(self) -> typing.Any:
        if self._part_of is None or self._part_of() is None:
            return None
        gc.collect()  # Keras's models are in cycles.
        return self._part_of()

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

    _has_warned = False

    def _warn_once(self, words: str) -> None:
        """Logs a warning, at the first call that there is something to warn of."""
        if not self._has_warned:
            self._has_warned = True
            logging.warning("%s %s", getattr(self, "name", ""), words)

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
