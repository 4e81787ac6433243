"""A server below another path, and what it tells Prometheus."""

import http.client
import re

import pytest

from etcmodel.serving import rest
from etcmodel.tools.serve import ServeOptions
from tests.serving.rest import clients

PREFIX = "/long/texts"
LINE = re.compile(r'# (?:HELP|TYPE) \w+ .+|\w+\{\w+="[^"]*"(?:,\w+="[^"]*")*\} [\d.]+')


def text_of(server, path):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=600)
    connection.request("GET", path)
    response = connection.getresponse()
    try:
        return response.status, response.getheader("Content-Type"), response.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server(models):
    model, metrics = models["answer"], rest.Metrics()
    application = rest.Application(model, rest.Batcher(model), path_prefix=PREFIX, metrics=metrics)
    with rest.RestServer(application, metrics=metrics).running() as server:
        yield server


def test_addresses_are_below_the_prefix_whether_or_not_the_proxy_removes_it(server):
    client = clients.Client(server)
    for path in (PREFIX, ""):
        assert client.ask("GET", f"{path}/healthz") == (200, {"status": "ok"})
        assert client.ask("GET", f"{path}/v1/models/model")[0] == 200
    assert client.ask("GET", f"{PREFIX}ual/healthz")[0] == 404
    client.close()
    for path in (PREFIX, f"{PREFIX}/", "/"):
        status, kind, page = text_of(server, path)
        assert (status, kind) == (200, "text/html; charset=utf-8")
        assert f'"{PREFIX}/v1/models/model:predict"' in page


def test_prometheus_reads_how_many_requests_had_which_answer_and_how_long_they_took(server):
    client = clients.Client(server)
    request = {"inputs": {"question": ["how?"], "documents": [["a", "b"]]}}
    before = text_of(server, "/metrics")[2].count('route="predict",status')
    assert [client.predict(x)[0] for x in (request, request, {})] == [200, 200, 400]
    # An answer is counted once it has been sent, before its connection's next request is read.
    assert client.ask("GET", "/healthz")[0] == 200
    client.close()
    status, kind, text = text_of(server, f"{PREFIX}/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert all(LINE.fullmatch(line) for line in text.splitlines()) and not before
    assert 'etcmodel_requests_total{route="predict",status="200"} 2\n' in text
    assert 'etcmodel_requests_total{route="predict",status="400"} 1\n' in text
    found = re.findall(r'etcmodel_request_seconds_bucket\{route="predict",le="(.+)"\} (\d+)', text)
    numbers = [int(number) for _, number in found]
    assert found[-1] == ("+Inf", "3") and numbers == sorted(numbers)
    assert 'etcmodel_request_seconds_count{route="predict"} 3\n' in text


def test_times_are_counted_up_to_their_limits():
    metrics = rest.Metrics()
    for seconds in (0.01, 0.011, 31.0):
        metrics.add("predict", 200, seconds)
    text = metrics.text()
    for limit, number in (("0.01", 1), ("0.025", 2), ("30.0", 2), ("+Inf", 3)):
        assert f'_bucket{{route="predict",le="{limit}"}} {number}\n' in text
    assert 'etcmodel_request_seconds_sum{route="predict"} 31.021000\n' in text


@pytest.mark.parametrize("prefix", ["models", "/models/", "/", "/a b", "/a//b", "/ä"])
def test_a_prefix_is_a_path(prefix):
    with pytest.raises(ValueError, match="--path_prefix must begin with '/' and not end with it"):
        ServeOptions(model_dir="export", path_prefix=prefix)
