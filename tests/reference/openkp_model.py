"""OpenKP's model: in cases of `core`, and in those of `openkp`."""

import numpy as np

from etcmodel.tasks.openkp import model, task
from etcmodel.tasks.openkp.config import DENSE_RANGES, VisualConfig
from tests.reference import core_tasks


def make_visual_config(flags):
    """The release's flags as a config."""
    return VisualConfig(
        use_in_long=flags["use_visual_features_in_long"],
        use_in_global=flags["use_visual_features_in_global"],
        ranges={name: (flags[f"{name}_min"], flags[f"{name}_max"]) for name in DENSE_RANGES},
        indicators_to_cross=tuple(flags["indicators_to_cross"]),
        num_extra_dense_layers=flags.get("extra_dense_feature_layers", 1),
    )


def make_model(config, flags):
    """A built model for the release's flags."""
    task_model = model.OpenKpModel(
        config,
        visual_config=make_visual_config(flags),
        kp_max_length=flags["kp_max_length"],
    )
    task_model.build()
    return task_model


def losses(outputs, features, flags):
    mass = flags["additive_smoothing_mass"]
    return model.loss(outputs, features, additive_smoothing_mass=mass, release_compatible=True)


def check(case, task_model, features, outputs, arrays, assert_close):
    for name, key in case["predictions"].items():
        assert_close(outputs[name], arrays[key], case["atol"], what=key)
    check_best(outputs, arrays[case["predictions"]["ngram_logits"]])


def check_best(outputs, expected_logits):
    """The best n-grams are those of the expected logits."""
    batch_size, _, num_places = expected_logits.shape
    for row in range(batch_size):
        starts, lengths = outputs["top_start_idx"][row], outputs["top_phrase_len"][row]
        real = lengths > 0
        places = ((lengths - 1) * num_places + starts)[real].numpy()
        flat = expected_logits[row].ravel()
        num_real = len(places)
        assert num_real and np.all(flat[places] > -5000)
        np.testing.assert_allclose(flat[places], np.sort(flat)[::-1][:num_real], atol=1e-4)


def records(config, flags, features=None):
    """The release's flags as what its records hold."""
    return task.RecordConfig(
        long_seq_length=flags["long_max_length"],
        global_seq_length=flags["global_max_length"],
        url_max_code_points=flags["url_num_code_points"],
        kp_max_length=flags.get("kp_max_length", 5),  # By default, as in the release.
        num_labels=flags["num_labels"],
        vocab_size=config.vocab_size,
        use_visual_features=make_visual_config(flags).is_used,
    )


TASK = core_tasks.Task(make_model, records, losses, check, frozenset({"url_code_points"}))
