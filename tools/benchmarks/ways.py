"""Measures a forward pass of ETC as a graph, eagerly, and from an export, in turns.

All run in one process with the same weights and input, so that their ratios are reliable on a noisy
machine. `share` is relative to the speed of the fastest matrix products on this machine, by
TensorFlow or NumPy, measured between the rounds.

  python -m etcmodel.tools.benchmarks.ways --long_length=4096 --global_length=230
"""

import dataclasses
import statistics
import tempfile

from etcmodel.options import option, run_program
from etcmodel.tools.benchmarks import tiling
from etcmodel.tools.benchmarks.turns import ClockOptions

__all__ = ["WaysOptions", "measure", "table"]

_WAYS = ("eager", "exported")
_PRODUCTS = ("float32", "numpy")
_VOCAB_SIZE, _RADIUS = 30522, 84


@dataclasses.dataclass(frozen=True, kw_only=True)
class WaysOptions(ClockOptions):
    """What is measured."""

    long_length: int = option(4096, "Number of long tokens of an example.", lower_bound=1)
    global_length: int = option(
        230,
        "Number of global tokens of an example; at most the number of long tokens.",
        lower_bound=1,
    )
    batch_size: int = option(1, "Number of examples per call.", lower_bound=1)
    hidden_size: int = option(768, "Hidden size; a multiple of 64, the head size.", lower_bound=64)
    num_hidden_layers: int = option(12, "Number of layers of the encoder.", lower_bound=1)
    ways: tuple = option(_WAYS, "What to measure beside the graph.", choices=_WAYS)
    rounds: int = option(5, "Number of rounds after the first, which traces.", lower_bound=3)

    def __post_init__(self):
        super().__post_init__()
        if self.global_length > self.long_length:
            raise ValueError(
                "`global_length` must be at most `long_length`. "
                f"Received: {self.global_length} and {self.long_length}"
            )


def _make_model(options):
    """(model, its features: dict of int32 [batch, length] tensors)."""
    import tensorflow as tf

    from etcmodel.models import modeling
    from etcmodel.tools.benchmarks import exported_classifier, worker

    config = modeling.EtcConfig(
        vocab_size=_VOCAB_SIZE,
        hidden_size=options.hidden_size,
        num_hidden_layers=options.num_hidden_layers,
        num_attention_heads=worker.num_heads(options.hidden_size),
        intermediate_size=4 * options.hidden_size,
        local_radius=_RADIUS,
        share_qkv_projections=False,
    )
    model = exported_classifier.Classifier(config)
    example = exported_classifier.made_up_example(
        options.long_length, options.global_length, config.vocab_size
    )
    features = {name: tf.constant([x] * options.batch_size) for name, x in example.items()}
    return model, features


def _functions(options, folder):
    """dict of ways, and `_PRODUCTS`, to functions that return when the work is done."""
    import tensorflow as tf

    from etcmodel.tools.benchmarks import exported_classifier, worker

    model, features = _make_model(options)
    graph = tf.function(lambda features: model(features, training=False))
    calls = {"graph": lambda: graph(features), "eager": lambda: model(features, training=False)}
    if "exported" in options.ways:
        calls["eager"]()  # Which builds the model.
        loaded = tf.saved_model.load(exported_classifier.export(model, f"{folder}/export"))
        served = loaded.signatures["dense_features"]
        # The loaded object holds the variables of its signatures.
        calls["exported"] = lambda loaded=loaded: served(**features)
    chosen = ("graph", *options.ways)
    functions = {way: lambda way=way: calls[way]()["probabilities"].numpy() for way in chosen}
    products = worker.matmul_phases()
    return {**functions, **{name: products[name] for name in _PRODUCTS}}


def measure(options):
    """Seconds of each way and of `_PRODUCTS`, of each round: dict of lists of float.

    Args:
        options: `WaysOptions`.
    Raises:
        ValueError: if the ways' probabilities differ.
    """
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        functions = _functions(options, folder)
        expected = functions["graph"]()
        for way in options.ways:
            if not np.allclose(functions[way](), expected, rtol=1e-3, atol=1e-5):
                raise ValueError(f"The way {way!r} gives other probabilities than the graph.")
        return tiling.times_by_turns(functions, options.rounds, options.seconds)


def table(times, flops):
    """Markdown: a row for each way.

    Args:
        times: result of `measure`.
        flops: float. Operations of a call.
    """
    from etcmodel.tools.benchmarks import worker

    rows = [["way", "seconds", "of the rounds", "ratio to the graph", "of the rounds", "share"]]
    rows.append(["---"] * len(rows[0]))
    speed = worker.matmul_seconds_to_speed(min(statistics.median(times[x]) for x in _PRODUCTS))
    for way, seconds in times.items():
        if way in _PRODUCTS:
            continue
        ratios = [x / y for x, y in zip(seconds, times["graph"], strict=True)]
        median = statistics.median(seconds)
        cells = [f"{median:.3g}", f"{min(seconds):.3g} to {max(seconds):.3g}"]
        cells += [f"{statistics.median(ratios):.3f}", f"{min(ratios):.3f} to {max(ratios):.3f}"]
        rows.append([way, *cells, f"{flops / median / speed:.2f}"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main(options):
    """Prints the table."""
    from etcmodel.tools.benchmarks import costs

    flops = options.batch_size * costs.forward_flops(
        options.long_length,
        options.global_length,
        radius=_RADIUS,
        layers=options.num_hidden_layers,
        hidden=options.hidden_size,
        intermediate=4 * options.hidden_size,
    )
    print(table(measure(options), flops), end="")


if __name__ == "__main__":
    run_program(WaysOptions, main)
