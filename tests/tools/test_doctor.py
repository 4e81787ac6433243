"""What `doctor` finds: on this machine, and where something is wrong."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from packaging import requirements

from etcmodel import onednn
from etcmodel.models import systems
from etcmodel.tools import doctor
from etcmodel.tools.doctor import BROKEN, MISSING, OK, Finding
from tests.warm import python as warm

ROOT = pathlib.Path(__file__).parents[2]
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


@pytest.mark.slow
def test_the_small_encoder_has_its_values_and_other_values_are_told():
    values = doctor.small_encoder_values()
    assert doctor.encoder_finding(values).state == OK
    assert values["loss after a step"] < values["loss"]
    wrong = doctor.encoder_finding({**values, "global": values["global"] + 0.001})
    assert wrong.state == BROKEN
    assert wrong.detail == "global is 0.12447, but must be 0.12347."


def test_the_faster_way_is_told(monkeypatch):
    def told(with_it, without, is_set="1"):
        monkeypatch.setenv(onednn.VARIABLE, is_set)
        return doctor.onednn_finding({"1": with_it, "0": without}).detail

    fast, slow = (137e9, 0.2), (94e9, 0.3)
    plain = "137 GFLOP/s with it, 94 without; forward pass 0.200 s, 0.300 s"
    assert told(fast, slow) == plain
    assert told(fast, slow, is_set="0") == (
        f"{plain}; it would be faster with TF_ENABLE_ONEDNN_OPTS=1"
    )
    assert told(slow, fast).endswith("0.200 s; it would be faster with TF_ENABLE_ONEDNN_OPTS=0")
    assert told((94e9, 0.201), fast).endswith("forward pass 0.201 s, 0.200 s")
    assert told(None, slow) == "not measured"


@pytest.mark.parametrize("given", [None, "0"])
def test_the_library_turns_onednn_on_unless_the_user_has_chosen(given):
    code = "import os, etcmodel; print(os.environ.get('TF_ENABLE_ONEDNN_OPTS'))"
    environment = {k: v for k, v in os.environ.items() if k != onednn.VARIABLE}
    environment |= {} if given is None else {onednn.VARIABLE: given}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (given or "1")


# Each system on an accelerator. A second CPU stands in for one: the numbers and times are real.


@pytest.fixture(scope="module")
def table_of(tmp_path_factory):
    """A function of a program's lines that gives what it prints, in a process with two CPUs."""

    def run(lines):
        code = f"""
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from etcmodel.models import systems
from etcmodel.tools import doctor
from tests.models import bags
{lines}
"""
        path = tmp_path_factory.mktemp("two_cpus") / "program.py"
        path.write_text(code)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [warm.python(), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.splitlines()

    return run


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def check_right(row):
    """All differences are those of rounding, at most, and all times are there."""
    *numbers, result = row[1:]
    assert result == "pass", row
    assert len(numbers) == 9 and max(map(float, numbers[:3])) < 1e-4
    assert min(map(float, numbers[3:])) > 0


BROKEN_BAG = """
class Wrong(bags.Bag):
    factor = 1.01
    def call(self, input_ids, attention_mask=None, training=None):
        output, none = super().call(input_ids, attention_mask, training)
        return output * (self.factor if "CPU:1" in self.mix.kernel.device else 1.0), none
class Lost(Wrong):
    factor = float("nan")
class Raising(bags.Bag):
    def call(self, input_ids, attention_mask=None, training=None):
        if "CPU:1" in self.mix.kernel.device:
            raise ValueError("No kernel for this.\\nMore.")
        return super().call(input_ids, attention_mask, training)
for encoder_class in (bags.Bag, Wrong, Lost, Raising):
    with bags.registered(encoder_class=encoder_class, small={"vocab_size": 12}) as system:
        for line in doctor.of_accelerators(["/device:CPU:1"], [system]):
            print(line)
"""


@pytest.mark.slow
def test_a_system_with_other_numbers_on_a_device_is_told(table_of):
    lines = table_of(BROKEN_BAG)
    about = next(line for line in lines if line)
    assert about.startswith("/device:CPU:1; ") and "float32, without TF32" in about
    right, wrong, lost, raising = (cells(line) for line in lines if line.startswith("| bag"))
    check_right(right)
    assert wrong[-1] == "FAIL" and wrong[1] == "1.0e-02"
    assert lost[-1] == "FAIL" and lost[1:4] == ["inf"] * 3
    assert raising[-1] == "ValueError: No kernel for this." and not any(raising[1:-1])
    assert [line for line in lines if line.startswith((OK, BROKEN))] == [
        "ok      /device:CPU:1: 1 of 1 systems are as on the CPU",
        *["broken  /device:CPU:1: 0 of 1 systems are as on the CPU; not bag"] * 3,
    ]


@pytest.mark.slow
@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("system", [x.model_type for x in systems.having("small")])
def test_each_system_is_compared(table_of, system):
    lines = table_of(f"""
for line in doctor.of_accelerators(["/device:CPU:1"], [systems.find({system!r})]):
    print(line)
""")
    (row,) = (cells(line) for line in lines if line.startswith(f"| {system} "))
    check_right(row)


def test_every_system_of_the_library_has_a_small_config():
    own = [x for x in systems.registered() if x.config_class.__module__.startswith("etcmodel.")]
    assert len(own) >= 11 and not [x.model_type for x in own if x.small is None]


def test_without_an_accelerator_a_line_says_what_was_looked_for():
    (finding,) = doctor.of_accelerators([])
    assert finding.state == MISSING  # Which leaves the exit code at 0.
    assert re.fullmatch(r"TensorFlow 2\.\S+ sees none; looked for GPU and TPU", finding.detail)
