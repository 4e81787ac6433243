"""Connections: limits of size, time and number, and how the server stops."""

import contextlib
import errno
import gzip
import logging
import re
import socket
import struct
import threading
import time

import pytest
import tensorflow as tf

from etcmodel.generation import settings
from etcmodel.serving import rest
from etcmodel.serving.rest import batching as waiting
from etcmodel.serving.rest.application import Response
from etcmodel.serving.rest.server import TurnedAway, _Reader
from tests.serving.rest import clients

HEAD = b"POST /v1/models/model:predict HTTP/1.1\r\nHost: localhost\r\n"
PATIENT = 600.0
SECRET = "Rumpelstiltskin"


def server_of(application, **arguments):
    return rest.RestServer(application, **arguments).running()


class Impatient(rest.RestServer):
    """A server whose patience is different each time that it is asked for.

    It waits for a request, then for the rest of it, to send the answer, and for the client to end.
    """

    def __init__(self, application, seconds):
        self._seconds = iter(seconds)
        super().__init__(application)

    @property
    def timeout_seconds(self):
        return next(self._seconds)

    @timeout_seconds.setter
    def timeout_seconds(self, value):
        del value


def echo(method, path, body):
    return Response(200, body or b"nothing")


def status_of(answer):
    """The status of an answer, and what it says."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        (HEAD + b"Content-Length: 101\r\n\r\n" + b"x" * 101, 413, "100 bytes. Received: 101."),
        (HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", 413, "100 bytes"),
        (HEAD + b"Content-Length: 101\r\nExpect: 100-continue\r\n\r\n", 413, "100 bytes"),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400, "must be a number of bytes"),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400, "given once"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411, "with its Content-Length"),
        (HEAD + b"Transfer-Encoding: x\r\nContent-Length: 1\r\n\r\na", 411, "with its Content"),
        (HEAD + b"Content-Encoding: br\r\nContent-Length: 0\r\n\r\n", 415, "Content-Encoding"),
        (b"nonsense\r\n\r\n", 400, "Bad Request"),
        (b"GET / HTTP/9.9\r\n\r\n", 505, "HTTP Version"),
        (b"GET /" + b"x" * (1 << 16) + b" HTTP/1.1\r\n\r\n", 414, "Too Long"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 16) + b"\r\n\r\n", 431, "Too Large"),
    ],
)
def test_what_is_refused_before_it_is_read(request_, status, message):
    with server_of(echo, max_body_bytes=100) as server:
        found, body = status_of(clients.raw(server, request_, end=True))
        assert found == status and body.startswith('{"error": "') and message in body
        client = clients.raw(server, b"GET / HTTP/1.0\r\n\r\n")
        assert status_of(client) == (200, "nothing")


def test_a_body_of_the_greatest_size_is_taken():
    with server_of(echo, max_body_bytes=100) as server:
        answer = clients.raw(
            server, HEAD + b"Connection: close\r\nContent-Length: 100\r\n\r\n" + b"x" * 100
        )
    assert status_of(answer) == (200, "x" * 100)


def test_requests_sent_together_are_answered_in_their_order():
    with server_of(echo) as server:
        one = HEAD + b"Content-Length: 1\r\n\r\n"
        answer = clients.raw(server, one + b"1" + one + b"2" + one + b"3", end=True)
        assert re.findall(rb"\r\n\r\n(\d)", answer) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    "begin", [HEAD, HEAD + b"Content-Length: 5\r\n\r\nabc", b"POST /v1 HTTP/1.1\r\n"]
)
def test_a_client_that_is_too_slow_is_told(begin):
    with Impatient(echo, [PATIENT, 0, PATIENT, PATIENT]).running() as server:
        status, body = status_of(clients.raw(server, begin))
        assert status == 408 and "took too long" in body


def test_a_connection_without_a_request_is_closed():
    with Impatient(echo, [0]).running() as server:
        assert clients.raw(server, b"") == b""


def test_bytes_that_drip_do_not_put_the_end_off():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"x")
        reader = _Reader(ours)
        reader.set_deadline(600)
        assert reader.read(1) == b"x"
        theirs.sendall(b"x")
        reader.set_deadline(-1)
        with pytest.raises(TimeoutError):
            reader.read(1)


def test_clients_who_go_away_in_the_middle_leave_the_server_alive(caplog):
    with server_of(echo) as server:
        for part in (b"", HEAD + b"Content-Length: 5\r\n\r\nabc"):
            assert clients.raw(server, part, end=True) == b""
        assert status_of(clients.raw(server, b"GET / HTTP/1.0\r\n\r\n"))[0] == 200
    assert not caplog.records


def test_more_connections_than_allowed_are_told_to_come_later():
    with server_of(echo, max_connections=1) as server:
        first = socket.create_connection(server.server_address)
        with first:
            first.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert first.recv(1)
            status, body = status_of(clients.raw(server, b""))
            assert status == 503 and "has 1 connections" in body


def test_who_is_told_to_come_later_may_send_the_rest_of_a_request():
    """Else a client that writes head and body apart finds the connection broken, and no answer."""
    with server_of(echo, max_connections=1) as server:
        first, second = (socket.create_connection(server.server_address) for _ in range(2))
        with first, second:
            answer = b"".join(iter(lambda: second.recv(1 << 16), b""))
            assert status_of(answer)[0] == 503
            for _ in range(3):
                second.sendall(b"x" * 1000)


def test_a_field_that_another_program_reads_otherwise_makes_no_second_request():
    hidden = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
    asked = []

    def application(method, path, body):
        asked.append(path)
        return Response(200, body)

    length = b"Content-Length%s: %d\r\n\r\n"
    with server_of(application) as server:
        answer = clients.raw(server, HEAD + length % (b" ", len(hidden)) + hidden, end=True)
        assert status_of(answer)[0] == 400 and answer.count(b"HTTP/1.1 ") == 1 and not asked
        answer = clients.raw(server, HEAD + length % (b"", len(hidden)) + hidden, end=True)
        assert answer.endswith(hidden) and asked == ["/v1/models/model:predict"]


def test_a_body_in_gzip_is_unpacked_and_a_large_one_refused():
    head = HEAD + b"Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    with server_of(echo, max_body_bytes=100) as server:
        for size, status in ((100, 200), (101, 413), (1 << 22, 413)):
            body = gzip.compress(b"x" * size)[: 1 << 12]
            head_ = head % min(len(body), 100)
            assert status_of(clients.raw(server, head_ + body[:100]))[0] == status


def test_an_answer_that_nobody_takes_does_not_hold_its_place():
    large = bytes(64 << 20)
    with Impatient(lambda *_: Response(200, large), [PATIENT, PATIENT, 0.1]).running() as server:
        with socket.create_connection(server.server_address[:2]) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(1)
            assert server.stop(grace_seconds=PATIENT) == 0
            received = 0
            with contextlib.suppress(ConnectionError):
                while part := client.recv(1 << 20):
                    received += len(part)
        assert received < len(large)
        server.shutdown = lambda: None


def test_who_is_refused_while_still_sending_holds_no_place():
    with (
        server_of(echo, max_body_bytes=100, max_connections=1) as server,
        socket.create_connection(server.server_address[:2]) as first,
    ):
        first.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
        answer = b"".join(iter(lambda: first.recv(1 << 16), b""))
        assert status_of(answer)[0] == 413
        while status_of(clients.raw(server, b"GET / HTTP/1.0\r\n\r\n"))[0] == 503:
            pass
        first.sendall(b"x" * 1000)


def until(condition):
    """Whether it is true within a long time."""
    end = time.monotonic() + PATIENT
    while time.monotonic() < end:
        if condition():
            return True
    return False


@pytest.mark.parametrize("linger", [False, True])
def test_who_works_on_an_answer_knows_when_the_client_has_gone(linger):
    begun, found = threading.Event(), []
    ended = threading.Event()

    def application(method, path, body):
        begun.set()
        found.append(until(waiting.has_left))
        ended.set()
        return Response(200, b"")

    with server_of(application) as server:
        with socket.create_connection(server.server_address[:2]) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            begun.wait()
            if linger:  # It then resets the connection.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert ended.wait(PATIENT) and found == [True]
    assert not waiting.has_left()


def test_a_client_that_only_says_that_it_sends_no_more_gets_its_answer():
    def application(method, path, body):
        assert not any(waiting.has_left() for _ in range(1000))
        return Response(200, b"done")

    with server_of(application) as server:
        request = b"GET / HTTP/1.%d\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        answer = clients.raw(server, request % 1, end=True)
        told, _, answer = answer.rpartition(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert b"100" not in told and status_of(answer) == (200, "done")
        assert status_of(clients.raw(server, request % 0, end=True)) == (200, "done")


def test_connections_that_were_turned_away_end():
    pairs = [socket.socketpair() for _ in range(3)]
    connections = TurnedAway(most=2, seconds=600)
    for ours, theirs in pairs:
        connections.add(ours)
        assert theirs.recv(1) == b""
    assert len(connections) == 2 and pairs[0][0].fileno() == -1
    pairs[1][1].sendall(b"x" * 5000)
    pairs[2][1].sendall(b"x")
    pairs[2][1].close()
    connections.read()
    connections.read()
    assert len(connections) == 1 and pairs[2][0].fileno() == -1
    connections.close()
    assert pairs[1][0].fileno() == -1
    pairs[0][1].close()
    pairs[1][1].close()


def test_connections_that_were_turned_away_are_not_kept_for_ever():
    connections = TurnedAway(most=2, seconds=0)
    ours, theirs = socket.socketpair()
    with theirs:  # Which does not end the connection itself.
        connections.add(ours)
        connections.read()
        assert not len(connections) and ours.fileno() == -1


def test_a_stop_answers_what_was_begun_and_closes_the_rest():
    entered, release = threading.Event(), threading.Event()

    def slow(method, path, body):
        entered.set()
        release.wait()
        return Response(200, b"done")

    answers = []
    with server_of(slow) as server:
        shutdown = server.shutdown

        def shutdown_then_release():
            shutdown()
            release.set()  # Only now, when the server is stopping.

        server.shutdown = shutdown_then_release
        idle = socket.create_connection(server.server_address)
        thread = threading.Thread(
            target=lambda: answers.append(
                clients.raw(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            )
        )
        thread.start()
        entered.wait()
        assert server.stop() == 0
        thread.join()
        with idle:
            assert idle.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(server.server_address)
        server.shutdown = lambda: None
    assert status_of(answers[0]) == (200, "done") and b"Connection: close" in answers[0]


def test_a_stop_gives_up_what_takes_longer_than_it_may():
    entered, release = threading.Event(), threading.Event()

    def slow(method, path, body):
        entered.set()
        release.wait()
        return Response(200, b"done")

    with server_of(slow) as server, socket.create_connection(server.server_address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        entered.wait()
        assert server.stop(grace_seconds=0) == 1
        release.set()
        server.shutdown = lambda: None


def test_only_this_machine_is_listened_to_unless_told_otherwise():
    with server_of(echo) as server:
        assert server.server_address[0] == "127.0.0.1"
        assert server.url == f"http://127.0.0.1:{server.server_address[1]}/"


def test_a_port_that_is_taken_is_told_in_a_line():
    with (
        server_of(echo) as server,
        pytest.raises(OSError, match=r"Cannot listen on 127.0.0.1:\d+: .*--port") as caught,
    ):
        rest.RestServer(echo, port=server.server_address[1])
    assert "\n" not in str(caught.value) and errno.errorcode[errno.EADDRINUSE] == "EADDRINUSE"


def test_logs_hold_nothing_that_was_sent(models, caplog):
    caplog.set_level(logging.DEBUG)
    model = models["answer"]

    def fails(signature, inputs, num_rows):
        raise KeyError(SECRET)

    application = rest.Application(model, fails)
    with server_of(application, log_requests=True) as server:
        client = clients.Client(server)
        request = {"inputs": {"question": [SECRET], "documents": [[SECRET]]}}
        assert client.predict(request) == (500, {"error": "The model failed with KeyError."})
        client.predict({"inputs": SECRET})
        client.ask("GET", f"/{SECRET}")
        client.close()
        clients.raw(server, f"{SECRET}\r\n\r\n".encode(), end=True)
    lines = [re.sub(r"[\d.]+ ms", "ms", record.getMessage()) for record in caplog.records]
    assert lines[:3] == ["The model failed: KeyError", "predict 500 ms", "predict 400 ms"]
    # A line is written after its answer: those of two connections in any order.
    assert sorted(lines[3:]) == ["other 400 ms", "other 404 ms"]


@pytest.mark.parametrize(
    ("is_scored", "status", "words"),
    [(False, 500, "The model says: .*scores of a generated token"), (True, 400, "too long")],
)
def test_generated_tokens_without_a_score_are_not_the_clients_fault(
    models, is_scored, status, words
):
    @tf.function
    def generated(is_short, is_scored):
        # A model tells of what it refuses in the same way.
        with tf.control_dependencies([tf.debugging.Assert(is_short, ["The text is too long."])]):
            return settings.checked(tf.zeros([1, 2], tf.int32), is_scored)

    def fails(signature, inputs, num_rows):
        return generated(tf.constant(not is_scored), tf.constant(is_scored))

    with server_of(rest.Application(models["answer"], fails)) as server:
        client = clients.Client(server)
        request = {"inputs": {"question": ["a"], "documents": [["b"]]}}
        code, answer = client.predict(request)
        client.close()
    assert code == status and re.match(".*" + words, answer["error"])


def test_an_address_that_is_no_url_is_the_clients_fault(models, caplog):
    with server_of(rest.Application(models["answer"], None)) as server:
        status, body = status_of(
            clients.raw(server, b"GET http://[/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n", end=True)
        )
    assert (status, body) == (400, '{"error": "The host must be a name or an address: \'[\'."}')
    assert not caplog.records


def test_what_clients_do_wrong_is_no_failure_of_the_server(caplog):
    with server_of(echo) as server:
        clients.raw(server, b"GET / HTTP/9.9\r\n\r\n", end=True)
    assert not caplog.records


def test_an_export_is_served_as_long_as_a_block_runs(exports):
    origin = "https://page.example"
    access = {"allowed_hosts": ["box.lan"], "cors_origins": [origin]}
    with rest.running(exports["classify"], **access) as server:
        client = clients.Client(server)
        status, answer = client.predict({"instances": [{"text": "123 x"}]})
        named = client.ask("GET", "/healthz", headers={"Host": "box.lan", "Origin": origin})
        client.close()
    assert named[0] == 200
    assert status == 200 and answer["predictions"][0]["label"] == "number"
    with pytest.raises(OSError):
        clients.raw(server, b"GET / HTTP/1.0\r\n\r\n")
