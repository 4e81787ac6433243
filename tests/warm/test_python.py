"""A program that is forked by the server is like one that Python starts."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.training import toy
from tests.warm import python as warm

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
# Prints all that a program can see of how it was started.
SEEN = """
import json, os, resource, signal, sys
print(json.dumps({
    "arguments": sys.argv,
    "original": sys.orig_argv[1:],
    "name": [__name__, __spec__.name, __package__, __file__, sys.modules["__main__"].__name__],
    "is_main": sys.modules["__main__"].__dict__ is globals(),
    "path": sys.path,
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "flags": str(sys.flags),
    "streams": [
        [x.fileno(), x.name, x.mode, x.encoding, x.errors, x.line_buffering, x.isatty()]
        for x in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "open": sorted(os.listdir("/proc/self/fd")),
    "signals": {x.name: str(signal.getsignal(x)) for x in signal.valid_signals() if x < 32
                and hasattr(x, "name")},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "limits": resource.getrlimit(resource.RLIMIT_NOFILE),
    "mask": os.umask(0),
    "input": sys.stdin.read(),
    "is_warm": "tensorflow" in sys.modules,
}))
print("told", file=sys.stderr)
sys.exit(7)
"""
ENDS = {
    "status": "raise SystemExit(3)",
    "message": "raise SystemExit('It is over.')",
    "return": "print('done')",
    "late": "import atexit\natexit.register(print, 'late')\nprint('done')",
    "at once": "import os\nprint('lost')\nos._exit(5)",
    "error": "def fail():\n    raise ValueError('wrong')\nfail()",
    "killed": "import os\nos.kill(os.getpid(), 9)",
    "aborted": "import os\nos.abort()",
    "closed output": "import os, sys\nos.close(1)\nprint('lost')",
}


def run(python, arguments, folder, **options):
    done = subprocess.run(
        [python, *arguments], cwd=folder, capture_output=True, text=True, **options
    )
    return done.returncode, done.stdout, done.stderr


def both(arguments, folder, **options):
    """What Python shows and what the command that stands for it does."""
    pythons = (sys.executable, warm.python())
    return [run(python, arguments, folder, **options) for python in pythons]


def test_a_program_sees_what_it_sees_in_a_process_of_python(tmp_path):
    (tmp_path / "seen.py").write_text(SEEN)
    (tmp_path / "else").mkdir()
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'else'}", "CUDA_VISIBLE_DEVICES": ""}
    arguments = ["-m", "seen", "--flag=a b", "word"]
    found = both(arguments, tmp_path, env=environment, input="some\ntext", umask=0o027)
    (status, expected, errors), (warm_status, seen, warm_errors) = found
    assert (warm_status, warm_errors) == (status, errors) == (7, "told\n")
    expected, seen = json.loads(expected), json.loads(seen)
    assert (expected.pop("is_warm"), seen.pop("is_warm")) == (False, True)
    for name in ("_", "SHLVL", "PWD", "OLDPWD"):  # Shells set these, and the command has one.
        for told in (expected, seen, {"environment": environment}):
            told["environment"].pop(name, None)
    assert seen == expected
    assert seen["environment"] == environment


@pytest.mark.parametrize("name", ENDS)
def test_it_ends_alike(name, tmp_path):
    (tmp_path / "ends.py").write_text(ENDS[name])
    expected, found = both(["-m", "ends"], tmp_path)
    assert found == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "etcmodel", "trane"],
        ["-m", "etcmodel", "train", "nq", "--run_mode=never"],
        ["-m", "etcmodel.tasks.wikihop.preprocess", "--input_pattern=nothing"],
        ["-m", "no_such_module"],
        ["-c", "import sys; print(sys.orig_argv[1:], 'tensorflow' in sys.modules)"],
    ],
)
def test_programs_that_refuse_tell_it_alike(arguments, tmp_path):
    expected, (status, output, errors) = both(arguments, tmp_path)
    assert (status, output, errors.replace(warm.python(), sys.executable)) == expected


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_for_the_command_is_the_program_s(signum, tmp_path):
    program = "import sys, time\nprint('there', flush=True)\nsys.stdin.read()"
    (tmp_path / "waits.py").write_text(program)
    told = []
    for python in (sys.executable, warm.python()):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [python, "-m", "waits"]
        with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:
            assert process.stdout.readline() == "there\n"
            process.send_signal(signum)
            process.wait()
            told.append((process.returncode, process.stderr.read().splitlines()[-1:]))
    assert told[0] == told[1] and told[0][0] == -signum


def test_a_program_ends_with_the_command_that_stands_for_it(tmp_path):
    (tmp_path / "waits.py").write_text("print('there', flush=True)\nimport sys\nsys.stdin.read()")
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    command = [warm.python(), "-m", "waits"]
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:
        assert process.stdout.readline() == "there\n"
        process.kill()
        assert process.stdout.read() == ""  # It ends only when nobody has it any more.


def test_server_and_programs_end_with_the_process_of_tests_even_if_it_is_killed(tmp_path):
    (tmp_path / "waits.py").write_text("print('there', flush=True)\nimport sys\nsys.stdin.read()")
    tests = f"""
import os, signal, subprocess, sys
from tests.warm import python as warm
command = [warm.python(), "-m", "waits"]
pipe = subprocess.PIPE
program = subprocess.Popen(command, cwd={str(tmp_path)!r}, stdin=pipe, stdout=pipe)
assert program.stdout.readline() == b"there\\n"
print(os.path.dirname(warm.address()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", tests]
    # It is over only when nobody has its standard error any more.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    assert not os.path.exists(done.stdout.strip())


@pytest.mark.parametrize(
    "change",
    [{"TF_ENABLE_ONEDNN_OPTS": "0"}, {"TF_CPP_MIN_LOG_LEVEL": "1"}, {"PYTHONOPTIMIZE": "1"}],
)
def test_another_environment_of_imports_is_left_to_python(change, tmp_path):
    (tmp_path / "seen.py").write_text("import sys\nprint('tensorflow' in sys.modules)")
    environment = {**os.environ, **change}
    assert run(warm.python(), ["-m", "seen"], tmp_path, env=environment) == (0, "False\n", "")


def test_neither_the_server_nor_what_programs_import_late_is_there_before(tmp_path):
    (tmp_path / "seen.py").write_text("import sys\nprint(*sys.modules)")
    status, output, _ = run(warm.python(), ["-m", "seen"], tmp_path)
    assert status == 0
    modules = set(output.split())
    assert "tensorflow" in modules
    assert not modules & {"apache_beam", "client", "server", "tests"}


def values_of(folder):
    reader = tf.train.load_checkpoint(str(folder))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names if "OBJECT_GRAPH" not in name}


def test_training_comes_to_the_same_weights_bit_by_bit(tmp_path):
    records = toy.write_records(str(tmp_path))
    flags = [f"--records={records}", "--num_train_epochs=1", "--save_checkpoints_steps=3"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    told = []
    for name, python in (("cold", sys.executable), ("warm", warm.python())):
        command = ["-m", "tests.training.toy", *flags, "--dropout=0.3"]
        folder = tmp_path / name
        status, *_ = run(python, [*command, f"--output_dir={folder}"], ROOT, env=environment)
        assert status == 0
        lines = (folder / "train_metrics.jsonl").read_text().splitlines()
        told.append([json.loads(line) | {"examples_per_second": 0} for line in lines])
    assert told[0] == told[1]
    expected, found = values_of(tmp_path / "cold"), values_of(tmp_path / "warm")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
