"""Runs an exported model that generates."""

import itertools

import numpy as np
import tensorflow as tf

from etcmodel.serving.saved_model import SavedModelRunner

__all__ = ["GenerationRunner"]

_GLOBALS = "global_attention_mask"


class GenerationRunner(SavedModelRunner):
    """Loads an export of `export_generation` and generates sequences for each input.

    Args, errors: see `SavedModelRunner`.

    Attributes:
        numbers: names of the settings that a call may pass: the scalars of the signature
            `generate`.

    >>> from etcmodel import serving
    >>> runner = serving.GenerationRunner("my_generator")
    >>> numbers = {"max_length": 4, "min_length": 4, "num_beams": 1, "length_penalty": 1.0}
    >>> (output,) = runner([{"input_ids": [7, 8, 1]}], **numbers)
    >>> output["sequences"].shape
    (4,)
    """

    signature_name = "generate"

    def __init__(self, directory):
        super().__init__(directory)
        self.numbers = tuple(name for name, spec in self._specs.items() if not spec.shape.rank)

    def __call__(self, examples, batch_size=8, **numbers):
        """Iterates over the outputs, reading at most a batch of inputs ahead.

        Args:
            examples: iterable of dicts with `input_ids`, a list of int of any length; and, where
                the signature takes it, `global_attention_mask`, 0/1 for each id, by default zeros.
                All entries are passed on as they are.
            batch_size: int.
            **numbers: all of the `numbers`.
        Yields:
            Dicts, one per input: its entries and the model's outputs, as NumPy arrays; if the
            export returns several sequences per input, they are the first axis.
        Raises:
            ValueError: if a `global_attention_mask` is not as long as its `input_ids`.
        """
        numbers = {name: tf.constant(x, self._specs[name].dtype) for name, x in numbers.items()}
        examples = iter(examples)
        has_globals = _GLOBALS in self._specs
        while batch := list(itertools.islice(examples, batch_size)):
            inputs = _ids_and_mask([x["input_ids"] for x in batch])
            if has_globals:
                inputs[_GLOBALS] = _padded([_globals_of(x) for x in batch])
            outputs = self._signature(**inputs, **numbers)
            arrays = {name: _by_input(x.numpy(), len(batch)) for name, x in outputs.items()}
            for row, example in enumerate(batch):
                yield {**example, **{name: array[row] for name, array in arrays.items()}}


def _ids_and_mask(rows):
    """int32 `input_ids` and `attention_mask` [batch, longest], as tensors."""
    masks = [np.ones(len(row), np.int32) for row in rows]
    return {"input_ids": _padded(rows), "attention_mask": _padded(masks)}


def _globals_of(example):
    """An input's global attention mask; without one, no token is global."""
    length = len(example["input_ids"])
    mask = example.get(_GLOBALS)
    mask = np.zeros(length, np.int32) if mask is None else mask
    if len(mask) != length:
        raise ValueError(
            f"`{_GLOBALS}` must be as long as `input_ids`. Received: {len(mask)}, {length}"
        )
    return mask


def _by_input(array, batch):
    """Splits an output's first axis by input; each input may have several rows."""
    return array if len(array) == batch else array.reshape(batch, -1, *array.shape[1:])


def _padded(rows):
    """int32 [batch, longest] tensor, with each row padded with zeros."""
    padded = np.zeros([len(rows), max(map(len, rows))], np.int32)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return tf.constant(padded)
