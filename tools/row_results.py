"""Tables of runs with several seeds, with results in a file so that runs are not repeated."""

import json
import statistics

from etcmodel import bounded_json

__all__ = ["Results", "table"]


class Results:
    """The results of runs, one JSON line per run.

    Args:
        path: pathlib.Path of the file, in an existing folder.
    """

    def __init__(self, path):
        self._path = path
        lines = self._text().splitlines()
        self.all = [result for result in map(_parsed, lines) if result is not None]

    def fill(self, key, run):
        """The result of the run described by `key`: from the file, or from calling `run()`.

        Args:
            key: dict for JSON that identifies the run.
            run: function without arguments that returns a dict of figures.
        Returns:
            dict of key and figures.
        """
        for result in self.all:
            if all(result.get(name) == value for name, value in key.items()):
                return result
        result = {**key, **run()}
        line, text = json.dumps(result) + "\n", self._text()
        with self._path.open("a", encoding="utf-8") as file:  # Others may be appending theirs.
            # A line left incomplete by a killed process must not be joined with this one.
            file.write(line if text.endswith("\n") or not text else f"\n{line}")
        self.all.append(result)
        return result

    def _text(self):
        return self._path.read_text("utf-8", "replace") if self._path.exists() else ""


def _parsed(line):
    """The value of a complete line, else None."""
    try:
        return bounded_json.loads(line)
    except ValueError:
        return None


def _mean_and_spread(values):
    """Mean and standard deviation, if there are several values: str."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}"


def table(results, names, figures=("accuracy",)):
    """A Markdown table of means and standard deviations over the seeds.

    Args:
        results: list of dict with "variant", "seed" and the figures.
        names: list of str. The variants, in row order; variants without results are left out.
        figures: sequence of str. The columns; the first one, which all runs have, is also shown for
            each seed.
    Returns:
        str.
    """
    lines = [
        f"| configuration | {' | '.join(figures)} | of each seed |",
        "|---" * (len(figures) + 2) + "|",
    ]
    for name in names:
        runs = [result for result in results if result["variant"] == name]
        if runs:
            runs = sorted(runs, key=lambda run: run["seed"])
            cells = [
                _mean_and_spread([run[figure] for run in runs]) if figure in runs[0] else ""
                for figure in figures
            ]
            each = ", ".join(f"{run[figures[0]]:.3f}" for run in runs)
            lines.append(f"| {' | '.join([name, *cells, each])} |")
    return "\n".join(lines)
