"""Heads of encoders of one text, which systems share: a case for each, and what all must do."""

import numpy as np
import tensorflow as tf

import etcmodel

SEPARATOR = 2


def with_separators(ids):
    """Ids with separators at 2, 3 and the end of the first text, at 1, 4 and the end of others."""
    ids = ids.copy()
    ids[0, [2, 3, -1]] = SEPARATOR
    ids[1:, [1, 4, -1]] = SEPARATOR
    return ids


def cases(prefix, ids):
    """Cases by name, of the heads that the system has: (class, settings, ids, labels).

    Args:
        prefix: str. What the names of the system's classes begin with.
        ids: int [2, 7], as of `with_separators`.
    """
    several = {"num_labels": 3, "problem_type": "multi_label_classification"}
    regression = {"num_labels": 1, "problem_type": "regression"}
    tags = np.where(ids == SEPARATOR, -100, ids % 2)
    ends = {"start": np.array([3, 99]), "end": np.array([5, 4])}
    of_text = "SequenceClassification"
    found = {
        "masked_lm": ("MaskedLM", {}, ids, ids),
        "classes": (of_text, {"num_labels": 3}, ids, np.array([2, 0])),
        "several_classes": (of_text, several, ids, np.array([[1, 0, 1], [0, 0, 0]])),
        "regression": (of_text, regression, ids, np.array([0.5, -1.0])),
        "tokens": ("TokenClassification", {}, ids, tags),
        "answers": ("QuestionAnswering", {}, ids, ends),
        "choices": ("MultipleChoice", {}, np.stack([ids, ids[::-1]]), np.array([1, 0])),
    }
    classes = {name: getattr(etcmodel, f"{prefix}For{name}", None) for name, *_ in found.values()}
    return {case: (classes[name], *x) for case, (name, *x) in found.items() if classes[name]}


def check_learns(model, features, labels, *, is_eager):
    """Fits a model to a batch; eagerly, so few steps take less time than tracing one."""
    model.compile(run_eagerly=is_eager)
    model.optimizer.learning_rate = 0.02
    data = tf.data.Dataset.from_tensors(({"input_ids": features}, labels)).repeat(8)
    history = model.fit(data, epochs=2, steps_per_epoch=4, verbose=0).history["loss"]
    assert history[1] < history[0]


def check_comes_back(model, features, folder):
    """Writes a model to a folder, and compares with what is read."""
    etcmodel.save_pretrained(model, folder)
    again = etcmodel.from_pretrained(folder)
    assert type(again) is type(model)
    assert again.settings() == model.settings()
    for one, other in zip(
        *(tf.nest.flatten(x({"input_ids": features})) for x in (model, again)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
