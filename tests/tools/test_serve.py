"""`tools.serve` as a user runs it, and the commands of docs/serving.md."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from tests import page
from tests.serving.rest import text_models
from tests.warm import python as warm

pytestmark = pytest.mark.slow

SECRET = "Rumpelstiltskin"
ADDRESS = "127.0.0.1:8501"
# As a user has it: the programs then keep TensorFlow's own messages back.
ENVIRONMENT = {name: x for name, x in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    text_models.export(str(folder / "export" / "3"), "answer", "attention")
    return folder / "export"


def program(export, *flags):
    """The running program, as of `running`."""
    return running("etcmodel.tools.serve", f"--model_dir={export}", *flags)


@contextlib.contextmanager
def running(module, *flags):
    """A running program that serves on any port, and the address that it tells.

    It is ended by Ctrl-C at the latest.
    """
    with subprocess.Popen(
        [warm.python(), "-m", module, *flags, "--port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("serving "), process.stderr.read()
            yield process, re.search(r"http://(.*)/$", line.strip())[1]
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)


def is_listening(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_sigterm_lets_a_request_that_was_begun_end_and_logs_no_text(export):
    body = json.dumps({"instances": [{"question": SECRET, "documents": [f"{SECRET} 7"]}]}).encode()
    head = (
        "POST /models/v1/models/model:predict HTTP/1.1\r\nHost: localhost\r\n"
        f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    flags = ("--log_requests", "--log_format=json", "--path_prefix=/models")
    with program(export, *flags) as (process, address):
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(head.encode())
            assert b"100 Continue" in client.recv(1 << 16)  # So the request has begun.
            process.send_signal(signal.SIGTERM)
            while is_listening(address):
                pass
            client.sendall(body)
            response = http.client.HTTPResponse(client)
            response.begin()
            assert response.status == 200 and response.getheader("Connection") == "close"
            assert json.loads(response.read())["predictions"][0]["answer"] == "7"
        out, err = process.communicate()
    assert process.returncode == 0
    assert re.fullmatch(r"stopped: 1 requests answered\n", out)
    (line,) = map(json.loads, err.splitlines())
    assert (line["level"], line["route"], line["status"]) == ("info", "predict", 200)
    assert line["message"].startswith("predict 200 ") and SECRET not in err + out


# As if the system chose another thread than the main one for each signal.
SIGNALS_FOR_ANOTHER_THREAD = """
import signal, sys, threading
from etcmodel import program_end
from etcmodel.serving.rest import RestServer
from etcmodel.tools import serve

def never_answer(method, path, body):
    print("asked", flush=True)
    threading.Event().wait()

threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
with program_end.ends_in_one_line():
    serve.serve(RestServer(never_answer), "nothing", stop_timeout=float(sys.argv[1]))
"""


@pytest.mark.parametrize(("stop_timeout", "signals", "code"), [(0, 1, 1), (1000, 2, 143)])
@pytest.mark.slow_cases(1)
def test_signals_that_come_to_another_thread_are_heard(stop_timeout, signals, code):
    command = [sys.executable, "-c", SIGNALS_FOR_ANOTHER_THREAD, str(stop_timeout)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = re.search(r"http://(.*)/$", process.stdout.readline().strip())[1]
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert process.stdout.readline() == "asked\n"
            process.send_signal(signal.SIGTERM)
            while is_listening(address):
                pass
            if signals == 2:
                process.send_signal(signal.SIGTERM)
            assert process.wait() == code


def test_limits_hosts_and_origins_are_those_of_the_flags(export):
    flags = ("--max_request_tokens=9", "--allowed_hosts=a.example,b.example")
    body = json.dumps({"instances": [{"question": "How?", "documents": ["It is 7 km."]}]})
    with program(export, *flags, "--cors_origins=https://c.example") as (_, address):

        def ask(text=body, **headers):
            client = http.client.HTTPConnection(address)
            client.request("POST", "/v1/models/model:predict", text, headers)
            response = client.getresponse()
            answer = json.loads(response.read())
            client.close()
            return response.status, answer.get("error", "")

        for host in ("a.example", "b.example:80", "localhost"):
            assert ask(Host=host, Origin="https://c.example") == (200, "")
        assert ask(Host="c.example")[0] == 421
        assert ask(Origin="https://d.example")[0] == 403
        status, message = ask(body.replace("How", "How old is it"))
        assert status == 413 and "9 tokens. Received: about 10;" in message


def test_a_folder_without_a_model_and_a_port_that_is_taken_are_told_in_a_line(export, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for folder, message in ((tmp_path, "No exported model in"), (export, "Cannot listen on")):
            done = subprocess.run(
                [warm.python(), "-m", "etcmodel.tools.serve"]
                + [f"--model_dir={folder}", f"--port={port}"],
                capture_output=True,
                text=True,
                env=ENVIRONMENT,
            )
            assert done.returncode == 1 and done.stdout == ""
            (line,) = done.stderr.splitlines()
            assert line.startswith(f"error: {message}")


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_of_the_documentation_give_the_answers_that_it_shows(export):
    text = page.read("serving.md#over-http")
    examples = re.findall(r"```sh\n(curl .*?)```\n\n```json\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 4
    with program(export) as (_, address):
        for command, answer in examples:
            command = command.replace(ADDRESS, address)
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            assert json.loads(done.stdout) == json.loads(answer), command
