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
    ours = ("TF_CPP_MIN_LOG_LEVEL", "ETCMODEL_QUIET")
    return {k: v for k, v in os.environ.items() if k not in ours}


@pytest.fixture
def convert(tmp_path):
    return [
        "-m",
        "etcmodel.tools.convert_checkpoint",
        f"--input={CHECKPOINT}",
        f"--output_dir={tmp_path}/converted",
        "--output_format=safetensors",
    ]


def test_a_program_prints_nothing_of_tensorflows(convert):
    output, errors = run(*convert)
    assert "36 variables" in output.splitlines()[-1]
    assert errors == ""


def test_who_sets_the_variable_sees_it_all(convert):
    _, errors = run(*convert, TF_CPP_MIN_LOG_LEVEL="0")
    assert ": I tensorflow/" in errors


def test_compiling_is_quiet_too():
    quietly = f"from etcmodel import quiet; quiet.quiet_tensorflow(){NOISY}"
    assert run("-c", quietly) == ("2.0\n", "")


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


def test_the_library_alone_changes_nothing():
    code = "import os, sys, etcmodel; print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'), len(sys.argv))"
    assert run("-c", code)[0] == "None 1\n"
