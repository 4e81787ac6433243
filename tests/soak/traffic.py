"""Clients who ask a server what it can answer, and check each answer; and what a process takes."""

import collections
import concurrent.futures
import gzip
import http.client
import json
import os
import pathlib
import random
import statistics
import time

from tests.serving.rest import text_models
from tests.soak.attacks import PREDICT
from tests.soak.hostile import COME_LATER

__all__ = ["Tally", "ask", "percentiles", "resources", "wrong_answer"]

_WORDS = ("It", "is", "old", "88", "7", "km.", "é", "水", "🙂.", "Rain.", "1999", "\n", '"')
_MOST_IDLE = 0.5  # Seconds: less than the server lets a connection be.


class Tally:
    """What came of the requests of a phase.

    Attributes:
        seconds: list of float. Of the requests that were answered rightly.
        problems: list of str. Requests that were lost, or answered wrongly.
        counts: `Counter` of "told to come later" and of "closed when idle".
    """

    def __init__(self):
        self.seconds, self.problems, self.counts = [], [], collections.Counter()


def ask(address, seed, seconds, num_clients, patience, stopped=None):
    """Asks in several threads until the time is over; every other client keeps its connection.

    Each client asks once at least.

    Args:
        address: (host, port).
        seed: int.
        seconds: float.
        num_clients: int.
        patience: float. Seconds without an answer after which a request is lost.
        stopped: `threading.Event`; a request that the server does not take any more, once it is
            set, ends its client, and is none that is lost.
    Returns:
        `Tally`.
    """
    tally, end = Tally(), time.monotonic() + seconds

    def run(number):
        client = _Client(address, patience, number % 2 == 0)
        rng = random.Random(f"{seed} {number}")
        while True:
            try:
                if not client.ask(rng, tally):
                    time.sleep(0.05)
            except (OSError, http.client.HTTPException) as error:
                client.close()
                is_ended = stopped is not None and stopped.is_set()
                if is_ended and not isinstance(error, http.client.IncompleteRead):
                    break
                tally.problems.append(f"lost: {error!r}")
            if time.monotonic() >= end:
                break
        client.close()

    with concurrent.futures.ThreadPoolExecutor(num_clients) as pool:
        list(pool.map(run, range(num_clients)))  # Raises what ended one of them.
    return tally


class _Client:
    def __init__(self, address, patience, keeps):
        self._address, self._patience, self._keeps = address, patience, keeps
        self._connection, self._last = None, 0.0

    def close(self):
        if self._connection:
            self._connection.close()
        self._connection = None

    def ask(self, rng, tally):
        """Asks once, and notes what came; whether the server took the request."""
        num_documents = rng.randrange(1, 4)  # The same of all examples of a request.
        rows = [_instance(rng, num_documents) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
        body, headers = json.dumps({"instances": rows}).encode(), {}
        if rng.random() < 0.2:
            body, headers = gzip.compress(body), {"Content-Encoding": "gzip"}
        if self._connection and time.monotonic() - self._last > _MOST_IDLE:
            self.close()  # The server closes what is idle, and may be about to.
        start = time.perf_counter()
        if self._connection is None:
            self._connection = http.client.HTTPConnection(*self._address, timeout=self._patience)
        headers["Content-Type"] = "application/json"
        self._connection.request("POST", PREDICT, body, headers)
        response = self._connection.getresponse()
        answer = response.read()
        seconds, self._last = time.perf_counter() - start, time.monotonic()
        if not self._keeps or response.getheader("Connection") == "close":
            self.close()
        if response.status == 503 and COME_LATER in answer:
            tally.counts["told to come later"] += 1
            return False
        if wrong := wrong_answer(rows, response.status, answer):
            tally.problems.append(f"{wrong}: {rows}")
        else:
            tally.seconds.append(seconds)
        return True


def _instance(rng, num_documents):
    texts = [" ".join(rng.choices(_WORDS, k=rng.randrange(1, 30))) for _ in range(num_documents)]
    return {"question": rng.choice(("", "How long?")), "documents": texts}


def wrong_answer(rows, status, answer):
    """How an answer of the model of `text_models` differs from its twin's: str, "" if it is right.

    Args:
        rows: list of instances.
        status: int.
        answer: bytes.
    """
    if status != 200:
        return f"answered by {status} {answer[:200]}"
    try:
        predictions = json.loads(answer)["predictions"]
    except (ValueError, KeyError, TypeError) as error:
        return f"answered by what is no prediction: {error!r}"
    if len(predictions) != len(rows):
        return f"{len(predictions)} answers"
    for row, found in zip(rows, predictions, strict=True):
        place = found["answer"], found["document"], found["start"], found["end"]
        if place != text_models.answer_of(row["documents"]):
            return f"answered by {place}"
        sentences = [x for x in found["evidence"] if x]
        if sentences != [x[3] for x in text_models.sentences_of(row["documents"])]:
            return f"with the sentences {sentences}"
    return ""


def percentiles(seconds):
    """Milliseconds that 50, 95 and 99 of 100 requests took at most: tuple of float."""
    if len(seconds) < 2:
        return (float("nan"),) * 3
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return tuple(1000 * cuts[number - 1] for number in (50, 95, 99))


def resources(pid):
    """What a process holds: (bytes of memory, threads, open files)."""
    folder = pathlib.Path(f"/proc/{pid}")
    pages = int((folder / "statm").read_text(encoding="ascii").split()[1])
    status = dict(x.split(":", 1) for x in (folder / "status").read_text().splitlines())
    return (
        pages * os.sysconf("SC_PAGE_SIZE"),
        int(status["Threads"]),
        len(os.listdir(folder / "fd")),
    )
