"""The records that the rate of the input is measured with are such as a run reads."""

import re

from benchmarks import input_rate


def test_it_reads_as_many_examples_as_it_says(capsys):
    options = input_rate.InputRateOptions(
        long_seq_length=24,
        global_seq_length=8,
        num_records=6,
        batch_size=4,
        num_batches=3,
        rounds=1,
    )
    (rate,) = input_rate.measure(options)
    assert rate.examples == 12 and rate.seconds > 0 and rate.core_seconds > 0
    # Five features of long tokens, four of global ones, and three numbers, of four bytes each.
    assert rate.batch_bytes == 4 * (5 * 24 + 4 * 8 + 3)
    assert rate.record_bytes > 24
    input_rate.main(options)
    printed = capsys.readouterr().out
    assert re.search(r"^24 \+ 8 tokens, .* examples a second and core; ", printed, re.S)
