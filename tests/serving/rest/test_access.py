"""Who may ask: the names of this machine, and the pages that it says."""

import pytest

from etcmodel.serving import rest
from etcmodel.serving.rest.access import Access
from etcmodel.serving.rest.application import Response
from etcmodel.serving.rest.errors import RequestError
from etcmodel.serving.rest.reading import Head
from tests.serving.rest import clients

EVIL = "http://evil.example"


def head(host="localhost", origin=None, *, target="/", method="POST", version=(1, 1), **fields):
    named = {"host": host, "origin": origin, **fields}
    pairs = [(name.replace("_", "-"), x) for name, x in named.items() if x is not None]
    return Head(method, target, version, tuple(pairs))


def status(access, head):
    try:
        access.check(head)
    except RequestError as error:
        assert "\n" not in error.message and len(error.message) < 300
        return error.status
    return 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 200),
        ("LOCALHOST:8501", 200),
        ("localhost.:8501", 200),
        ("a.localhost", 200),
        ("127.0.0.1:8501", 200),
        ("10.1.2.3", 200),
        ("[::1]:8501", 200),
        ("[fe80::1]", 200),
        ("my-machine.lan:80", 200),
        ("evil.example", 421),
        ("evil.example:8501", 421),
        ("localhost.evil.example", 421),
        ("notlocalhost", 421),
        ("127.0.0.1.evil.example", 421),
        ("127.1", 421),
        ("x" * 9000, 421),
        (".", 421),
        ("", 400),
        (":8501", 400),
        ("::1", 400),
        ("localhost:port", 400),
        ("localhost/", 400),
        ("evil.example@localhost", 400),
        ("localhost, evil.example", 400),
        (None, 400),
    ],
    ids=lambda value: str(value)[:30],
)
def test_hosts_that_are_answered(host, expected):
    access = Access(hosts=frozenset({"My-Machine.lan", "0.0.0.0"}))
    assert status(access, head(host)) == expected
    any_host = Access(hosts=frozenset("*"))
    assert status(any_host, head(host)) == (400 if expected == 400 else 200)


def test_the_message_names_the_flag_and_one_host_is_enough():
    with pytest.raises(RequestError, match="'evil.example'. --allowed_hosts of the server names"):
        Access().check(head("evil.example"))
    assert status(Access(), head(None, version=(1, 0))) == 200
    twice = Head("GET", "/", (1, 1), (("host", "localhost"), ("host", "localhost")))
    assert status(Access(), twice) == 400


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("http://localhost/v1", 200),
        ("http://evil.example/v1", 421),
        ("HTTPS://localhost:80?x", 200),
        ("//evil.example/v1", 200),
        ("http:///v1", 400),
        ("foo", 400),
        ("ftp://localhost/", 400),
        ("evil.example:80", 400),
        ("*", 200),
    ],
)
def test_the_host_in_a_whole_url_counts_too(target, expected):
    assert status(Access(), head(target=target)) == expected


def test_a_target_that_is_no_address_is_named():
    with pytest.raises(RequestError, match=r"begins with `/`.*Received: 'foo'"):
        Access().check(head(target="foo"))


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("localhost:8501", "http://localhost:8501", 200),
        ("LocalHost:8501", "https://localhost:8501", 200),
        ("localhost:8501", "http://localhost:8888", 403),
        ("localhost:8501", "http://127.0.0.1:8501", 403),
        ("localhost:8501", "http://localhost", 403),
        ("localhost:443", "https://localhost", 200),
        ("localhost:80", "http://localhost", 200),
        ("localhost", "https://localhost:443", 200),
        ("localhost:443", "http://localhost", 403),
        ("localhost:80", "https://localhost", 403),
        ("localhost:8501", EVIL, 403),
        ("localhost:8501", "null", 403),
        ("localhost:8501", "", 403),
        ("localhost:8501", "file://localhost:8501", 403),
        ("localhost:8501", f"http://localhost:8501 {EVIL}", 403),
        ("localhost:8501", "https://good.example", 200),
        ("localhost:8501", "http://good.example", 403),
        ("localhost:8501", "http://port.example", 200),
        ("localhost:8501", "https://good.example.evil.example", 403),
    ],
)
def test_pages_that_may_ask(host, origin, expected):
    access = Access(origins=frozenset({"https://Good.example/", "http://port.example:80"}))
    assert status(access, head(host, origin)) == expected
    assert status(Access(origins=frozenset("*")), head(host, origin)) == 200


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("allowed_hosts", "my-machine.lan"),
        ("allowed_hosts", ["my-machine.lan:8501"]),
        ("allowed_hosts", ["http://my-machine.lan"]),
        ("allowed_hosts", ["my-machine.lan/"]),
        ("allowed_hosts", ["*.lan"]),
        ("allowed_hosts", [""]),
        ("allowed_hosts", ["m\u00fcller.lan"]),
        ("allowed_hosts", [3]),
        ("cors_origins", "https://good.example"),
        ("cors_origins", ["good.example"]),
        ("cors_origins", ["https://good.example/page"]),
        ("cors_origins", ["https://*.example"]),
        ("cors_origins", ["https://"]),
    ],
)
def test_a_name_that_no_request_can_have_is_refused_with_its_flag(argument, value):
    given = value if isinstance(value, str) else value[0]
    with pytest.raises(ValueError, match=f"^--{argument} must be .* Received: ") as error:
        rest.RestServer(None, **{argument: value})
    assert repr(given) in str(error.value) and "\n" not in str(error.value)


def test_names_addresses_and_origins_that_can_be_are_taken():
    hosts = ["My-Machine.lan.", "::1", "[::1]", "10.0.0.1", "a_b", "*"]
    origins = ["https://good.example:8443/", "http://[::1]:80", "null", "*"]
    access = Access(hosts, origins, own_host="")
    assert access.hosts == {"my-machine.lan", "::1", "[::1]", "10.0.0.1", "a_b", "*"}
    assert access.origins == {"https://good.example:8443", "http://[::1]", "null", "*"}


def test_browsers_are_told_only_of_pages_that_are_allowed():
    good, own = "https://good.example", "http://localhost:8501"
    access = Access(origins=frozenset({good}))
    allowed = {"Vary": "Origin", "Access-Control-Allow-Origin": good}
    assert access.headers(head(origin=good)) == allowed
    for origin in (own, EVIL, None):
        assert access.headers(head(origin=origin)) == {"Vary": "Origin"}
        assert Access().headers(head(origin=origin)) == {}
    asked = {"method": "OPTIONS", "access_control_request_method": "POST"}
    found = access.preflight_headers(head(origin=good, **asked))
    assert found["Access-Control-Allow-Methods"] == "GET, HEAD, POST"
    assert not access.preflight_headers(head(origin=good, method="OPTIONS"))
    assert not access.preflight_headers(head("localhost:8501", own, **asked))
    assert not Access().preflight_headers(head("localhost:8501", own, **asked))


@pytest.fixture
def asked():
    """Requests that came to the application."""
    return []


@pytest.fixture
def application(asked):
    def answer(method, path, body):
        asked.append(method)
        return Response(200, b'{"secret": 1}')

    return answer


def ask(server, method="POST", **headers):
    client = clients.Client(server)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    found, answer = client.ask(method, clients.PREDICT, b"{}", headers)
    client.close()
    return found, answer, client.response


def test_a_page_of_another_name_or_server_reads_nothing_and_makes_no_work(application, asked):
    with rest.RestServer(application).running() as server:
        port = server.server_address[1]
        rebound = {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"}
        found, answer, _ = ask(server, **rebound)
        assert found == 421 and "--allowed_hosts" in answer["error"]
        simple = {"Origin": EVIL, "Content_Type": "text/plain"}
        found, answer, response = ask(server, **simple)
        assert found == 403 and "--cors_origins" in answer["error"]
        assert response.getheader("Access-Control-Allow-Origin") is None
        found, _, _ = ask(server, "OPTIONS", Origin=EVIL, Access_Control_Request_Method="POST")
        assert found == 403 and not asked
        assert ask(server, Origin=f"http://127.0.0.1:{port}")[:2] == (200, {"secret": 1})
    with rest.RestServer(application, allowed_hosts=["evil.example"]).running() as server:
        assert ask(server, Host="evil.example")[0] == 200


def test_pages_that_the_flag_names_ask_and_read(application, asked):
    good = "https://good.example"
    with rest.RestServer(application, cors_origins=[good]).running() as server:
        preflight = {"Access_Control_Request_Method": "POST"}
        found, answer, response = ask(server, "OPTIONS", Origin=good, **preflight)
        assert (found, answer) == (200, None) and not asked
        assert response.getheader("Access-Control-Allow-Origin") == good
        assert (
            response.getheader("Access-Control-Allow-Headers") == "Content-Type, Content-Encoding"
        )
        found, answer, response = ask(server, Origin=good)
        assert (found, answer) == (200, {"secret": 1})
        assert response.getheader("Access-Control-Allow-Origin") == good
        assert response.getheader("Vary") == "Origin"
        assert ask(server, Origin=EVIL)[0] == 403


def test_no_answer_may_be_shown_in_a_frame(models):
    application = rest.Application(models["answer"], None)
    with rest.RestServer(application).running() as server:
        for request in (
            b"GET / HTTP/1.0\r\n\r\n",
            b"GET /nothing HTTP/1.0\r\n\r\n",
            b"nonsense\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        ):
            head, _, _ = clients.raw(server, request).partition(b"\r\n\r\n")
            assert b"\r\nX-Frame-Options: DENY\r\n" in head
            assert b"\r\nContent-Security-Policy: frame-ancestors 'none'\r\n" in head
            assert b"\r\nX-Content-Type-Options: nosniff\r\n" in head
    with rest.RestServer(application, max_connections=0).running() as server:
        assert b"\r\nX-Frame-Options: DENY\r\n" in clients.raw(server, b"")
