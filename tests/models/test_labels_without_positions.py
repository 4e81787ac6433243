"""Relative labels of a model whose config has a vocabulary of them, but no distance."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.feature_utils import RelativePositionGenerator
from etcmodel.models import input_utils, modeling
from tests.models import etcs


class TestLabelsWithoutPositions:
    def outputs(self, distance, vocab_size, labels=None, structure=None):
        """Long and global output of a model whose weights depend on their names alone."""
        config = etcs.config(relative_pos_max_distance=distance, relative_vocab_size=vocab_size)
        model = modeling.EtcModel(config)
        model.build(None)
        for seed, variable in enumerate(checkpoints.release_names(model).values()):
            shape = (16, *variable.shape[1:])
            values = np.random.default_rng(seed).normal(size=shape)[: variable.shape[0]]
            variable.assign(values)
        long_ids, global_ids = np.array([[1, 2, 3, 4, 5]]), np.array([[6, 7]])
        return model(long_ids, global_ids, **(labels or {}), structure=structure)

    @pytest.fixture
    def labels(self):
        """All positions are one label; links and other segments have theirs."""
        positions = RelativePositionGenerator(0)
        linked = np.array([[[2, 1], [2, 1], [1, 2], [1, 2], [1, 1]]])
        labels = {
            "l2l_relative_att_ids": positions.make_local_relative_att_ids(5, 2),
            "g2g_relative_att_ids": np.array([[[0, 3], [3, 0]]]),
            "l2g_relative_att_ids": linked,
            "g2l_relative_att_ids": linked.swapaxes(1, 2),
        }
        assert not np.any(labels["l2l_relative_att_ids"])
        return labels

    def test_own_labels_are_rows_of_the_tables_as_with_any_distance(self, labels):
        without_positions = self.outputs(0, 6, labels)
        with_positions = self.outputs(1, 6, labels)
        for got, expected in zip(without_positions, with_positions, strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-6)
        assert np.abs(self.outputs(0, 6)[0] - without_positions[0]).max() > 1e-3

    def test_a_structure_without_distance_has_no_labels_as_its_side_inputs_have_none(self):
        arguments = [
            tf.constant([[0, 0, 1, 0, 1]]),
            tf.constant([[1, 1]]),
            tf.zeros([1, 5], tf.int32),
        ]
        structure = input_utils.make_structure(*arguments, 0)
        dense = input_utils.make_global_local_transformer_side_inputs(*arguments, 2, 0)
        by_structure = self.outputs(0, 6, structure=structure)
        by_masks = self.outputs(0, 6, dense.to_dict(exclude_none_values=True))
        for got, expected in zip(by_structure, by_masks, strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-6)

    def test_without_a_vocabulary_there_are_no_tables(self, tmp_path, labels):
        text = '{"vocab_size": 9, "relative_vocab_size": null, "relative_pos_max_distance": 0}'
        config = modeling.EtcConfig.from_json_string(text)
        small = {"hidden_size": 4, "num_attention_heads": 2, "num_hidden_layers": 1}
        model = modeling.EtcModel(dataclasses.replace(config, **small, intermediate_size=4))
        model.build(None)
        assert not [name for name in checkpoints.release_names(model) if "relative_" in name]
        with pytest.raises(ValueError, match="got relative labels, but its `relative_vocab_size`"):
            self.outputs(0, None, labels)
