"""Keeps the annotations of Natural Questions' dev set in a small file (JSON lines, gzip).

  python -m etcmodel.tasks.nq.make_gold_cache --gold_path='v1.0/dev/nq-dev-*.jsonl.gz' \
    --gold_cache_path=nq_dev_gold.jsonl.gz

Malformed lines are left out, as preprocess leaves them out: each is named, and they are counted.
"""

import sys

from absl import app, flags

_GOLD_PATH = flags.DEFINE_string(
    "gold_path", None, "Natural Questions' files, wildcards allowed.", required=True
)
_GOLD_CACHE_PATH = flags.DEFINE_string(
    "gold_cache_path",
    None,
    "Where the annotations go. None: a file called cache, beside the gold files.",
)
_NUM_THREADS = flags.DEFINE_integer(
    "num_threads", None, "Accepted, as the release has it; no effect: one thread reads the files."
)


def main(unused_argv):
    from . import gold

    if _NUM_THREADS.present:
        print("--num_threads has no effect here: one thread reads the files.", file=sys.stderr)
    skipped = []

    def skip(message):
        skipped.append(message)
        print(f"left out: {message}", file=sys.stderr)

    try:
        path = _GOLD_CACHE_PATH.value or gold.default_cache_path(_GOLD_PATH.value)
        num_examples = gold.write_gold_cache(_GOLD_PATH.value, path, skip)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    left_out = f", {len(skipped)} malformed lines left out" if skipped else ""
    print(f"{num_examples} examples{left_out}: {path}")


if __name__ == "__main__":
    app.run(main)
