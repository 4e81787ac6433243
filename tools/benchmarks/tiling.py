"""Finds the fastest attention tiles on this device, for inputs of one shape.

ETC layers run a forward pass or a training step with each pair of sizes in turn, in one process. A
pair counts as better than the default only if it was faster in nearly every round. Prints a table,
and the training flags for the fastest pair; a run must keep them, as its dropout depends on them.

  python -m etcmodel.tools.benchmarks.tiling --long_length=4096 --global_length=230
"""

import dataclasses
import itertools
import math
import statistics
import time

from etcmodel.options import option, run_program
from etcmodel.tools.benchmarks.turns import ClockOptions

__all__ = ["DEFAULT", "TilingOptions", "best", "flags_of", "table", "times_by_turns"]

# (rows, logits) of `ops.tiles.Tiling` of training without flags.
DEFAULT = (None, 1 << 22)
_MOST_CHANCE = 0.05  # Of taking another pair although all are as fast.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TilingOptions(ClockOptions):
    """What is measured."""

    long_length: int = option(4096, "Number of long tokens of an example.", lower_bound=1)
    global_length: int = option(230, "Number of global tokens of an example.", lower_bound=1)
    batch_size: int = option(1, "Number of examples per step on one device.", lower_bound=1)
    hidden_size: int = option(768, "Hidden size; a multiple of 64, the head size.", lower_bound=64)
    num_hidden_layers: int = option(
        2, "Number of layers; more layers give the same ratios.", lower_bound=1
    )
    dropout: float = option(0.0, "Dropout rate in training steps.", lower_bound=0)
    phase: str = option("train", "What to measure.", choices=("forward", "train"))
    mixed_precision: str = option(
        "float32", "Precision policy.", choices=("float32", "mixed_bfloat16", "mixed_float16")
    )
    rows: tuple[int, ...] = option(
        (0, 32, 96, 128), "Queries per tile to try; 0: chosen for the attention pattern."
    )
    logits: tuple[int, ...] = option(
        (1 << 20, 1 << 22, 1 << 24),
        "Attention logits, over batch and heads, held in memory at a time, to try.",
    )
    rounds: int = option(
        12,
        "Number of rounds after the first, which traces. The more sizes there are, the more rounds "
        "are needed to distinguish the best from chance: 12 for eleven.",
        lower_bound=3,
    )

    def __post_init__(self):
        super().__post_init__()
        if _chance(0, self.rounds, len(self.sizes()) - 1) > _MOST_CHANCE:
            raise ValueError(
                f"`rounds`: {self.rounds} are too few to tell the best of {len(self.sizes())} "
                "sizes from chance. Give more of them, or fewer --rows and --logits."
            )

    def sizes(self):
        """The pairs to measure, `DEFAULT` first: list of (rows or None, logits)."""
        pairs = [
            (rows or None, logits) for rows, logits in itertools.product(self.rows, self.logits)
        ]
        return [DEFAULT, *(pair for pair in pairs if pair != DEFAULT)]


def times_by_turns(functions, rounds, clock=time.perf_counter):
    """Seconds of functions that take turns.

    Args:
        functions: dict of keys to functions without arguments.
        rounds: int. After a first one that is not measured.
        clock: function without arguments: float, seconds.
    Returns:
        dict of the same keys to lists of float.
    """
    times = {key: [] for key in functions}
    for number in range(rounds + 1):
        for key, function in functions.items():
            start = clock()
            function()
            if number:
                times[key].append(clock() - start)
    return times


def _ratios(times, pair):
    """Seconds of each round beside those of `DEFAULT` in it, sorted."""
    return sorted(x / y for x, y in zip(times[pair], times[DEFAULT], strict=True))


def best(times):
    """The pair to use: the one with the least median ratio to `DEFAULT`, if that is no accident.

    Args:
        times: dict of pairs of sizes, `DEFAULT` among them, to the seconds of the same rounds.
    Returns:
        The pair, if it was faster than `DEFAULT` in so many rounds that any of the pairs would be
        with a probability of at most 0.05, were all as fast; else `DEFAULT`.
    """
    fastest = min(times, key=lambda pair: statistics.median(_ratios(times, pair)))
    ratios = _ratios(times, fastest)
    slower = sum(ratio >= 1 for ratio in ratios)
    chance = _chance(slower, len(ratios), len(times) - 1)
    return fastest if chance <= _MOST_CHANCE else DEFAULT


def _chance(slower, rounds, pairs):
    """Bound on the probability that of pairs as fast as another one wins so clearly: float.

    That is the sum over the pairs of the probability to be slower in no more than so many of the
    rounds, each of which is a toss of a coin.
    """
    as_clear = sum(math.comb(rounds, number) for number in range(slower + 1))
    return pairs * as_clear / 2**rounds


def flags_of(pair):
    """The flags of training: str, empty for `DEFAULT`."""
    rows, logits = pair
    given = [f"--attention_tile_rows={rows}"] if rows else []
    given += [f"--attention_logits={logits}"] if logits != DEFAULT[1] else []
    return " ".join(given)


def table(times):
    """Markdown: a row for each pair, the fastest first."""
    rows = [["rows", "logits", "seconds", "ratio to the default", "of the rounds"]]
    rows.append(["---"] * len(rows[0]))
    for pair in sorted(times, key=lambda pair: statistics.median(_ratios(times, pair))):
        ratios = _ratios(times, pair)
        shown = [str(pair[0] or "default"), str(pair[1]), f"{statistics.median(times[pair]):.3f}"]
        shown += [f"{statistics.median(ratios):.3f}", f"{ratios[0]:.3f} to {ratios[-1]:.3f}"]
        rows.append(shown)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _functions(options):
    """dict of the pairs of sizes to functions that run the phase with them."""
    import tf_keras  # Takes seconds, for which --help does not wait.

    from etcmodel.ops import tiles
    from etcmodel.tools.benchmarks import worker

    tf_keras.mixed_precision.set_global_policy(options.mixed_precision)
    phases = worker.etc_functions(
        options.long_length,
        options.global_length,
        dropout=options.dropout,
        layers=options.num_hidden_layers,
        hidden=options.hidden_size,
        batch=options.batch_size,
    )

    def run_with(pair):
        (run,) = worker.graph_phases({"phase": phases[options.phase]}).values()
        tiling = tiles.Tiling(*pair)  # Refuses sizes before anything is measured.

        def function():
            tiles.set_tiling(tiling)  # When it is traced, by the first call.
            run()

        return function

    return {pair: run_with(pair) for pair in options.sizes()}


def main(options):
    """Prints the table and the flags."""
    times = times_by_turns(_functions(options), options.rounds, options.seconds)
    print(table(times))
    found = flags_of(best(times))
    print(f"Fastest: {found}" if found else "No sizes are faster than those without flags.")


if __name__ == "__main__":
    run_program(TilingOptions, main)
