"""Measures our systems beside others, most of them beside Hugging Face's with equal weights.

In each row, two models take turns in one run; the ratio is the median of the rounds' ratios.
Outputs are compared first. Prints a table and, on standard error, a line of JSON for each row.

  python -m benchmarks.systems --torch_python=/path/to/torch/bin/python
  python -m benchmarks.systems --comparisons=led --phases=generate --lengths=8192 \
    --tokens_per_global=8192 --num_hidden_layers=6 --torch_python=/path/to/torch/bin/python
  python -m benchmarks.systems --comparisons=bigbird_pegasus --phases=generate --num_beams=5 \
    --torch_python=/path/to/torch/bin/python
  python -m benchmarks.systems --comparisons=modernbert --lengths=512 --rows=8 \
    --torch_python=/path/to/torch/bin/python
  python -m benchmarks.systems --comparisons=embeddings --lengths=512 --documents=texts.jsonl \
    --text_encoder=all-MiniLM-L6-v2 --torch_python=/path/to/torch/bin/python
  python -m benchmarks.systems --comparisons=dilation --lengths=4096 --window=64
"""

import dataclasses
import json
import statistics
import sys
import tempfile

from benchmarks import pairs
from etcmodel.options import check_files, option, run_program
from etcmodel.tools.benchmarks import turns
from etcmodel.tools.benchmarks.turns import ClockOptions

_NEEDS_TORCH = set(pairs.MAKERS) - {"dilation", "gmat"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemsOptions(ClockOptions):
    """What is compared, at which sizes."""

    comparisons: tuple = option(
        ("longformer",),
        "Comparisons to run. 'longformer', 'bigbird', 'modernbert', 'led', 'bigbird_pegasus', "
        "'longt5' (transient-global attention), 'pegasus_x': our "
        "model against Hugging Face's; requires --torch_python. 'dilation': Longformer with and "
        "without dilation. 'gmat': GMAT with 64 memory tokens against Model Garden's BERT on the "
        "chunks. 'embeddings': vectors of --documents by --text_encoder, cut at the length, "
        "against sentence-transformers, which --torch_python must have.",
        choices=tuple(pairs.MAKERS),
    )
    torch_python: str | None = option(
        None,
        "Python interpreter with torch and transformers. None: only comparisons without "
        "Hugging Face.",
        is_file=True,
    )
    lengths: tuple[int, ...] = option((64, 512, 1000, 4096), "Lengths of the text, in tokens.")
    phases: tuple = option(
        ("forward", "train"),
        "'forward': a forward pass, of the encoder alone. 'train': forward and backward pass, with "
        "all gradients, of an encoder-decoder to its loss. 'generate': a whole generation of an "
        "encoder-decoder; encoders have none.",
        choices=("forward", "train", "generate"),
    )
    rounds: int = option(5, "Number of measured runs of each model.", lower_bound=1)
    documents: str | None = option(
        None, "JSON lines with a 'text' each, for 'embeddings'.", is_file=True
    )
    text_encoder: str | None = option(
        None, "Folder of sentence-transformers with its weights, for 'embeddings'."
    )
    batch_size: int = option(32, "Documents in a batch of 'embeddings'.", lower_bound=1)
    rows: int = option(
        1,
        "Number of texts of 'modernbert', from an eighth of the length to the length. With "
        "several, our model computes nothing for their padding.",
        lower_bound=1,
    )
    tokens_per_global: int = option(64, "One token in this many is global.", lower_bound=1)
    window: int = option(
        512, "Window of Longformer, in tokens, both sides together; GMAT's chunk.", lower_bound=2
    )
    dilation: int = option(
        4, "Distance between the tokens of the dilated window, for 'dilation'.", lower_bound=1
    )
    num_hidden_layers: int = option(
        12, "Number of layers of all encoders and decoders.", lower_bound=1
    )
    hidden_size: int = option(
        768, "Hidden size of all models; a multiple of 64, the head size.", lower_bound=64
    )

    num_generated: int = option(
        128,
        "Number of tokens that an encoder-decoder generates, and of a label in training.",
        lower_bound=2,
    )
    num_beams: int = option(4, "Number of beams of an encoder-decoder.", lower_bound=1)

    def __post_init__(self):
        super().__post_init__()
        check_files(self)
        if _NEEDS_TORCH & set(self.comparisons) and not self.torch_python:
            raise ValueError(
                f"--comparisons={','.join(self.comparisons)} needs --torch_python, an interpreter "
                "that has torch and transformers."
            )
        if self.rows > 1 and set(self.comparisons) != {"modernbert"}:
            raise ValueError(
                f"--rows={self.rows} goes with --comparisons=modernbert alone, not with "
                f"{','.join(self.comparisons)}."
            )
        if "embeddings" in self.comparisons and not (self.documents and self.text_encoder):
            raise ValueError("--comparisons=embeddings needs --documents and --text_encoder.")
        ragged = [length for length in self.lengths if length % self.window]
        if "gmat" in self.comparisons and ragged:
            raise ValueError(
                f"--comparisons=gmat: --lengths={ragged[0]} is no multiple of --window="
                f"{self.window}, the chunks, of which BERT would read fewer than GMAT."
            )


def compare(comparison, length, options, files):
    """The figures of one comparison at one length.

    Args:
        comparison: see `--comparisons`.
        length: int. Tokens.
        options: `SystemsOptions`.
        files: `pairs.Files` of an empty folder.
    Yields:
        dict, one for each phase that neither of the models died in.
    """
    files.write_inputs(length, options.tokens_per_global, options.rows, options.num_generated)
    try:
        workers, phases, difference = pairs.MAKERS[comparison](length, files, options)
    except RuntimeError as error:  # One of them died, of too little memory for example.
        print(f"error: {error}", file=sys.stderr)
        return
    for worker in workers:
        worker.clock = options.clock
    try:
        for phase in phases:
            able, times, peaks = turns.take_turns(workers, phase, options.rounds)
            if len(able) < 2:
                break  # What died does not answer again.
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
                for figure in compare(comparison, length, options, pairs.Files(folder)):
                    print(json.dumps(figure), file=sys.stderr)
                    _print_row(_cells(figure))


if __name__ == "__main__":
    run_program(SystemsOptions, main)
