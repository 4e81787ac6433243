"""The model's loss and heads, beside the reference cases; the start without pre-training."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import initialization, modeling
from etcmodel.ops import structure as ops_structure
from etcmodel.tasks.hotpotqa import model
from tests.models import etcs

CONFIG = etcs.config(
    vocab_size=30,
    num_hidden_layers=2,
    local_radius=3,
    intermediate_size=16,
    relative_pos_max_distance=4,
    relative_vocab_size=12,
)


def slow_cross_entropy(logits, label):
    """-log softmax, in NumPy; 0 for no label."""
    if label < 0:
        return 0.0
    logits = np.asarray(logits, np.float64)
    return np.log(np.sum(np.exp(logits - logits.max()))) + logits.max() - logits[label]


class TestLoss:
    def test_span_loss_is_the_mean_of_four_parts_and_skips_positions_of_minus_one(self):
        rng = np.random.default_rng(0)
        outputs = {
            "supporting_facts_logits": rng.normal(size=[2, 3]).astype(np.float32),
            "answer_type_logits": rng.normal(size=[2, 3]).astype(np.float32),
            "answer_begin_logits": rng.normal(size=[2, 5]).astype(np.float32),
            "answer_end_logits": rng.normal(size=[2, 5]).astype(np.float32),
        }
        features = {
            "supporting_facts": np.array([[0, 1, 0], [1, 1, 0]], np.int32),
            "answer_types": np.array([0, 1], np.int32),
            "answer_begins": np.array([2, -1], np.int32),
            "answer_ends": np.array([3, -1], np.int32),
        }
        parts = {}
        for name, labels in (("type", "types"), ("begin", "begins"), ("end", "ends")):
            rows = zip(outputs[f"answer_{name}_logits"], features[f"answer_{labels}"], strict=True)
            parts[f"answer_{name}_loss"] = np.mean([slow_cross_entropy(*row) for row in rows])
        x, y = outputs["supporting_facts_logits"], features["supporting_facts"]
        binary = np.log1p(np.exp(np.where(y == 1, -x, x)))
        parts["supporting_facts_loss"] = binary.sum(-1).mean()

        losses = model.loss(outputs, features)
        assert set(losses) == {"loss", *parts}
        for name, part in parts.items():
            np.testing.assert_allclose(losses[name], part, rtol=1e-5)
        beyond = {n: np.where(np.equal(features[n], -1), 98, features[n]) for n in ENDS}
        assert model.loss(outputs, {**features, **beyond}) == losses
        np.testing.assert_allclose(losses["loss"], np.mean(list(parts.values())), rtol=1e-5)

    def test_unknown_answer_encoding_is_named(self):
        with pytest.raises(ValueError, match="answer_encoding_method.*'words'"):
            model.HotpotQaModel(CONFIG, answer_encoding_method="words")


ENDS = ("answer_begins", "answer_ends")


class TestMimeticInitialization:
    def layers(self, **changes):
        config = modeling.EtcConfig(**{**CONFIG.to_dict(), **changes})
        etc_model = modeling.EtcModel(config)
        etc_model.build(None)
        initialization.mimetic_initialization(etc_model)
        blocks = etc_model.global_local_transformer_layers.fused_att_layers
        return [block.inner_layer for block in blocks]

    @pytest.mark.parametrize("share", [True, False])
    def test_queries_equal_keys_and_outputs_undo_values(self, share):
        for attention in self.layers(share_qkv_projections=share):
            query = attention.global_query_projection.linear.kernel
            for piece in ("l2l", "l2g", "g2g", "g2l"):
                key = getattr(attention, f"{piece}_key_projection").linear.kernel
                value = getattr(attention, f"{piece}_value_projection").linear.kernel
                np.testing.assert_array_equal(key, query)
                for output in (
                    attention.long_output_projection,
                    attention.global_output_projection,
                ):
                    product = tf.matmul(value, output.kernel)
                    np.testing.assert_allclose(product, np.eye(8), atol=1e-5)

    def test_layers_differ(self):
        first, second = self.layers()
        assert not np.allclose(
            first.long_query_projection.linear.kernel, second.long_query_projection.linear.kernel
        )

    def test_labels_and_embeddings_stay_as_they_are(self):
        etc_model = modeling.EtcModel(CONFIG)
        etc_model.build(None)
        tables = [v for v in etc_model.weights if "kernel" not in v.name]
        assert sum("relative" in v.name for v in tables) >= 4
        before = [v.numpy() for v in tables]
        initialization.mimetic_initialization(etc_model)
        for variable, value in zip(tables, before, strict=True):
            np.testing.assert_array_equal(variable, value)


class TestEdges:
    # CLS, two words of the question, a paragraph with one sentence, a paragraph with two.
    FEATURES = {
        "long_paragraph_breakpoints": [[0, 0, 1, 1, 0, 1]],
        "long_paragraph_ids": [[-1, -1, -1, 3, 5, 5]],
        "long_sentence_ids": [[-1, 1, 2, 4, 6, 7]],
        "global_token_ids": [[7, 3, 3, 5, 1, 5, 1, 1]],
        "global_paragraph_breakpoints": [[1, 0, 1, 0, 1, 0, 0, 1]],
    }
    EDGES = {
        "same_word_edges": tf.constant([[[6, 1], [-1, -1]]]),
        "title_edges": tf.constant([[[4, 5], [2, 3]]]),
    }
    CONFIG = modeling.EtcConfig(**{**CONFIG.to_dict(), "relative_vocab_size": 16})

    def labels(self, features, **options):
        structure = model.make_structure(features, self.CONFIG, **options)
        return ops_structure.g2g_labels(structure).numpy()[0]

    def test_edges_replace_the_labels_of_their_pairs_in_both_directions(self):
        expected = self.labels(self.FEATURES)
        free = 2 * CONFIG.relative_pos_max_distance + 4  # Positions, and three labels of links.
        titles = [(4, 5), (4, 6), (4, 7), (2, 3), (2, 4)]
        for number, (name, pairs) in enumerate(
            {
                "same_word_in_paragraph": [(5, 1), (7, 1), (1, 5), (1, 7)],
                "same_word": [(6, 1), (1, 6)],
                "title": titles,
                "title_back": [pair[::-1] for pair in titles],
            }.items()
        ):
            assert model.EDGE_LABELS[number] == name
            for pair in pairs:
                expected[pair] = free + number
        found = self.labels({**self.FEATURES, **self.EDGES})
        np.testing.assert_array_equal(found, expected)

    def test_of_several_labels_a_pair_has_that_of_the_title(self):
        edges = {**self.EDGES, "same_word_edges": tf.constant([[[4, 2], [3, 2]]])}
        np.testing.assert_array_equal(
            self.labels({**self.FEATURES, **edges})[3:5, 2],
            2 * [15],  # That of "title_back".
        )

    def test_a_flat_sequence_has_none(self):
        flat = self.labels({**self.FEATURES, **self.EDGES}, flat_sequence=True)
        np.testing.assert_array_equal(flat, self.labels(self.FEATURES, flat_sequence=True))

    def test_too_few_labels_are_an_error(self):
        with pytest.raises(ValueError, match="relative_vocab_size.*same_word"):
            model.make_structure({**self.FEATURES, **self.EDGES}, CONFIG)
