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
    "gold_cache_path", "gold_cache.jsonl.gz", "Where the annotations go."
)


def main(unused_argv):
    from . import gold

    skipped = []

    def skip(message):
        skipped.append(message)
        print(f"left out: {message}", file=sys.stderr)

    try:
        num_examples = gold.write_gold_cache(_GOLD_PATH.value, _GOLD_CACHE_PATH.value, skip)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    left_out = f", {len(skipped)} malformed lines left out" if skipped else ""
    print(f"{num_examples} examples{left_out}: {_GOLD_CACHE_PATH.value}")


if __name__ == "__main__":
    app.run(main)
