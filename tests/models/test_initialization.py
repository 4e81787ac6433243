"""First weights of label tables: what attention begins to prefer."""

import numpy as np
import pytest

from etcmodel.models import initialization, modeling
from tests.models import etcs

CONFIG = etcs.entries(
    vocab_size=20, num_hidden_layers=2, intermediate_size=16, relative_vocab_size=9
)


def built(**changes):
    etc_model = modeling.EtcModel(modeling.EtcConfig(**{**CONFIG, **changes}))
    etc_model.build(None)
    return etc_model


def tables(etc_model, part):
    """The label embeddings or biases of long and of global queries: two lists of arrays."""
    found = {v.name: v.numpy() for v in etc_model.weights if f"relative_{part}_table" in v.name}
    is_global = {name: "global_qkv" in name for name in found}
    return [[x for name, x in found.items() if is_global[name] == side] for side in (False, True)]


class TestPreferLabels:
    def test_biases_are_the_logits_of_their_labels_in_all_heads_of_all_layers(self):
        etc_model = built()
        initialization.prefer_labels(etc_model, {6: 2.0, 8: 1.0}, global_logits={8: 3.0, 0: -1.0})
        for found, logits in zip(
            tables(etc_model, "bias"),
            ([0, 0, 0, 0, 0, 0, 2, 0, 1], [-1, 0, 0, 0, 0, 0, 2, 0, 3]),
            strict=True,
        ):
            assert len(found) == 2
            for bias in found:  # Attention divides by the root of the size of a head, 4.
                np.testing.assert_allclose(bias / 2, np.tile(logits, [2, 1]).T)

    @pytest.mark.parametrize("scale", [1.0, 0.5, 0.0])
    def test_embeddings_are_scaled(self, scale):
        etc_model = built()
        before = tables(etc_model, "emb")
        initialization.prefer_labels(etc_model, {6: 2.0}, embedding_scale=scale)
        np.testing.assert_allclose(tables(etc_model, "emb"), np.multiply(before, scale))
        assert np.any(before)

    def test_a_model_whose_labels_all_have_one_value_attends_as_one_without_labels(self):
        plain, labeled = built(relative_pos_max_distance=0), built()
        of_name = {v.name: v for v in plain.weights}
        for weight in labeled.weights:
            if weight.name in of_name:
                weight.assign(of_name[weight.name])
        ids = np.array([[3, 4, 5, 6, 7]])
        globals_ = np.array([[1, 2]])
        initialization.prefer_labels(labeled, dict.fromkeys(range(9), 1.5), embedding_scale=0.0)
        for found, expected in zip(labeled(ids, globals_), plain(ids, globals_), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5)

    @pytest.mark.parametrize("labels", [{9: 1.0}, {-1: 1.0}])
    def test_labels_beyond_the_table_are_named(self, labels):
        with pytest.raises(ValueError, match=r"`relative_vocab_size`, 9. Received: \[-?\d\]"):
            initialization.prefer_labels(built(), labels)
