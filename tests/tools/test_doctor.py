"""What `doctor` finds: on this machine, and where something is wrong."""

import os
import subprocess
import sys

import pytest
from packaging import requirements

from etcmodel import onednn
from etcmodel.tools import doctor
from etcmodel.tools.doctor import BROKEN, MISSING, OK, Finding

GIB = 2**30


def asked(*lines):
    return [requirements.Requirement(line) for line in lines]


@pytest.mark.parametrize(
    ("version", "finding"),
    [
        ("2.20.1", Finding(OK, "tf-keras", "2.20.1")),
        (None, Finding(BROKEN, "tf-keras", "missing. Run: pip install 'tf-keras<2.21,>=2.20'")),
        (
            "2.19.0",
            Finding(
                BROKEN,
                "tf-keras",
                "2.19.0, but must be <2.21,>=2.20. Run: pip install 'tf-keras<2.21,>=2.20'",
            ),
        ),
    ],
)
def test_a_package_of_the_core_must_be_there_in_its_range(version, finding):
    (requirement,) = asked("tf-keras>=2.20,<2.21")
    assert doctor.core_finding(requirement, version) == finding


@pytest.mark.parametrize(
    ("versions", "finding"),
    [
        (("6.1", "0.2.3"), Finding(OK, "extra text", "lxml 6.1, sentencepiece 0.2.3")),
        (
            ("6.1", None),
            Finding(
                MISSING, "extra text", "without sentencepiece. Run: pip install 'etcmodel[text]'"
            ),
        ),
        (
            ("5.2", "0.2.3"),
            Finding(
                MISSING, "extra text", "has lxml 5.2, not >=5.3. Run: pip install 'etcmodel[text]'"
            ),
        ),
    ],
)
def test_an_extra_is_there_or_what_brings_it_is_told(versions, finding):
    of_extra = asked("lxml>=5.3; extra == 'text'", "sentencepiece>=0.2; extra == 'text'")
    versions = dict(zip(("lxml", "sentencepiece"), versions, strict=True))
    assert doctor.extra_finding("text", of_extra, versions) == finding


def test_python_must_be_in_its_range():
    assert doctor.python_finding(">=3.11,<3.13", "3.12.4").state == OK
    finding = doctor.python_finding(">=3.11,<3.13", "3.13.0")
    assert finding == Finding(BROKEN, "python", "3.13.0, but must be >=3.11,<3.13.")


def test_where_the_tests_run_the_core_is_in_order_and_extras_are_told_once():
    found = list(doctor.of_installation())
    assert not [finding for finding in found if finding.state == BROKEN]
    names = [finding.what for finding in found]
    assert names[:3] == ["etcmodel", "python", "tensorflow"]
    assert {"extra text", "extra train", "extra beam", "extra plots", "extra serve"} <= set(names)
    assert len(set(names)) == len(names) and "extra all" not in names


def test_memory_is_told_in_gib():
    finding = doctor.memory_finding(8 * GIB, 3 * GIB)
    assert str(finding) == "ok      memory: 8.0 GiB, of which 3.0 GiB are free"
    assert "too little" in doctor.memory_finding(8 * GIB, 1 * GIB).detail
    assert doctor.memory_finding(None, None).detail == "unknown on this system"


def test_the_small_encoder_has_its_values_and_other_values_are_told():
    values = doctor.small_encoder_values()
    assert doctor.encoder_finding(values).state == OK
    assert values["loss after a step"] < values["loss"]
    wrong = doctor.encoder_finding({**values, "global": values["global"] + 0.001})
    assert wrong.state == BROKEN
    assert wrong.detail == "global is 0.12447, but must be 0.12347."


def test_the_faster_products_are_told(monkeypatch):
    def told(with_it, without, is_set="1"):
        monkeypatch.setenv(onednn.VARIABLE, is_set)
        return doctor.onednn_finding({"1": with_it, "0": without}).detail

    assert told(137e9, 94e9) == "137 GFLOP/s with it, 94 without"
    assert told(137e9, 94e9, is_set="0").endswith("faster with TF_ENABLE_ONEDNN_OPTS=1")
    assert told(60e9, 94e9).endswith("94 without; it would be faster with TF_ENABLE_ONEDNN_OPTS=0")
    assert told(93e9, 94e9) == "93 GFLOP/s with it, 94 without"
    assert told(None, 94e9) == "not measured"


@pytest.mark.parametrize("given", [None, "0"])
def test_the_library_turns_onednn_on_unless_the_user_has_chosen(given):
    code = "import os, etcmodel; print(os.environ.get('TF_ENABLE_ONEDNN_OPTS'))"
    environment = {k: v for k, v in os.environ.items() if k != onednn.VARIABLE}
    environment |= {} if given is None else {onednn.VARIABLE: given}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (given or "1")
