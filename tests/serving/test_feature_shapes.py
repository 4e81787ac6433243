"""An exported model takes features of any shape and type, and gives the model's own outputs."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import preprocessing, serving
from tests.finetuning import toy

RECORDS = toy.RecordConfig(long_seq_length=2, global_seq_length=4, vocab_size=len(toy.VOCAB))
EMBEDDING = np.array([0.0, 10, 20, 30, 40, 50], np.float32)
KERNEL = np.array([1.0, 0.1, 0.01], np.float32)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model = toy.ToyModel(len(toy.VOCAB))
    model.build()
    model.set_weights([EMBEDDING, KERNEL])
    folder = tmp_path_factory.mktemp("export")
    return serving.export_saved_model(
        model,
        str(folder / "3"),
        features=RECORDS.model_features(),
        axes=RECORDS.model_axes(),
        checks=RECORDS.checks(),
        padding={"long_token_ids": 1, "sizes": 2.0},
        assets={},
    )


def record(*rows):
    """A record of (token id, sizes) rows."""
    return {
        "long_token_ids": [token_id for token_id, _ in rows],
        "sizes": [size for _, sizes in rows for size in sizes],
    }


@pytest.fixture(scope="module")
def runner(exported):
    return serving.SavedModelRunner(exported)


@pytest.fixture(scope="module")
def signatures(exported):
    return tf.saved_model.load(exported).signatures


def test_outputs_are_the_models_for_flat_lists_of_any_length(runner):
    two = record((2, [1.0, 2.0, 3.0]), (3, [0.0, 0.0, 1.0]))
    (output,) = runner([two])
    np.testing.assert_allclose(output["score"], 20 + 30 + 1.23 + 0.01, rtol=1e-6)
    (longer,) = runner([record((2, [1.0, 0.0, 0.0])) | {"note": "kept"}])
    np.testing.assert_allclose(longer["score"], 21, rtol=1e-6)
    assert longer["note"] == "kept" and longer["sizes"].shape == (1, 3)


def test_reads_no_more_than_a_batch_ahead(runner):
    taken = []

    def records():
        for token_id in (2, 3, 4, 5, 2):
            taken.append(token_id)
            yield record((token_id, [0.0, 0.0, 0.0]))

    outputs = runner(records(), batch_size=2)
    assert next(outputs)["score"] == 20 and taken == [2, 3]
    assert [float(output["score"]) for output in outputs] == [30, 40, 50, 20]


def serve(signatures, *records):
    serialized = [preprocessing.to_tf_example(one).SerializeToString() for one in records]
    return signatures["serving_default"](examples=tf.constant(serialized))["score"].numpy()


def test_serialized_examples_are_padded_to_the_longest_of_the_batch(signatures):
    short, long = record((2, [1.0, 0.0, 0.0])), record((3, [0.0] * 3), (4, [0.0] * 3))
    padding = 10 + 2 * 1.11  # A token of id 1, of sizes 2.
    np.testing.assert_allclose(serve(signatures, short, long), [21 + padding, 70], rtol=1e-6)


GOOD = record((2, [1.0, 0.0, 0.0]), (3, [0.0] * 3))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({}, "is missing, or empty, in an example; the lengths are"),
        ({"sizes": GOOD["sizes"]}, "`long_token_ids` is missing, or empty, in an example"),
        ({**GOOD, "long_token_ids": [2]}, "` and `.*` must have one length"),
        ({**GOOD, "sizes": [1.0] * 9}, "must have one length"),
        ({**GOOD, "sizes": [1.0] * 5}, "sizes|values"),
        ({**GOOD, "long_token_ids": [2, 6]}, "`long_token_ids` has the value 6; allowed .* 5"),
        ({**GOOD, "long_token_ids": [-1, 3]}, "`long_token_ids` has the value -1"),
        ({**GOOD, "long_token_ids": [2, 2**32 + 3]}, "`long_token_ids` has the value 4294967299"),
    ],
)
def test_a_bad_example_is_refused_also_beside_good_ones(signatures, bad, message):
    assert serve(signatures, GOOD, GOOD).tolist() == [51, 51]
    for records in ([bad], [GOOD, bad], [bad, GOOD, GOOD]):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            serve(signatures, *records)


def test_a_batch_without_examples_is_refused(signatures):
    with pytest.raises(tf.errors.InvalidArgumentError, match="`examples` holds no example"):
        signatures["serving_default"](examples=tf.constant([], tf.string))


IDS = np.array([[2, 3], [4, 5], [2, 2]], np.int32)
SIZES = np.zeros([3, 2, 3], np.float32)


@pytest.mark.parametrize(
    ("ids", "sizes", "message"),
    [
        (IDS, SIZES[:1], "` has.*examples, `.*` has"),
        (IDS[:1], SIZES, "` has.*examples, `.*` has"),
        (IDS[:, :1], SIZES, "must have one length"),
        (IDS, SIZES[:, :1], "must have one length"),
        (IDS[:, :0], SIZES[:, :0], "is missing, or empty"),
        (IDS + 1, SIZES, "`long_token_ids` has the value 6"),
        (IDS - 3, SIZES, "`long_token_ids` has the value -1"),
    ],
)
def test_dense_features_are_not_broadcast_and_their_ids_are_checked(
    signatures, ids, sizes, message
):
    scores = signatures["dense_features"](long_token_ids=IDS, sizes=SIZES)["score"]
    np.testing.assert_allclose(scores, [50, 90, 40])
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        signatures["dense_features"](long_token_ids=tf.constant(ids), sizes=tf.constant(sizes))
