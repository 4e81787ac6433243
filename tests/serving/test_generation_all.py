"""Exported generation of all systems, with all rules, of which `test_generation.py` has one."""

import numpy as np
import pytest
import tensorflow as tf

from tests.serving.generation_cases import (
    CALLS,
    GLOBAL,
    IDS,
    MAKERS,
    assert_same,
    constants,
    exported,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.exhaustive
def test_beams_and_lengths_are_inputs(kind, tmp_path):
    model, ids = MAKERS[kind](), {**IDS, **(GLOBAL if kind == "led" else {})}
    signatures = exported(model, tmp_path, no_repeat_ngram_size=2, num_beams=3, max_length=8)
    for call in CALLS:
        found = signatures["generate"](**constants({**ids, **call}))
        assert_same(found, model.generate(ids, no_repeat_ngram_size=2, **call))
    wanted = model.generate(ids, no_repeat_ngram_size=2, num_beams=3, max_length=8)
    assert_same(signatures["serving_default"](**constants(ids)), wanted)


@pytest.mark.parametrize("early_stopping", [True, "never"])
@pytest.mark.slow_cases(1)
def test_rules_of_stopping_and_several_sequences(early_stopping, tmp_path):
    model = MAKERS["longt5"]()
    settings = {"early_stopping": early_stopping, "num_return_sequences": 2, "num_beams": 2}
    signatures = exported(model, tmp_path, **settings)
    numbers = {"num_beams": 4, "max_length": 9, "min_length": 3, "length_penalty": 2.0}
    found = signatures["generate"](**constants({**IDS, **numbers}))
    assert found["sequences"].shape[0] == 6
    assert_same(found, model.generate(IDS, **{**settings, **numbers}))
    with pytest.raises(tf.errors.InvalidArgumentError, match="`num_beams` must be at least 2"):
        signatures["generate"](**constants({**IDS, **numbers, "num_beams": 1}))


def test_sequences_that_are_drawn_are_those_of_the_seed(tmp_path):
    model = MAKERS["longt5"]()
    options = {"do_sample": True, "temperature": 2.0, "top_k": 9, "num_return_sequences": 2}
    signatures = exported(model, tmp_path, **options)
    for seed in (1, 2):
        numbers = {"max_length": 8, "min_length": 0, "seed": seed}
        found = signatures["generate"](**constants({**IDS, **numbers}))
        wanted = model.generate(IDS, **options, **numbers)["sequences"]
        assert set(found) == {"sequences"}
        np.testing.assert_array_equal(found["sequences"], wanted)


@pytest.mark.exhaustive
def test_global_positions_of_the_config_need_no_input(tmp_path):
    model = MAKERS["led"](global_positions=(0,))
    signatures = exported(model, tmp_path, num_beams=2, max_length=7)
    found = signatures["serving_default"](**constants(IDS))
    assert_same(found, model.generate(IDS, num_beams=2, max_length=7))
    message = "`max_length` must be at most 21"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        signatures["generate"](**constants({**IDS, **CALLS[0], "max_length": 22}))
