"""Writes an HTML report on a run, its scores and its predictions, as one self-contained file.

    python -m etcmodel.tools.report --run=my_run --output=report.html \\
        --task=hotpotqa --predictions=my_run/predictions.json --eval_gold=dev.json

With --run alone, the page has the training curves, the scores recorded in the run, and its
settings. With --predictions, it also has examples with a filter for wrong answers, a comparison
with a baseline that does not read the input, and scores by the position of the evidence in the
input.
"""

import dataclasses
import importlib
import os

from etcmodel import atomic_files
from etcmodel.options import Options, check_files, option, run_program

__all__ = ["ReportOptions", "write_report"]

_TASKS = (
    "classification",
    "coreference",
    "hotpotqa",
    "majority_tagging",
    "nq",
    "numerical_reasoning",
    "openkp",
    "squad",
    "summarization",
    "token_classification",
    "triviaqa",
    "wikihop",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportOptions(Options):
    """The contents and the output of the report."""

    run: str | None = option(None, "Directory of a run: the --output_dir of its training.")
    task: str | None = option(None, "Task that the predictions are for.", choices=_TASKS)
    predictions: str | None = option(
        None, "File of predictions, as written by the task's programs.", is_file=True
    )
    eval_gold: str | None = option(
        None,
        "Raw file with the gold answers; for Natural Questions, also a pattern for several files.",
    )
    evidence_dir: str | None = option(
        None, "Folder of TriviaQA's documents, to show them on the page."
    )
    eval_fraction_of_removed_examples: float = option(
        0.0,
        "OpenKP only: fraction of all pages that are missing from --eval_gold, and score 0.",
        lower_bound=0.0,
        upper_bound=1.0,
    )
    output: str = option("report.html", "HTML file to write.")
    title: str = option("", "Title of the page. Defaults to the task and the run.")
    num_examples: int = option(100, "Maximum number of examples on the page.", lower_bound=0)

    def __post_init__(self):
        super().__post_init__()
        together = (self.task, self.predictions, self.eval_gold)
        if any(together) and not all(together):
            raise ValueError("--task, --predictions and --eval_gold belong together: give all.")
        if self.evidence_dir and self.task != "triviaqa":
            raise ValueError("--evidence_dir is of --task=triviaqa alone. Leave it out.")
        if not (self.run or self.predictions):
            raise ValueError(
                "Give --run, or --predictions with --task and --eval_gold, or all of them."
            )


def write_report(options):
    """Writes the page that `ReportOptions` describe; the file appears when it is complete."""
    check_files(options)
    atomic_files.check_writable(options.output)
    from etcmodel.reports import page, results, run_files  # With TensorFlow, after the flags.

    run = run_files.RunFiles.read(options.run) if options.run else None
    found = None
    if options.task:
        options_of_run = run.options if run else {}
        reader = importlib.import_module(f"etcmodel.tasks.{options.task}.report")
        found = reader.read_results(
            results.Given(
                options.predictions,
                options.eval_gold,
                options_of_run,
                options.evidence_dir,
                options.eval_fraction_of_removed_examples,
            )
        )
        if (chosen := options_of_run.get("metric_for_best_model")) in found.metrics:
            found = dataclasses.replace(found, best_metric=chosen)
    text = page.render(
        title=options.title or _title(options),
        run=run,
        results=found,
        num_examples=options.num_examples,
    )
    atomic_files.write_text(options.output, [text])
    print(f"Report: {options.output}")


def _title(options):
    run = os.path.basename(os.path.abspath(options.run)) if options.run else ""
    return ": ".join(filter(None, [(options.task or "").replace("_", " "), run]))


if __name__ == "__main__":
    run_program(ReportOptions, write_report)
