"""Measures Longformer and LED beside Hugging Face's, of the same weights, and windows with gaps.

All figures of a row come from two models that take turns in one run; a ratio is the median of the
rounds' ratios. Outputs are compared before. Prints a table, a line of JSON for each row on standard
error.

  python -m etcmodel.tools.benchmarks.systems --torch_python=/path/to/torch/bin/python
  python -m etcmodel.tools.benchmarks.systems --comparisons=led --lengths=8192 \
    --tokens_per_global=8192 --num_hidden_layers=6 --torch_python=/path/to/torch/bin/python
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

_COMPARISONS = ("longformer", "led", "dilation")
_VOCABULARY_SIZE = 50265
_FIRST_ORDINARY_ID = 3
# Of initial weights that prefer some tokens, so that beams differ by more than rounding.
_DECIDED_STDDEV = 0.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemsOptions(Options):
    """What is compared, at which sizes."""

    comparisons: tuple = option(
        ("longformer",),
        "'longformer', 'led': ours and Hugging Face's, which need --torch_python. 'dilation': "
        "Longformer with gaps and without.",
        choices=_COMPARISONS,
    )
    torch_python: str | None = option(
        None, "Python interpreter that has torch and transformers.", is_file=True
    )
    lengths: tuple[int, ...] = option((64, 512, 1000, 4096), "Lengths of the text, in tokens.")
    phases: tuple = option(
        ("forward", "train"),
        "'forward': a forward pass. 'train': forward, backward, all gradients. Of LED the encoder "
        "alone and all of the generation are measured instead.",
        choices=("forward", "train"),
    )
    rounds: int = option(5, "Measured runs of each model.", lower_bound=1)
    tokens_per_global: int = option(64, "Tokens of which one is global.", lower_bound=1)
    window: int = option(512, "Window of Longformer, in tokens, both sides together.")
    dilation: int = option(4, "Distance of visible tokens, for 'dilation'.", lower_bound=1)
    num_hidden_layers: int = option(12, "Layers of all encoders and decoders.", lower_bound=1)
    hidden_size: int = option(
        768, "Hidden size of all models; a multiple of 64, the size of a head.", lower_bound=64
    )

    num_generated: int = option(128, "Tokens that LED generates.", lower_bound=2)
    num_beams: int = option(4, "Beams of LED.", lower_bound=1)

    def __post_init__(self):
        super().__post_init__()
        check_files(self)
        if set(self.comparisons) - {"dilation"} and not self.torch_python:
            raise ValueError(
                f"--comparisons={','.join(self.comparisons)} needs --torch_python, an interpreter "
                "that has torch and transformers."
            )

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

    def led_config(self, length):
        """dict, of an `LedConfig` whose random weights prefer some tokens clearly."""
        sizes = {
            f"{stack}_{name}": value
            for stack in ("encoder", "decoder")
            for name, value in (
                ("layers", self.num_hidden_layers),
                ("attention_heads", num_heads(self.hidden_size)),
                ("ffn_dim", 4 * self.hidden_size),
            )
        }
        return {
            **sizes,
            "vocab_size": _VOCABULARY_SIZE,
            "d_model": self.hidden_size,
            # Hugging Face's pads to a multiple of the window.
            "max_encoder_position_embeddings": length + -length % self.window,
            "max_decoder_position_embeddings": max(1024, self.num_generated),
            "attention_window": self.window,
            "dropout": 0.0,
            "init_std": _DECIDED_STDDEV,
        }

    def generation(self):
        """dict, arguments of `generate` of both sides. No sequence may end early."""
        return {
            "num_beams": self.num_beams,
            "max_length": self.num_generated + 1,
            "min_length": self.num_generated + 1,
            "no_repeat_ngram_size": 3,
            "length_penalty": 1.0,
            "early_stopping": False,
            "num_return_sequences": self.num_beams,
        }


@dataclasses.dataclass(frozen=True)
class Files:
    """Where two models find what they share, and leave what they compute."""

    folder: str

    inputs = property(lambda self: os.path.join(self.folder, "inputs.npz"))
    weights = property(lambda self: os.path.join(self.folder, "weights"))

    def output(self, name):
        return os.path.join(self.folder, f"{name}.npy")

    def write_inputs(self, length, tokens_per_global):
        """Random ids, of which some are global, by the names of both sides' arguments."""
        import numpy as np

        ids = np.random.default_rng(0).integers(_FIRST_ORDINARY_ID, _VOCABULARY_SIZE, [1, length])
        is_global = (np.arange(length) % tokens_per_global == 0)[np.newaxis]
        np.savez(
            self.inputs,
            input_ids=ids,
            attention_mask=np.ones_like(ids),
            global_attention_mask=is_global.astype(ids.dtype),
        )

    def difference(self, *names):
        """The largest one of the values of two outputs: float, infinite for other shapes."""
        import numpy as np

        one, other = (np.load(self.output(name)) for name in names)
        return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")


def _beside_hugging_face(kind, config, files, options, phases, **settings):
    """(ours, Hugging Face's), of the same weights, and what their outputs differ by."""
    phases = (*phases, "write")
    shared = {"folder": files.weights, "inputs": files.inputs, **settings}
    ours = turns.tensorflow_worker(
        "ours", kind, phases, "systems_worker", config=config, output=files.output(0), **shared
    )
    ours.measure("write")  # The weights, too, which the other one reads.
    other = turns.torch_worker(
        "Hugging Face",
        options.torch_python,
        f"stored_{kind}",
        phases,
        output=files.output(1),
        **shared,
    )
    other.measure("write")
    return (ours, other), files.difference(0, 1)


def _with_gaps(config, files, options):
    """Longformer (with gaps, without)."""
    return [
        turns.tensorflow_worker(
            f"dilation {dilation}",
            "longformer",
            options.phases,
            "systems_worker",
            config={**config, "attention_dilation": dilation},
            folder="",
            inputs=files.inputs,
            output="",
        )
        for dilation in (options.dilation, 1)
    ]


def compare(comparison, length, options, files):
    """The figures of one comparison at one length.

    Args:
        comparison: see `--comparisons`.
        length: int. Tokens.
        options: `SystemsOptions`.
        files: `Files` of an empty folder.
    Yields:
        dict, one for each phase.
    """
    files.write_inputs(length, options.tokens_per_global)
    phases, difference = options.phases, None
    if comparison == "led":
        phases, settings = ("encode", "generate"), {"generation": options.generation()}
        workers, difference = _beside_hugging_face(
            "led", options.led_config(length), files, options, phases, **settings
        )
    elif comparison == "longformer":
        workers, difference = _beside_hugging_face(
            "longformer", options.longformer_config(length), files, options, phases
        )
    else:
        workers = _with_gaps(options.longformer_config(length), files, options)
    try:
        for phase in phases:
            able, times, peaks = turns.take_turns(workers, phase, options.rounds)
            if len(able) == 2:
                yield {
                    "comparison": f"{comparison}: {workers[0].name} / {workers[1].name}",
                    "length": length,
                    "phase": phase,
                    "seconds": [times[worker.name] for worker in workers],
                    "peak_bytes": [peaks[worker.name] for worker in workers],
                    "difference": difference,
                }
    finally:
        for worker in workers:
            worker.close()


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
                for figure in compare(comparison, length, options, Files(folder)):
                    print(json.dumps(figure), file=sys.stderr)
                    _print_row(_cells(figure))


if __name__ == "__main__":
    run_program(SystemsOptions, main)
