"""Measures our systems beside other libraries', most of them with equal weights.

In each row, two models take turns in one run; the ratio is the median of the rounds' ratios.
Outputs are compared first. Prints a table, and writes results.json and results.png: time and memory
÷ the other's, by length.

  python -m benchmarks.peers --torch_python=/path/to/torch/bin/python
  python -m benchmarks.peers --comparisons=bert,keras_hub_bert --rows=8 --lengths=512 \
    --torch_python=/path/to/torch/bin/python --keras_hub_python=/path/to/keras_hub/bin/python
  python -m benchmarks.peers --comparisons=led --phases=generate --lengths=8192 \
    --tokens_per_global=8192 --num_hidden_layers=6 --torch_python=/path/to/torch/bin/python
  python -m benchmarks.peers --comparisons=modernbert --lengths=512 --rows=8 --shortest=0.125 \
    --torch_python=/path/to/torch/bin/python
  python -m benchmarks.peers --comparisons=embeddings --lengths=512 --documents=texts.jsonl \
    --text_encoder=all-MiniLM-L6-v2 --torch_python=/path/to/torch/bin/python
  python -m benchmarks.peers --comparisons=dilation --lengths=4096 --window=64
"""

import dataclasses
import os
import statistics
import sys
import tempfile

from benchmarks import pairs
from etcmodel import atomic_files
from etcmodel.options import check_files, option, run_program
from etcmodel.pictures import charts, style
from etcmodel.tools.benchmarks import turns
from etcmodel.tools.benchmarks.turns import ClockOptions

# What the interpreter of the option must have, and the comparisons without it.
_NEEDS_TORCH = set(pairs.MAKERS) - {"dilation", "gmat", "keras_hub_bert", "keras_hub_roformer"}
_NEEDS_KERAS_HUB = {"keras_hub_bert", "keras_hub_roformer"}
_OF_EQUAL_TEXTS = {"bert", "gmat", *_NEEDS_KERAS_HUB}
_MEASURES = {"time": "seconds", "peak memory": "peak_bytes"}
_TITLE = "Ours ÷ the other's (lower is better)"
_PHASES = {
    "forward": "Reading",
    "encode": "Reading",  # By the encoder alone.
    "train": "Training step",
    "generate": "Writing",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PeersOptions(ClockOptions):
    """What is compared, at which sizes."""

    output_dir: str = option("peers", "Directory for results.json and results.png.")
    comparisons: tuple = option(
        ("longformer",),
        "Comparisons to run. 'longformer', 'bigbird', 'modernbert', 'led', 'bigbird_pegasus', "
        "'longt5' (transient-global attention), 'pegasus_x': our model against Hugging Face's; "
        "requires --torch_python. 'bert', 'keras_hub_bert', 'keras_hub_roformer': ETC against the "
        "full attention of Hugging Face's (SDPA) and keras-hub's; requires --torch_python or "
        "--keras_hub_python. 'dilation': Longformer with and without dilation. 'gmat': GMAT with "
        "64 memory tokens against Model Garden's BERT on the chunks. 'embeddings': vectors of "
        "--documents by --text_encoder, cut at the length, against sentence-transformers, which "
        "--torch_python must have.",
        choices=tuple(pairs.MAKERS),
    )
    torch_python: str | None = option(
        None,
        "Python interpreter with torch and transformers. None: only comparisons without "
        "Hugging Face.",
        is_file=True,
    )
    keras_hub_python: str | None = option(
        None,
        "Python interpreter with keras-hub and TensorFlow. None: only comparisons without "
        "keras-hub.",
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
        "Number of texts in a batch; 'embeddings' has --batch_size.",
        lower_bound=1,
    )
    shortest: float = option(
        1.0,
        "Length of the shortest text of --rows ÷ the longest's. Below 1, 'modernbert' computes "
        "nothing for the padding.",
        lower_bound=0.0,
        upper_bound=1.0,
    )
    global_length: int | None = option(
        None,
        "Length of ETC's global input, in tokens. None: a 16th of the long length, at most 512.",
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
        names = set(self.comparisons)
        self._check_interpreter(names & _NEEDS_TORCH, "torch_python", "torch and transformers")
        self._check_interpreter(names & _NEEDS_KERAS_HUB, "keras_hub_python", "keras-hub")
        self._check_rows(names)
        if "embeddings" in self.comparisons and not (self.documents and self.text_encoder):
            raise ValueError("--comparisons=embeddings needs --documents and --text_encoder.")
        self._check_chunks()

    def _check_interpreter(self, names, flag, packages):
        if names and not getattr(self, flag):
            raise ValueError(
                f"--comparisons={','.join(sorted(names))} needs --{flag}, an interpreter that has "
                f"{packages}."
            )

    def _check_rows(self, names):
        if self.rows > 1 and "embeddings" in names:
            raise ValueError(
                f"--comparisons=embeddings has batches of --batch_size; --rows={self.rows} is for "
                "other comparisons."
            )
        if self.shortest < 1 and (self.rows == 1 or names & _OF_EQUAL_TEXTS):
            raise ValueError(
                f"--shortest={self.shortest} needs several --rows, and comparisons other than "
                f"{', '.join(sorted(_OF_EQUAL_TEXTS))}, whose texts are all as long."
            )

    def _check_chunks(self):
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
        options: `PeersOptions`.
        files: `pairs.Files` of an empty folder.
    Yields:
        dict, one for each phase that neither of the models died in.
    """
    files.write_inputs(length, options)
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
                "comparison": comparison,
                "models": [worker.name for worker in workers],
                "length": length,
                "rows": options.rows,
                "phase": phase,
                "seconds": [times[worker.name] for worker in workers],
                "peak_bytes": [peaks[worker.name] for worker in workers],
                "difference": difference,
            }
    finally:
        for worker in workers:
            worker.close()


def ratios(figure, measure):
    """One model's values ÷ the other's, of each round: list of floats."""
    one, other = figure[measure]
    if measure == "peak_bytes":
        return [one / other]
    return [a / b for a, b in zip(one, other, strict=True)]


def _cells(figure):
    one, other = figure["seconds"]
    by_round, difference = ratios(figure, "seconds"), figure["difference"]
    peak, other_peak = figure["peak_bytes"]
    return [
        f"{figure['comparison']}: {' / '.join(figure['models'])}",
        f"{figure['length']}" if figure["rows"] == 1 else f"{figure['rows']} x {figure['length']}",
        figure["phase"],
        f"{statistics.median(one):.3g}",
        f"{statistics.median(other):.3g}",
        f"{statistics.median(by_round):.3f}",
        f"{min(by_round):.3f} to {max(by_round):.3f}",
        f"{peak / 1e9:.2f} / {other_peak / 1e9:.2f} = {peak / other_peak:.2f}",
        "" if difference is None else f"{difference:.1e}",
    ]


def panels(figures):
    """Ratios against length, of each kind of work, a line a comparison: list of `charts.Chart`."""
    made = []
    for work in dict.fromkeys(_PHASES[figure["phase"]] for figure in figures):
        for title, measure in _MEASURES.items():
            points = {}  # Of each comparison.
            for figure in figures:
                if _PHASES[figure["phase"]] == work:
                    ratio = statistics.median(ratios(figure, measure))
                    points.setdefault(figure["comparison"], []).append((figure["length"], ratio))
            lines = [charts.Line(name, tuple(sorted(of))) for name, of in points.items()]
            ends = {point[0] for line in lines for point in line.points}
            equal = charts.Line("equal", ((min(ends), 1), (max(ends), 1)), is_reference=True)
            chart = charts.Chart(f"{work}: {title}", "tokens", (*lines, equal), is_log=True)
            made.append(chart)
    return made


def write(figures, directory):
    """Writes results.json and results.png; each appears only when it is complete."""
    atomic_files.write_json(os.path.join(directory, "results.json"), figures)
    with atomic_files.new_file(os.path.join(directory, "results.png")) as picture:
        charts.save_png(panels(figures), picture, title=_TITLE, theme=style.LIGHT)


def _print_row(cells):
    print("|", *(f"{cell} |" for cell in cells), flush=True)


def main(options):
    """Measures what `PeersOptions` ask for, prints a table and writes the files."""
    columns = ["models", "tokens", "phase", "s", "s of the other", "ratio", "of the rounds"]
    columns += ["peak GB", "outputs differ by"]
    _print_row(columns)
    _print_row(["---"] * len(columns))
    figures = []
    for comparison in options.comparisons:
        for length in options.lengths:
            with tempfile.TemporaryDirectory() as folder:
                for figure in compare(comparison, length, options, pairs.Files(folder)):
                    _print_row(_cells(figure))
                    figures.append(figure)
                    write(figures, options.output_dir)  # What is there, if a later one ends it.


if __name__ == "__main__":
    run_program(PeersOptions, main)
