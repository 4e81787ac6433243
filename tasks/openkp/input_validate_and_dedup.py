"""Cleans OpenKP's raw file before `preprocess`: valid key phrases only, and each URL once.

A key phrase is valid if it occurs in the text as whole words; the first three are kept. Of several
lines with the same URL that with the most key phrases is kept. The result has the official layout.

  python -m etcmodel.tasks.openkp.input_validate_and_dedup --input_file=OpenKPTrain.jsonl \
    --output_file=OpenKPTrain.clean.jsonl
"""

import sys

from absl import app, flags

from . import validation

_MAX_BAD_SHOWN = 20


def define_flags():
    """Defines the program's flags."""
    flags.DEFINE_string("input_file", None, "OpenKP's JSONL file, possibly .gz.", required=True)
    flags.DEFINE_string("output_file", None, "Where the clean lines go.", required=True)
    flags.DEFINE_bool("is_eval", False, "There are no key phrases: only drop repeated URLs.")
    flags.DEFINE_bool(
        "strict", False, "Fail at the first line that cannot be kept, instead of counting it."
    )


def main(unused_argv):
    names = ("input_file", "output_file", "is_eval", "strict")
    try:
        report = validation.clean_file(**{name: flags.FLAGS[name].value for name in names})
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    for message in report.bad[:_MAX_BAD_SHOWN]:
        print(f"skipped {message}", file=sys.stderr)
    print(
        f"lines: {report.num_lines}, written: {report.num_written}, repeated: "
        f"{report.num_duplicates}, bad: {report.num_bad}, key phrases dropped: "
        f"{report.num_phrases_dropped}"
    )


if __name__ == "__main__":
    define_flags()
    app.run(main)
