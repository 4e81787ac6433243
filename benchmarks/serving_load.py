"""Measures `etcmodel serve` under load: clients that ask about texts of very different lengths.

A text classifier with random weights is exported with its processor and served by the program, in
a process of its own. So many clients keep a connection each, and ask about one text after another;
lengths are random, as many short as long ones on a logarithmic scale. Prints a row for each number
of clients: answers, words a second, the time to an answer of all texts and of short and long ones,
and the server's memory.

  python -m benchmarks.serving_load --texts=emma.txt.gz --vocab_file=vocab.txt --seconds=60
"""

import concurrent.futures
import dataclasses
import http.client
import json
import math
import multiprocessing
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks import texts
from etcmodel.options import Options, check_files, option, run_program

_PATH = "/v1/models/model:predict"
_PATIENCE = 600  # Seconds until a request counts as lost.
_COME_LATER = (429, 503)
_COLUMNS = ("clients", "answers", "a second", "words a second", "p50 s", "p95", "p99")
_COLUMNS += ("to {} words: p50, p95", "from {}: p50, p95", "told to come later", "lost", "MB")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingLoadOptions(Options):
    """What is asked, by how many, and of how large a model."""

    texts: tuple = option((), "Text files to take the texts from, perhaps .gz.", is_needed=True)
    vocab_file: str = option("", "WordPiece vocabulary.", is_file=True, is_needed=True)
    clients: tuple[int, ...] = option((1, 8, 32), "Numbers of concurrent clients.")
    seconds: float = option(60.0, "Seconds that each number of clients asks.", lower_bound=0.0)
    shortest: int = option(50, "Length of the shortest text, in words.", lower_bound=1)
    longest: int = option(8000, "Length of the longest text, in words.", lower_bound=1)
    middle: int = option(500, "Length that divides short from long texts, in words.")
    max_long_len: int = option(4096, "Length of the model's windows, in tokens.", lower_bound=64)
    hidden_size: int = option(256, "Hidden size; a multiple of 64, the head size.", lower_bound=64)
    num_hidden_layers: int = option(4, "Number of layers.", lower_bound=1)
    max_batch_size: int = option(16, "The server's --max_batch_size.", lower_bound=1)
    batch_threads: int = option(1, "The server's --batch_threads.", lower_bound=1)
    seed: int = option(0, "Seed of the texts.")

    def __post_init__(self):
        super().__post_init__()
        check_files(self)
        if self.shortest > self.longest:
            raise ValueError(f"--shortest={self.shortest} is above --longest={self.longest}.")


def export(directory, options):
    """Writes the classifier and its processor as a SavedModel for strings."""
    import etcmodel
    from etcmodel import serving

    processor = etcmodel.EtcProcessor(options.vocab_file, max_long_len=options.max_long_len)
    config = etcmodel.EtcConfig(
        vocab_size=len(processor.tokenizer.vocab),
        hidden_size=options.hidden_size,
        num_hidden_layers=options.num_hidden_layers,
        num_attention_heads=options.hidden_size // 64,
        intermediate_size=4 * options.hidden_size,
    )
    model = etcmodel.EtcForSequenceClassification(config)
    return serving.export_text_model(model, directory, processor, attention_keys=0)


class _Server:
    """`etcmodel serve` in a process of its own."""

    def __init__(self, directory, options):
        flags = {
            "model_dir": directory,
            "port": 0,
            "max_batch_size": options.max_batch_size,
            "batch_threads": options.batch_threads,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "etcmodel", "serve", *(f"--{k}={v}" for k, v in flags.items())],
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self._process.stdout:
            if found := re.search(r"http://([\w.]+):(\d+)", line):
                self.address = found[1], int(found[2])
                return
        raise RuntimeError("The server ended before it listened; its messages are above.")

    def resident_bytes(self):
        with open(f"/proc/{self._process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def close(self):
        self._process.send_signal(signal.SIGTERM)
        self._process.stdout.read()
        self._process.wait()


def ask(address, words, num_clients, options):
    """What came of the requests of so many clients.

    Args:
        address: (host, port).
        words: list of str, of which texts are taken.
        num_clients: int.
        options: `ServingLoadOptions`.
    Returns:
        list of (number of words, seconds, status); the status is 0 where nothing came.
    """
    end = time.monotonic() + options.seconds

    def run(number):
        rng = random.Random(f"{options.seed} {num_clients} {number}")
        connection = http.client.HTTPConnection(*address, timeout=_PATIENCE)
        came = []
        while not came or time.monotonic() < end:
            lengths = math.log(options.shortest), math.log(options.longest)
            length = round(math.exp(rng.uniform(*lengths)))
            start = rng.randrange(max(1, len(words) - length))
            body = json.dumps({"instances": [{"text": " ".join(words[start : start + length])}]})
            clock = time.perf_counter()
            try:
                connection.request("POST", _PATH, body)
                response = connection.getresponse()
                answer, status = response.read(), response.status
                if status == 200 and "predictions" not in json.loads(answer):
                    status = 0
            except (OSError, http.client.HTTPException, ValueError):
                connection.close()
                status = 0
            came.append((length, time.perf_counter() - clock, status))
            if status in _COME_LATER:
                time.sleep(float(response.headers.get("Retry-After", 1)))
        connection.close()
        return came

    with concurrent.futures.ThreadPoolExecutor(num_clients) as threads:
        return [one for came in threads.map(run, range(num_clients)) for one in came]


def percentiles(seconds, *wanted):
    """Seconds that these percentages of the answers took at most, such as "0.12, 0.5"."""
    if len(seconds) < 2:
        return ", ".join(f"{x:.3g}" for x in seconds)
    found = statistics.quantiles(seconds, n=100, method="inclusive")
    return ", ".join(f"{found[percent - 1]:.3g}" for percent in wanted)


def cells(num_clients, came, seconds, resident, options):
    """The row of a number of clients, in the order of the columns: list of str."""
    answered = [(length, wait) for length, wait, status in came if status == 200]
    waits = [wait for _, wait in answered]
    short = [wait for length, wait in answered if length <= options.middle]
    long = [wait for length, wait in answered if length > options.middle]
    return [
        str(num_clients),
        str(len(answered)),
        f"{len(answered) / seconds:.2f}",
        f"{sum(length for length, _ in answered) / seconds:.0f}",
        *(percentiles(waits, percent) for percent in (50, 95, 99)),
        percentiles(short, 50, 95),
        percentiles(long, 50, 95),
        str(sum(status in _COME_LATER for *_, status in came)),
        str(sum(status != 200 and status not in _COME_LATER for *_, status in came)),
        f"{resident / 1e6:.0f}",
    ]


def _print_row(values):
    print("|", *(f"{value} |" for value in values), flush=True)


def main(options):
    """Measures what `ServingLoadOptions` ask for, and prints a table."""
    words = [word for name in options.texts for word in texts.read(name).split()]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        server = _Server(export(os.path.join(folder, "export", "1"), options), options)
        try:
            with concurrent.futures.ProcessPoolExecutor(1, context) as process:
                few = dataclasses.replace(options, seconds=0.0)
                process.submit(ask, server.address, words, 8, few).result()  # Warms up.
                _print_row([name.format(options.middle) for name in _COLUMNS])
                _print_row(["---"] * len(_COLUMNS))
                for number in options.clients:
                    start = time.perf_counter()
                    came = process.submit(ask, server.address, words, number, options).result()
                    seconds = time.perf_counter() - start
                    _print_row(cells(number, came, seconds, server.resident_bytes(), options))
        finally:
            server.close()


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    run_program(ServingLoadOptions, main)
