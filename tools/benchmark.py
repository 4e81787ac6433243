"""Measures the encoder's speed and memory by input length on this machine, beside its peers.

Prints a table and writes results.json and results.png. For each length, the models take turns in
one run, so that their ratios are reliable on a noisy machine; times are medians.

  python -m etcmodel.tools.benchmark --output_dir=/tmp/benchmark --quick
"""

import dataclasses
import os
import statistics

from etcmodel import atomic_files
from etcmodel.options import check_files, option, run_program
from etcmodel.pictures import charts, style

from .benchmarks import turns
from .benchmarks.costs import forward_flops
from .benchmarks.turns import ClockOptions, keras_hub_worker, tensorflow_worker, torch_worker
from .benchmarks.worker import fastest_products, matmul_seconds_to_speed, num_global_tokens

_MODELS = ("etc", "etc_bfloat16", "etc_checkpointed", "bert")
_TORCH_MODELS = ("longformer", "bigbird", "bert", "modernbert")
_KERAS_HUB_MODELS = ("bert", "fnet", "roformer")
_FULL = ("bert", "roformer")  # Attention between all tokens, in all layers.
_RADIUS = 84  # Of ETC's base model.
_COLUMNS = ("long", "global", "phase", "model", "seconds", "spread", "tokens/s", "share", "peak GB")
_TOLD_LENGTH = 4096
_MEASURES = (
    ("seconds (lower is better)", "seconds", 1),
    ("peak memory, GB (lower is better)", "peak_bytes", 1e-9),
)
_PHASES = {"forward": "Reading", "train": "Training step"}
_NAMES = {
    "etc": "ETC",
    "etc bfloat16": "ETC in bfloat16",
    "etc checkpointed": "ETC checkpointed",
    "bert": "BERT",
    "hf bert": "HF BERT",
    "hf longformer": "HF Longformer",
    "hf bigbird": "HF BigBird",
    "hf modernbert": "HF ModernBERT",
    "keras-hub bert": "keras-hub BERT",
    "keras-hub fnet": "keras-hub FNet",
    "keras-hub roformer": "keras-hub RoFormer V2",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkOptions(ClockOptions):
    """The models, the lengths and the phases to measure."""

    output_dir: str = option("benchmark", "Directory for results.json and results.png.")
    lengths: tuple[int, ...] = option(
        (512, 1024, 2048, 4096, 8192, 16384), "Lengths of the long input, in tokens."
    )
    global_length: int | None = option(
        None, "Length of the global input, in tokens. None: a 16th of the long length, at most 512."
    )
    rounds: int = option(3, "Number of measured runs of each model.", lower_bound=1)
    bert_max_length: int = option(
        4096, "Longest input, in tokens, for models with full attention in all layers."
    )
    bert_train_max_length: int = option(
        2048, "Longest input, in tokens, for a training step of BERT."
    )
    train_max_length: int = option(16384, "Longest input, in tokens, for a training step.")
    num_hidden_layers: int = option(12, "Number of layers of all models.", lower_bound=1)
    hidden_size: int = option(
        768, "Hidden size of all models; a multiple of 64, the head size.", lower_bound=64
    )
    dropout: float = option(0.0, "Dropout rate in training steps of ETC and BERT.")
    torch_python: str | None = option(
        None,
        "Python interpreter with torch and transformers, to measure Hugging Face's models too. "
        "None: skip them.",
        is_file=True,
    )
    torch_models: tuple = option(
        _TORCH_MODELS, "Hugging Face models to measure.", choices=_TORCH_MODELS
    )
    keras_hub_python: str | None = option(
        None,
        "Python interpreter with keras-hub and TensorFlow, to measure keras-hub's models too. "
        "None: skip them.",
        is_file=True,
    )
    keras_hub_models: tuple = option(
        _KERAS_HUB_MODELS, "keras-hub models to measure.", choices=_KERAS_HUB_MODELS
    )
    peer_train_max_length: int = option(
        0, "Longest input, in tokens, for a training step of the Hugging Face and keras-hub models."
    )
    quick: bool = option(
        False,
        "Quick run: ETC and BERT only, in float32, at lengths 512 and 1024, one round, training at "
        "512. Takes under two minutes on two cores.",
    )
    models: tuple = option(_MODELS, "TensorFlow models to measure.", choices=_MODELS)
    theme: str = option("light", "Background of the picture.", choices=tuple(style.THEMES))

    def effective(self):
        """The options, with the values that `quick` implies."""
        if not self.quick:
            return self
        return dataclasses.replace(
            self, lengths=(512, 1024), models=("etc", "bert"), rounds=1, train_max_length=512
        )

    def sizes(self):
        """Sizes and dropout of all models, for `worker`."""
        return {
            "dropout": self.dropout,
            "layers": self.num_hidden_layers,
            "hidden": self.hidden_size,
        }


def make_workers(length, global_length, options):
    """The models to compare at a length."""
    models, model = options.models, options.sizes()
    trains = length <= options.train_max_length
    both = ("forward", "train") if trains else ("forward",)
    sizes = {"length": length, "global_length": global_length, **model}
    workers = []
    if "etc" in models:
        workers.append(tensorflow_worker("etc", "etc", both, checkpointing=False, **sizes))
    if "etc_bfloat16" in models:
        settings = {**sizes, "checkpointing": False, "bfloat16": True}
        workers.append(tensorflow_worker("etc bfloat16", "etc", ("forward",), **settings))
    if "etc_checkpointed" in models and trains:
        settings = {**sizes, "checkpointing": True}
        workers.append(tensorflow_worker("etc checkpointed", "etc", ("train",), **settings))
    if "bert" in models and length <= options.bert_max_length:
        settings = {"length": length, **model}
        phases = both if length <= options.bert_train_max_length else ("forward",)
        workers.append(tensorflow_worker("bert", "bert", phases, **settings))
    return workers + make_peers(length, options)


def make_peers(length, options):
    """The requested models of other libraries."""
    trains = length <= options.peer_train_max_length
    phases = ("forward", "train") if trains else ("forward",)
    settings = {
        "length": length,
        "layers": options.num_hidden_layers,
        "hidden": options.hidden_size,
    }
    libraries = (
        ("hf", torch_worker, options.torch_python, options.torch_models),
        ("keras-hub", keras_hub_worker, options.keras_hub_python, options.keras_hub_models),
    )
    return [
        make(f"{library} {kind}", python, kind, phases, **settings)
        for library, make, python, kinds in libraries
        for kind in kinds
        if python and (kind not in _FULL or length <= options.bert_max_length)
    ]


def measure_length(length, matmul, options):
    """Results of all models at one length: list of dicts. Crashed models are left out."""
    global_length = options.global_length or num_global_tokens(length)
    workers = make_workers(length, global_length, options)
    for worker in (matmul, *workers):
        worker.clock = options.clock
    figures = []
    for phase in ("forward", "train"):
        able = [worker for worker in workers if phase in worker.phases]
        speeds = {dtype: [] for dtype in matmul.phases}

        def measure_speeds(speeds=speeds):
            for dtype, values in speeds.items():
                speed, _ = matmul.measure(dtype)
                values.append(matmul_seconds_to_speed(speed))

        able, times, peaks = turns.take_turns(
            able, phase, options.rounds, measure_speeds, f"{length} "
        )
        figures += [
            _figure(
                {
                    "length": length,
                    "global_length": global_length,
                    "phase": phase,
                    "model": worker.name,
                },
                times[worker.name],
                peaks[worker.name],
                speeds,
                options,
            )
            for worker in able
        ]
        for worker in able:
            if worker.phases[-1] == phase:  # Memory for the others.
                worker.close()
    return figures


def _figure(what, times, peak, speeds, options):
    """The results of a model: settings and measurements."""
    seconds = statistics.median(times)
    figure = {
        **what,
        "seconds": seconds,
        "seconds_all": times,
        "tokens_per_second": what["length"] / seconds,
        "peak_bytes": peak,
        "matmul_flops_per_second": {k: statistics.median(v) for k, v in speeds.items()},
    }
    if what["model"].startswith("etc"):
        work = forward_flops(
            what["length"],
            what["global_length"],
            radius=_RADIUS,
            layers=options.num_hidden_layers,
            hidden=options.hidden_size,
            intermediate=4 * options.hidden_size,
        )
        work *= 3 if what["phase"] == "train" else 1
        dtype = "bfloat16" if "bfloat16" in what["model"] else "float32"
        figure["flops"] = work
        figure["share"] = (
            work / seconds / fastest_products(figure["matmul_flops_per_second"], dtype)
        )
    return figure


def table(figures):
    """A Markdown table, one line a figure. `share` is of `fastest_products`."""
    rows = [_COLUMNS, ["---"] * len(_COLUMNS), *map(_row, figures)]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def _row(figure):
    seconds = figure["seconds_all"]
    share = figure.get("share")
    return [
        figure["length"],
        figure["global_length"],
        figure["phase"],
        figure["model"],
        f"{figure['seconds']:.3g}",
        f"{min(seconds):.3g}–{max(seconds):.3g}",
        f"{figure['tokens_per_second']:.0f}",
        "" if share is None else f"{share:.2f}",
        f"{figure['peak_bytes'] / 1e9:.1f}",
    ]


def by_length(figures, phase):
    """A Markdown table of seconds and peak memory, one line a length, one column a model."""
    of_phase = [figure for figure in figures if figure["phase"] == phase]
    models = list(dict.fromkeys(figure["model"] for figure in of_phase))
    rows = [["long + global", *(_NAMES.get(model, model) for model in models)]]
    rows.append(["---"] * len(rows[0]))
    for sizes in dict.fromkeys((x["length"], x["global_length"]) for x in of_phase):
        cells = dict.fromkeys(models, "")
        for figure in of_phase:
            if (figure["length"], figure["global_length"]) == sizes:
                gigabytes = figure["peak_bytes"] / 1e9
                cells[figure["model"]] = f"{figure['seconds']:.3g} s, {gigabytes:.1f} GB"
        rows.append([" + ".join(f"{size:,}" for size in sizes), *cells.values()])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def write(figures, directory, theme=style.LIGHT):
    """Writes results.json and results.png; each appears only when it is complete."""
    atomic_files.write_json(os.path.join(directory, "results.json"), figures)
    with atomic_files.new_file(os.path.join(directory, "results.png")) as picture:
        charts.save_png(panels(figures), picture, title=headline(figures), theme=theme)


def panels(figures):
    """Time and memory against length, of reading and of training: list of `charts.Chart`."""
    models = list(dict.fromkeys(figure["model"] for figure in figures))
    made = []
    for title, measure, scale in _MEASURES:
        for phase, what in _PHASES.items():
            points = {model: [] for model in models}
            for figure in figures:
                if figure["phase"] == phase:
                    points[figure["model"]].append((figure["length"], figure[measure] * scale))
            lines = [
                charts.Line(
                    _NAMES.get(model, model), tuple(points[model]), color=models.index(model)
                )
                for model in models
                if points[model]
            ]
            if lines:
                chart = charts.Chart(f"{what}: {title}", "tokens", tuple(lines), is_log=True)
                made.append(chart)
    return made


def headline(figures):
    """How much faster ETC reads, with the seconds: str, lines,, '' where it was measured alone.

    It is of 4,096 tokens, or else of the longest input that another model read, too.
    """
    seconds = {}  # Of each model, by length.
    for figure in figures:
        if figure["phase"] == "forward":
            seconds.setdefault(figure["length"], {})[figure["model"]] = figure["seconds"]
    shared = [length for length, of in seconds.items() if "etc" in of and _others(of)]
    if not shared:
        return ""
    length = _TOLD_LENGTH if _TOLD_LENGTH in shared else max(shared)
    ours, others = seconds[length]["etc"], _others(seconds[length])
    names = sorted(others, key=others.get, reverse=True)
    ratios = [
        f"{others[name] / ours:.1f}× as fast as {_NAMES.get(name, name)}".replace(
            "HF ", "Hugging Face's "
        )
        for name in names
    ]
    lines = [", ".join(ratios[i : i + 2]) for i in range(0, len(ratios), 2)]
    return ",\n".join([f"{length:,} tokens: ETC reads them in {ours:.2g} s", *lines])


def _others(seconds):
    return {name: value for name, value in seconds.items() if not name.startswith("etc")}


def main(options):
    """Runs the benchmark of `BenchmarkOptions`, prints a table and writes the files."""
    check_files(options)
    options = options.effective()
    phases = ("float32", "numpy", *["bfloat16"] * ("etc_bfloat16" in options.models))
    matmul = tensorflow_worker("matmul", "matmul", phases)
    for dtype in matmul.phases:
        matmul.measure(dtype)
    figures = []
    try:
        for length in options.lengths:
            figures += measure_length(length, matmul, options)
    finally:
        matmul.close()
    write(figures, options.output_dir, style.THEMES[options.theme])
    print(table(figures))


if __name__ == "__main__":
    run_program(BenchmarkOptions, main)
