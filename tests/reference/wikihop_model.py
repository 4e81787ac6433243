"""WikiHop's model in cases of `core`."""

import numpy as np

from etcmodel.models.side_inputs import side_inputs_of
from etcmodel.tasks.wikihop import model, task
from tests.reference import core_tasks


def make_model(config, flags):
    own = {name: x for name, x in flags.items() if name != "label_smoothing"}
    task_model = model.WikiHopModel(config, **own)
    task_model.build()
    return task_model


def records(config, flags, features):
    return task.RecordConfig(
        long_seq_length=features["long_token_ids"].shape[1],
        global_seq_length=features["global_token_ids"].shape[1],
        vocab_size=config.vocab_size,
    )


def losses(outputs, features, flags):
    options = {"label_smoothing": flags["label_smoothing"]}
    per_example = model.per_example_loss(outputs, features, **options)
    return {**model.loss(outputs, features, **options), "per_example_loss": per_example}


def check(case, task_model, features, outputs, arrays, assert_close):
    """Also the model's own masks and labels, which are those of the release's input pipeline."""
    predictions = case["predictions"]
    assert_close(outputs["logits"], arrays[predictions["logits"]], case["atol"])
    # The release passes the labels on.
    np.testing.assert_array_equal(arrays[predictions["label_ids"]], features["label_id"])
    structure = task_model._structure(features)
    side_inputs = side_inputs_of(structure, task_model.encoder_config.local_radius)
    made = side_inputs.to_dict(exclude_none_values=True)
    assert set(made) == set(case["derived_features"])
    for name, key in case["derived_features"].items():
        np.testing.assert_array_equal(np.asarray(made[name], np.int32), arrays[key], err_msg=name)


TASK = core_tasks.Task(make_model, records, losses, check)
