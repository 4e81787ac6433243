"""Whole programs on malformed files: one line that names the file, or what is made is sound.

`make soak` runs more of them (`make soak COUNT=2000`).
"""

import collections
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import pytest

from tests.soak import subjects, whole_files

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("SOAK_COUNT", "150"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
PART = 50  # Of the cases that run within this process, so many are one here.
MAX_MEMORY = 2 << 30
LOG_PREFIX = re.compile(r"^[IWE]\d{4} .*?\] ", re.MULTILINE)  # Time and process.
SUBJECTS = {**subjects.PREPROCESSING, **subjects.CONVERSION, **subjects.fine_tuning()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("soak") / "whole"
    whole_files.make_folder(folder)
    return folder


def problems(answer, subject, file, is_wrong, folder):
    """What is wrong with how a program met a damaged file: list of str."""
    status, errors = answer["status"], answer["err"]
    told = [line for line in errors.splitlines() if line.startswith("error: ")]
    found = []
    if status not in (0, 1):
        found.append(f"it ended with {status}")
    if "Traceback" in errors or 'File "' in errors:
        found.append("a stack trace")
    if answer["memory"] > MAX_MEMORY:
        found.append(f"{answer['memory']} bytes of memory")
    tells_entry = subject.tells_entries and re.search(r"--\w+|`\w+` must", errors)
    if status == 1 and not (len(told) == 1 and (names(file, told[0]) or tells_entry)):
        found.append("not one line that names the file")
    if status == 0:
        skipped = subject.skips and names(file, errors)
        if is_wrong and not skipped:
            found.append("it was taken for good")
        if not is_wrong and subject.is_same and not subject.is_same(folder, answer["out"]):
            found.append("what was made is something else")
    return found


def names(file, text):
    """Whether a text names a file, or the checkpoint, run or export that it belongs to."""
    path = pathlib.PurePath(file)
    prefix = re.sub(r"\.(index|data-.*)$", "", path.name)
    return prefix in text or any(f"{part}" in text for part in list(path.parents)[:-2])


def make_case(name, number, whole, folder):
    """(the file that is damaged, whether it is certainly wrong) of a case, made in the folder."""
    subject, rng = SUBJECTS[name], random.Random(f"{SEED} {name} {number}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    file = rng.choice(subject.files)
    content, is_wrong = subjects.damage(rng, subject, (folder / file).read_bytes())
    (folder / file).write_bytes(content)
    return file, is_wrong


@pytest.mark.parametrize("name", SUBJECTS)
def test_malformed_files(name, server, whole, tmp_path):
    subject, folder = SUBJECTS[name], tmp_path / "case"
    outcomes, failures, memory = collections.Counter(), [], 0
    for number in range(-(-COUNT // (PART * subject.part))):
        file, is_wrong = make_case(name, number, whole, folder)
        answer = server(subject.module, subject.flags, folder)
        memory = max(memory, answer["memory"])
        kind = ("perhaps harmless", "wrong")[is_wrong]
        outcomes[f"{kind}, {('taken', 'refused')[answer['status'] != 0]}"] += 1
        if found := problems(answer, subject, file, is_wrong, folder):
            failures.append(f"case {number}: {file}: {found}\n{answer['err'][-800:]}")
    print(f"{name}: {dict(outcomes)}, {memory >> 20} MB")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", ["raw data of wikihop", "a model's config", "an export"])
@pytest.mark.slow_cases(1)
def test_a_process_of_its_own_ends_in_the_same_way(name, server, whole, tmp_path):
    subject, folder = SUBJECTS[name], tmp_path / "case"
    make_case(name, 0, whole, folder)
    answer = server(subject.module, subject.flags, folder)
    make_case(name, 0, whole, folder)
    command = [sys.executable, "-m", subject.module]
    command += [f"--{flag}={value}" for flag, value in subject.flags.items()]
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    told, expected = (LOG_PREFIX.sub("", text) for text in (done.stderr, answer["err"]))
    assert (done.returncode, told) == (answer["status"], expected)
