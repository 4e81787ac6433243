"""The cases of majority tagging: tags, and how predictions are scored."""

import numpy as np

from etcmodel.tasks.majority_tagging import examples, metrics
from etcmodel.tools.demos import majority_tagging as demo
from tests.reference import cases
from tests.reference.gmat_arrays import TOPIC, arrays_of, assert_close

STATISTICS = "majority_stats.json"
_NUM_EXAMPLES = 1500


def check_majority(case):
    arrays = arrays_of(case)
    assert arrays["labels"].max() <= case["config"]["classes"]
    for tokens, wanted in zip(arrays["sequences"], arrays["labels"], strict=True):
        np.testing.assert_array_equal(examples.majority_tags(tokens), wanted)


def check_scoring(case):
    arrays = arrays_of(case)
    real = arrays["mask"] > 0
    tags, predictions, tokens = (
        [row[mask] for row, mask in zip(arrays[name], real, strict=True)]
        for name in ("labels", "predictions", "sequences")
    )
    for row, wanted in zip(tokens, tags, strict=True):
        np.testing.assert_array_equal(examples.majority_tags(row), wanted)
    exact, found = metrics.scores(tags, predictions)
    np.testing.assert_array_equal(exact, arrays["exact"] > 0)
    for name, value in found.items():
        assert_close(value, case["config"][name], name=name)


def statistics():
    """What is known of the constant answer, by length and number of pairs: dict."""
    rows = cases.load_json(TOPIC, STATISTICS)["rows"]
    return {(row["length"], row["pairs"]): row for row in rows}


def check_statistics(length, pairs):
    """Compares the constant answer's scores on generated sequences with what they must be."""
    known = statistics()[length, pairs]
    raws = demo.make_examples(
        split="dev", num_examples=_NUM_EXAMPLES, seed=0, length=length, pairs=pairs
    )
    found = metrics.metrics([examples.parse_example(raw) for raw in raws], {})
    probability = known["constant_em_exact"]
    error = np.sqrt(probability * (1 - probability) / _NUM_EXAMPLES)
    assert abs(found["constant_exact_match"] - probability) < 4 * error
    # The tags of a pair are all right or all wrong.
    error = 0.5 / np.sqrt(_NUM_EXAMPLES * pairs)
    assert abs(found["constant_tag_accuracy"] - known["constant_accuracy"]) < 4 * error
