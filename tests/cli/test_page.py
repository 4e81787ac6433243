"""What docs/programs.md shows is what there is."""

import re
import shlex
import subprocess
import sys

import pytest

from etcmodel.cli import main
from etcmodel.cli.commands import COMMANDS
from etcmodel.tools import doctor
from tests import page

PAGE = page.read("programs.md#the-command-line")


def commands():
    """The words of each line of the page's blocks that calls `etcmodel`."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("etcmodel ")]


def test_the_table_has_all_commands():
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.M)
    assert re.findall(r"`(\w+)`", " ".join(rows)) == list(COMMANDS)


@pytest.mark.parametrize("name", ["prepare", "demo", "completion"])
def test_the_names_that_follow_are_told(name):
    (row,) = re.findall(rf"^\| `{name}` \| (.*?) \|", PAGE, re.M)
    assert sorted(re.findall(r"`(\w+)`", row)) == COMMANDS[name].names()


def test_the_error_is_as_shown(capsys):
    words, line = re.search(r"\$ etcmodel (.*)\n(error: .*)\n", PAGE).groups()
    with pytest.raises(SystemExit):
        main.run(words.split())
    assert capsys.readouterr().err.rstrip() == line


def test_the_report_is_of_the_doctors_form():
    (block,) = re.findall(r"```text\n(ok .*?)```", PAGE, re.DOTALL)
    for line in block.splitlines():
        state, what, detail = re.fullmatch(r"(\w+) +(.*?): (.*)", line).groups()
        assert state in (doctor.OK, doctor.MISSING, doctor.BROKEN)
        assert str(doctor.Finding(state, what, detail)) == line


@pytest.mark.parametrize("name", sorted({words[0] for words in commands()}))
def test_the_commands_have_the_flags_that_are_shown(name):
    of_name = [words for words in commands() if words[0] == name]
    follows = [word for word in of_name[0][1:2] if not word.startswith("-")]
    done = subprocess.run(
        [sys.executable, "-m", "etcmodel", name, *follows, "--help"], capture_output=True, text=True
    )
    known = set(re.findall(r"^  --(?:\[no\])?(\w+):", done.stdout, re.M))
    shown = {x.partition("=")[0][2:] for words in of_name for x in words if x.startswith("--")}
    assert shown and shown <= known
