"""Keeps the annotations of Natural Questions' dev set in a small file (JSON lines, gzip).

  python -m etcmodel.tasks.nq.make_gold_cache --gold_path='v1.0/dev/nq-dev-*.jsonl.gz' \
    --gold_cache_path=nq_dev_gold.jsonl.gz
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

    try:
        num_examples = gold.write_gold_cache(_GOLD_PATH.value, _GOLD_CACHE_PATH.value)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    print(f"{num_examples} examples: {_GOLD_CACHE_PATH.value}")


if __name__ == "__main__":
    app.run(main)
