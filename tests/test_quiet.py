"""What the programs print is theirs, unless one asks for TensorFlow's messages."""

import os
import pathlib
import subprocess
import sys

import pytest

CHECKPOINT = pathlib.Path(__file__).parent / "fixtures/first_edition/checkpoints/tf2/ckpt"
# TensorFlow's C++ code, and Abseil, at every level.
NOISY = """
import sys, tensorflow as tf
compiled = tf.function(lambda x: x + 1.0, jit_compile=True)
print(compiled(tf.constant(1.0)).numpy())
"""


def run(*arguments, **environment):
    """(standard output, standard error) of a Python process."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**_environment(), **environment},
    )
    return done.stdout, done.stderr


def _environment():
    return {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}


@pytest.fixture
def convert(tmp_path):
    return [
        "-m",
        "etcmodel.tools.convert_checkpoint",
        f"--input={CHECKPOINT}",
        f"--output_dir={tmp_path}/converted",
        "--output_format=safetensors",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "level",
    [{}, {"TF_CPP_MIN_LOG_LEVEL": "2"}],
    ids=["", "level 2"],
)
def test_a_program_prints_nothing_of_tensorflows(convert, level):
    output, errors = run(*convert, **level)
    assert "36 variables" in output.splitlines()[-1]
    assert errors == ""


@pytest.mark.exhaustive
def test_who_asks_for_all_sees_it_all(convert):
    _, errors = run(*convert, TF_CPP_MIN_LOG_LEVEL="0")
    assert ": I tensorflow/" in errors


@pytest.mark.parametrize(
    "level",
    [{}, pytest.param({"TF_CPP_MIN_LOG_LEVEL": "3"}, marks=pytest.mark.slow)],
    ids=["", "level 3"],
)
def test_who_uses_the_library_sees_none_of_it(level):
    """Neither when TensorFlow is imported nor when Abseil would tell that XLA compiles."""
    assert run("-c", f"import etcmodel{NOISY}", **level) == ("2.0\n", "")


@pytest.mark.exhaustive
def test_of_one_who_has_imported_tensorflow_what_comes_later_is_quiet():
    code = f"import sys, tensorflow; print(file=sys.stderr)\nimport etcmodel{NOISY}"
    output, errors = run("-c", code, TF_CPP_MIN_LOG_LEVEL="3")
    assert (output, errors.strip()) == ("2.0\n", "")


@pytest.mark.exhaustive
def test_a_program_that_a_program_starts_is_as_quiet():
    child = f"from etcmodel import quiet; quiet.quiet_tensorflow(){NOISY}"
    parent = (
        "import subprocess, sys; from etcmodel import quiet; quiet.quiet_tensorflow(); "
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    assert run("-c", parent) == ("2.0\n", "")


def test_an_import_that_fails_shows_why(tmp_path):
    """What is put aside while TensorFlow is imported is not lost."""
    (tmp_path / "tensorflow.py").write_text(
        "import os\nos.write(2, b'no such library\\n')\nraise ImportError('failed')\n"
    )
    code = (
        "from etcmodel import quiet; quiet.quiet_tensorflow()\n"
        "try:\n  import tensorflow\n"
        "except ImportError as error:\n  print(error)\n"
        "import os; os.write(2, b'and on')"
    )
    output, errors = run("-c", code, PYTHONPATH=str(tmp_path))
    assert (output, errors) == ("failed\n", "no such library\nand on")


@pytest.mark.exhaustive
def test_without_standard_error_tensorflow_is_imported_all_the_same():
    code = f"import os; os.close(2); import etcmodel{NOISY}"
    assert run("-c", code) == ("2.0\n", "")


def test_an_import_that_ends_the_process_tells_where(tmp_path):
    """As TensorFlow's does where the processor lacks what it was built for."""
    (tmp_path / "tensorflow.py").write_text("import os\nos.abort()\n")
    code = "from etcmodel import quiet; quiet.quiet_tensorflow(); import tensorflow"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**_environment(), "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode < 0
    assert "Fatal Python error: Aborted" in done.stderr
    assert f"{tmp_path}/tensorflow.py" in done.stderr


@pytest.mark.parametrize("level", ["0", "1", "2", "3"])
def test_the_library_keeps_to_a_level_that_is_set(level):
    code = "import os, etcmodel; print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    assert run("-c", code, TF_CPP_MIN_LOG_LEVEL=level)[0] == f"{level}\n"
