"""Clients who send what is wrong, and what they must get in answer.

No TensorFlow is needed, so that a process of these clients is small.
"""

import collections
import concurrent.futures
import random
import re
import socket
import struct
import time

from tests.soak.attacks import ATTACKS

__all__ = ["COME_LATER", "CROWD", "attack", "many", "problem", "statuses"]

COME_LATER = b"come later"
CROWD = "a crowd"
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n")


def attack(address, name, random, seconds):
    """Does one attack.

    Args:
        address: (host, port).
        name: str. One of `ATTACKS`.
        random: `random.Random`.
        seconds: float. After so long without a byte from the server it hangs.
    Returns:
        What came: list of statuses of the answers, empty if the server closed without one; "hung";
        or "come later", where there were too many clients.
    """
    kind = ATTACKS[name]
    received = b""
    with socket.create_connection(address, timeout=seconds) as connection:
        try:
            for part in kind.make(random):
                connection.sendall(part)
                if kind.pause:
                    time.sleep(kind.pause)
            if kind.ends:
                connection.shutdown(socket.SHUT_WR)
        except TimeoutError:
            return "hung"
        except OSError:
            pass  # The server has heard enough: what it said is read all the same.
        if kind.leaves:
            if kind.leaves == "reset":
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return []
        try:
            while part := connection.recv(1 << 16):
                received += part
        except TimeoutError:
            return "hung"
        except OSError:
            pass
    return "come later" if COME_LATER in received else statuses(received)


def statuses(received):
    """Statuses of the answers in what a server sent; 0 for what is no whole answer."""
    found = []
    while received:
        head, separator, rest = received.partition(b"\r\n\r\n")
        status, length = _STATUS_LINE.match(head), _LENGTH.search(head + b"\r\n")
        if status and int(status[1]) == 100 and separator:
            received = rest
            continue
        if not (status and length and len(rest) >= int(length[1])):
            return [*found, 0]
        found.append(int(status[1]))
        received = rest[int(length[1]) :]
    return found


def problem(name, came):
    """What is wrong with what came of an attack: str, "" for nothing."""
    kind = ATTACKS[name]
    if came == "come later":
        return ""
    if came == "hung":
        return f"{name}: the server did not answer"
    if not came and not kind.closed:
        return f"{name}: no answer"
    wrong = [status for status in came if status not in kind.allowed]
    return f"{name}: answered by {wrong}" if wrong else ""


def _crowd(address, size, seconds):
    """Opens many connections at once, says nothing on them and closes them."""
    connections = []
    try:
        for _ in range(size):
            connections.append(socket.create_connection(address, timeout=seconds))
    finally:
        for connection in connections:
            connection.close()


def many(address, seed, seconds, num_threads, patience):
    """Attacks in several threads until the time is over.

    Args:
        address: (host, port).
        seed: int.
        seconds: float.
        num_threads: int.
        patience: float. As in `attack`.
    Returns:
        (Counter of (name, what came), list of problems, each with the seed that makes it again).
    """
    end = time.monotonic() + seconds
    outcomes, problems = collections.Counter(), []

    def run(thread):
        number = 0
        while time.monotonic() < end:
            case = f"{seed} {thread} {number}"
            number += 1
            rng = random.Random(case)
            name = CROWD if rng.random() < 0.01 else rng.choice(list(ATTACKS))
            try:
                if name == CROWD:
                    _crowd(address, 150, patience)
                    outcomes[name, ""] += 1
                    continue
                came = attack(address, name, rng, patience)
            except OSError as error:
                problems.append(f"{name}: {error!r} (case {case!r})")
                continue
            outcomes[name, str(came)] += 1
            if found := problem(name, came):
                problems.append(f"{found} (case {case!r})")

    with concurrent.futures.ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(run, range(num_threads)))  # Raises what ended one of them.
    return outcomes, problems
