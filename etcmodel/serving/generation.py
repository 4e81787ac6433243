"""Writes a generating model as a SavedModel that takes and returns token ids."""

import dataclasses
import itertools
import types

import numpy as np
import tensorflow as tf

from etcmodel.models.seq2seq import generating
from etcmodel.serving import export
from etcmodel.serving.saved_model import SavedModelRunner

_IDS = tf.TensorSpec([None, None], tf.int32)
_NUMBER, _REAL = tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32)
_LENGTHS = {"max_length": _NUMBER, "min_length": _NUMBER}
_SEARCH = {**_LENGTHS, "num_beams": _NUMBER, "length_penalty": _REAL}
_SAMPLING = {**_LENGTHS, "seed": _NUMBER}


def export_generation(model, directory, *, assets=None, weights="float32", **settings):
    """Writes a SavedModel with two signatures that generate like the model's `generate`.

    Both take int32 `input_ids` and `attention_mask` [batch, length], of any length; for an LED
    whose config has no `global_positions`, also `global_attention_mask` [batch, length], 0 or 1.
    `generate` also takes scalars: int32 `max_length`, `min_length` and `num_beams`, of any values,
    and float32 `length_penalty`; or, when sampling (`do_sample`), int32 `max_length`, `min_length`
    and `seed`. `serving_default` takes only ids and masks. For texts instead of ids see
    `export_text_generation`.

    They return int32 `sequences` [batch * num_return_sequences, longest length] and, except when
    sampling with one beam, float32 `sequences_scores` [batch * num_return_sequences], 0 with one
    beam. An invalid number raises `tf.errors.InvalidArgumentError`, which names it.

    Args:
        model: built `models.seq2seq.generating.Generating`: LED, LongT5, PEGASUS-X or
            `GmatForConditionalGeneration`.
        directory: where to write; must not exist. It appears only when it is complete.
        assets: dict from file name to path, or to bytes: files to store with the model; None for
            none.
        weights: see `export_saved_model`.
        **settings: settings of `generate` that are not inputs of the signatures. Inputs of the
            signature `generate` get these values in `serving_default`.
    Returns:
        `directory`.
    Raises:
        ValueError: if a setting is invalid, `directory` exists, or an asset is missing.

    >>> from etcmodel import serving
    >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1, decoder_start_token_id=0)
    >>> model = etcmodel.LongT5Model(config)
    >>> model.build(None)
    >>> serving.export_generation(model, "summarizer", max_length=8)
    'summarizer'
    """
    settings = model.generation_settings(**settings)
    return export.write_saved_model(
        directory, assets or {}, lambda: GenerationModule(model, settings), weights
    )


class GenerationModule(tf.Module):
    """The signatures, and the variables that they use.

    The Keras model itself is not an attribute: saving would then trace each of its layers.
    """

    def __init__(self, model, settings):
        super().__init__()
        self.run = lambda ids, tensors: _generated(model, settings, ids, tensors)
        self._settings = dataclasses.asdict(settings)
        self._ids = ["input_ids", "attention_mask"]
        if getattr(model.config, "global_positions", None) == ():
            self._ids.append("global_attention_mask")
        self.model_variables = list(model.variables)

    def signatures(self):
        """dict from signature name to concrete function."""
        ids = {name: tf.TensorSpec(_IDS.shape, _IDS.dtype, name) for name in self._ids}
        serve, generate = self.with_numbers(ids, self.run)
        return {"serving_default": serve, "generate": generate}

    def with_numbers(self, inputs, run):
        """(function of the inputs alone, function of these and of numbers): concrete functions.

        Args:
            inputs: dict of name to `tf.TensorSpec`.
            run: function of two dicts of tensors, the inputs and the numbers.
        """
        numbers = _SAMPLING if self._settings["do_sample"] else _SEARCH
        specs = {name: tf.TensorSpec(x.shape, x.dtype, name) for name, x in numbers.items()}
        # Functions that are attributes of the saved object would be traced again.
        whole = tf.function(
            lambda **given: run(
                {name: given[name] for name in inputs}, {name: given[name] for name in specs}
            ),
            autograph=False,
        ).get_concrete_function(**inputs, **specs)
        defaults = {name: (self._settings[name], x.dtype) for name, x in numbers.items()}
        alone = tf.function(
            lambda **given: whole(**given, **{x: tf.constant(*y) for x, y in defaults.items()}),
            autograph=False,
        ).get_concrete_function(**inputs)
        return alone, whole


def _generated(model, settings, ids, tensors):
    """The outputs of a signature; `tensors` are the settings that are inputs, by name."""
    ids = dict(ids)
    with tf.control_dependencies(_checks(model, settings, tensors)):
        input_ids, mask = tf.identity(ids.pop("input_ids")), ids.pop("attention_mask")
    encoded = model.encoder(input_ids, mask, training=False, **ids)["last_hidden_state"]
    settings = {**dataclasses.asdict(settings), **tensors}
    if settings["do_sample"]:
        return generating.decode(model, encoded, mask, types.SimpleNamespace(**settings))

    def beams():
        return generating.decode(model, encoded, mask, types.SimpleNamespace(**settings))

    def one():
        # More than one sequence needs more than one beam.
        greedy = types.SimpleNamespace(**{**settings, "num_beams": 1, "num_return_sequences": 1})
        found = generating.decode(model, encoded, mask, greedy)
        return {**found, "sequences_scores": tf.zeros(tf.shape(found["sequences"])[:1])}

    return tf.cond(tensors["num_beams"] > 1, beams, one)


def _checks(model, settings, tensors):
    """Operations that raise `tf.errors.InvalidArgumentError` for invalid numbers."""
    least = {"max_length": 2, "min_length": 0, "num_beams": settings.num_return_sequences}
    checks = [
        tf.debugging.assert_greater_equal(
            tensors[name], number, f"`{name}` must be at least {number}."
        )
        for name, number in least.items()
        if name in tensors
    ]
    limit = model.max_generated_length
    if limit is not None:
        message = f"`max_length` must be at most {limit}."
        checks.append(tf.debugging.assert_less_equal(tensors["max_length"], limit, message))
    if (penalty := tensors.get("length_penalty")) is not None:
        words = "`length_penalty` must be a finite number. Received:"
        checks.append(tf.debugging.Assert(tf.math.is_finite(penalty), [words, penalty]))
    with tf.control_dependencies(checks):  # Reports an invalid length before a contradiction.
        shortest, longest = tensors["min_length"], tensors["max_length"]
        message = "`min_length` must be at most `max_length`."
        order = tf.debugging.assert_less_equal(shortest, longest, message)
    return [*checks, order]


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
