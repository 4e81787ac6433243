"""What training takes from the settings of its records, and what contradicts them."""

import json
import shutil

import pytest

from etcmodel.training import run_directory
from tests.finetuning.test_program import parsed
from tests.finetuning.test_trained_run import fails, made, train_flags


def test_features_are_those_of_the_training_records(toy_data, tmp_path, capsys):
    shutil.copy(toy_data.train, tmp_path / "train-00000-of-00001.tfrecord")
    (tmp_path / "train.config.json").write_text(json.dumps({"do_lower_case": False, "seed": 3}))
    flags = {**train_flags(toy_data, tmp_path / "run"), "run_mode": "train"}
    flags["train_tf_examples_filepattern"] = tmp_path / "train-*.tfrecord"
    line = fails(capsys, **{**flags, "do_lower_case": "true"})
    assert (
        "--do_lower_case=True: the data of " in line and "train.config.json was made with" in line
    )
    del flags["do_lower_case"]
    parsed(**flags).main([])
    assert not made(toy_data, tmp_path / "run")[0].config.do_lower_case


class TestRecords:
    """What the settings beside the training records say needs no flags, and allows no others."""

    @pytest.fixture
    def flags(self, toy_data, tmp_path):
        for name, settings in (("a", {"long_seq_length": 3}), ("b", {"long_seq_length": 4})):
            shutil.copy(toy_data.train, tmp_path / f"{name}-00000-of-00001.tfrecord")
            (tmp_path / f"{name}.config.json").write_text(json.dumps(settings))
        train = train_flags(toy_data, tmp_path / "run")
        return {**train, "train_tf_examples_filepattern": tmp_path / "a-*.tfrecord"}

    def test_lengths_are_taken_from_them(self, flags):
        for given in ({}, {"long_seq_length": 3}, {"long_seq_len": 3}):
            program = parsed(run_mode="train", **flags, **given)
            program.resolve_flags()
            assert program.make_task().config.long_seq_length == 3

    def test_they_may_have_been_called_otherwise(self, flags, tmp_path):
        for name in ("long_seq_len", "max_long_seq_length"):
            (tmp_path / "a.config.json").write_text(json.dumps({name: 5}))
            program = parsed(run_mode="train", **flags)
            program.resolve_flags()
            assert program.make_task().config.long_seq_length == 5

    def test_a_flag_that_contradicts_them_is_refused(self, flags, tmp_path, capsys):
        assert fails(capsys, run_mode="train", **flags, long_seq_len=7) == (
            f"error: --long_seq_length=7: the data of {tmp_path}/a.config.json was made with "
            "--long_seq_length=3. Leave the flag out, or give that value."
        )

    def test_records_that_contradict_each_other_are_refused(self, flags, tmp_path, capsys):
        both = ",".join(f"{tmp_path}/{name}-*.tfrecord" for name in "ab")
        line = fails(capsys, run_mode="train", **{**flags, "train_tf_examples_filepattern": both})
        assert line == (
            f"error: {tmp_path}/b.config.json: the records were made with --long_seq_length=4, "
            f"those of {tmp_path}/a.config.json with --long_seq_length=3. Preprocess them alike."
        )


def test_a_run_without_a_vocabulary_may_get_one_later(toy_data, tmp_path):
    flags = {**train_flags(toy_data, tmp_path), "run_mode": "train"}
    vocab = flags.pop("vocab_file")
    parsed(**flags).main([])
    assert run_directory.read_run_config(str(tmp_path))["task"]["vocab_sha256"] == []
    parsed(**flags, vocab_file=vocab).main([])
