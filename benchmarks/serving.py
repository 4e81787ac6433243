"""Measures the HTTP server against the model alone, and whether its memory stays flat.

Clients in a separate process each keep a connection and send one request after another; before and
after, the bare signature is called in a loop with the same request, one example at a time. On a
busy machine, use the ratio.

  python -m benchmarks.serving --requests=10000
  python -m benchmarks.serving --model_dir=export --request=request.json
"""

import concurrent.futures
import dataclasses
import http.client
import json
import multiprocessing
import os
import statistics
import tempfile
import time

from etcmodel.options import Options, check_files, option, run_program

_PATH = "/v1/models/model:predict"
_ROUNDS_OF_MEMORY = 4
_TINY = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "local_radius": 16,
    "relative_pos_max_distance": 4,
    "relative_vocab_size": 16,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingOptions(Options):
    """What is asked, how often and by how many."""

    model_dir: str = option("", "SavedModel to serve. '': build and export a tiny ETC.")
    request: str = option(
        "", "JSON file with a request. '': a request for the tiny model.", is_file=True
    )
    requests: int = option(10_000, "Number of requests over HTTP.", lower_bound=_ROUNDS_OF_MEMORY)
    clients: int = option(16, "Number of concurrent clients.", lower_bound=1)
    calls: int = option(
        500, "Number of calls of the bare signature, before and after.", lower_bound=1
    )
    length: int = option(
        64, "Length of the long input of the tiny model's examples, in tokens.", lower_bound=8
    )
    max_batch_size: int = option(16, "The server's --max_batch_size.", lower_bound=1)
    batch_wait_ms: float = option(
        0.0, "The server's --batch_wait_ms, in milliseconds.", lower_bound=0
    )
    batch_threads: int = option(1, "The server's --batch_threads.", lower_bound=1)

    def __post_init__(self):
        super().__post_init__()
        check_files(self)
        if bool(self.model_dir) != bool(self.request):
            raise ValueError("Give both of --model_dir and --request, or neither.")


def main(options):
    """Measures what `ServingOptions` ask for, and prints it."""
    with tempfile.TemporaryDirectory() as folder:
        directory = options.model_dir or _export_tiny(os.path.join(folder, "export"))
        if options.request:
            with open(options.request, "rb") as file:
                body = file.read()
        else:
            body = json.dumps({"instances": [_tiny_example(options.length)]}).encode()
            body = body.replace(b'"instances"', b'"signature_name": "dense_features", "instances"')
        _measure(directory, body, options)


def _measure(directory, body, options):
    from etcmodel.serving import rest
    from etcmodel.serving.rest import codec

    model = rest.ServedModel(directory)
    request = codec.decode(codec.load(body), model.signatures)
    bare = _BareLoop(directory, request)
    batcher = rest.Batcher(
        model,
        max_batch_size=options.max_batch_size,
        wait_seconds=options.batch_wait_ms / 1000,
        num_threads=options.batch_threads,
    )
    server = rest.RestServer(rest.Application(model, batcher))
    context = multiprocessing.get_context("spawn")
    loops, rates, memory, num_lost = [bare(options.calls)], [], [], 0
    with server.running(), concurrent.futures.ProcessPoolExecutor(1, context) as process:
        share = options.requests // _ROUNDS_OF_MEMORY
        address = server.server_address[:2]
        process.submit(_ask_many, address, body, options.clients, share // 4).result()  # Warms up.
        memory.append(_resident_bytes())
        for _ in range(_ROUNDS_OF_MEMORY):
            seconds, lost = process.submit(
                _ask_many, address, body, options.clients, share
            ).result()
            rates.append(share / seconds)
            num_lost += lost
            memory.append(_resident_bytes())
            loops.append(bare(options.calls))
    batcher.close()
    _print(rates, loops, memory, num_lost, share * _ROUNDS_OF_MEMORY)


def _print(rates, loops, memory, num_lost, num_requests):
    ratios = [
        rate / statistics.mean(around)
        for rate, around in zip(rates, zip(loops, loops[1:], strict=False), strict=True)
    ]
    print(f"requests: {num_requests}, lost: {num_lost}")
    print("requests a second over HTTP:", ", ".join(f"{x:.0f}" for x in rates))
    print("calls a second of the bare signature:", ", ".join(f"{x:.0f}" for x in loops))
    print(f"ratio: {', '.join(f'{x:.2f}' for x in ratios)}; median {statistics.median(ratios):.2f}")
    print("resident MB after each round:", ", ".join(f"{x / 1e6:.1f}" for x in memory))


class _BareLoop:
    """Calls a second of the signature as TensorFlow loads it."""

    def __init__(self, directory, request):
        import tensorflow as tf

        from etcmodel.serving import saved_model

        directory = saved_model.newest_version(directory)
        self._function = tf.saved_model.load(directory).signatures[request.signature.name]
        self._inputs = request.inputs
        self(10)  # The first calls optimize the graph.

    def __call__(self, num_calls):
        import tensorflow as tf

        specs = self._function.structured_input_signature[1]
        start = time.perf_counter()
        for _ in range(num_calls):
            outputs = self._function(
                **{name: tf.constant(x, specs[name].dtype) for name, x in self._inputs.items()}
            )
            for value in outputs.values():
                value.numpy()
        return num_calls / (time.perf_counter() - start)


def _ask_many(address, body, num_clients, num_requests):
    """Seconds for so many requests, and how many of them got no answer or another one."""

    def ask(number):
        connection = http.client.HTTPConnection(*address, timeout=600)
        lost, first = 0, None
        for _ in range(number, num_requests, num_clients):
            try:
                connection.request("POST", _PATH, body)
                response = connection.getresponse()
                answer = response.read()
                if response.status != 200:
                    lost += 1
                    continue
                first = first or json.loads(answer).keys()
                lost += json.loads(answer).keys() != first
            except (OSError, http.client.HTTPException, ValueError):
                connection.close()
                lost += 1
        connection.close()
        return lost

    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(num_clients) as threads:
        lost = sum(threads.map(ask, range(num_clients)))
    return time.perf_counter() - start, lost


def _resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _tiny_example(length):
    from etcmodel.tools.benchmarks import exported_classifier

    return exported_classifier.made_up_example(length, length // 8, _TINY["vocab_size"])


def _export_tiny(directory):
    import tensorflow as tf

    from etcmodel.models import modeling
    from etcmodel.tools.benchmarks import exported_classifier

    model = exported_classifier.Classifier(modeling.EtcConfig(**_TINY))
    model({name: tf.constant([x]) for name, x in _tiny_example(16).items()})
    return exported_classifier.export(model, directory)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    run_program(ServingOptions, main)
