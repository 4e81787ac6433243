"""The scripts with which shells complete commands and flags, in these shells."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from etcmodel.cli.commands import COMMANDS
from etcmodel.tools import completion

CASES = {
    ("tra",): ["train"],
    ("train", "ho"): ["hotpotqa"],
    ("completion", ""): ["bash", "fish", "zsh"],
    ("draw", "--str"): ["--structure="],
    ("draw", "--example", "=", "longformer_"): ["longformer_causal", "longformer_dilated"],
    ("draw", "--structure", "=", "vocab"): ["vocab list.txt"],
    ("serve", "--log_r"): ["--log_requests"],
    ("nothing", ""): [],
}


def environment(folder):
    """Of a shell that reads no file of its user's."""
    return {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(folder)}


@pytest.fixture(scope="module")
def completed(tmp_path_factory):
    """What bash completes of the words of each of `CASES`, from one shell."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "vocab list.txt").write_text("")
    lines = [
        completion.script("bash"),
        f'etcmodel() {{ echo "$1" >> asked; "{sys.executable}" -m etcmodel "$@"; }}',
        "complete -p etcmodel",
        'try() { COMP_WORDS=(etcmodel "$@"); COMP_CWORD=$#; _etcmodel',
        '        printf "%s|" "${COMPREPLY[@]}"; echo; }',
        *("try " + " ".join(f"'{word}'" for word in words) for words in CASES),
    ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder),
    )
    assert done.returncode == 0, done.stderr
    asked = (folder / "asked").read_text().split()
    assert asked == ["draw", "serve"]  # Each once, then the shell knows them.
    first, *rest = done.stdout.splitlines()
    assert first == "complete -F _etcmodel etcmodel"
    return dict(zip(CASES, rest, strict=True))


@pytest.mark.parametrize("words", CASES)
def test_bash_completes_commands_data_sets_flags_and_their_values(completed, words):
    assert completed[words].rstrip("|").split("|") == (CASES[words] or [""])


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_a_script_names_all_that_may_follow_and_is_well_formed(shell, tmp_path):
    text = completion.script(shell)
    assert not re.findall(r"@[A-Z_]+@", text)
    for name, command in COMMANDS.items():
        assert f" {name}" in text or f"'{name}" in text
        assert " ".join(command.names()) in text
    if shutil.which(shell):  # Of a machine without it, the rest is what can be known.
        done = subprocess.run(
            [shell, "-n"], input=text, capture_output=True, text=True, env=environment(tmp_path)
        )
        assert done.returncode == 0, done.stderr
