"""The share of real tokens in training batches, counted by hand."""

import numpy as np

from benchmarks import real_tokens
from tests.records import write

LENGTHS = [*range(1, 33)] * 2  # Twice, so that batches of two can be of one length.


def test_sorted_batches_hold_hardly_any_padding(tmp_path, capsys):
    write(tmp_path / "train-0", *({"ids": [7] * n + [0] * (32 - n)} for n in LENGTHS))
    options = real_tokens.RealTokensOptions(
        train_data=str(tmp_path / "train-*"), token_ids="ids", batch_sizes=(4,)
    )
    # A pool holds all 64: four in a row by length are two of one length and two of the next.
    rows = [[n, n, n + 1, n + 1] for n in range(1, 33, 2)]
    skipped = np.sum(rows) / sum(max(row) * 4 for row in rows)
    assert real_tokens.shares(options, 4) == (np.mean(LENGTHS) / 32, skipped)
    real_tokens.main(options)
    assert capsys.readouterr().out.splitlines()[2:] == [f"| 4 | 0.516 | {skipped:.3f} |"]
