"""Values outside their range are found and named, wherever they stand; others pass unchanged."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel import feature_checks
from etcmodel.tasks.hotpotqa import task as hotpotqa
from etcmodel.tasks.nq import task as nq
from etcmodel.tasks.openkp import task as openkp
from etcmodel.tasks.wikihop import task as wikihop

LONG, GLOBAL = 6, 4
CHECKS = feature_checks.FeatureChecks(
    {
        "ids": feature_checks.Range(0, 9, "the ids"),
        "links": feature_checks.Range(-1, "globals"),
        "globals": feature_checks.FLAG,
        "label": feature_checks.Range(0, "globals"),
    },
    int64_features=("hash",),
)
AXES = {"ids": "l", "links": "l", "other": "l", "hash": "l", "globals": "g", "label": "s"}


@tf.function(
    input_signature=[
        {
            name: tf.TensorSpec(
                {"g": [GLOBAL], "s": []}.get(axis, [LONG]),
                tf.float32 if name == "label" else tf.int64,
            )
            for name, axis in AXES.items()
        }
    ]
)
def checked(features):
    return CHECKS.checked(features, {"globals": GLOBAL}, AXES)


def features(**changes):
    good = {
        "ids": [0, 8, 1, 2, 3, 4],
        "links": [-1, 0, 3, 0, -1, 0],
        "other": [-(2**31), 2**31 - 1, 0, 0, 0, 0],
        "hash": [-(2**62), 2**62, 0, 0, 0, 0],
        "globals": [0, 1, 0, 1],
        "label": 3.0,
    }
    return {**good, **changes}


def tensors(values):
    return {
        name: tf.constant(value, tf.float32 if name == "label" else tf.int64)
        for name, value in values.items()
    }


def test_good_values_pass_unchanged():
    for name, value in checked(tensors(features())).items():
        np.testing.assert_array_equal(value, features()[name])


@given(
    st.sampled_from(["ids", "links", "other", "globals"]),
    st.integers(0, GLOBAL - 1),
    st.one_of(st.integers(-3, 12), st.integers(-(2**63), 2**63 - 1)),
)
@settings(max_examples=150)
def test_a_value_is_refused_if_and_only_if_it_is_outside_in_graphs_and_in_lists(name, at, value):
    limits = {"ids": (0, 8), "links": (-1, 3), "globals": (0, 1), "other": (-(2**31), 2**31 - 1)}
    lowest, highest = limits[name]
    row = list(features()[name])
    row[at] = value
    problem = CHECKS.problem(name, row, {"globals": GLOBAL})
    if lowest <= value <= highest:
        assert problem == ""
        checked(tensors(features(**{name: row})))
        return
    start = f"`{name}` has the value {value}; allowed are {lowest} to {highest}"
    assert problem.startswith(start)
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(start)):
        checked(tensors(features(**{name: row})))


@pytest.mark.parametrize(("value", "is_right"), [(2, True), (3, False), (-2, False)])
def test_pairs_are_checked_by_the_length_of_their_own_example(value, is_right):
    pairs = tf.constant([[[0, -1], [1, 2]], [[0, 1], [-1, value]]], tf.int64)
    lengths = {"globals": tf.constant([[4], [3]], tf.int64)}
    check = lambda: CHECKS.checked({"links": pairs}, lengths, {"links": "links"})  # noqa: E731
    if is_right:
        np.testing.assert_array_equal(check()["links"], pairs)
    else:
        message = f"`links` has the value {value}; allowed are -1 to 2"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            check()


@pytest.mark.parametrize("label", [-1.0, 4.0, 2.5, 0.25, float("nan"), float("inf")])
def test_labels_that_are_floats_are_checked_too_and_are_whole(label):
    told = f"`label` has the value {label:g}; allowed are whole numbers from 0 to 3"
    with pytest.raises(tf.errors.InvalidArgumentError, match=told):
        checked(tensors(features(label=label)))
    told = f"`label` has the value {label}; allowed are whole numbers from 0 to 3"
    assert CHECKS.problem("label", [label], {"globals": GLOBAL}).startswith(told)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_floats_are_finite(value):
    good, bad = [[0.0, -3e38, 3e38], [0.0, value, 0.0]]
    checks = feature_checks.FeatureChecks({})
    assert checks.problem("sizes", good, {}) == ""
    assert checks.problem("sizes", bad, {}).startswith(
        f"`sizes` has the value {value}; allowed are -3.4e+38 to 3.4e+38 (a finite number)."
    )
    np.testing.assert_array_equal(
        checks.checked({"sizes": tf.constant(good)}, {}, {"sizes": "s"})["sizes"],
        np.float32(good),
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`sizes` has the value .*a finite"):
        checks.checked({"sizes": tf.constant(bad)}, {}, {"sizes": "s"})


def test_outputs_are_numbers():
    ids, text = np.array([1]), np.array([b"a"])
    least = np.array([-np.inf, 0.5], np.float16)  # Such as of what is masked.
    good = {"ids": ids, "text": text, "score": np.float32(1), "name": "a", "logits": least}
    feature_checks.check_outputs(good)
    for bad in (np.float32("nan"), np.array([0, np.nan]), np.array([0, np.nan], np.float16)):
        with pytest.raises(ValueError, match=r"output `logits` is not a number \(NaN\)"):
            feature_checks.check_outputs({**good, "logits": bad})


# For each feature: the highest value that is allowed, or None for any, and the lowest.
LIMITS = {
    hotpotqa: {
        "long_token_ids": (0, 49),
        "global_token_ids": (0, 49),
        "long_token_type_ids": (0, 6),
        "global_token_type_ids": (0, 6),
        "long_sentence_ids": (-1, 3),
        "long_paragraph_ids": (-1, 3),
        "long_paragraph_breakpoints": (0, 1),
        "global_paragraph_breakpoints": (0, 1),
        "supporting_facts": (0, 1),
        "answer_types": (-1, 2),
        "answer_begins": (-1, 2**31 - 1),
        "answer_ends": (-1, 2**31 - 1),
    },
    nq: {
        "token_ids": (0, 49),
        "global_token_ids": (0, 49),
        "sentence_ids": (-1, 3),
        "long_breakpoints": (0, 1),
        "global_breakpoints": (0, 1),
        "sa_start": (-1, 5),
        "sa_end": (-1, 5),
        "la_start": (-1, 5),
        "la_end": (-1, 5),
        "answer_type": (0, 4),
    },
    wikihop: {
        "long_token_ids": (0, 49),
        "global_token_ids": (0, 49),
        "long_token_type_ids": (0, 6),
        "global_token_type_ids": (0, 6),
        "long_sentence_ids": (-1, 3),
        "long_paragraph_ids": (-1, 3),
        "l2g_linked_ids": (-1, 3),
        "long_paragraph_breakpoints": (0, 1),
        "global_paragraph_breakpoints": (0, 1),
        "label_id": (0, 3),
        "is_real_example": (0, 1),
    },
    openkp: {
        "long_token_ids": (0, 49),
        "global_token_ids": (0, 49),
        "long_input_mask": (0, 1),
        "long_word_input_mask": (0, 1),
        "global_input_mask": (0, 1),
        "long_word_idx": (0, 5),
        "long_vdom_idx": (0, 3),
        "global_font_ids": (0, 23),
        "global_parent_font_ids": (0, 23),
        "global_heading_indicator": (0, 1),
        "global_parent_bold_indicator": (0, 1),
        "url_code_points": (-1, 0x10FFFF),
        "label_start_idx": (-1, 2**31 - 1),
        "label_phrase_len": (-1, 2**31 - 1),
    },
}


@pytest.mark.parametrize(
    ("task", "name", "limits"),
    [
        (task, name, limits)
        for task, features in LIMITS.items()
        for name, limits in features.items()
    ],
)
def test_each_tasks_features_have_their_ranges(task, name, limits):
    config = task.RecordConfig(
        long_seq_length=LONG, global_seq_length=GLOBAL, vocab_size=50, segment_vocab_size=7
    )
    spec = {
        **config.model_features(),
        **config.label_features(),
        **config.decoding_features(),
    }
    assert name in spec
    lengths = {n: f.shape[0] for n, f in spec.items() if f.shape}
    for value in limits:
        assert config.checks().problem(name, [value], lengths) == ""
    for value in (limits[0] - 1, limits[1] + 1, 2**32 + limits[0]):
        assert config.checks().problem(name, [value], lengths)


@pytest.mark.parametrize("task", LIMITS)
def test_a_tasks_features_know_their_axis_also_where_both_lengths_are_the_same(task):
    config = task.RecordConfig(long_seq_length=8, global_seq_length=8, vocab_size=50)
    axes = config.model_axes()
    names = {"token_ids": "long", "sentence_ids": "long", "long_breakpoints": "long"}
    for name, axis in axes.items():
        assert axis == names.get(name, name.removeprefix("l2g_linked_ids").split("_")[0] or "long")
