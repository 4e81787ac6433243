"""Compares an export of float32 with one of fewer bits: bytes, loading, a forward pass, outputs.

  python -m benchmarks.export_weights
  python -m benchmarks.export_weights --weights=int8 --length=4096
  python -m benchmarks.export_weights --exports=float32/250,bfloat16/250 --records='dev-*'

Without `--exports` it writes both of a base-size classifier with random weights. Each is loaded in
turns by processes of its own, which answer the same records, or one made-up example, twice; the
second time counts.
"""

import collections
import dataclasses
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

from etcmodel.options import Options, option, run_program

__all__ = ["WeightsOptions", "size_of"]

_LOAD = """
import json, sys, time
import numpy as np
import tensorflow as tf

def timed(run):
    start = time.perf_counter(), time.process_time()
    result = run()
    return result, [time.perf_counter() - start[0], time.process_time() - start[1]]

path, records, length, outputs = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
loaded, loading = timed(lambda: tf.saved_model.load(path))
if records:
    rows = list(tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(records))).batch(16))
    run = lambda: [loaded.signatures["serving_default"](examples=x) for x in rows]
else:
    ids = tf.constant([[7 + 5 * number % 30000 for number in range(length)]])
    run = lambda: [loaded.signatures["dense_features"](token_ids=ids)]
run()
found, forward = timed(lambda: [{name: x.numpy() for name, x in y.items()} for y in run()])
# Rows of a batch are as long as its longest.
arrays = {f"{name}/{i}": x for i, batch in enumerate(found) for name, x in batch.items()}
np.savez(outputs, **arrays)
print(json.dumps([loading, forward]))
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class WeightsOptions(Options):
    """What is compared, and how often it is loaded."""

    exports: tuple = option(
        (), "Two folders, that of float32 first. None: a classifier with random weights."
    )
    weights: str = option(
        "bfloat16",
        "What the second is stored in, without --exports.",
        choices=("bfloat16", "int8"),
    )
    length: int = option(512, "Tokens of the made-up example.", lower_bound=1)
    records: str = option("", "Pattern of TFRecords that the exports of --exports answer.")
    hidden_size: int = option(768, "Hidden size; a multiple of 64, the head size.", lower_bound=64)
    layers: int = option(12, "Number of layers of the encoder.", lower_bound=1)
    rounds: int = option(
        5, "Number of rounds after the first, which is not counted.", lower_bound=1
    )


def run(options):
    """Prints the figures.

    Raises:
        ValueError: if there are not two exports, or no records for them.
    """
    if bool(options.exports) != bool(options.records) or len(options.exports) not in (0, 2):
        raise ValueError("--exports needs two folders, and --records what they answer.")
    if options.records and not glob.glob(options.records):
        raise ValueError(f"--records={options.records}: there is no such file.")
    with tempfile.TemporaryDirectory() as folder:
        exports = options.exports or _written(options, folder)
        sizes = [size_of(path) for path in exports]
        outputs = [os.path.join(folder, f"{number}.npz") for number in range(2)]
        asked, seconds = [options.records, str(options.length)], [[], []]
        for _ in range(options.rounds + 1):
            for path, answers, found in zip(exports, outputs, seconds, strict=True):
                command = [sys.executable, "-c", _LOAD, path, *asked, answers]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
                found.append(json.loads(done.stdout))
        print(f"MB: {sizes[0] / 1e6:.1f}, {sizes[1] / 1e6:.1f}: {sizes[1] / sizes[0]:.3f}")
        for phase, what in enumerate(("loading", "forward")):
            for clock, unit in enumerate(("s", "CPU s")):
                pairs = [[x[phase][clock] for x in found[1:]] for found in seconds]
                one, other = map(statistics.median, pairs)
                ratios = [y / x for x, y in zip(*pairs, strict=True)]
                told = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                print(f"{what}, {unit}: {one:.2f}, {other:.2f}: {told}")
        for name, (most, differing) in _differences(outputs).items():
            print(f"{name}: differs by {most:.2g} at most; another maximum in {differing:.4f}")


def size_of(folder):
    """Bytes of all files in a folder."""
    return sum(
        os.path.getsize(os.path.join(place, name))
        for place, _, names in os.walk(folder)
        for name in names
    )


def _written(options, folder):
    import tensorflow as tf

    import etcmodel
    from etcmodel import serving

    config = etcmodel.EtcConfig(
        vocab_size=30522,
        hidden_size=options.hidden_size,
        num_hidden_layers=options.layers,
        num_attention_heads=options.hidden_size // 64,
        intermediate_size=4 * options.hidden_size,
    )
    model = etcmodel.EtcForSequenceClassification(config, num_labels=3)
    model.build(None)
    features = {"token_ids": tf.io.FixedLenFeature([512], tf.int64)}
    return [
        serving.export_saved_model(
            model, os.path.join(folder, weights), features=features, assets={}, weights=weights
        )
        for weights in ("float32", options.weights)
    ]


def _differences(outputs):
    """dict of output to (largest difference, share of rows whose largest entry is another).

    Args:
        outputs: list of two paths, of what both exports answered.
    """
    import numpy as np

    pairs = collections.defaultdict(list)
    with np.load(outputs[0]) as one, np.load(outputs[1]) as other:
        for place in one.files:
            if one[place].ndim > 1 and one[place].dtype.kind == "f":
                pairs[place.rpartition("/")[0]].append((one[place], other[place]))
    told = {}
    for name, found in pairs.items():
        others = [(np.argmax(x, -1) != np.argmax(y, -1)).ravel() for x, y in found]
        most = max(np.abs(x - y).max() for x, y in found)
        told[name] = most, np.mean(np.concatenate(others))
    return told


if __name__ == "__main__":
    run_program(WeightsOptions, run, section="export_weights")
