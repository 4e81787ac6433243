"""HotpotQA's model in cases of `core`."""

import numpy as np

from etcmodel.tasks.hotpotqa import model, task
from tests.reference import core_tasks


def make_model(config, flags):
    task_model = model.HotpotQaModel(
        config,
        answer_encoding_method=flags["answer_encoding_method"],
        flat_sequence=flags["flat_sequence"],
    )
    task_model.build()
    return task_model


def records(config, flags, features):
    names = ("long_seq_length", "global_seq_length", "answer_encoding_method")
    return task.RecordConfig(vocab_size=config.vocab_size, **{name: flags[name] for name in names})


def check(case, task_model, features, outputs, arrays, assert_close):
    for name, key in case["predictions"].items():
        check_prediction(name, outputs, arrays[key], assert_close, case["atol"])


def check_prediction(name, outputs, expected, assert_close, atol):
    """Indices of nearly equal probabilities may change places; the probabilities may not."""
    actual = np.asarray(outputs[name])
    if name.endswith("_indices"):
        probs = np.asarray(outputs[name.replace("_indices", "_probs")])
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        for row in range(len(actual)):
            by_position = dict(zip(actual[row], probs[row], strict=True))
            assert set(actual[row]) == set(expected[row])
            reordered = [by_position[position] for position in expected[row]]
            np.testing.assert_allclose(reordered, probs[row], atol=1e-6)
    else:
        assert_close(actual, expected, atol, what=name)


TASK = core_tasks.Task(make_model, records, lambda x, y, flags: model.loss(x, y), check)
