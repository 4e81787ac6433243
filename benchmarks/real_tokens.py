"""Measures the share of real tokens in training batches, without and with `--skip_padding`.

Reads the records of a task in training order, for one epoch, without a model. Prints a table with a
row for each batch size.

  python -m benchmarks.real_tokens --train_data='records/train-*'
"""

import dataclasses

from etcmodel.options import Options, option, run_program

__all__ = ["RealTokensOptions", "shares"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RealTokensOptions(Options):
    """Which records are read, and how."""

    train_data: str = option(
        "train-*", "TFRecords written by a task's preprocess; wildcards allowed."
    )
    token_ids: str = option("long_token_ids", "Feature with the token ids; 0 is padding.")
    batch_sizes: tuple[int, ...] = option((8, 16, 32), "Numbers of examples per step.")


def shares(options, batch_size):
    """The share of real tokens in the training batches of an epoch.

    Args:
        options: `RealTokensOptions`.
        batch_size: int.
    Returns:
        (whole, skipped): float, of batches as they are drawn, and of batches of about equal
        lengths that are encoded up to their longest row.
    """
    import tensorflow as tf  # Takes seconds, for which --help does not wait.

    from etcmodel import training
    from etcmodel.models import padding

    spec = {options.token_ids: tf.io.VarLenFeature(tf.int64)}

    def parse(record):
        ids = tf.io.parse_single_example(record, spec)[options.token_ids]
        return {"is_real": tf.sparse.to_dense(ids) != 0}

    def length_of(features):
        return tf.math.count_nonzero(features["is_real"])

    found = []
    for lengths_by, kept in ((None, lambda x: tf.shape(x)[1]), (length_of, padding.kept_length)):
        request = training.TrainDataRequest(
            global_batch_size=batch_size, seed=0, skip_examples=0, input_context=None
        )
        batches = training.training_batches(
            options.train_data, parse, request, length_of=lengths_by
        )
        real = encoded = 0
        for batch in batches.take(-(-training.count_examples(options.train_data) // batch_size)):
            is_real = batch["is_real"]
            real += int(tf.math.count_nonzero(is_real))
            encoded += int(kept(is_real)) * batch_size
        found.append(real / encoded)
    return tuple(found)


def main(options):
    """Prints the table."""
    print("| batch | real | real with --skip_padding |\n| --- | --- | --- |")
    for batch_size in options.batch_sizes:
        whole, skipped = shares(options, batch_size)
        print(f"| {batch_size} | {whole:.3f} | {skipped:.3f} |", flush=True)


if __name__ == "__main__":
    run_program(RealTokensOptions, main)
