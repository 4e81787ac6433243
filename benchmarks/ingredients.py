"""Runs ablations of the ingredients of ETC on data that need them: small tables like the paper's.

There are three kinds of generated examples: `range` needs tokens far beyond the local radius,
`structure` needs the sentence of each token, and `meaning` needs to know which sentences go
together, which pre-training teaches. Each is learned by a model with all ingredients, and by models
with one of them removed or changed. `length` is `range` again, trained at 128 tokens and evaluated
at 1,024; `longer` continues from there, at 512 and 4,096 tokens. Rows in `results.jsonl` in
--output_dir are not run again, so the same command resumes after a stop. All rows of a seed are run
before the next seed, so a stop leaves complete tables of fewer seeds.

  python -m benchmarks.ingredients --output_dir=ingredients
"""

import dataclasses
import pathlib
import time

from benchmarks.ingredient_rows import FIGURES, KINDS, ROWS, TEST_SEED
from etcmodel.options import Options, option, run_program
from etcmodel.tools import row_results

__all__ = ["IngredientOptions", "main"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class IngredientOptions(Options):
    """The tables, rows and seeds to run."""

    output_dir: str = option("ingredients", "Directory for runs and results.")
    kinds: tuple = option(tuple(KINDS), "Tables to produce.", choices=tuple(KINDS))
    rows: tuple = option(
        ROWS, "Rows to run, in this order, in the tables that have them.", choices=ROWS
    )
    seeds: tuple[int, ...] = option(
        (0, 1, 2),
        "Seeds of weights, data and example order.",
        lower_bound=0,
        upper_bound=TEST_SEED - 1,  # That one makes what is measured on.
    )
    share: float = option(
        1.0,
        "Fraction of the steps and test examples to run, for a quick trial.",
        lower_bound=0,
        upper_bound=1,
    )

    def __post_init__(self):
        super().__post_init__()
        if not any(name in KINDS[kind] for kind in self.kinds for name in self.rows):
            raise ValueError(f"None of the tables {self.kinds} has any of the rows {self.rows}.")


def main(options):
    """Runs the rows of `IngredientOptions`, and prints the tables."""
    folder = pathlib.Path(options.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    results = row_results.Results(folder / "results.jsonl")
    graphs = {}
    for seed in options.seeds:
        for kind in options.kinds:
            for name in options.rows:
                if name in KINDS[kind]:
                    _fill(results, kind, name, seed, options.share, graphs)
    for kind in options.kinds:
        found = [x for x in results.all if x["kind"] == kind and x["share"] == options.share]
        if found:
            print(f"\n{kind}\n{row_results.table(found, KINDS[kind], FIGURES[kind])}")


def _fill(results, kind, name, seed, share, graphs):
    """Runs a row with a seed, unless it is in the results."""

    def run():
        from benchmarks import ingredient_runs as runs  # With TensorFlow.

        start = time.process_time()  # Others may be using the machine, too.
        figures = runs.RUNNERS[kind](KINDS[kind][name], share, graphs)(seed)
        print(f"{kind}, {name}, seed {seed}: {figures}", flush=True)
        return {**figures, "cpu_seconds": round(time.process_time() - start, 1)}

    results.fill({"kind": kind, "variant": name, "seed": seed, "share": share}, run)


if __name__ == "__main__":
    run_program(IngredientOptions, main)
