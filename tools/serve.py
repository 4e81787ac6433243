"""Serves an exported model over HTTP, to try it and for small loads.

    python -m etcmodel.tools.serve --model_dir=export
    curl http://127.0.0.1:8501/v1/models/model:predict \\
        -d '{"instances": [{"question": "How long?", "documents": ["It is 88 km long."]}]}'

Requests and answers have TensorFlow Serving's JSON form. A page to ask the model in a browser is at
http://127.0.0.1:8501/. Only this machine can ask, unless --host says otherwise: there is no
password. Ctrl-C or SIGTERM ends the program when the requests that were begun are answered.
"""

import dataclasses
import re
import sys
import threading
import time

from etcmodel import bounded_json, program_end
from etcmodel.options import Options, option, run_program

_NAME = re.compile(r"[\w.-]+")
_POLL_SECONDS = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """What is served, where, and within which limits."""

    model_dir: str = option(
        "",
        "Directory of a SavedModel, or of several named by numbers: the highest is served.",
        is_needed=True,
    )
    model_name: str = option("model", "The model's name in addresses: /v1/models/NAME.")
    host: str = option(
        "127.0.0.1",
        "Address to listen on; 0.0.0.0 lets every machine of the network ask by its address; by "
        "name with --allowed_hosts.",
    )
    port: int = option(
        8501, "Port to listen on; 0: any free one, which is told.", lower_bound=0, upper_bound=65535
    )
    max_batch_size: int = option(
        16,
        "Requests that wait at the same time are joined up to so many examples; larger ones are "
        "run in parts where each example's answer is its own.",
        lower_bound=1,
    )
    batch_wait_ms: float = option(
        0.0, "Milliseconds that a request waits for others when the model is idle.", lower_bound=0
    )
    batch_threads: int = option(1, "Batches that run at the same time.", lower_bound=1)
    max_rows: int = option(64, "Most examples of one request.", lower_bound=1)
    max_request_tokens: int = option(
        1 << 18,
        "Most tokens of one request, those to generate included; of texts they are counted about, "
        "before the model reads them.",
        lower_bound=1,
    )
    max_request_windows: int = option(
        64,
        "Most inputs of the model for one request: one an example, or one for each window of a "
        "long text.",
        lower_bound=1,
    )
    max_request_bytes: int = option(
        4 << 20,
        "Most bytes of one request, as sent and unpacked.",
        lower_bound=1,
        upper_bound=bounded_json.MAX_BYTES,
    )
    max_connections: int = option(64, "Most clients at the same time.", lower_bound=1)
    client_timeout: float = option(
        60.0,
        "Seconds that a client has to send a whole request, to read a whole answer or to ask "
        "again.",
        lower_bound=0.001,
    )
    stop_timeout: float = option(
        30.0, "Seconds that requests have to be answered when the program is to end.", lower_bound=0
    )
    allowed_hosts: tuple = option(
        (),
        "Names by which the server may be asked, such as my-machine.lan, beside localhost, --host "
        "and literal addresses; * for all.",
    )
    cors_origins: tuple = option(
        (),
        "Origins whose pages may ask from a browser, such as https://example.com; * for all. By "
        "default only the server's own page may.",
    )
    log_requests: bool = option(
        False, "Log the kind, the status and the time of each request; texts are never logged."
    )

    def __post_init__(self):
        super().__post_init__()
        if not _NAME.fullmatch(self.model_name):
            raise ValueError(
                "--model_name must be of letters, digits, '_', '-' and '.'. "
                f"Received: {self.model_name!r}"
            )


def run(options):
    """Serves until a signal comes.

    Raises:
        ValueError, OSError: in a line, if there is no model or the address cannot be used.
    """
    from etcmodel.serving import rest  # With TensorFlow, which takes seconds to import.

    model = rest.ServedModel(options.model_dir, options.model_name)
    batcher = rest.Batcher(
        model,
        max_batch_size=options.max_batch_size,
        wait_seconds=options.batch_wait_ms / 1000,
        num_threads=options.batch_threads,
    )
    server = rest.RestServer(
        rest.Application(
            model,
            batcher,
            max_rows=options.max_rows,
            max_tokens=options.max_request_tokens,
            max_windows=options.max_request_windows,
        ),
        host=options.host,
        port=options.port,
        max_body_bytes=options.max_request_bytes,
        max_connections=options.max_connections,
        timeout_seconds=options.client_timeout,
        log_requests=options.log_requests,
        allowed_hosts=options.allowed_hosts,
        cors_origins=options.cors_origins,
    )
    serve(server, f"{model.directory} as {model.name!r}", options.stop_timeout)


def serve(server, what, stop_timeout):
    """Serves in the background, and stops at the first signal; a second one ends at once."""
    # The handler takes no lock, not even that of a `threading.Event`: the main thread, which it
    # interrupts, may hold it.
    received = []

    def stop(signum, frame):
        del frame
        if received:
            raise program_end.Interrupted("requests were not answered", signum=signum)
        received.append(signum)

    with program_end.on_signals(stop):
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        print(f"serving {what} at {server.url}", flush=True)
        while not received:
            time.sleep(_POLL_SECONDS)  # A signal given to another thread does not wake this one.
        num_lost = server.stop(stop_timeout)
    lost = f", {num_lost} given up" if num_lost else ""
    print(f"stopped: {server.num_answers} requests answered{lost}", flush=True)
    sys.exit(1 if num_lost else 0)


if __name__ == "__main__":
    run_program(ServeOptions, run, section="serve")
