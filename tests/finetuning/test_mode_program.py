"""The commands that a program names as the next ones start what was started."""

import dataclasses
import importlib.machinery
import sys
import types

import pytest

import etcmodel
from etcmodel import training
from etcmodel.finetuning import mode_program
from etcmodel.models import systems

LIBRARY = "etcmodel.tasks.hotpotqa.run_finetuning"
OF_LIBRARY = "etcmodel export hotpotqa --output_dir=run"


@pytest.fixture
def started(monkeypatch):
    """A function that makes it look as if Python was told to run this, which ran a program."""

    def start(words, program=LIBRARY):
        main = types.ModuleType("__main__")
        main.__spec__ = importlib.machinery.ModuleSpec(program, loader=None)
        monkeypatch.setitem(sys.modules, "__main__", main)
        monkeypatch.setattr(sys, "orig_argv", ["python", *words, "--run_mode=train"])

    return start


@pytest.fixture
def own_decay(monkeypatch):
    monkeypatch.setitem(training.DECAYS, "cosine", None)


LAUNCHERS = {
    "a script": (["with_cosine.py"], "python with_cosine.py"),
    "a script with options of Python": (["-X", "dev", "-I", "a b.py"], "python 'a b.py'"),
    "a module": (["-m", "mine.with_cosine"], "python -m mine.with_cosine"),
}


@pytest.mark.parametrize(("words", "program"), LAUNCHERS.values(), ids=LAUNCHERS)
def test_what_adds_a_decay_is_started_again(started, own_decay, words, program):
    started(words)
    wanted = f"{program} --run_mode=export --output_dir=run"
    assert mode_program.command_of_program("export", output_dir="run") == wanted


@pytest.fixture
def own_system(monkeypatch):
    @dataclasses.dataclass
    class OwnConfig(etcmodel.EtcConfig):
        model_type = "own"

    monkeypatch.setattr(systems, "_SYSTEMS", dict(systems._SYSTEMS))
    systems.register(systems.System(config_class=OwnConfig, encoder_class="mine:Own", scope="own"))


@pytest.mark.parametrize(("words", "program"), LAUNCHERS.values(), ids=LAUNCHERS)
def test_what_registers_a_system_is_started_again(started, own_system, words, program):
    started(words)
    wanted = f"{program} --run_mode=export --output_dir=run"
    assert mode_program.command_of_program("export", output_dir="run") == wanted


@pytest.mark.parametrize(("words", "_"), LAUNCHERS.values(), ids=LAUNCHERS)
def test_without_such_a_decay_the_library_has_the_command(started, words, _):
    started(words)
    assert mode_program.command_of_program("export", output_dir="run") == OF_LIBRARY


@pytest.mark.parametrize(
    "words", [["/usr/bin/etcmodel", "train"], ["-m", "etcmodel"], ["-m", LIBRARY], ["-c", "a"]]
)
def test_what_the_library_has_added_a_decay_to_is_its_command(started, own_decay, words):
    started(words)
    assert mode_program.command_of_program("export", output_dir="run") == OF_LIBRARY


def test_a_program_of_ones_own_is_started_by_its_name(started):
    started(["-m", "ner.program"], "ner.program")
    wanted = "python -m ner.program --run_mode=export --output_dir=run"
    assert mode_program.command_of_program("export", output_dir="run") == wanted
