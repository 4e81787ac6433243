"""The HTTP server under good and hostile traffic at the same time, and how it stops under it.

`make soak-server SECONDS=1800` keeps it up for longer than the tests do.
"""

import collections
import concurrent.futures
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from tests.serving.rest import text_models
from tests.soak import attacks, hostile, traffic

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("SOAK_SECONDS", "4"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
CLIENTS = int(os.environ.get("SOAK_CLIENTS", "4"))
ATTACKERS = int(os.environ.get("SOAK_ATTACKERS", "8"))
CLIENT_TIMEOUT = 2.0  # Of the server.
PATIENCE = 60.0  # Of clients: other programs may take most of the machine.
ROUNDS = 4
MAX_GROWTH = 64 << 20  # From the first round of hostile traffic to the last one.
FLAGS = {
    "port": 0,
    "max_connections": 64,
    "max_request_bytes": attacks.MAX_BODY,
    "max_rows": attacks.MAX_ROWS,
    "max_request_tokens": attacks.MAX_TOKENS,
    "max_batch_size": 4,
    "client_timeout": CLIENT_TIMEOUT,
}


class Run:
    """The program, its address, and what came of all rounds: a `Tally` and resources by name."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        self.tallies, self.resources = {}, {}
        self.outcomes, self.problems = collections.Counter(), []

    def note(self, name, tally):
        self.tallies[name] = tally
        self.resources[name] = traffic.resources(self.process.pid)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The server after quiet traffic, rounds of both kinds, quiet traffic, and a signal."""
    export = str(tmp_path_factory.mktemp("soak") / "1")
    text_models.export(export, "answer")
    flags = [f"--{name}={value}" for name, value in FLAGS.items()]
    with subprocess.Popen(
        [sys.executable, "-m", "etcmodel.tools.serve", f"--model_dir={export}", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("serving "), process.stderr.read()
            host, port = re.search(r"http://(.*):(\d+)/$", line.strip()).groups()
            made = Run(process, (host, int(port)))
            _ask_in_rounds(made)
            _stop_under_traffic(made)
            made.out, made.err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    _print(made)
    return made


def _ask_in_rounds(run):
    def ask(seed, seconds):
        return traffic.ask(run.address, f"{SEED} {seed}", seconds, CLIENTS, PATIENCE)

    ask("first", 1.0)  # The first calls optimize the graph.
    run.note("quiet", ask("quiet", SECONDS / 8))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as attackers:
        for number in range(ROUNDS):
            seconds = 0.75 * SECONDS / ROUNDS
            attack = attackers.submit(
                hostile.many, run.address, f"{SEED} {number}", seconds, ATTACKERS, PATIENCE
            )
            tally = ask(number, seconds)
            outcomes, problems = attack.result()
            run.outcomes += outcomes
            run.problems += problems
            run.note(f"hostile {number + 1}", tally)
    ask("rest", 2 * CLIENT_TIMEOUT)  # Until clients who were left are given up.
    run.note("quiet again", ask("again", SECONDS / 8))


def _stop_under_traffic(run):
    """Sends the signal while clients ask."""
    stopped = threading.Event()

    def stop():
        stopped.set()
        run.process.send_signal(signal.SIGTERM)

    timer = threading.Timer(1.0, stop)
    timer.start()
    run.tallies["stopped"] = traffic.ask(
        run.address, f"{SEED} last", PATIENCE, CLIENTS, PATIENCE, stopped
    )
    timer.join()


def _print(run):
    for name, tally in run.tallies.items():
        times = " ".join(f"{x:.1f}" for x in traffic.percentiles(tally.seconds))
        print(f"{name}: {len(tally.seconds)} answers, ms at 50, 95, 99 %: {times}", end="")
        print(f", longest {1000 * max(tally.seconds, default=0):.0f}, {dict(tally.counts)}", end="")
        memory, threads, files = run.resources.get(name, (0, 0, 0))
        print(f", {memory / 1e6:.1f} MB, {threads} threads, {files} files")
    print(f"{sum(run.outcomes.values())} attacks:")
    for (name, came), count in sorted(run.outcomes.items()):
        print(f"  {name} {came}: {count}")


def test_every_good_request_is_answered_rightly(run):
    for name, tally in run.tallies.items():
        assert not tally.problems, (name, tally.problems[:5])
    hostile_rounds = [x for name, x in run.tallies.items() if name.startswith("hostile")]
    assert run.tallies["quiet"].seconds and any(tally.seconds for tally in hostile_rounds)


def test_every_attack_is_refused_or_closed(run):
    assert {name for name, _ in run.outcomes} <= {*attacks.ATTACKS, hostile.CROWD}
    assert run.outcomes and not run.problems, "\n".join(run.problems[:20])


def test_memory_threads_and_files_stay(run):
    first, last = run.resources["hostile 1"], run.resources[f"hostile {ROUNDS}"]
    assert last[0] - first[0] < MAX_GROWTH
    before, after = run.resources["quiet"], run.resources["quiet again"]
    margin = 4 * CLIENTS  # Connections that are just about to end.
    assert after[1] <= before[1] + margin and after[2] <= before[2] + margin


def test_it_stops_in_good_order_and_has_told_of_no_failure(run):
    assert run.process.returncode == 0
    assert re.fullmatch(r"stopped: \d+ requests answered\n", run.out)
    assert not run.err, run.err[-2000:]
