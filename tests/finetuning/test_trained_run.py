"""What a run was trained with decides once the weights are there, not the flags."""

import json
import re
import shutil

import pytest

from tests.finetuning import toy
from tests.finetuning.test_program import eval_flags, parsed

pytestmark = pytest.mark.usefixtures("eagerly")

# What the first version wrote of a run of the toy task.
FIRST_VERSION_OPTIONS = {
    "train_pattern",
    "num_train_examples",
    "max_long_seq_length",
    "max_global_seq_length",
    "initialization",
    "tags",
    "vocab_sha256",
    "etc_config",
}


@pytest.fixture(scope="module")
def trained(toy_data, tmp_path_factory):
    """Directory of a run that differs from the defaults wherever it can."""
    folder = tmp_path_factory.mktemp("trained")
    parsed(run_mode="train", **train_flags(toy_data, folder / "run")).main([])
    return folder / "run"


def train_flags(toy_data, output_dir):
    return {
        "output_dir": output_dir,
        "etc_config_file": toy_data.etc_config,
        "vocab_file": toy_data.vocab,
        "do_lower_case": "false",
        "train_tf_examples_filepattern": toy_data.train,
        "tags": "p,q",
        "mixed_precision": "mixed_bfloat16",
        "batch_size": 10,
        "num_train_epochs": 2,
    }


@pytest.fixture
def run(trained, tmp_path):
    """A copy of it to change."""
    return shutil.copytree(trained, tmp_path / "run")


def rewrite(run, change):
    """Changes what the directory tells of the run."""
    path = run / "run_config.json"
    run_config = json.loads(path.read_text())
    change(run_config)
    path.write_text(json.dumps(run_config))


def as_the_first_version(run_config):
    run_config["task"] = {k: v for k, v in run_config["task"].items() if k in FIRST_VERSION_OPTIONS}
    run_config["task"]["etc_config"]["grad_checkpointing_period"] = 0
    run_config["task"]["vocab_sha256"] = []
    del run_config["notes"]


def made(toy_data, run, **arguments):
    """The task and the training options of an evaluation with these flags."""
    program = parsed(run_mode="evaluate", output_dir=run, **eval_flags(toy_data), **arguments)
    program.resolve_flags()
    program.check_flags()
    return program.make_task(), program.training_config()


def test_auto_is_the_precision_that_the_run_was_trained_in(toy_data, run):
    _, config = made(toy_data, run, mixed_precision="auto")
    assert config.mixed_precision == "mixed_bfloat16"


def fails(capsys, **arguments):
    """The error of a program that must fail: a line."""
    with pytest.raises(SystemExit):
        parsed(**arguments).main([])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


def test_the_options_of_the_run_need_no_flags(toy_data, trained):
    task, training_config = made(toy_data, trained)
    assert task.config.tags == ("p", "q") and not task.config.do_lower_case
    assert task.config.vocab_file == str(toy_data.vocab)
    assert task.config.encoder_config == toy.etc_config()
    assert training_config.mixed_precision == "mixed_bfloat16"
    assert training_config.train_batch_size == 10


def test_the_programs_that_follow_training_need_no_flags_of_it(toy_data, run, capsys):
    parsed(run_mode="evaluate", output_dir=run, **eval_flags(toy_data)).main([])
    assert "error" in json.loads(capsys.readouterr().out)
    parsed(run_mode="export", output_dir=run).main([])
    predictor = toy.ToyPredictor(str(run / "export"))
    assert predictor.config.tags == ("p", "q") and not predictor.config.do_lower_case


@pytest.mark.parametrize(
    ("section", "name", "value", "message"),
    [
        ("training", "learning_rate", "high", "must be a number. Received: 'high'"),
        ("training", "train_batch_size", -1, "must be at least 1. Received: -1"),
        ("task", "max_long_seq_length", [3], r"must be an integer. Received: \[3\]"),
        ("task", "tags", {}, "must be a list. Received: {}"),
    ],
)
def test_what_the_directory_cannot_tell_of_a_run_is_refused(
    toy_data, run, section, name, value, message
):
    rewrite(run, lambda run_config: run_config[section].update({name: value}))
    with pytest.raises(ValueError, match=f"^{run}/run_config.json: `\\w+` {message}"):
        made(toy_data, run)


def test_flags_may_be_repeated(toy_data, trained):
    flags = train_flags(toy_data, trained)
    del flags["output_dir"]
    task, _ = made(toy_data, trained, **flags)
    assert task.config.tags == ("p", "q")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tags": "p"}, "--tags=p: the run in .* was made with --tags=p,q. Leave the flag out"),
        ({"long_seq_len": 7}, "--long_seq_length=7: .* with --long_seq_length=2"),
        ({"do_lower_case": "true"}, "--do_lower_case=true: .* with --do_lower_case=false"),
        ({"mixed_precision": "float32"}, "--mixed_precision=float32: .*=mixed_bfloat16"),
        ({"batch_size": 11}, "--train_batch_size=11: .* with --train_batch_size=10"),
    ],
)
@pytest.mark.parametrize("mode", ["evaluate", "export", "continuous_eval"])
def test_a_flag_that_contradicts_the_run_is_refused(
    toy_data, trained, capsys, mode, arguments, message
):
    line = fails(capsys, run_mode=mode, output_dir=trained, **eval_flags(toy_data), **arguments)
    assert re.search(message, line)


def test_another_config_is_refused(toy_data, trained, capsys, tmp_path):
    path = tmp_path / "etc_config.json"
    path.write_text(json.dumps({**toy.ETC_CONFIG, "local_radius": 3}))
    line = fails(capsys, run_mode="export", output_dir=trained, etc_config_file=path)
    assert "another config: local_radius is 3, and there 84. Leave the flag out" in line


def test_what_only_says_how_to_run_may_differ(toy_data, trained):
    task, training_config = made(
        toy_data, trained, eval_batch_size=3, grad_checkpointing_period=1, factor=2.0
    )
    assert training_config.eval_batch_size == 3 and task.config.factor == 2.0
    assert task.config.encoder_config.grad_checkpointing_period == 1


def test_an_options_default_of_decoding_is_that_of_training(toy_data, run):
    rewrite(run, lambda run_config: run_config["task"].update(release_compatible=True))
    assert made(toy_data, run)[0].config.release_compatible
    assert not made(toy_data, run, release_compatible="false")[0].config.release_compatible


def test_a_vocabulary_that_has_changed_or_gone_is_told(toy_data, run, capsys, tmp_path):
    vocab = tmp_path / "vocab.txt"
    shutil.copy(toy_data.vocab, vocab)
    rewrite(run, lambda run_config: run_config["notes"].update(vocab_file=str(vocab)))
    arguments = {"run_mode": "evaluate", "output_dir": run, **eval_flags(toy_data)}
    vocab.write_text("\n".join(reversed(toy.VOCAB)))
    assert f"the vocabulary of the run, '{vocab}', is another one now" in fails(capsys, **arguments)
    message = f"trained with another vocabulary than '{vocab}'"
    assert message in fails(capsys, **arguments, vocab_file=vocab)
    vocab.unlink()
    assert "is not there any more. Put it back, or give its place by --vocab_file" in fails(
        capsys, **arguments
    )
    assert made(toy_data, run, vocab_file=toy_data.vocab)[0].tokenizer.vocab["a"] == 2


def test_the_run_is_that_of_the_checkpoint(toy_data, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "other")
    checkpoint = next(trained.glob("ckpt-*.index")).with_suffix("")
    for path in (checkpoint, trained / "best" / "ckpt-3"):
        task, _ = made(toy_data, tmp_path / "new", export_ckpts=path)
        assert task.config.tags == ("p", "q")


def test_without_a_run_the_flags_decide(toy_data, run):
    (run / "run_config.json").unlink()
    task, training_config = made(
        toy_data, run, etc_config_file=toy_data.etc_config, vocab_file=toy_data.vocab, tags="r"
    )
    assert task.config.tags == ("r",) and training_config.mixed_precision == "float32"


class TestOtherVersions:
    """Directories of runs that another version of the package began."""

    def test_what_the_first_version_did_not_write_is_taken_from_flags(self, toy_data, run):
        rewrite(run, as_the_first_version)
        vocab = {"vocab_file": toy_data.vocab}
        task, _ = made(toy_data, run, **vocab)
        assert task.config.tags == ("p", "q") and task.config.do_lower_case
        assert not made(toy_data, run, do_lower_case="false", **vocab)[0].config.do_lower_case

    def test_a_run_of_the_first_version_goes_on(self, toy_data, run):
        rewrite(run, as_the_first_version)
        before = (run / "run_config.json").read_text()
        parsed(run_mode="train", **train_flags(toy_data, run)).main([])
        assert (run / "run_config.json").read_text() == before

    def test_an_option_of_the_weights_that_it_lacks_is_at_its_default(self, toy_data, run, capsys):
        rewrite(run, lambda run_config: run_config["task"].pop("tags"))
        assert made(toy_data, run)[0].config.tags == ("x", "y")
        line = fails(capsys, run_mode="train", **train_flags(toy_data, run))
        assert "task.tags: ('x', 'y') there" in line.replace("[", "(").replace("]", ")")

    def test_an_option_that_is_gone_must_be_as_the_program_has_it(
        self, toy_data, run, capsys, monkeypatch
    ):
        rewrite(run, lambda run_config: run_config["task"].update(gone=3))
        arguments = {"run_mode": "evaluate", "output_dir": run, **eval_flags(toy_data)}
        message = "was trained with gone=3, an option that this program does not have"
        assert message in fails(capsys, **arguments)
        monkeypatch.setattr(toy.ToyConfig, "removed_options", {"gone": 4})
        assert message in fails(capsys, **arguments)
        monkeypatch.setattr(toy.ToyConfig, "removed_options", {"gone": 3})
        assert made(toy_data, run)[0].config.tags == ("p", "q")
        parsed(run_mode="train", **train_flags(toy_data, run)).main([])

    def test_a_damaged_file_is_named(self, toy_data, run, capsys):
        (run / "run_config.json").write_text('{"task": ')
        line = fails(capsys, run_mode="evaluate", output_dir=run, **eval_flags(toy_data))
        assert f"{run}/run_config.json is not valid JSON: " in line


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    run = shutil.copytree(trained, tmp_path_factory.mktemp("exported") / "run")
    parsed(run_mode="export", output_dir=run).main([])
    return run


class TestPredicting:
    def arguments(self, toy_data, run, **more):
        return {
            "run_mode": "predict",
            "export_dir": run / "export",
            "predict_input_file": toy_data.dev_json,
            "predictions_file": run / "answers.json",
            **more,
        }

    def test_flags_that_contradict_the_export_are_refused(
        self, toy_data, exported, capsys, tmp_path
    ):
        def message(**more):
            return fails(capsys, **self.arguments(toy_data, exported, **more))

        assert "--tags=p: the export in" in message(tags="p")
        assert "--do_lower_case=true: the export in" in message(do_lower_case="true")
        config = tmp_path / "etc_config.json"
        config.write_text(json.dumps({**toy.ETC_CONFIG, "hidden_size": 4}))
        assert "hidden_size is 4, and there 8" in message(etc_config_file=config)
        vocab = tmp_path / "vocab.txt"
        vocab.write_text("\n".join(reversed(toy.VOCAB)))
        assert f"--vocab_file={vocab}: the export in" in message(vocab_file=vocab)

    def test_the_same_flags_and_those_of_decoding_are_taken(self, toy_data, exported, capsys):
        same = {
            "tags": "p,q",
            "etc_config_file": toy_data.etc_config,
            "vocab_file": toy_data.vocab,
            "factor": 2.0,
        }
        parsed(**self.arguments(toy_data, exported, **same)).main([])
        assert capsys.readouterr().out.startswith("7 predictions:")
