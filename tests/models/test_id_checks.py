"""Ids that are no rows of a table: one line that tells argument, id, row and size of the table."""

import functools
import re

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import gmat, longformer, longformer_char_lm, modeling
from tests.models import etcs
from tests.models.longformer_char_lm import char_models
from tests.models.longt5 import models as longt5s

SIZES = {"vocab_size": 30, **etcs.sizes(intermediate_size=8)}
LONG, GLOBAL = {"token_ids": (2, 6)}, {"global_token_ids": (2, 3)}


@functools.cache
def make_model(kind):
    """(model, the shapes of what it needs)."""
    if kind == "etc":
        config = modeling.EtcConfig(
            **SIZES, segment_vocab_size=4, local_radius=2, max_absolute_position_embeddings=10
        )
        return modeling.EtcModel(config), {**LONG, **GLOBAL}
    if kind == "longformer":
        config = longformer.LongformerConfig(
            **SIZES, type_vocab_size=2, attention_window=4, max_position_embeddings=10
        )
        return longformer.LongformerModel(config), {"input_ids": (2, 6)}
    if kind == "longformer_char_lm":
        model = longformer_char_lm.CharLmModel(char_models.config(vocab_size=30))
        return model, {"input_ids": (2, 6)}
    config = gmat.GmatConfig(
        **SIZES, chunk_size=4, num_memory_tokens=3, position_period=5, num_position_quotients=2
    )
    return gmat.GmatModel(config), {"input_ids": (2, 6)}


def given_to(kind, name=None, wrong=None):
    """Ones for what a model needs, with one wrong id in the second row of an argument."""
    arguments = {key: np.ones(shape, np.int32) for key, shape in make_model(kind)[1].items()}
    if name is not None:
        is_short = name.startswith(("global_", "memory_"))
        arguments.setdefault(name, np.ones((2, 3) if is_short else (2, 6), np.int32))
        arguments[name][1, 2] = wrong
    return arguments


KINDS = ["etc", "longformer", "longformer_char_lm", "gmat"]
TABLES = [
    ("etc", "token_ids", 30),
    ("etc", "global_token_ids", 30),
    ("etc", "segment_ids", 4),
    ("etc", "global_segment_ids", 4),
    ("etc", "position_ids", 10),
    ("etc", "global_position_ids", 10),
    ("longformer", "input_ids", 30),
    ("longformer_char_lm", "input_ids", 30),
    ("longformer", "token_type_ids", 2),
    ("longformer", "position_ids", 10),
    ("gmat", "input_ids", 30),
    ("gmat", "memory_ids", 30),
    ("gmat", "token_type_ids", 2),
    ("gmat", "position_ids", 10),
    ("gmat", "attention_mask", 2),
    ("gmat", "memory_mask", 2),
]


@pytest.mark.parametrize(("kind", "name", "size"), TABLES)
@pytest.mark.parametrize("is_negative", [False, True])
def test_an_id_out_of_range_is_told_in_a_line(kind, name, size, is_negative):
    wrong = -3 if is_negative else size
    with pytest.raises(ValueError) as raised:
        make_model(kind)[0](**given_to(kind, name, wrong))
    line = str(raised.value)
    assert line.startswith(f"`{name}` must be at least 0 and below ") and "\n" not in line
    assert re.search(rf"\b{size}\b", line)
    assert line.endswith(f", {wrong} in row 1 of the batch")


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_row_of_each_table_is_fine(kind):
    arguments = {}
    for name, size in (table[1:] for table in TABLES if table[0] == kind):
        arguments[name] = given_to(kind, name, size - 1)[name]
    assert np.isfinite(make_model(kind)[0](**arguments)[0]).all()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_graph_the_same_is_told(kind):
    name = next(iter(make_model(kind)[1]))
    run = tf.function(lambda arguments: make_model(kind)[0](**arguments)[0], autograph=False)
    fine, wrong = given_to(kind), given_to(kind, name, 31)
    as_tensors = functools.partial(tf.nest.map_structure, tf.constant)
    np.testing.assert_allclose(run(as_tensors(fine)), make_model(kind)[0](**fine)[0], atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"`{name}` must be .* below") as told:
        run(as_tensors(wrong))
    assert "Received values from] [1] [to] [31] [31] [in row] [1]" in str(told.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("ids", "line"),
    [
        (np.array([1, 2]), "must have shape [batch, "),
        (tf.ragged.constant([[1, 2], [3]]), "padded. Received: a RaggedTensor of shape [2, ?]"),
        ([[1, 2], [3]], "padded. Received: what no tensor can be made of"),
        (np.ones((2, 6)) / 2, "Received values from 0.5 to 0.5, 0.5 in row 0 of the batch"),
        (np.full((2, 6), "a"), "must be integers. Received: string"),
    ],
    ids=["unbatched", "ragged", "lists", "fractions", "text"],
)
def test_what_are_no_padded_ids_is_told_in_a_line(kind, ids, line):
    arguments = given_to(kind)
    name = next(iter(arguments))
    with pytest.raises(ValueError) as raised:
        make_model(kind)[0](**{**arguments, name: ids})
    assert str(raised.value).startswith(f"`{name}` must ") and line in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["longformer", "longformer_char_lm", "longt5"])
def test_whole_numbers_may_be_stored_otherwise(kind):
    model = longt5s.model(num_layers=1).encoder if kind == "longt5" else make_model(kind)[0]

    def call(ids):
        outputs = model(ids)
        return outputs["last_hidden_state"] if kind == "longt5" else outputs[0]

    wanted = call(np.array([[3, 4, 5]]))
    for dtype in (np.float32, np.int64, np.uint8, np.int16):
        np.testing.assert_array_equal(call(np.array([[3, 4, 5]], dtype)), wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [2**32 + 5, -(2**32) + 5])
def test_an_id_of_64_bits_does_not_wrap_around(kind, wrong):
    arguments = given_to(kind)
    name = next(iter(arguments))
    arguments[name] = arguments[name].astype(np.int64)
    arguments[name][1, 2] = wrong
    with pytest.raises(ValueError, match=f"^`{name}` must be .*, {wrong} in row 1 of the batch$"):
        make_model(kind)[0](**arguments)
