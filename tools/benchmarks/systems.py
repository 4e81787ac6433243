"""Measures Longformer beside Hugging Face's, of the same weights, and its window with gaps.

All figures of a row come from two models that take turns in one run; a ratio is the median of the
rounds' ratios. Outputs are compared before. Prints a table, a line of JSON for each row on standard
error.

  python -m etcmodel.tools.benchmarks.systems --torch_python=/path/to/torch/bin/python
  python -m etcmodel.tools.benchmarks.systems --comparisons=dilation --lengths=4096 --window=64
"""

import dataclasses
import json
import os
import statistics
import sys
import tempfile

from etcmodel.options import Options, check_files, option, run_program
from etcmodel.tools.benchmarks import turns
from etcmodel.tools.benchmarks.worker import num_heads

_COMPARISONS = ("longformer", "dilation")
_VOCABULARY_SIZE = 50265
_FIRST_ORDINARY_ID = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemsOptions(Options):
    """What is compared, at which sizes."""

    comparisons: tuple = option(
        ("longformer",),
        "'longformer': ours and Hugging Face's, which needs --torch_python. 'dilation': ours with "
        "gaps and without.",
        choices=_COMPARISONS,
    )
    torch_python: str | None = option(
        None, "Python interpreter that has torch and transformers.", is_file=True
    )
    lengths: tuple[int, ...] = option((64, 512, 1000, 4096), "Lengths of the text, in tokens.")
    phases: tuple = option(
        ("forward", "train"),
        "'forward': a forward pass. 'train': forward, backward, all gradients.",
        choices=("forward", "train"),
    )
    rounds: int = option(5, "Measured runs of each model.", lower_bound=1)
    tokens_per_global: int = option(64, "Tokens of which one is global.", lower_bound=1)
    window: int = option(512, "Window of Longformer, in tokens, both sides together.")
    dilation: int = option(4, "Distance of visible tokens, for 'dilation'.", lower_bound=1)
    num_hidden_layers: int = option(12, "Layers of all models.", lower_bound=1)
    hidden_size: int = option(
        768, "Hidden size of all models; a multiple of 64, the size of a head.", lower_bound=64
    )

    def __post_init__(self):
        super().__post_init__()
        check_files(self)
        if "longformer" in self.comparisons and not self.torch_python:
            raise ValueError("--comparisons=longformer needs --torch_python.")

    def longformer_config(self, length):
        """dict, of a `LongformerConfig` without dropout."""
        return {
            "vocab_size": _VOCABULARY_SIZE,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": num_heads(self.hidden_size),
            "intermediate_size": 4 * self.hidden_size,
            "max_position_embeddings": max(length, self.window) + 2,
            "type_vocab_size": 1,
            "attention_window": self.window,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }


def _write_inputs(path, length, tokens_per_global):
    import numpy as np

    ids = np.random.default_rng(0).integers(_FIRST_ORDINARY_ID, _VOCABULARY_SIZE, [1, length])
    is_global = (np.arange(length) % tokens_per_global == 0)[np.newaxis]
    np.savez(
        path,
        input_ids=ids,
        attention_mask=np.ones_like(ids),
        global_attention_mask=is_global.astype(ids.dtype),
    )


def _ours(name, config, folder, inputs, output, phases):
    settings = {"config": config, "folder": folder, "inputs": inputs, "output": output}
    return turns.tensorflow_worker(name, "longformer", phases, "systems_worker", **settings)


def compare(comparison, length, options, folder):
    """The figures of one comparison at one length.

    Args:
        comparison: see `--comparisons`.
        length: int. Tokens.
        options: `SystemsOptions`.
        folder: str. An empty one, for weights, inputs and outputs.
    Yields:
        dict, one for each phase.
    """
    inputs, weights = os.path.join(folder, "inputs.npz"), os.path.join(folder, "weights")
    outputs = [os.path.join(folder, f"{number}.npy") for number in range(2)]
    phases = (*options.phases, "write")
    _write_inputs(inputs, length, options.tokens_per_global)
    config = options.longformer_config(length)
    if comparison == "longformer":
        one = _ours("ours", config, weights, inputs, outputs[0], phases)
        one.measure("write")  # The weights, too, which the other one reads.
        settings = {"folder": weights, "inputs": inputs, "output": outputs[1]}
        other = turns.torch_worker(
            "Hugging Face", options.torch_python, "stored_longformer", phases, **settings
        )
        other.measure("write")
        difference = _difference(*outputs)
    else:
        dilated = {**config, "attention_dilation": options.dilation}
        one = _ours(f"dilation {options.dilation}", dilated, "", inputs, outputs[0], phases)
        other = _ours("dilation 1", config, "", inputs, outputs[1], phases)
        difference = None
    try:
        for phase in options.phases:
            able, times, peaks = turns.take_turns([one, other], phase, options.rounds)
            if len(able) == 2:
                yield {
                    "comparison": f"{one.name} / {other.name}",
                    "length": length,
                    "phase": phase,
                    "seconds": [times[worker.name] for worker in (one, other)],
                    "peak_bytes": [peaks[worker.name] for worker in (one, other)],
                    "difference": difference,
                }
    finally:
        one.close()
        other.close()


def _difference(*paths):
    """The largest one of two arrays' values."""
    import numpy as np

    one, other = map(np.load, paths)
    return float(np.abs(one - other).max())


def _cells(figure):
    one, other = figure["seconds"]
    ratios = [a / b for a, b in zip(one, other, strict=True)]
    peak, other_peak = figure["peak_bytes"]
    difference = figure["difference"]
    return [
        figure["comparison"],
        figure["length"],
        figure["phase"],
        f"{statistics.median(one):.3g}",
        f"{statistics.median(other):.3g}",
        f"{statistics.median(ratios):.3f}",
        f"{min(ratios):.3f} to {max(ratios):.3f}",
        f"{peak / 1e9:.2f} / {other_peak / 1e9:.2f} = {peak / other_peak:.2f}",
        "" if difference is None else f"{difference:.1e}",
    ]


def _print_row(cells):
    print("|", *(f"{cell} |" for cell in cells), flush=True)


def main(options):
    """Measures what `SystemsOptions` ask for, and prints a table."""
    columns = ["models", "tokens", "phase", "s", "s of the other", "ratio", "of the rounds"]
    columns += ["peak GB", "outputs differ by"]
    _print_row(columns)
    _print_row(["---"] * len(columns))
    for comparison in options.comparisons:
        for length in options.lengths:
            with tempfile.TemporaryDirectory() as folder:
                for figure in compare(comparison, length, options, folder):
                    print(json.dumps(figure), file=sys.stderr)
                    _print_row(_cells(figure))


if __name__ == "__main__":
    run_program(SystemsOptions, main)
