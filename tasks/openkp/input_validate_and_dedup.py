"""Cleans OpenKP's raw file before `preprocess`: keeps valid key phrases, and each URL once.

A key phrase is valid if it occurs in the text as whole words; the first three are kept. If several
lines have the same URL, the one with the most key phrases is kept. The output has the official
layout.

  python -m etcmodel.tasks.openkp.input_validate_and_dedup --input_file=OpenKPTrain.jsonl \
    --output_file=OpenKPTrain.clean.jsonl
"""

import dataclasses
import sys

from etcmodel.options import Options, option, run_program

from . import validation

_MAX_BAD_SHOWN = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class CleaningOptions(Options):
    """The input and the output of the program."""

    input_file: str = option("", "OpenKP's JSONL file, compressed or not.", is_needed=True)
    output_file: str = option("", "File to write the clean lines to.", is_needed=True)
    is_eval: bool = option(False, "The input has no key phrases: only drop repeated URLs.")
    strict: bool = option(False, "Fail at the first invalid line instead of counting it.")


def main(options):
    """Cleans the file that `CleaningOptions` name, and reports what was left out."""
    report = validation.clean_file(**dataclasses.asdict(options))
    for message in report.bad[:_MAX_BAD_SHOWN]:
        print(f"skipped {message}", file=sys.stderr)
    print(
        f"lines: {report.num_lines}, written: {report.num_written}, repeated: "
        f"{report.num_duplicates}, bad: {report.num_bad}, key phrases dropped: "
        f"{report.num_phrases_dropped}"
    )


if __name__ == "__main__":
    run_program(CleaningOptions, main)
