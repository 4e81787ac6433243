"""The scripts with which shells complete commands and flags, in these shells."""

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
    ("serve", "--log"): ["--log_requests"],
    ("nothing", ""): [],
}


@pytest.fixture(scope="module")
def completed(tmp_path_factory):
    """What bash completes of the words of each of `CASES`, from one shell."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "vocab list.txt").write_text("")
    lines = [
        completion.script("bash"),
        f'etcmodel() {{ "{sys.executable}" -m etcmodel "$@"; }}',
        "complete -p etcmodel",
        'try() { COMP_WORDS=(etcmodel "$@"); COMP_CWORD=$#; _etcmodel',
        '        printf "%s|" "${COMPREPLY[@]}"; echo; }',
        *("try " + " ".join(f"'{word}'" for word in words) for words in CASES),
    ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, cwd=folder
    )
    assert done.stderr == ""
    first, *rest = done.stdout.splitlines()
    assert first == "complete -F _etcmodel etcmodel"
    return dict(zip(CASES, rest, strict=True))


@pytest.mark.parametrize("words", CASES)
def test_bash_completes_commands_data_sets_flags_and_their_values(completed, words):
    assert completed[words].rstrip("|").split("|") == (CASES[words] or [""])


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_a_script_names_all_that_may_follow_and_is_well_formed(shell):
    text = completion.script(shell)
    assert not re.findall(r"@[A-Z_]+@", text)
    for name, command in COMMANDS.items():
        assert f" {name}" in text or f"'{name}" in text
        assert " ".join(command.names()) in text
    if shutil.which(shell):  # Of a machine without it, the rest is what can be known.
        done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
