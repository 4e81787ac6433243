"""Serves an exported model over HTTP, for trying it out and for small loads.

    python -m etcmodel.tools.serve --model_dir=export
    python -m etcmodel.tools.serve --model_dir=all-MiniLM-L6-v2 --embed
    curl http://127.0.0.1:8501/v1/models/model:predict \\
        -d '{"instances": [{"question": "How long?", "documents": ["It is 88 km long."]}]}'

Requests and responses use TensorFlow Serving's JSON format. The export of a fine-tuning task also
answers raw examples of its data set, as the signature `examples`. A page for using the model in a
browser is at http://127.0.0.1:8501/. The server accepts requests from this machine only, unless
--host says otherwise; there is no password. On Ctrl-C or SIGTERM, the program finishes pending
requests and stops.
"""

import dataclasses
import datetime
import importlib
import importlib.util
import itertools
import json
import logging
import os
import re
import sys
import threading
import time

from absl import logging as absl_logging

from etcmodel import bounded_json, extras, file_systems, program_end
from etcmodel.options import Options, option, run_program

_NAME = re.compile(r"[\w.-]+")
_PREFIX = re.compile(r"(/[\w.-]+)*", re.ASCII)
_POLL_SECONDS = 0.2
_NUM_SAMPLES = 20
_TASKS = "etcmodel.tasks"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """The model, the address and the limits of the server."""

    model_dir: str = option(
        "",
        "Directory of a SavedModel, or of several in folders named by version numbers; the highest "
        "is served. With --embed, the folder of an encoder, or hf: and its name on the Hugging "
        "Face Hub.",
        is_needed=True,
    )
    embed: bool = option(
        False,
        "Serve vectors of texts, as those of etcmodel embed, by the encoder in --model_dir; also "
        "at /v1/embeddings, in OpenAI's format.",
    )
    model_name: str = option("model", "Name of the model in URLs: /v1/models/NAME.")
    host: str = option(
        "127.0.0.1",
        "Address to listen on. 0.0.0.0 accepts requests from every machine in the network, "
        "addressed by IP address; addressed by host name only with --allowed_hosts.",
    )
    port: int = option(
        8501,
        "Port to listen on. 0: any free port, which is printed.",
        lower_bound=0,
        upper_bound=65535,
    )
    examples_file: str | None = option(
        None,
        "Raw file of the data set of a task's export; its first 20 examples are offered on the "
        "page. None: no examples.",
    )
    max_batch_size: int = option(
        16,
        "Maximum number of examples per batch. Waiting requests are combined into batches; larger "
        "requests are split where each example is answered independently.",
        lower_bound=1,
    )
    batch_wait_ms: float = option(
        0.0,
        "Milliseconds that a request waits for others to share a batch with when the model is "
        "idle.",
        lower_bound=0,
    )
    batch_threads: int = option(1, "Number of batches that run concurrently.", lower_bound=1)
    max_rows: int = option(64, "Maximum number of examples per request.", lower_bound=1)
    max_request_tokens: int = option(
        1 << 18,
        "Maximum number of tokens per request, including tokens to generate. For texts, an "
        "estimate made before tokenization.",
        lower_bound=1,
    )
    max_request_windows: int = option(
        64,
        "Maximum number of model inputs per request: one per example, or one per window of a long "
        "text.",
        lower_bound=1,
    )
    max_request_bytes: int = option(
        4 << 20,
        "Maximum size of a request in bytes, both as sent and decompressed.",
        lower_bound=1,
        upper_bound=bounded_json.MAX_BYTES,
    )
    max_connections: int = option(64, "Maximum number of concurrent connections.", lower_bound=1)
    client_timeout: float = option(
        60.0,
        "Seconds that a client has to send a complete request, to read a complete response, or to "
        "send the next request.",
        lower_bound=0.001,
    )
    stop_timeout: float = option(
        30.0, "Seconds to finish pending requests when the program is asked to stop.", lower_bound=0
    )
    allowed_hosts: tuple = option(
        (),
        "Host names that requests may use for this server, such as my-machine.lan, in addition to "
        "localhost, --host and IP addresses; * for all.",
    )
    cors_origins: tuple = option(
        (),
        "Origins whose pages may send requests from a browser (CORS), such as https://example.com; "
        "* for all. By default, only the server's own page.",
    )
    path_prefix: str = option(
        "",
        "Path below which a proxy has this server's addresses, such as /models; it may remove the "
        "path from requests or not. '': none.",
    )
    log_requests: bool = option(
        False, "Log the kind, status and duration of each request; texts are never logged."
    )
    log_format: str = option(
        "text",
        "Form of the log: text, or json: an object per line, with `time`, `level` and `message`, "
        "and `route`, `status` and `ms` of a request.",
        choices=("text", "json"),
    )

    def __post_init__(self):
        super().__post_init__()
        if not _NAME.fullmatch(self.model_name):
            raise ValueError(
                "--model_name must be of letters, digits, '_', '-' and '.'. "
                f"Received: {self.model_name!r}"
            )
        if self.embed and self.examples_file:
            raise ValueError("--examples_file is of exports, not of --embed. Leave it out.")
        if not _PREFIX.fullmatch(self.path_prefix):
            raise ValueError(
                "--path_prefix must begin with '/' and not end with it, and be of letters, digits, "
                f"'_', '-', '.' and '/', as /models. Received: {self.path_prefix!r}"
            )


def run(options):
    """Serves until a signal arrives.

    Raises:
        ValueError, OSError: in one line, if there is no model or the address cannot be used.
    """
    from etcmodel.serving import rest  # Imports TensorFlow, which takes seconds.

    if options.log_format == "json":
        absl_logging.get_absl_handler().setFormatter(_JsonLines())
    model = served_model(options)
    examples = None if options.embed else raw_examples(model, options.examples_file)
    metrics = rest.Metrics()
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
            examples=examples,
            path_prefix=options.path_prefix,
            metrics=metrics,
        ),
        host=options.host,
        port=options.port,
        max_body_bytes=options.max_request_bytes,
        max_connections=options.max_connections,
        timeout_seconds=options.client_timeout,
        log_requests=options.log_requests,
        allowed_hosts=options.allowed_hosts,
        cors_origins=options.cors_origins,
        metrics=metrics,
    )
    serve(server, f"{model.directory} as {model.name!r}", options.stop_timeout)


def served_model(options):
    """The `rest.ServedModel`, or the `rest.ServedEncoder`, of `ServeOptions`.

    Raises:
        ValueError: in one line, if there is none.
    """
    from etcmodel.serving import rest

    if not options.embed:
        if os.path.exists(os.path.join(options.model_dir, "modules.json")):
            raise ValueError(
                f"--model_dir: {options.model_dir!r} is no export, but an encoder of vectors: add "
                "--embed."
            )
        return rest.ServedModel(options.model_dir, options.model_name)
    from etcmodel.checkpoints import text_encoder

    encoder = text_encoder.TextEncoder(options.model_dir)
    encoder.trace()  # Else one of the first requests would wait for it.
    return rest.ServedEncoder(encoder, options.model_name)


class _JsonLines(logging.Formatter):
    """Writes each message as a JSON object."""

    def format(self, record):
        time_of = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        message = {
            "time": time_of.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        return json.dumps(message, ensure_ascii=False)


def raw_examples(model, examples_file=None):
    """How the server takes raw examples for the export of a fine-tuning task.

    Args:
        model: `rest.ServedModel`.
        examples_file: str. A raw file with samples for the page.
    Returns:
        `rest.RawExamples`; None for other exports, and for a task that cannot be served so: the
        log says why.
    Raises:
        ValueError: naming the flag or the file, if it has no samples for this export.
    """
    from etcmodel.serving import rest

    predictor, reason = None, "it is of no fine-tuning task of this package"
    if model.texts:
        reason = "it takes texts, and has its own examples: `export_text_model(…, examples=…)`"
    elif task := _task_of(model.directory):
        predictor, reason = _predictor(task, model)
        if reason:
            logging.warning("This %s export takes no raw examples: %s.", task, reason)
    if predictor is None:
        if examples_file:
            raise ValueError(
                f"--examples_file: {model.directory!r} takes no raw examples: {reason}. Leave the "
                "flag out."
            )
        return None
    samples = predictor.read_raw_examples(examples_file) if examples_file else ()
    return rest.RawExamples(
        predictor.prepare, predictor.page_fields, list(itertools.islice(samples, _NUM_SAMPLES))
    )


def _task_of(directory):
    """The name of the task that an export is of, as its assets say; None if it is of no task."""
    pattern = os.path.join(directory, "assets", "*_config.json")
    files = map(os.path.basename, file_systems.gfile().glob(pattern))
    names = (file.removesuffix("_config.json") for file in files)
    known = (x for x in names if x.isidentifier() and importlib.util.find_spec(f"{_TASKS}.{x}"))
    return next(known, None)


def _predictor(task, model):
    """(predictor, ""), or (None, why there is none)."""
    from etcmodel import serving

    name = f"{_TASKS}.{task}.predict"
    if not importlib.util.find_spec(name):  # Its programs may be in modules of other names.
        return None, f"there is no module {name}"
    try:
        module = importlib.import_module(name)
        predictor_class = getattr(module, module.__all__[0])
        if predictor_class.runner_class is not serving.SavedModelRunner:
            return None, "it generates, with signatures of its own"
        options = predictor_class.served_options
        return predictor_class(model.directory, loaded=model.loaded, **options), ""
    except (ValueError, extras.MissingExtraError) as error:
        return None, str(error).rstrip(".")


def serve(server, what, stop_timeout):
    """Serves in the background and stops at the first signal; a second signal ends it at once."""
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
            time.sleep(_POLL_SECONDS)  # A signal to another thread does not wake this one.
        num_lost = server.stop(stop_timeout)
    lost = f", {num_lost} given up" if num_lost else ""
    print(f"stopped: {server.num_answers} requests answered{lost}", flush=True)
    sys.exit(1 if num_lost else 0)


if __name__ == "__main__":
    run_program(ServeOptions, run, section="serve")
