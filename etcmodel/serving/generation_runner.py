"""Running an exported model that generates."""

import itertools

import numpy as np
import tensorflow as tf

from etcmodel.serving.saved_model import SavedModelRunner

__all__ = ["GenerationRunner"]


class GenerationRunner(SavedModelRunner):
    """Loads an export of `export_generation` and gives its sequences, input by input.

    Args, errors: see `SavedModelRunner`.

    Attributes:
        numbers: names of the settings that a call may have: scalars of the signature `generate`.
    """

    signature_name = "generate"

    def __init__(self, directory):
        super().__init__(directory)
        self.numbers = tuple(name for name, spec in self._specs.items() if not spec.shape.rank)

    def __call__(self, examples, batch_size=8, **numbers):
        """Iterates over the outputs, reading no more inputs than a batch ahead.

        Args:
            examples: iterable of dicts with `input_ids`, a list of int of any length. Other entries
                are passed on as they are.
            batch_size: int.
            **numbers: all of the `numbers`.
        Yields:
            Dicts, one per input: its entries and the model's outputs, as NumPy arrays.
        """
        numbers = {name: tf.constant(x, self._specs[name].dtype) for name, x in numbers.items()}
        examples = iter(examples)
        while batch := list(itertools.islice(examples, batch_size)):
            outputs = self._signature(**_padded([x["input_ids"] for x in batch]), **numbers)
            arrays = {name: value.numpy() for name, value in outputs.items()}
            for row, example in enumerate(batch):
                yield {**example, **{name: array[row] for name, array in arrays.items()}}


def _padded(rows):
    """int32 `input_ids` and `attention_mask` [batch, longest], as tensors."""
    shape = [len(rows), max(map(len, rows))]
    ids, mask = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)] = row, 1
    return {"input_ids": tf.constant(ids), "attention_mask": tf.constant(mask)}
