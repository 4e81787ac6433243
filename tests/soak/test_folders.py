"""Folders of models with a damaged file: refused in one line, or read as what they say.

Few of them run with all tests; `make soak` runs as many as it is asked to (`make soak COUNT=2000`).
"""

import collections
import os
import random
import shutil

import pytest

from tests.soak import bounds, folder_damage, folders
from tests.soak.folder_damage import Verdict

COUNT = int(os.environ.get("SOAK_COUNT", "40"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
PART = 16  # There are as many systems.
_OF_VOCABULARY = ("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "tokenizer.json")
_OF_VOCABULARY = (*_OF_VOCABULARY, "tokenizer_config.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A function of a system's name that returns its folder, and what that gives."""
    top, made = tmp_path_factory.mktemp("folders"), {}

    def of(name):
        if name not in made:
            folder = top / name.replace(" ", "_")
            folders.make(name, folder)
            made[name] = folder, folders.read(name, folder)
        return made[name]

    return of


def fault(met, verdict, expected, file, folder):
    """What is wrong with how a damaged folder was met: str, "" for nothing."""
    if met.problem:
        return met.problem
    if met.value is None:
        named = str(folder) in met.line or "`" in met.line or "'" in met.line
        return "" if named else f"message: it names nothing: {met.line!r}"
    differs = folders.same(expected, met.value, tolerance=1e-6)
    if file in _OF_VOCABULARY and met.value["batch"] is None and differs == ["batch"]:
        return ""  # It says why there is no processor when one asks for it.
    if verdict is Verdict.REFUSED:
        return f"taken for good; other {differs}"
    if verdict is Verdict.SAME and differs:
        return f"silent: other {differs}"
    if verdict is Verdict.COUNTS and not differs:
        return "silent: left out"
    return ""


def make_case(name, number, folder, whole):
    """(the file that is damaged, the verdict, what was done) of a case, made in the folder."""
    rng = random.Random(f"{SEED} {name} {number}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    file = rng.choice(sorted(path.name for path in folder.iterdir()))
    return file, *folder_damage.damage(rng, name, folder / file)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", folders.SYSTEMS)
def test_damaged_folders(name, whole, tmp_path):
    (source, expected), folder = whole(name), tmp_path / "case"
    outcomes, faults, memory = collections.Counter(), [], 0
    for number in range(-(-COUNT // PART)):
        file, verdict, done = make_case(name, number, folder, source)
        met = bounds.meet(lambda: folders.read(name, folder, expected["batch"]))
        outcomes[f"{verdict.name}, {('refused', 'taken')[met.value is not None]}"] += 1
        memory = max(memory, met.memory)
        if found := fault(met, verdict, expected, file, folder):
            faults.append(f"case {number}: {file} {done}: {found.replace(str(folder), '')}")
    print(f"{name}: {dict(outcomes)}, {memory >> 20} MB")
    assert not faults, "\n".join(faults)
