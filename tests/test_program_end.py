"""How programs end: in one line, with the exit code that says why."""

import os
import signal
import subprocess
import sys
import threading

import pytest
import tensorflow as tf

from etcmodel import posix_only, program_end


def end_of(error, capsys, name="error"):
    with pytest.raises(SystemExit) as ended, program_end.ends_in_one_line(name):
        raise error
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return ended.value.code, err.rstrip("\n")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no such flag"), "error: no such flag"),
        (OSError(28, "No space left on device", "x"), "[Errno 28] No space left on device: 'x'"),
        (ArithmeticError("not finite"), "error: not finite"),
        (MemoryError(), "error: there is not enough memory."),
        (tf.errors.ResourceExhaustedError(None, None, "/x; No space"), "error: /x; No space"),
        (
            tf.errors.DataLossError(
                None,
                None,
                "Graph execution error:\n\nDetected at node 'IteratorGetNext' defined at:\n"
                '  File "x.py", line 3, in <module>\n2 root error(s) found.\n  (0) DATA_LOSS:  '
                "/a-0.tfrecord: corrupted record at 57\n\t [[{{node IteratorGetNext}}]]",
            ),
            "/a-0.tfrecord: corrupted record at 57",
        ),
    ],
)
def test_an_error_is_told_in_one_line(error, line, capsys):
    code, told = end_of(error, capsys)
    assert code == 1 and told.endswith(line.removeprefix("error: ")) and told[:7] == "error: "


def test_a_programs_own_name_may_come_first(capsys):
    assert end_of(ValueError("x"), capsys, "convert") == (1, "convert: x")


def test_a_fault_of_the_program_itself_is_not_hidden():
    with pytest.raises(KeyError, match="gone"), program_end.ends_in_one_line():
        raise KeyError("gone")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_block_in_one_line_after_its_cleaning_up(signum, capsys):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    steps = []
    with pytest.raises(SystemExit) as ended, program_end.ends_in_one_line():
        try:
            os.kill(os.getpid(), signum)
            steps.append("not reached")
        finally:
            os.kill(os.getpid(), signum)  # Who presses it again does not stop the cleaning up.
            steps.append("clean")
    assert ended.value.code == 128 + signum and steps == ["clean"]
    assert capsys.readouterr().err == "interrupted\n"
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


def test_what_was_saved_is_told(capsys):
    code, line = end_of(program_end.Interrupted("step 3 is saved", signal.SIGTERM), capsys)
    assert (code, line) == (143, "interrupted: step 3 is saved")


def test_threads_that_get_no_signals_run_as_ever():
    done = []

    def run():
        with program_end.ends_in_one_line():
            done.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done == [True]


def test_processes_that_are_started_while_it_is_held_back_do_not_get_ctrl_c():
    code = "import sys\nprint(flush=True)\nsys.stdin.read()"
    with posix_only.held_back():
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    with process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait() == 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


# Python runs it first: the import of a part of TensorFlow says so, and takes until the signal.
SLOW_IMPORT = """
import importlib.abc, sys

class Waiting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "tensorflow.python.eager.context":
            sys.meta_path.remove(self)
            print("importing", flush=True)
            sys.stdin.read()

sys.meta_path.insert(0, Waiting())
"""


@pytest.mark.parametrize(
    ("program", "signum"),
    [
        ("tasks.openkp.run_finetuning", signal.SIGINT),
        ("tasks.openkp.preprocess", signal.SIGTERM),
    ],
)
def test_a_signal_while_tensorflow_is_imported_is_told_in_one_line(program, signum, tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    flags = [f"--{name}={tmp_path}/{name}" for name in ("input_pattern", "output_prefix")]
    flags = [*flags, f"--vocab_file={tmp_path}/vocab.txt"] if "preprocess" in program else []
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    with subprocess.Popen(
        [sys.executable, "-m", f"etcmodel.{program}", *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    ) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signum)
        errors = process.stderr.read()
    assert (process.returncode, errors) == (128 + signum, "interrupted\n")


def test_a_line_that_quotes_too_much_is_cut_in_its_middle(capsys):
    code, line = end_of(ValueError(f"a.json: `x` is {'9' * 100_000}: too long."), capsys)
    assert code == 1 and line.startswith("error: a.json: `x` is 999") and len(line) < 9000
    assert line.endswith("999: too long.")
