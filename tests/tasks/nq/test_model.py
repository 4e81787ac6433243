"""The model's loss and heads, beside the reference cases."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.checkpoints import names
from etcmodel.models import encoders, input_utils
from etcmodel.tasks.nq import model
from tests.models import etcs
from tests.tasks import small_encoders

CONFIG = etcs.config(
    vocab_size=120,
    local_radius=3,
    intermediate_size=16,
    relative_pos_max_distance=4,
    relative_vocab_size=12,
)
LABELS = (*model.POSITIONS, "answer_type")


def features(padding=0):
    """Two windows of 12 tokens, the second shorter, and more padding."""
    rows = [
        [101, 5, 6, 102, 7, 8, 9, 10, 11, 12, 13, 102],
        [101, 5, 6, 102, 7, 8, 102, 0, 0, 0, 0, 0],
    ]
    sentence_ids = [[0, 1, 2, 3, *[4] * 4, *[5] * 3, -1], [0, 1, 2, 3, 4, 4, *[-1] * 6]]
    long = {
        "token_ids": rows,
        "sentence_ids": sentence_ids,
        "long_breakpoints": [[int(i == last) for i in range(12)] for last in (11, 6)],
    }
    padded = {
        name: np.pad(
            values, [(0, 0), (0, padding)], constant_values=-1 if name == "sentence_ids" else 0
        )
        for name, values in long.items()
    }
    glob = {
        "global_token_ids": [[101, 35, 35, 35, 1, 1], [101, 35, 35, 35, 1, 0]],
        "global_breakpoints": [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 0]],
    }
    return {name: tf.constant(v, tf.int32) for name, v in {**padded, **glob}.items()}


@pytest.fixture(scope="module")
def built():
    tf.random.set_seed(3)
    nq = model.NqModel(CONFIG)
    nq.build()
    return nq


class TestLoss:
    def test_is_the_mean_of_five_cross_entropies(self):
        rng = np.random.default_rng(0)
        logits = {name: rng.normal(size=[2, 5]).astype(np.float32) for name in LABELS}
        labels = {name: np.array([3, 1], np.int32) for name in LABELS}
        losses = model.loss({f"{name}_logits": value for name, value in logits.items()}, labels)
        parts = []
        for name in LABELS:
            x = logits[name].astype(np.float64)
            slow = np.log(np.exp(x).sum(-1)) - x[[0, 1], labels[name]]
            np.testing.assert_allclose(losses[f"{name}_loss"], slow.mean(), rtol=1e-5)
            parts.append(slow.mean())
        np.testing.assert_allclose(losses["loss"], np.mean(parts), rtol=1e-5)

    def test_an_unknown_answer_type_adds_nothing(self):
        logits = {f"{name}_logits": np.ones([2, 5], np.float32) for name in LABELS}
        labels = dict.fromkeys(LABELS, np.array([0, 0], np.int32))
        half = model.loss(logits, {**labels, "answer_type": np.array([0, -1], np.int32)})
        np.testing.assert_allclose(half["answer_type_loss"], np.log(5) / 2, rtol=1e-6)


class TestOutputs:
    def test_the_best_positions_come_in_order_with_their_logits(self, built):
        outputs = built(features())
        for name in model.POSITIONS:
            logits = outputs[f"{name}_logits"].numpy()
            best = np.take_along_axis(logits, outputs[f"{name}_pred"].numpy(), axis=1)
            np.testing.assert_array_equal(best, outputs[f"{name}_logit"])
            np.testing.assert_array_equal(best, -np.sort(-logits, axis=1))
            np.testing.assert_array_equal(outputs[f"{name}_logit0"], logits[:, 0])

    def test_padding_changes_no_real_token(self, built):
        plain, padded = built(features()), built(features(padding=5))
        for name, real in (("sa_start", [12, 7]), ("la_end", [12, 7])):
            for row, length in enumerate(real):
                np.testing.assert_allclose(
                    padded[f"{name}_logits"][row, :length],
                    plain[f"{name}_logits"][row, :length],
                    atol=1e-5,
                )

    def test_windows_are_read_as_their_dense_side_inputs_say(self, built):
        given = features(padding=5)
        side_inputs = input_utils.add_side_input_features(CONFIG, given)
        dense = {name: x for name, x in side_inputs.items() if name not in given}
        long_output, _ = built.etc_model(given["token_ids"], given["global_token_ids"], **dense)
        logits = built.long_head(long_output)
        outputs = built(given)
        assert logits.keys() == set(model.POSITIONS)
        for name, expected in logits.items():
            np.testing.assert_allclose(outputs[f"{name}_logits"], expected, atol=1e-5)

    def test_masked_output_allows_the_page_and_cls(self, built):
        masked = model.NqModel(CONFIG, mask_long_output=True)
        masked.build()
        masked.set_weights(built.get_weights())
        plain, logits = (nq(features())["la_start_logits"].numpy() for nq in (built, masked))
        allowed = logits > -1e8
        expected = [[0, *range(4, 11)], [0, 4, 5]]
        assert [np.flatnonzero(row).tolist() for row in allowed] == expected
        np.testing.assert_allclose(logits[allowed], plain[allowed], atol=1e-6)


class TestEncodersOfOneSequence:
    def test_the_question_is_the_first_segment_and_global(self):
        given = features(padding=2)
        is_real = np.arange(14) < np.array([[12], [7]])
        found = model.text_features(given["token_ids"], is_real)
        is_page = [[0] * 4 + [1] * 8 + [0] * 2, [0] * 4 + [1] * 3 + [0] * 7]
        np.testing.assert_array_equal(found["segment_ids"], is_page)
        np.testing.assert_array_equal(found["example_ids"], is_real)
        np.testing.assert_array_equal(found["global_attention_mask"], is_real - is_page)

    @pytest.mark.quick_cases(1)
    @pytest.mark.parametrize("kind", ["longformer", "big_bird", "modernbert", "gmat"])
    def test_the_long_input_alone_is_read(self, kind):
        config = small_encoders.config(kind, 120, 20)
        plain, skipping = (model.NqModel(config, skip_padding=x) for x in (False, True))
        given = features(padding=4)
        outputs = plain(given)
        scope = encoders.encoder_type(kind).scope  # As in a checkpoint that it starts from.
        assert {x.partition("/")[0] for x in names.encoder_variables(plain)} == {scope}
        others = {"global_token_ids": given["global_token_ids"] + 1}
        np.testing.assert_array_equal(
            plain({**given, **others})["sa_start_logits"], outputs["sa_start_logits"]
        )
        skipping.build()
        skipping.set_weights(plain.get_weights())
        is_real = np.arange(16) < np.array([[12], [7]])
        for name in model.POSITIONS:
            logits = skipping(given)[f"{name}_logits"].numpy()
            assert np.all(logits[~is_real] < -1e8)
            wanted = outputs[f"{name}_logits"].numpy()
            np.testing.assert_allclose(logits[is_real], wanted[is_real], atol=2e-5)

    def test_the_question_is_seen_from_far_in_longformer(self):
        nq = model.NqModel(small_encoders.config("longformer", 120, 40, attention_window=2))
        given = {**features(padding=20)}
        rows = given["token_ids"].numpy()
        rows[0, 11:31], rows[0, 31] = 13, 102
        ends = np.zeros([2, 32], np.int32)
        ends[[0, 1], [31, 6]] = 1
        given |= {"long_breakpoints": ends}
        before = nq({**given, "token_ids": rows})["sa_start_logits"].numpy()
        rows[0, 1] = 9  # The question's first word.
        after = nq({**given, "token_ids": rows})["sa_start_logits"].numpy()
        assert abs(after - before)[0, 25] > 1e-5
