"""What training takes from the settings of its records, and what contradicts them."""

import importlib
import json
import shutil

import pytest

from etcmodel import finetuning, options
from etcmodel.training import run as run_lib
from etcmodel.training import run_directory
from tests.finetuning.test_program import parsed
from tests.finetuning.test_trained_run import fails, made, train_flags

pytestmark = pytest.mark.usefixtures("eagerly")


def test_features_are_those_of_the_training_records(toy_data, tmp_path, capsys):
    shutil.copy(toy_data.train, tmp_path / "train-00000-of-00001.tfrecord")
    (tmp_path / "train.config.json").write_text(json.dumps({"do_lower_case": False, "seed": 3}))
    flags = {**train_flags(toy_data, tmp_path / "run"), "run_mode": "train"}
    flags["train_tf_examples_filepattern"] = tmp_path / "train-*.tfrecord"
    line = fails(capsys, **{**flags, "do_lower_case": "true"})
    assert (
        "--do_lower_case=true: the data of " in line and "train.config.json was made with" in line
    )
    del flags["do_lower_case"]
    parsed(**flags).main([])
    assert not made(toy_data, tmp_path / "run")[0].config.do_lower_case


def test_lower_case_is_of_word_pieces_alone(toy_data, tmp_path):
    """Others are made alike whatever was given, also in a file that both programs take."""
    shutil.copy(toy_data.train, tmp_path / "train-00000-of-00001.tfrecord")
    settings = {"do_lower_case": False, "tokenizer": "byte_level"}
    (tmp_path / "train.config.json").write_text(json.dumps(settings))
    flags = {**train_flags(toy_data, tmp_path / "run"), "run_mode": "train"}
    flags["train_tf_examples_filepattern"] = tmp_path / "train-*.tfrecord"
    for given in ("true", "false"):
        program = parsed(**{**flags, "do_lower_case": given})
        program.resolve_flags()
        assert program.make_task().config.do_lower_case


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

    @pytest.mark.parametrize(
        "value", ["x", [3], None, True, 3.5, -7, 10**400, "x" * 9000], ids=lambda x: repr(x)[:9]
    )
    def test_what_is_no_value_of_the_option_is_refused(self, flags, tmp_path, capsys, value):
        (tmp_path / "a.config.json").write_text(json.dumps({"long_seq_length": value}))
        line = fails(capsys, run_mode="train", **flags)
        assert line.startswith(f"error: {tmp_path}/a.config.json: `long_seq_length` must ")
        assert len(line) < 500

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

    def test_what_inference_may_change_is_their_default(self, flags, tmp_path):
        def chosen(pattern, **given):
            train = {**flags, "train_tf_examples_filepattern": pattern}
            program = parsed(run_mode="train", **train, **given)
            program.resolve_flags()
            return program.make_task().config.release_compatible

        (tmp_path / "a.config.json").write_text(json.dumps({"release_compatible": True}))
        (tmp_path / "b.config.json").write_text(json.dumps({"release_compatible": False}))
        assert chosen(tmp_path / "a-*.tfrecord")
        assert not chosen(tmp_path / "b-*.tfrecord")
        assert not chosen(tmp_path / "a-*.tfrecord", release_compatible="false")
        both = ",".join(f"{tmp_path}/{name}-*.tfrecord" for name in "ab")
        advice = "those of .* Give --release_compatible, or preprocess them alike."
        with pytest.raises(ValueError, match=f"made with --release_compatible=false, {advice}"):
            chosen(both)
        assert chosen(both, release_compatible="true")

    def test_a_run_that_goes_on_has_what_it_began_with(self, toy_data, tmp_path, capsys):
        """As of an earlier version, which took no such option from the records."""
        shutil.copy(toy_data.train, tmp_path / "train-00000-of-00001.tfrecord")
        settings, run = tmp_path / "train.config.json", tmp_path / "run"
        flags = {**train_flags(toy_data, run), "run_mode": "train"}
        flags["train_tf_examples_filepattern"] = tmp_path / "train-*.tfrecord"
        settings.write_text(json.dumps({"release_compatible": False}))
        parsed(**flags).main([])
        settings.write_text(json.dumps({"release_compatible": True}))
        parsed(**flags).main([])
        assert not run_directory.read_run_config(str(run))["task"]["release_compatible"]
        capsys.readouterr()
        line = fails(capsys, **flags, release_compatible="true")
        assert "release_compatible: False there, True now" in line


@pytest.mark.slow
def test_a_run_as_of_the_release_corrects_no_moments(toy_data, tmp_path, monkeypatch):
    def only_claimed(run):
        """What a run keeps is written with its first results, whatever these are."""
        if run.before_first_results:
            run.before_first_results()
        return {}

    monkeypatch.setattr(run_lib.Run, "to_the_end", only_claimed)

    def corrects(folder, **options):
        flags = {**train_flags(toy_data, tmp_path / folder), "run_mode": "train", **options}
        parsed(**flags).main([])
        run_config = run_directory.read_run_config(str(tmp_path / folder))
        return run_config["training"]["adam_bias_correction"]

    assert corrects("ours") is None
    for _ in range(2):  # It is resumed by the same flags.
        assert corrects("theirs", release_compatible="true") is False
    assert corrects("both", release_compatible="true", adam_bias_correction="true") is True
    path = tmp_path / "ours" / "run_config.json"
    of_old = json.loads(path.read_text())
    del of_old["training"]["adam_bias_correction"]
    of_old["task"]["release_compatible"] = True
    path.write_text(json.dumps(of_old))
    flags = train_flags(toy_data, tmp_path / "ours")
    parsed(**flags, run_mode="train", release_compatible="true").main([])  # As it began.


def test_a_run_without_a_vocabulary_may_get_one_later(toy_data, tmp_path):
    flags = {**train_flags(toy_data, tmp_path), "run_mode": "train"}
    vocab = flags.pop("vocab_file")
    parsed(**flags).main([])
    assert run_directory.read_run_config(str(tmp_path))["task"]["vocab_sha256"] == []
    parsed(**flags, vocab_file=vocab).main([])


class TestEvaluation:
    """Records to evaluate on have the inputs that the model was trained on."""

    def error(self, toy_data, folder, **settings):
        shutil.copy(toy_data.dev, folder / "dev-00000-of-00001.tfrecord")
        (folder / "dev.config.json").write_text(json.dumps(settings))
        pattern = f"{folder}/dev-*.tfrecord"
        program = parsed(**{**train_flags(toy_data, folder / "run"), "eval_data": pattern})
        program.resolve_flags()
        try:
            program.make_task().eval_dataset(1)
        except ValueError as error:
            return str(error)
        return None

    def test_other_options_of_features_are_refused(self, toy_data, tmp_path):
        assert self.error(toy_data, tmp_path, do_lower_case=True, tokenizer="wordpiece") == (
            f"{tmp_path}/dev.config.json: the records were made with --do_lower_case=true, and "
            "the model's inputs with --do_lower_case=false. Preprocess them alike; where no run "
            "tells how the model was trained, give the flag."
        )
        assert "--long_seq_length=3, and" in self.error(toy_data, tmp_path, long_seq_len=3)

    @pytest.mark.parametrize(
        "settings",
        [
            {"do_lower_case": False, "long_seq_length": 2, "seed": 7, "global_seq_length": 9},
            {"do_lower_case": True, "tokenizer": "sentencepiece"},
            {},
        ],
    )
    def test_the_same_and_what_does_not_matter_are_not(self, toy_data, tmp_path, settings):
        assert self.error(toy_data, tmp_path, **settings) is None

    @pytest.mark.parametrize(
        "name", ["hotpotqa", "openkp", "numerical_reasoning", "classification", "summarization"]
    )
    def test_what_may_differ_are_options_of_features(self, name):
        module = importlib.import_module(f"etcmodel.tasks.{name}.config")
        (config_class,) = (
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, finetuning.FinetuningConfig)
            and value is not finetuning.FinetuningConfig
        )
        fields = options.option_fields(config_class)
        of_features = {x.name for x in fields if x.metadata["role"] == "features"}
        assert config_class.not_of_evaluation and set(config_class.not_of_evaluation) < of_features
