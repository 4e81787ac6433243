"""Extracts the annotations of Natural Questions' dev set into a small file (JSON lines, gzip).

  python -m etcmodel.tasks.nq.make_gold_cache --input_pattern='v1.0/dev/nq-dev-*.jsonl.gz' \
    --output_file=nq_dev_gold.jsonl.gz

Malformed lines are skipped, as in preprocess; each is reported, and their number is printed.
"""

import dataclasses
import sys

from etcmodel.options import Options, option, run_program


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldCacheOptions(Options):
    """The input and the output of the program."""

    aliases = {"gold_path": "input_pattern", "gold_cache_path": "output_file"}

    input_pattern: str = option("", "Natural Questions files; wildcards allowed.", is_needed=True)
    output_file: str | None = option(
        None, "File to write the annotations to. None: a file named cache, beside the gold files."
    )
    num_threads: int | None = option(
        None, "Accepted for compatibility with the release; no effect: one thread reads the files."
    )


def main(options):
    """Writes the cache that `GoldCacheOptions` describe, and prints its number of examples."""
    from . import examples

    if options.num_threads is not None:
        print("--num_threads has no effect here: one thread reads the files.", file=sys.stderr)
    skipped = []

    def skip(message):
        skipped.append(message)
        print(f"left out: {message}", file=sys.stderr)

    path = options.output_file or examples.default_cache_path(options.input_pattern)
    num_examples = examples.write_gold_cache(options.input_pattern, path, skip)
    left_out = f", {len(skipped)} malformed lines left out" if skipped else ""
    print(f"{num_examples} examples{left_out}: {path}")


if __name__ == "__main__":
    run_program(GoldCacheOptions, main)
