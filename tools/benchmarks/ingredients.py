"""What the ingredients of ETC are worth on data that need them: small tables like the paper's.

Two kinds of generated examples: `range` needs what is far beyond the local radius, `structure` the
sentence of each token. Each is learned by a model with all ingredients, and by models with one of
them taken away or enlarged. What is in `results.jsonl` of --output_dir is not run again, so that
the same command goes on after a stop.

  python -m etcmodel.tools.benchmarks.ingredients --output_dir=ingredients
"""

import dataclasses
import functools
import pathlib
import time

from etcmodel.options import Options, option, run_program
from etcmodel.tools import row_results
from etcmodel.tools.ingredients.rows import KINDS, ROWS

__all__ = ["IngredientOptions", "main"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class IngredientOptions(Options):
    """What is measured."""

    output_dir: str = option("ingredients", "Directory of runs and results.")
    kinds: tuple = option(tuple(KINDS), "Tables to make.", choices=tuple(KINDS))
    rows: tuple = option(tuple(ROWS), "Rows to run, in this order.", choices=tuple(ROWS))
    seeds: tuple[int, ...] = option((0, 1, 2), "Seeds of weights, data and their order.")
    share: float = option(
        1.0, "Share of the steps and test examples, for a trial.", lower_bound=0, upper_bound=1
    )


def main(options):
    """Runs what `IngredientOptions` ask for, and prints the tables."""
    folder = pathlib.Path(options.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    results = row_results.Results(folder / "results.jsonl")
    for kind in options.kinds:
        for name in options.rows:
            _fill(results, kind, name, options)
        found = [x for x in results.all if x["kind"] == kind and x["share"] == options.share]
        if found:
            print(f"\n{kind}\n{row_results.table(found, ROWS)}")


def _fill(results, kind, name, options):
    """Runs a row with those seeds that are not in the results."""

    @functools.cache
    def run():
        from etcmodel.tools.ingredients import runs  # With TensorFlow.

        return runs.Runner(kind, ROWS[name], options.share)

    def measure(seed):
        start = time.monotonic()
        figures = run()(seed)
        print(f"{kind}, {name}, seed {seed}: {figures}", flush=True)
        return {**figures, "seconds": round(time.monotonic() - start, 1)}

    for seed in options.seeds:
        key = {"kind": kind, "variant": name, "seed": seed, "share": options.share}
        results.fill(key, lambda seed=seed: measure(seed))


if __name__ == "__main__":
    run_program(IngredientOptions, main)
