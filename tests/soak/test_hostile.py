"""The clients of the soak of the server find what is wrong: each kind, asking servers that are."""

import json
import random
import socket

import pytest

from etcmodel.serving import rest
from etcmodel.serving.rest.application import Response
from tests.serving.rest import text_models
from tests.soak import hostile, traffic

PATIENCE = 60.0


@pytest.mark.parametrize(
    ("received", "statuses"),
    [
        (b"", []),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", [200]),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", [0]),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 4", [200, 0]),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n", [413]),
        (b"nonsense", [0]),
    ],
)
def test_answers_are_told_from_what_is_none(received, statuses):
    assert hostile.statuses(received) == statuses


@pytest.mark.parametrize("status", [200, 500])
def test_a_server_that_takes_everything_or_fails_is_found_out(status):
    reaching = (
        "JSON that is cut",
        "bad UTF-8",
        "deep JSON",
        "endless integers",
        "too many examples",
        "fields that are wrong",
        "methods",
        "bodies that are too large",
        "too many tokens",
    )
    answering = lambda *_: Response(status, b"{}")  # noqa: E731
    with rest.RestServer(answering, max_body_bytes=1 << 30).running() as server:
        address = server.server_address[:2]
        for name in reaching:
            came = hostile.attack(address, name, random.Random(0), PATIENCE)
            assert hostile.problem(name, came) == f"{name}: answered by [{status}]"
        came = hostile.attack(address, "half-closed", random.Random(0), PATIENCE)
        assert bool(hostile.problem("half-closed", came)) == (status == 500)


def test_a_server_that_says_nothing_is_found_out():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        came = hostile.attack(listening.getsockname(), "silent", random.Random(0), 0.01)
    assert hostile.problem("silent", came) == "silent: the server did not answer"
    assert hostile.problem("methods", []) == "methods: no answer"
    assert hostile.problem("silent", []) == hostile.problem("silent", "come later") == ""


def answer(documents):
    text, *place = text_models.answer_of(documents)
    names = ("document", "start", "end")
    found = {"answer": text, **dict(zip(names, place, strict=True))}
    found["evidence"] = [x[3] for x in text_models.sentences_of(documents)]
    return found


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({}, ""), ({"start": -7}, "answered by ("), ({"evidence": ["y"]}, "with the sentences")],
)
def test_wrong_answers_are_found(changes, problem):
    rows = [{"documents": ["It is 88 km. Old."]}, {"documents": ["x"]}]
    good = [answer(row["documents"]) for row in rows]
    body = json.dumps({"predictions": [good[0], {**good[1], **changes}]}).encode()
    assert traffic.wrong_answer(rows, 200, body).startswith(problem)
    assert bool(traffic.wrong_answer(rows, 200, body)) == bool(problem)
    assert traffic.wrong_answer(rows, 500, body).startswith("answered by 500")
    assert traffic.wrong_answer(rows[:1], 200, body) == "2 answers"


def test_clients_count_what_is_lost_and_what_is_put_off():
    def half(method, path, body):
        return Response(200, b"{", headers={"Connection": "close"})

    with rest.RestServer(half).running() as server:
        tally = traffic.ask(server.server_address[:2], 0, 0.0, 2, PATIENCE)
    assert not tally.seconds and len(tally.problems) == 2
    with (
        rest.RestServer(half, max_connections=1).running() as server,
        socket.create_connection(server.server_address[:2]),
    ):
        tally = traffic.ask(server.server_address[:2], 0, 0.0, 1, PATIENCE)
    assert not (tally.seconds or tally.problems) and tally.counts == {"told to come later": 1}


def test_what_ends_a_client_is_raised(monkeypatch):
    def attack(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(hostile, "attack", attack)
    with pytest.raises(ZeroDivisionError):
        hostile.many(("127.0.0.1", 1), 0, PATIENCE, 2, PATIENCE)


def test_percentiles():
    assert traffic.percentiles([number / 1000 for number in range(101)]) == pytest.approx(
        (50, 95, 99)
    )
