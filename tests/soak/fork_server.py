"""Runs whole programs, each in a process of its own that has TensorFlow imported already.

A request on standard input is a line of JSON: {"module", "flags", "folder", "seconds"}, and perhaps
{"signals": [[seconds, name], …]}, each sent so many seconds after the one before; so is the answer:
{"status": exit code, or minus the signal that ended it, "memory": bytes at the peak, "out", "err",
"sent": the number of signals that were sent before it ended}. A forked process is like a fresh one
here: nothing has been computed before the fork.
"""

import importlib
import json
import os
import pathlib
import runpy
import select
import signal
import sys
import traceback

# Imported before the first fork; none of them computes anything.
WARM = (
    "etcmodel.finetuning",
    "etcmodel.checkpoints.conversion",
    "etcmodel.preprocessing.pipeline",
    "etcmodel.pretrain.task",
    "etcmodel.pretrain.conversion",
    *(f"etcmodel.tasks.{task}.predict" for task in ("hotpotqa", "nq", "openkp", "wikihop")),
    *(f"etcmodel.tasks.{task}.conversion" for task in ("hotpotqa", "nq", "openkp", "wikihop")),
)


def main():
    from etcmodel import quiet

    quiet.quiet_tensorflow()
    for name in WARM:
        importlib.import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


def answer(request):
    out, err = (pathlib.Path(request["folder"], name) for name in (".out", ".err"))
    child = os.fork()
    if not child:
        for descriptor, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), descriptor)
        os._exit(run(request))
    sent = send_signals(child, request.get("signals", ()))
    _, status, usage = os.wait4(child, 0)
    texts = {"out": out.read_text("utf-8", "replace"), "err": err.read_text("utf-8", "replace")}
    return {
        "status": os.waitstatus_to_exitcode(status),
        "memory": usage.ru_maxrss << 10,
        "sent": sent,
        **texts,
    }


def send_signals(child, signals):
    """Sends them unless the process has ended before; returns how many were sent."""
    ended = os.pidfd_open(child)
    try:
        for number, (seconds, name) in enumerate(signals):
            if select.select([ended], [], [], seconds)[0]:
                return number
            os.kill(child, getattr(signal, name))
        return len(signals)
    finally:
        os.close(ended)


def run(request):
    """Runs the program to its end, as Python does; returns its exit code."""
    signal.alarm(request["seconds"])
    os.chdir(request["folder"])
    sys.argv = [request["module"], *request["flags"]]
    code = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    main()
