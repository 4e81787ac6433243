"""Tells on which TensorFlow operations the time of one encoder goes, on the processor alone.

The model has random weights and reads random tokens, none of them padding. Operations run one
after the other, each with all threads, so that their times add up. Prints a table.

  python -m benchmarks.profile --model=etc --length=4096 --phase=forward
"""

import collections
import dataclasses
import glob
import os
import tempfile
import time

from etcmodel.options import Options, option, run_program

__all__ = ["ProfileOptions", "self_times"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProfileOptions(Options):
    """What is profiled."""

    model: str = option(
        "etc", "Which one, of base size.", choices=("etc", "longformer", "big_bird", "modernbert")
    )
    phase: str = option("forward", "Forward pass, or training step.", choices=("forward", "train"))
    length: int = option(4096, "Tokens of each text.", lower_bound=1)
    global_length: int = option(230, "Global tokens, of ETC alone.", lower_bound=1)
    num_layers: int = option(12, "Layers, fewer for quicker answers.", lower_bound=1)
    batch: int = option(1, "Examples in a batch.", lower_bound=1)
    rounds: int = option(3, "Measured runs, of which the table is the mean.", lower_bound=1)
    rows: int = option(15, "Kinds of operations to print; the others are one row.", lower_bound=1)


def make_functions(options):
    """dict of 'forward' and 'train' to functions without arguments: see `worker`."""
    import numpy as np
    import tensorflow as tf

    from etcmodel.models import encoders
    from etcmodel.tools.benchmarks import worker

    if options.model == "etc":
        sizes = {"layers": options.num_layers, "batch": options.batch}
        return worker.etc_functions(options.length, options.global_length, **sizes)
    config = encoders.encoder_type(options.model).config_class(
        num_hidden_layers=options.num_layers,
        max_position_embeddings=max(options.length + 2, 512),
    )
    model = encoders.make_encoder(config)
    ids = np.random.default_rng(0).integers(5, config.vocab_size, [options.batch, options.length])
    tokens = tf.constant(ids, tf.int32)
    return worker.encoder_functions(lambda training: [model(tokens, training=training)[0]], model)


def self_times(events):
    """Sums the time that is an event's own, without the events within it.

    Args:
        events: iterable of (start, duration, name), of one thread.
    Returns:
        dict from names to (time, number).
    """
    found, stack = collections.defaultdict(lambda: [0, 0]), []
    for start, duration, name in sorted(events, key=lambda x: (x[0], -x[1])):
        while stack and start >= stack[-1][0]:
            stack.pop()
        if stack:
            found[stack[-1][1]][0] -= duration
        found[name][0] += duration
        found[name][1] += 1
        stack.append((start + duration, name))
    return {name: tuple(x) for name, x in found.items()}


def operations(folder):
    """What a profile in a folder has of each kind of operation: dict to (picoseconds, number)."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    (path,) = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    total = collections.defaultdict(lambda: [0, 0])
    for plane in space.planes:
        if plane.name != "/host:CPU":
            continue
        kinds = {}
        for key, metadata in plane.event_metadata.items():
            name, _, kind = metadata.name.rpartition(":")
            if name and not name.endswith(":") and kind.isidentifier():
                kinds[key] = kind
        for line in plane.lines:
            events = [
                (x.offset_ps, x.duration_ps, kinds[x.metadata_id])
                for x in line.events
                if x.metadata_id in kinds
            ]
            for kind, (duration, number) in self_times(events).items():
                total[kind][0] += duration
                total[kind][1] += number
    return total


def main(options):
    """Profiles what `ProfileOptions` ask for."""
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"
    import tensorflow as tf

    from etcmodel.tools.benchmarks import worker

    tf.config.set_visible_devices([], "GPU")
    functions = make_functions(options)
    run = worker.graph_phases({options.phase: functions[options.phase]})[options.phase]
    run()
    run()
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            start = time.perf_counter()
            for _ in range(options.rounds):
                run()
            seconds = (time.perf_counter() - start) / options.rounds
        found = operations(folder)
    rows = sorted(found.items(), key=lambda x: -x[1][0])
    rest = [sum(x) for x in zip(*(x for _, x in rows[options.rows :]), strict=True)]
    rows = [*rows[: options.rows], *([("others", rest)] if rest else [])]
    print(f"\n{options.phase}: {seconds:.3g} s\n")
    print("| operation | number | s | share |\n|---|---|---|---|")
    for kind, (duration, number) in rows:
        own = duration / 1e12 / options.rounds
        print(f"| {kind} | {number // options.rounds} | {own:.3f} | {own / seconds:.3f} |")


if __name__ == "__main__":
    run_program(ProfileOptions, main)
