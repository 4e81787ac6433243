"""Texts, their sequences, phases, and bits per character."""

import collections
import math

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel import training
from etcmodel.models.longformer_char_lm import CharLmConfig
from etcmodel.pretrain.char_lm import config as char_lm_config
from etcmodel.pretrain.char_lm import program, task, text

CONTENT = bytes(range(256)) * 2


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "text.bin"
    file.write_bytes(CONTENT)
    return str(file)


def test_a_file_is_cut_at_its_bytes(path):
    whole = text.read_text(path)
    assert (len(whole.train), len(whole.dev), len(whole.test)) == (462, 25, 25)
    parts = (whole.train, whole.dev, whole.test)
    assert b"".join(x.tobytes() for x in parts) == CONTENT
    whole = text.read_text(path, dev_bytes=10, test_bytes=100)
    assert (len(whole.train), len(whole.dev), len(whole.test)) == (402, 10, 100)
    assert whole.dev.tobytes() == CONTENT[402:412]


def test_a_file_of_which_nothing_is_left_to_train_on_is_refused(path):
    message = "has 512 bytes, of which 500 and 25 are dev and test text: too few"
    with pytest.raises(ValueError, match=message):
        text.read_text(path, dev_bytes=500)


def test_another_text_is_not_that_of_a_run(path):
    whole = text.read_text(path)
    whole.check_same(whole.notes, "run")
    with pytest.raises(ValueError, match="the run in run was made with another text, 'old'"):
        whole.check_same({"text_file": "old", "text_sha256": "0"}, "run")


@hypothesis.given(st.binary(min_size=1), st.binary(min_size=1))
def test_unigram_bits_are_those_of_counted_characters(of, by):
    counts = collections.Counter(by)
    share = {x: (counts[x] + 1) / (len(by) + 256) for x in range(256)}
    expected = -sum(math.log2(share[x]) for x in of) / len(of)
    found = text.unigram_bits(*(np.frombuffer(x, np.uint8) for x in (of, by)))
    assert found == pytest.approx(expected)


def train_batches(count, **request):
    data = np.arange(100, dtype=np.uint8)
    dataset = task.make_train_dataset(data, 7, training.TrainDataRequest(**request))
    return [x["characters"] for x in dataset.take(count).as_numpy_iterator()]


class TestTraining:
    def test_sequences_are_of_the_text_and_begin_anywhere(self):
        batches = np.concatenate(train_batches(200, global_batch_size=4))
        assert batches.shape == (800, 8) and batches.dtype == np.int32
        np.testing.assert_array_equal(np.diff(batches), 1)
        assert set(batches[:, 0]) == set(range(93))

    def test_a_resumed_run_sees_what_it_would_have_seen(self):
        through = train_batches(4, global_batch_size=3, seed=5)
        resumed = train_batches(2, global_batch_size=3, seed=5, skip_examples=6)
        np.testing.assert_array_equal(through[2:], resumed)
        other = train_batches(4, global_batch_size=3, seed=6)
        assert not np.array_equal(through, other)

    def test_workers_share_the_sequences_of_one(self):
        (whole,) = train_batches(1, global_batch_size=4, skip_examples=4)
        for worker in range(2):
            context = tf.distribute.InputContext(2, worker, 2)
            (part,) = train_batches(1, global_batch_size=4, skip_examples=4, input_context=context)
            np.testing.assert_array_equal(whole[worker::2], part)


class TestEvaluation:
    @hypothesis.settings(max_examples=30)
    @hypothesis.given(st.integers(1, 12), st.data())
    def test_each_character_counts_once_but_the_first_ones(self, length, data):
        step = data.draw(st.integers(1, length))
        size = data.draw(st.integers(length + 1, 60))
        whole = np.arange(size, dtype=np.uint8)
        seen = []
        for batch in task.make_eval_dataset(whole, length, step, 3).as_numpy_iterator():
            for characters, number in zip(batch["characters"], batch["num_counted"], strict=True):
                assert len(characters) == length + 1 and 1 <= number <= step
                np.testing.assert_array_equal(np.diff(characters), 1)
                seen += list(characters[-number:])
        assert seen == list(range(length - step + 1, size))

    def test_bits_of_the_predictions_that_count(self):
        sequences = [
            {"losses": np.array([9.0, 1.0, 2.0], np.float32), "num_counted": 2},
            {"losses": np.array([9.0, 9.0, 3.0], np.float32), "num_counted": 1},
        ]
        found = task.metrics(iter(sequences))
        assert found == {"bits_per_character": pytest.approx(2 / math.log(2)), "characters": 3}

    def test_a_text_that_is_too_short_is_refused(self):
        message = "the dev text has 8 bytes, too few for sequences of 8 characters and one more"
        with pytest.raises(ValueError, match=f"{message}. Give .* a lower --eval_length"):
            task.check_length(np.zeros(8, np.uint8), 8, "the dev text", "--eval_length")


def options(**changes):
    config = CharLmConfig(attention_window=4, attention_dilation=1)
    return char_lm_config.CharLmOptions(encoder_config=config, **changes)


class TestPhases:
    def test_lengths_and_windows_double_and_rates_are_halved(self):
        config = options(steps_per_phase=(30, 20, 10), seq_length=16, max_seq_length=50)
        of_training = training.TrainingConfig(output_dir="run", learning_rate=0.4)
        found = program.phases(config, of_training)
        assert [x.config.seq_length for x in found] == [16, 32, 50]
        assert [x.config.encoder_config.windows[0] for x in found] == [4, 8, 16]
        assert [x.training_config.learning_rate for x in found] == [0.4, 0.2, 0.1]
        assert [x.num_steps for x in found] == [30, 20, 10]
        assert [x.training_config.output_dir for x in found] == [
            "run/phase_1",
            "run/phase_2",
            "run/phase_3",
        ]
        assert [x.before for x in found] == [None, "run/phase_1", "run/phase_2"]
        assert str(found[1]) == (
            "phase 2: 20 steps, sequences of 32 characters, windows of 8 to 8, learning rate 0.2"
        )

    @pytest.mark.parametrize("steps", [(), (3, 0)])
    def test_a_phase_without_steps_is_refused(self, steps):
        with pytest.raises(ValueError, match="`steps_per_phase` must have a number for each"):
            options(steps_per_phase=steps)

    def test_evaluations_are_of_the_length_of_training(self):
        assert options(seq_length=9).eval_sizes == (9, 4)
        assert options(seq_length=9, eval_length=20, eval_step=20).eval_sizes == (20, 20)
        with pytest.raises(ValueError, match="--eval_step=10 must not be above .* 9"):
            _ = options(seq_length=9, eval_step=10).eval_sizes
