"""`GenerationRunner`: what the signature of an export gets of each input."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import serving
from tests.serving.generation_cases import IDS, MAKERS

LENGTHS = {"max_length": 6, "min_length": 5}
WITH_GLOBALS = ("input_ids", "attention_mask", "global_attention_mask")
EXAMPLES = [
    {"input_ids": [5, 6, 7], "global_attention_mask": [1, 0, 1], "name": "own"},
    {"input_ids": [8, 9, 5, 4, 6], "name": "none"},
    {"input_ids": [7, 7], "global_attention_mask": None, "name": "null"},
    {"input_ids": [8], "global_attention_mask": np.array([1]), "name": "array"},
]


def echo(folder, names):
    """A runner of an export that gives what it gets."""
    specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in names}
    give_back = tf.function(
        lambda **given: {f"seen_{name}": tf.identity(x) for name, x in given.items()},
        autograph=False,
    ).get_concrete_function(**specs)
    tf.saved_model.save(tf.Module(), str(folder / "1"), {"generate": give_back})
    return serving.GenerationRunner(str(folder / "1"))


def test_what_is_global_is_padded_and_nothing_is_by_default(tmp_path):
    found = [*echo(tmp_path, WITH_GLOBALS)(EXAMPLES, batch_size=2)]
    assert [x["name"] for x in found] == ["own", "none", "null", "array"]
    wanted = [
        ([5, 6, 7, 0, 0], [1, 1, 1, 0, 0], [1, 0, 1, 0, 0]),
        ([8, 9, 5, 4, 6], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]),
        ([7, 7], [1, 1], [0, 0]),
        ([8, 0], [1, 0], [1, 0]),
    ]
    for one, arrays in zip(found, wanted, strict=True):
        for name, array in zip(WITH_GLOBALS, arrays, strict=True):
            assert one[f"seen_{name}"].tolist() == array, (one["name"], name)


def test_a_signature_without_it_gets_ids_and_mask_alone(tmp_path):
    found = [*echo(tmp_path, WITH_GLOBALS[:2])(EXAMPLES[:1])]
    assert found[0]["seen_input_ids"].tolist() == [5, 6, 7]
    assert "seen_global_attention_mask" not in found[0]


def test_a_mask_of_another_length_than_its_input_is_refused(tmp_path):
    example = {"input_ids": [5, 6, 7], "global_attention_mask": [1, 0]}
    with pytest.raises(ValueError, match="must be as long as `input_ids`. Received: 2, 3"):
        next(echo(tmp_path, WITH_GLOBALS)([example]))


def test_several_sequences_of_an_input_stay_with_it(tmp_path):
    @tf.function(autograph=False)
    def twice(input_ids, attention_mask):
        del attention_mask
        sequences = tf.repeat(input_ids, 2, axis=0) * tf.constant([[1], [10]] * 2)
        return {"sequences": sequences, "sequences_scores": tf.reduce_sum(sequences, axis=1)}

    specs = [tf.TensorSpec([None, None], tf.int32, name) for name in WITH_GLOBALS[:2]]
    signatures = {"generate": twice.get_concrete_function(*specs)}
    tf.saved_model.save(tf.Module(), str(tmp_path / "1"), signatures)
    runner = serving.GenerationRunner(str(tmp_path / "1"))
    first, second = runner([{"input_ids": [5, 6]}, {"input_ids": [7]}], batch_size=2)
    assert first["sequences"].tolist() == [[5, 6], [50, 60]]
    assert second["sequences"].tolist() == [[7, 0], [70, 0]]
    assert second["sequences_scores"].tolist() == [7, 70]


@pytest.mark.exhaustive
def test_sequences_of_an_led_are_those_of_the_model(tmp_path):
    model, path = MAKERS["led"](), str(tmp_path / "1")
    serving.export_generation(model, path, do_sample=True, temperature=3.0, **LENGTHS)
    runner = serving.GenerationRunner(path)
    is_global = np.eye(2, 13, 4, dtype=np.int32)
    is_global[1] = 0  # As of an example that does not say it.
    ids = IDS["input_ids"][:2]
    examples = [{"input_ids": row.tolist()} for row in ids]
    examples[0]["global_attention_mask"] = is_global[0].tolist()
    found = [x["sequences"] for x in runner(examples, seed=3, **LENGTHS)]
    wanted = model.generate(
        ids,
        np.ones_like(ids),
        is_global,
        do_sample=True,
        temperature=3.0,
        seed=3,
        **LENGTHS,
    )
    np.testing.assert_array_equal(found, wanted["sequences"])
